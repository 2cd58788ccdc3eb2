"""What `penstock explain` shows: streams, paths, who shares them, and where each query delivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from penstock.model import Application, Query, Sink, Stream
from penstock.plan import Key, Operator, Path, Plan, Shape
from penstock.planning.fanout import Fanout, Lookup, fan_out
from penstock.planning.shapes import conjunction
from penstock.rendering import render

Segments: TypeAlias = Mapping[str, Sequence[Sequence[str]]]
"""For each path its segments, each the ids of the operators that always run together."""

_MOST_NAMES = 8
_MOST_SHAPES = 16


def explain(application: Application, plan: Plan, segments: Segments | None = None) -> str:
    """The plan as text; long lists of names are shortened.

    Without ``segments`` every path is one segment, as under FIFO.
    """
    told = explain_json(application, plan, segments)
    parts = (
        _section("streams", [line for stream in told["streams"] for line in _stream_text(stream)]),
        _section("paths", [line for path in told["paths"] for line in _path_text(path)]),
        _section("queries", list(_queries_text(told["queries"]))),
    )
    return "\n".join(part for part in parts if part)


def explain_json(
    application: Application, plan: Plan, segments: Segments | None = None
) -> dict[str, Any]:
    """The plan as data for JSON, with every name."""
    return {
        "streams": [_stream(stream, plan) for stream in application.streams.values()],
        "paths": [_path(plan, path, segments) for path in plan.paths],
        "queries": [_query(plan, query) for query in plan.queries],
    }


# --- as data ---------------------------------------------------------------------------------


def _stream(stream: Stream, plan: Plan) -> dict[str, Any]:
    return {
        "name": stream.name,
        "columns": {column.name: str(column.type) for column in stream.columns},
        "format": stream.format,
        "path": stream.path,
        "time": stream.time,
        "lateness": stream.lateness,
        "read_by": [path.id for path in plan.paths if path.stream == stream.name],
    }


def _path(plan: Plan, path: Path, segments: Segments | None) -> dict[str, Any]:
    shared = len(path.members) > 1
    return {
        "id": path.id,
        "stream": path.stream,
        "relations": [join.relation for join in path.joins],
        "expensive": path.expensive,
        "queries": list(dict.fromkeys(member.query for member in path.members)),
        "members": [str(member) for member in path.members],
        "operators": [_operator(operator) for operator in path.operators],
        "segments": _segments(path, segments),
        **(_sharing(plan, path) if shared else {}),
    }


def _operator(operator: Operator) -> dict[str, str]:
    return {"id": operator.id, "kind": operator.kind, "text": operator.text}


def _segments(path: Path, segments: Segments | None) -> list[list[str]]:
    whole = [[operator.id for operator in path.operators]]
    return [list(segment) for segment in (segments or {}).get(path.id, whole)]


def _sharing(plan: Plan, path: Path) -> dict[str, Any]:
    fanout = fan_out([plan.branch(member) for member in path.members])
    return {
        "lookups": [_lookup(lookup) for lookup in fanout.lookups],
        "shapes": _shapes(fanout, path),
        "table_rows": fanout.table.num_rows,
    }


def _lookup(lookup: Lookup) -> dict[str, Any]:
    expression = lookup.key.expression
    told: dict[str, Any] = {"kind": lookup.key.kind, "text": _looked_up(lookup.key)}
    if expression is not None:
        told["expression"] = render(expression)
    if lookup.grid is not None:
        told["bins"] = lookup.grid.last - lookup.grid.first + 1
    return told


def _looked_up(key: Key) -> str:
    if key.expression is None:
        return "asked of every row"
    shown = render(key.expression)
    return f"one look-up by {shown}" if key.kind == "equal" else f"one look-up by bin of {shown}"


def _shapes(fanout: Fanout, path: Path) -> list[dict[str, Any]]:
    """The conditions that occur, with who has them; what the members select is left out."""
    told: dict[tuple[str, str], list[int]] = {}
    for shape, riders in zip(fanout.shapes, fanout.riders, strict=True):
        told.setdefault((_conditions(shape), _looked_up(shape.key)), []).extend(riders)
    return [
        {
            "conditions": conditions,
            "lookup": lookup,
            "count": len(riders),
            "members": [str(path.members[n]) for n in sorted(riders)],
        }
        for (conditions, lookup), riders in told.items()
    ]


def _conditions(shape: Shape) -> str:
    return conjunction(shape.where) or "every row"


def _query(plan: Plan, query: Query) -> dict[str, Any]:
    return {
        "name": query.name,
        "sink": {"kind": query.sink.kind, "target": query.sink.target},
        "latency": query.latency,
        "priority": query.priority,
        "lifetime": query.lifetime,
        "start": query.start,
        "paths": [path.id for path in plan.paths_of(query.name)],
    }


# --- as text ---------------------------------------------------------------------------------


def _section(title: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"  {line}".rstrip() for line in lines).rstrip()
    return f"{title}\n{body}\n" if body else ""


def _stream_text(stream: Mapping[str, Any]) -> Iterator[str]:
    columns = ", ".join(f"{name} {type_}" for name, type_ in stream["columns"].items())
    yield f"{stream['name']} ({columns})"
    source = f"{stream['format']} '{stream['path']}'" if stream["path"] else stream["format"]
    time = f", time {stream['time']}" if stream["time"] else ", time of arrival"
    late = f", lateness {stream['lateness']:g} s" if stream["lateness"] else ""
    yield f"    from {source}{time}{late}"
    yield f"    read once, for {_names(stream['read_by'], 'paths')}"


def _path_text(path: Mapping[str, Any]) -> Iterator[str]:
    count = len(path["segments"])
    yield f"{path['id']}: {_whose(path)}, {'one segment' if count == 1 else f'{count} segments'}"
    operators = {operator["id"]: operator for operator in path["operators"]}
    last = path["operators"][-1]["id"]
    for number, segment in enumerate(path["segments"], start=1):
        mark = f"segment {number}" if len(path["segments"]) > 1 else ""
        for id in segment:
            operator = operators[id]
            line = f"{operator['kind']:<8} {operator['text']}"
            yield f"{'└─' if id == last else '├─'} {f'{line:<60} {mark}' if mark else line}"
            if operator["kind"] == "fanout":
                yield from (f"│    {line}" for line in _shapes_text(path))
            mark = mark and "    ″"
    yield ""


def _whose(path: Mapping[str, Any]) -> str:
    source = " with ".join([path["stream"], *path["relations"]])
    if len(path["members"]) == 1:
        return f"{path['members'][0]} over {source}"
    return f"{_names(path['members'], 'queries')} share {source}"


def _shapes_text(path: Mapping[str, Any]) -> Iterator[str]:
    shapes = sorted(path["shapes"], key=lambda shape: -shape["count"])
    shown = shapes[:_MOST_SHAPES]
    wide = max(len(str(shape["count"])) for shape in shown)
    long = min(max(len(shape["conditions"]) for shape in shown), 56)
    for shape in shown:
        yield f"{shape['count']:>{wide}} x {shape['conditions']:<{long}}  ({shape['lookup']})"
    if len(shapes) > len(shown):
        rest = sum(shape["count"] for shape in shapes[_MOST_SHAPES:])
        yield f"{rest:>{wide}} x {len(shapes) - len(shown)} other conditions"


def _queries_text(queries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Queries that deliver to the same place over the same paths, in one line."""
    groups: dict[tuple[str, str], list[str]] = {}
    for query in queries:
        sink = _sink_text(Sink(**query["sink"]))
        groups.setdefault((sink, _names(query["paths"], "paths")), []).append(query["name"])
    for (sink, paths), names in groups.items():
        yield f"{_names(names, 'queries')} -> {sink}, on {paths}"


def _sink_text(sink: Sink) -> str:
    return sink.kind if sink.target is None else f"{sink.kind} '{sink.target}'"


def _names(names: Iterable[str], what: str) -> str:
    """A list of names, shortened.

    >>> _names(["a", "b"], "queries"), _names(map(str, range(500)), "queries")
    ('a, b', '0, 1, 2, ... (500 queries in all)')
    """
    listed = list(names)
    if len(listed) <= _MOST_NAMES:
        return ", ".join(listed) or f"no {what}"
    return f"{', '.join(listed[:3])}, ... ({len(listed)} {what} in all)"
