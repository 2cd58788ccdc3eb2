"""Window aggregates on Spark: every answer is DuckDB's over the same rows and window.

The application comes from a fixed seed; ``PENSTOCK_SEED=7 python -m pytest ...`` looks further.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.events import kinds as ev
from tests.spark.asks import BEGIN, COLUMNS, HOSTS, ORDERED, Ask, alike, asks, check, feed, keyed
from tests.spark.feeds import write
from tests.spark.kit import eventually
from tests.spark.oracle import Oracle, Table

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
FUNCTIONS = """
import penstock
import pyarrow.compute as pc

CALLS = []

def got(query, table):
    CALLS.append(table)

@penstock.predicate
def odd(length):
    return pc.equal(pc.bit_wise_and(length, 1), 1)
"""
SINKS = {
    "own": " INTO parquet 'out/own'", "one": " INTO parquet 'out/shared'",
    "two": " INTO parquet 'out/shared'", "text": " INTO csv 'out/text'",
    "lines": " INTO json 'out/lines'", "called": " INTO callback 'aggregate_functions:got'",
    "counted": " INTO noop", "having": " INTO parquet 'out/having'",
}
SINK_ASKS = [
    Ask(name, ("COUNT(*)", "SUM(length)"), 10, 3, keys=("src",), sink=sink,
        having="COUNT(*) > 3" if name in ("having", "two", "lines") else "")
    for name, sink in SINKS.items()]
ORDERED_ASKS = [
    Ask("ordered", tuple(ORDERED), 20, 5, keys=("src",)),
    Ask("ordered_all", tuple(list(ORDERED)[:-1]), 10, 3, "hop", where="odd(length)")]
SESSIONS = {
    "sessions_by": ("src AS k0, COUNT(*) AS n, SUM(length) AS total, "
                    "COLLECT_LIST(port, 3) AS ports",
                    "src, SESSION(ts, INTERVAL '3' SECOND)"),
    "sessions_wide": ("src AS k0, COUNT(*) AS n, MEDIAN(length) AS middle",
                      "src, session_window(ts, '20 seconds') HAVING COUNT(*) > 4"),
    "sessions_all": ("COUNT(*) AS n, COUNT(DISTINCT port) AS ports",
                     "SESSION(ts, INTERVAL '500' MILLISECONDS)"),
}
"""The SELECT lists and groups of sessions; those of the last are longer than 48 gaps."""
SESSION_SQL = "".join(f"CREATE QUERY {name} AS SELECT {select} FROM packets GROUP BY {by};"
                      for name, (select, by) in SESSIONS.items())
EMPTY_SQL = """
    CREATE QUERY empty_by AS SELECT src AS k0, COUNT(*) AS n, SUM(length) AS total,
        COUNT(DISTINCT port) AS ports, TOPK(port, 1) AS top FROM packets
        GROUP BY src, HOP(ts, INTERVAL '1' SECOND, INTERVAL '2' SECOND) EMPTY GROUPS FOR 5 SECONDS;
    CREATE QUERY empty_all AS SELECT COUNT(*) AS n, AVG(length) AS mean
        FROM packets [WINDOW 1 SECOND SLIDE EXACTLY 500 MS] WHERE odd(length) AND src = 8
        EMPTY GROUPS FOR 20 SECONDS HAVING COUNT(*) = 0;
"""
"""The hours between rows are longer than any group is known."""
TIMELESS = Ask("timeless", ("COUNT(*)", "MAX(length)"), 2, 0.5, keys=("src",), stream="bare")
TOP = """
    CREATE QUERY top AS SELECT src AS k0, TOPK(port, 2) AS v0, TOPK(name, 3, length) AS v1
        FROM packets [WINDOW 20 SECONDS SLIDE 5 SECONDS] GROUP BY src;
    CREATE QUERY about AS SELECT src AS k0, APPROX_COUNT_DISTINCT(length) AS v0,
        APPROX_COUNT_DISTINCT(length, 'fm') AS v1, APPROX_PERCENTILE(length, 0.5) AS v2,
        APPROX_F2(port) AS v3, APPROX_TOPK(port, 2) AS v4, COUNT(length) AS v5
        FROM packets [WINDOW 20 SECONDS SLIDE 5 SECONDS] GROUP BY src;
