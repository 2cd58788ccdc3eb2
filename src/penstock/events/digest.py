"""A summary as plain data, for `penstock events --json`, benchmarks and reports."""

from __future__ import annotations

from typing import Any

from penstock.events.histogram import Histogram
from penstock.events.measures import QueryMeasures, QueueMeasures, StreamMeasures
from penstock.events.orders import OrderMeasures
from penstock.events.summary import Summary


def digest(summary: Summary) -> dict[str, Any]:
    """Everything a summary holds, ready for `json.dumps`.

    >>> digest(Summary())["accounting"]
    {'balanced': True, 'faults': []}
    """
    faults = summary.accounting()
    return {
        "run": _run(summary),
        "streams": [_stream(summary, stream) for stream in list(summary.streams.values())],
        "queries": [_query(summary, query) for query in list(summary.queries.values())],
        "relations": [{"name": one.name, "version": one.version, "rows": one.rows,
                       "since": dict(one.since), "changed": one.changed, "read": one.read,
                       "reason": one.reason} for one in list(summary.relations.values())],
        "queues": [_queue(queue) for queue in list(summary.queues.values())],
        "conjunctions": [{"path": one.name, **_order(one)}
                         for one in list(summary.conjunctions.values())],
        "probes": [{"join": join, "stream": one.name, **_order(one)}
                   for join, known in list(summary.probes.items())
                   for one in list(known.values())],
        "warnings": [{"subject": w.subject, "text": w.text} for w in list(summary.warnings)],
        "accounting": {"balanced": not faults, "faults": faults},
    }


def _run(summary: Summary) -> dict[str, Any]:
    run = summary.run
    return {
        "state": run.state,
        "reason": run.reason,
        "checkpoint": run.checkpoint,
        "policies": dict(run.policies),
        "cores": run.cores,
        "started": run.started,
        "seconds": run.seconds,
        "runs": run.finished,
        "runs_failed": run.failed,
        "refreshes": run.refreshes,
        "jobs": run.jobs,
        "bytes_out": run.bytes_out,
        "seconds_running": run.seconds_running,
        "seconds_deciding": run.seconds_deciding,
        "driver_peak": run.driver_peak,
        "jvm_peak": run.jvm_peak,
        "synopses_peak": run.synopses_peak,
        "spool_waited": run.waited,
        "memory": run.memory,
        "waiting_bytes": run.waiting_bytes,
        "waiting_bytes_peak": run.waiting_peak,
        "hot_bytes": run.hot_bytes,
        "hot_bytes_peak": run.hot_peak,
        "seconds_to_answer": run.seconds_to_answer,
        "latency": _latency(summary.latency()),
        "recent_latency": _latency(summary.recent_latency()),
        "lag": _latency(summary.lag()),
        "recent_lag": _latency(summary.recent_lag()),
        "block_latency": _latency(summary.latency_of_blocks()),
        "missed_blocks": summary.missed()[0],
        "missed_rows": summary.missed()[1],
        "skipped": summary.run.skipped,
        "profiled": summary.profiling.rows,
        "seconds_profiling": summary.profiling.seconds,
        "partitions_with_own_order": summary.profiling.partitions,
    }


def _stream(summary: Summary, stream: StreamMeasures) -> dict[str, Any]:
    return {
        "name": stream.name,
        "state": stream.state,
        "reason": stream.reason,
        "retries": stream.retries,
        "blocks": stream.blocks,
        "read": stream.read,
        "kept": stream.kept,
        "late": stream.late,
        "rejected": stream.rejected,
        "files": stream.files,
        "files_rejected": stream.files_rejected,
        "rate": summary.rate(stream.name),
        "watermark": stream.watermark,
        "progress": stream.progress,
        "total": stream.total,
        "unit": stream.unit,
        "fraction": stream.fraction,
        "waiting_blocks": len(stream.queue.waiting),
        "waiting_rows": stream.queue.rows,
        "waiting_bytes": stream.queue.bytes,
        "waiting_bytes_peak": stream.queue_peak,
        "hot_bytes": stream.hot_bytes,
        "hot_bytes_peak": stream.hot_peak,
    }


def _query(summary: Summary, query: QueryMeasures) -> dict[str, Any]:
    now = summary.run.now
    return {
        "name": query.name,
        "state": query.state,
        "reason": query.reason,
        "sink": ", ".join(query.sinks),
        "rows_in": query.rows_in,
        "rows_out": query.rows_out,
        "filtered": query.filtered,
        "late": query.late,
        "rejected": query.rejected,
        "added": query.added,
        "delivered_before": query.delivered_before,
        "last_delivery": query.last_delivery,
        "window": query.window,
        "gap": query.gap,
        "join": query.join,
        "join_rows": query.join_rows,
        "answers": query.answers,
        "skipped": query.skipped,
        "last_end": query.last_end,
        "latency_goal": query.latency_goal,
        "latency": _latency(query.latency.whole()),
        "recent_latency": _latency(query.latency.last_minute(now)),
        "lag": _latency(query.lag.whole()),
        "recent_lag": _latency(query.lag.last_minute(now)),
        "block_latency": _latency(query.block_latency),
        "missed_blocks": query.missed_blocks,
        "missed_rows": query.missed_rows,
    }


def _queue(queue: QueueMeasures) -> dict[str, Any]:
    return {
        "name": queue.name,
        "entries": queue.entries,
        "bytes": queue.bytes,
        "hot_bytes": queue.hot,
        "cold_bytes": queue.cold,
        "bytes_peak": queue.peak,
    }


def _order(order: OrderMeasures) -> dict[str, Any]:
    return {
        "order": order.order,
        "changes": order.changes,
        "changed": order.changed,
        "reason": order.reason,
        "seconds_before": order.before,
        "seconds_after": order.after,
        "profiled": order.rows,
        "matrix": order.matrix,
    }


def _latency(histogram: Histogram) -> dict[str, float | None]:
    return {
        "p50": histogram.percentile(0.5),
        "p99": histogram.percentile(0.99),
        "max": histogram.maximum if histogram.weight else None,
    }