"""


def declared(folder: Path, queries: list[Ask], more: str = "") -> str:
    stream = feed(SEED)
    bare = replace(stream, table=Table("bare", COLUMNS[1:], ()), lateness=None)
    (folder / "aggregate_functions.py").write_text(FUNCTIONS)
    return "\n".join([
        stream.statement("STREAM"), bare.statement("STREAM"),
        "CREATE RELATION hosts (id INT, site STRING) FROM parquet 'hosts';",
        "CREATE FUNCTION odd FROM 'aggregate_functions:odd';",
        *(ask.sql for ask in queries), more])


def put(folder: Path) -> None:
    """The data of the application."""
    stream = feed(SEED)
    write(stream.table, folder / "packets", "parquet", stream.cuts)
    bare = Table("bare", COLUMNS[1:], tuple(row[1:] for row in stream.table.rows))
    write(bare, folder / "bare", "parquet", stream.cuts)
    write(HOSTS, folder / "hosts", "parquet")


@pytest.fixture(scope="module")
def shared(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run of all queries: what each answered, where the files are, and when blocks came."""
    from penstock.api import Engine

    folder = tmp_path_factory.mktemp("aggregates")
    put(folder)
    queries = [*asks(SEED, 30), *ORDERED_ASKS, *SINK_ASKS, TIMELESS]
    arrived: dict[int, float] = {}

    def watch(event: ev.Event) -> None:
        if isinstance(event, ev.BlockArrived) and event.block.stream == "bare":
            arrived[event.block.number] = event.block.arrived

    sys.modules.pop("aggregate_functions", None)
    with Engine(spark=spark, checkpoint=folder / "checkpoint", on_event=watch) as engine:
        engine.execute(declared(folder, queries, TOP + SESSION_SQL + EMPTY_SQL), folder=folder)
        summary = engine.run()
        assert (summary.run.state, summary.failures()) == ("drained", [])
        assert summary.accounting() == []
        kept = {name: engine.results(name) for name, query in engine.application.queries.items()
                if query.sink.kind in ("memory", "parquet")}
    return {"folder": folder, "queries": {ask.name: ask for ask in queries}, "kept": kept,
            "summary": summary, "arrived": arrived}


@pytest.fixture(scope="module")
def oracle(shared: dict[str, Any]) -> Oracle:
    """DuckDB over the rows that are not late; those of `bare` have the time of their arrival."""
    stream = feed(SEED)
    times = shared["arrived"]
    rows = [(datetime.fromtimestamp(times[number], UTC).replace(
                microsecond=round(times[number] * 1e6) % 1_000_000), *row[1:])
            for number, block in enumerate(stream.blocks()) for row in block]
    return Oracle([stream.punctual(), HOSTS, Table("bare", COLUMNS, tuple(rows))])


def test_generated_aggregates_give_the_answers_of_duckdb(
    shared: dict[str, Any], oracle: Oracle
) -> None:
    late = len(feed(SEED).table.rows) - len(feed(SEED).punctual().rows)
    assert late > 10
    assert shared["summary"].streams["packets"].late == late
    faults = []
    for name, ask in shared["queries"].items():
        if name in shared["kept"] and name != "timeless":
            try:
                check(ask, shared["kept"][name], oracle)
            except AssertionError as fault:
                faults.append(str(fault)[:600])
    assert not faults, "\n\n".join(faults)


def sessions(gap: float, by_source: bool) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The rows of each session, by key and first time; long ones are cut at multiples of 48 gaps.
    """
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    apart, most = timedelta(seconds=gap), timedelta(seconds=48 * gap)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    rows = [row for row in feed(SEED).punctual().rows if row[0] is not None]
    for key in dict.fromkeys(row[1] if by_source else None for row in rows):
        begun = last = cut = None
        mine = sorted((r for r in rows if not by_source or r[1] == key), key=lambda r: r[0])
        for row in mine:
            if last is None or row[0] - last >= apart:
                begun, cut = row[0], None
            else:
                bound = epoch + (row[0] - epoch) // most * most
                if bound - begun >= most:
                    cut = bound
            found.setdefault((key, begun, cut), []).append(row)
            last = row[0]
    return {(key, rows[0][0]): rows for (key, _, _), rows in found.items()}


def _plain(answers: dict[tuple[Any, ...], Any]) -> dict[tuple[Any, ...], Any]:
    """Answers with times as DuckDB tells them."""
    return {tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in key): told
            for key, told in answers.items()}


@pytest.mark.parametrize("name, gap", [
    ("sessions_by", 3), ("sessions_wide", 20), ("sessions_all", 0.5)])
def test_sessions_are_those_of_plain_python(shared: dict[str, Any], name: str, gap: float) -> None:
    wanted = {}
    for (key, begun), rows in sessions(gap, name != "sessions_all").items():
        lengths = sorted(row[3] for row in rows if row[3] is not None)
        ports = sorted((row[0], row[2]) for row in rows if row[2] is not None)
        n, half = len(lengths), len(lengths) // 2
        middle = (lengths[half] + lengths[half - (n + 1) % 2]) / 2 if n else None
        told = {"sessions_by": (len(rows), sum(lengths) if lengths else None,
                                [port for _, port in ports[:3]] or None),
                "sessions_wide": (len(rows), middle),
                "sessions_all": (len(rows), len({port for _, port in ports}))}[name]
        if name != "sessions_wide" or len(rows) > 4:
            keys = () if name == "sessions_all" else (key,)
            ends = rows[-1][0] + timedelta(seconds=gap)
            wanted[(begun, ends, *keys)] = told
    found = keyed(_rows(shared["kept"][name]), 0 if name == "sessions_all" else 1)
    assert found == _plain(wanted)
    if name == "sessions_all":
        assert any(len(rows) > 20 for rows in sessions(gap, False).values())


def ends(rows: list[tuple[Any, ...]], window: float, slide: float, kept: float) -> dict[
    tuple[datetime, datetime], tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]]:
    """Each window up to the last row, with the rows in it, and those that make groups known."""
    epoch, step = datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=slide)
    length, before = timedelta(seconds=window), timedelta(seconds=kept)
    latest, found = max(row[0] for row in rows), {}
    coming = {row[0] - (row[0] - epoch) % step + step * n for row in rows
              for n in range(1, int((window + kept) / slide) + 1)}
    for end in sorted(end for end in coming if end - length <= latest):
        known = [row for row in rows if end - length - before <= row[0] < end]
        found[end - length, end] = [r for r in known if r[0] >= end - length], known
    return found


def test_groups_without_rows_are_answered_while_they_are_known(shared: dict[str, Any]) -> None:
    rows = [row for row in feed(SEED).punctual().rows if row[0] is not None]
    wanted = {}
    for (start, end), (inside, known) in ends(rows, 2, 1, 5).items():
        for key in {row[1] for row in known}:
            mine = [row for row in inside if row[1] == key]
            lengths = [row[3] for row in mine if row[3] is not None]
            ports = [row[2] for row in mine if row[2] is not None]
            counted = sorted((-ports.count(port), port) for port in set(ports))
            top = [{"value": port, "count": -count} for count, port in counted[:1]]
            wanted[start, end, key] = (len(mine), sum(lengths) if lengths else None,
                                       len(set(ports)), top)
    assert _plain(wanted) == keyed(_rows(shared["kept"]["empty_by"]), 1)
    assert sum(not told[0] for told in wanted.values()) > 100
    odd = [row for row in rows if row[1] == 8 and row[3] is not None and row[3] % 2]
    silent = {window: (0, None) for window, (inside, _) in ends(odd, 1, 0.5, 20).items()
              if not inside}
    assert _plain(silent) == keyed(_rows(shared["kept"]["empty_all"]), 0) != {}


def test_without_a_time_rows_have_that_of_their_arrival(
    shared: dict[str, Any], oracle: Oracle
) -> None:
    check(TIMELESS, shared["kept"]["timeless"], oracle)


def test_every_sink_gets_every_answer_once(shared: dict[str, Any], oracle: Oracle) -> None:
    folder = shared["folder"]
    read = {"text": f"read_csv('{folder}/out/text/*', header = true)",
            "lines": f"read_json('{folder}/out/lines/*')"}
    for name, source in read.items():
        found = duckdb.sql(f"SELECT window_start::TIMESTAMP, window_end::TIMESTAMP, k0, v0, v1 "
                           f"FROM {source}").arrow()
        check(shared["queries"][name], found.read_all() if hasattr(found, "read_all") else found,
              oracle)
    check(shared["queries"]["called"],
          pa.concat_tables(sys.modules["aggregate_functions"].CALLS), oracle)
    for name in SINKS:
        wanted = len(oracle.rows(shared["queries"][name].oracle))
        assert shared["summary"].queries[name].rows_out == wanted, name
    both = pq.read_table(folder / "out/shared")
    assert set(both["query"].to_pylist()) == {"one", "two"}


def test_the_most_frequent_values_are_duckdbs(shared: dict[str, Any], oracle: Oracle) -> None:
    """Values of one count go by their order, those of one sum too."""
    counted = Ask("counted", ("COUNT(*)",), 20, 5, keys=("src", "port"))
    summed = Ask("summed", ("COALESCE(SUM(length), -1)",), 20, 5, keys=("src", "name"))
    for place, ask, most in ((0, counted, 2), (1, summed, 3)):
        wanted: dict[tuple, list] = {}
        for (*key, value), (count,) in keyed(oracle.rows(ask.oracle), 2).items():
            group = wanted.setdefault(tuple(key), [])
            if value is not None and count != -1:
                group.append((-count, value))
        found = keyed(_rows(shared["kept"]["top"]), 1)
        assert found.keys() == wanted.keys()
        for key, values in found.items():
            got = [(-next(v for k, v in one.items() if k != "value"), one["value"])
                   for one in values[place] or ()]
            assert [size for size, _ in got] == [size for size, _ in sorted(wanted[key])[:most]]
            assert set(got) <= set(wanted[key])


def test_approximate_answers_are_within_their_error(
    shared: dict[str, Any], oracle: Oracle
) -> None:
    values = keyed(oracle.rows(Ask(
        "v", ("list(length)", "list(port)"), 20, 5, keys=("src",)).oracle), 1)
    found = keyed(_rows(shared["kept"]["about"]), 1)
    assert found.keys() == values.keys()
    kept: list[tuple[bool, ...]] = []
    for key, (hll, fm, median, f2, top, count) in found.items():
        lengths = [v for v in values[key][0] if v is not None]
        ports = [v for v in values[key][1] if v is not None]
        assert count == len(lengths)
        if not lengths or not ports:
            continue
        sizes = sorted((ports.count(port) for port in set(ports)), reverse=True)
        distinct, squares = len(set(lengths)), sum(size * size for size in sizes)
        off = 0.0165 + 1 / count  # a rank is a whole number
        kept.append((
            abs(hll - distinct) <= max(1, 0.0325 * distinct),
            abs(fm - distinct) <= max(2, 0.06 * distinct),
            sum(v < median for v in lengths) / count - off <= 0.5,
            sum(v <= median for v in lengths) / count + off >= 0.5,
            abs(f2 - squares) <= 0.088 * squares,
            all(0 <= one["count"] - size <= 0.0014 * len(ports)
                for one, size in zip(top, sizes[:2], strict=True))))
    assert len(kept) > 100
    assert all(sum(some) >= 0.95 * len(kept) for some in zip(*kept, strict=True))


@pytest.mark.parametrize("number", [
    5, pytest.param(6, marks=pytest.mark.long), pytest.param(9, marks=pytest.mark.long)])
def test_a_query_alone_answers_as_it_does_among_others(
    engine: Callable[..., Any], tmp_path: Path, shared: dict[str, Any], number: int
) -> None:
    ask = asks(SEED, 30)[number]
    put(tmp_path)
    with engine() as e:
        e.execute(declared(tmp_path, [ask]), folder=tmp_path)
        assert e.run().run.state == "drained"
        alone, among = (keyed(_rows(table), len(ask.keys))
                        for table in (e.results(ask.name), shared["kept"][ask.name]))
    assert alone.keys() == among.keys()
    for key, values in alone.items():  # panes of another length are added up in another order
        assert all(map(alike, values, among[key])), (key, values, among[key])


# --- live ----------------------------------------------------------------------------------------

LIVE = """
    CREATE STREAM packets (ts TIMESTAMP, src INT, length INT) FROM parquet 'packets'
        OPTIONS (maxFilesPerTrigger = 1) TIME ts LATENESS 2 SECONDS;
"""
FIRST = Ask("first", ("COUNT(*)", "SUM(length)"), 6, 3, "exactly", ("src",))
LONGER = Ask("longer", ("COUNT(*)",), 25, 5, "exactly", ("src",))
FINER = Ask("finer", ("MAX(length)",), 7, 1, "exactly", ("src",))
OTHER = Ask("other", ("COUNT(*)",), 12, 4, "exactly", (), "odd(length)")
STEP = 10
"""Seconds of one file."""


class Feeder:
    """Puts one file after the other into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0
        self.rows: list[tuple[Any, ...]] = []
        folder.mkdir()

    def put(self, count: int) -> None:
        """So many more."""
        for _ in range(count):
            rows = [(BEGIN + timedelta(seconds=self.files * STEP + n / 4), n % 3, n * self.files)
                    for n in range(4 * STEP)]
            self.rows += rows
            table = Table("packets", LIVE_COLUMNS, tuple(rows)).arrow()
            hidden = self.folder / f".{self.files}.parquet"
            pq.write_table(table, hidden)
            # Spark reads files in the order of their times, to the millisecond; of two that are
            # equal the later one may come first, and then the rows of the other are late.
            os.utime(hidden, (1_700_000_000 + self.files,) * 2)
            hidden.rename(self.folder / f"{self.files}.parquet")
            self.files += 1

    @property
    def closed(self) -> int:
        """The second up to which all has come that is not late."""
        return self.files * STEP - 3


LIVE_COLUMNS = tuple(column for column in COLUMNS if column[0] in ("ts", "src", "length"))


def test_queries_that_come_and_go_while_it_runs_change_no_other_answer(
    engine: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "aggregate_functions.py").write_text(FUNCTIONS)
    feeder = Feeder(tmp_path / "packets")
    found: dict[str, pa.Table] = {}
    with engine() as e:
        e.execute(LIVE + "CREATE FUNCTION odd FROM 'aggregate_functions:odd';" + FIRST.sql,
                  folder=tmp_path)
        e.start()
        feeder.put(3)
        answered(e, FIRST, feeder)
        e.execute(LONGER.sql + FINER.sql, folder=tmp_path)  # more panes, and shorter ones
        feeder.put(1)
        e.execute(OTHER.sql, folder=tmp_path)
        for ask in (FIRST, LONGER, FINER):
            answered(e, ask, feeder)
        found["finer"] = e.results("finer")
        e.execute("DROP QUERY finer;")  # panes are longer again
        feeder.put(1)
        for ask in (FIRST, LONGER, OTHER):
            answered(e, ask, feeder)
        e.stop()
        feeder.put(1)
        e.start()  # the panes are made of the spool, and answers go on where they were
        answered(e, FIRST, feeder)
        e.stop()
        feeder.put(1)
        assert e.run().run.state == "drained"
        found |= {ask.name: e.results(ask.name) for ask in (FIRST, LONGER, OTHER)}
    oracle = Oracle([Table("packets", LIVE_COLUMNS, tuple(feeder.rows))])
    joined = {"first": 0, "longer": 27, "finer": 27, "other": 27}
    for ask in (FIRST, LONGER, FINER, OTHER):
        got = found[ask.name]
        ends = sorted({second(end) for end in got["window_end"].to_pylist()})
        assert joined[ask.name] < ends[0] <= joined[ask.name] + STEP + ask.slide
        upto = 37 if ask is FINER else 1 << 40
        check(ask, got, oracle, lambda end, least=ends[0], upto=upto: least <= second(end) <= upto)


def answered(engine: Any, ask: Ask, feeder: Feeder) -> None:
    """Wait until a query has answered for the last end whose rows have come."""
    wanted = feeder.closed // ask.slide * ask.slide

    def has_answered() -> bool:
        status = engine.status()
        assert (status.run.state, status.failures()) == ("running", []), status.run.reason
        ends = engine.results(ask.name)["window_end"].to_pylist()
        return max(map(second, ends), default=0) >= wanted

    # How long that takes is a matter of the machine: on a busy one a cold JVM needs a minute.
    eventually(has_answered, f"{ask.name} has answered for {wanted}", seconds=240)


def second(end: datetime) -> int:
    """Since the beginning."""
    return round((end.replace(tzinfo=UTC) - BEGIN).total_seconds())


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
