"""What a run looks like, at several sizes of the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from penstock.events import (
    AnswersSkipped,
    BlockArrived,
    BlockHot,
    EngineStarted,
    EngineStopped,
    Event,
    FileSetAside,
    JobDecided,
    JobFinished,
    Memory,
    OrderChanged,
    PathWork,
    ProbeResult,
    ProbesReordered,
    ProbeWork,
    QueryAdded,
    QueryFailed,
    Queued,
    QueueLevel,
    RefreshResult,
    RefreshWork,
    RidersFormed,
    ScanWork,
    SegmentResult,
    StartupStep,
    StreamFailed,
    Summary,
    Through,
    Tick,
    Warned,
    digest,
)
from penstock.model import Block
from penstock.view import LiveWatch, Picture, PlainWatch, RunTotals, show_account, watch
from penstock.view.watching import progress_line


def summary(queries: int = 3, streams: int = 1) -> Summary:
    names = tuple(f"query_{number}" for number in range(queries))
    read = tuple(f"stream_{number}" for number in range(streams))
    events: list[Event] = [
        EngineStarted(at=0.0, streams=read, policies={"operators": "fifo"}, cores=2,
                   totals={name: 10_000 for name in read}),
        *(QueryAdded(at=0.0, query=name, inputs=(("stream_0",),), sink="parquet",
                     latency=2.0) for name in names),
        RidersFormed(at=0.0, riders=1, path="p", members=names),
    ]
    for stream in read:
        block = Block(stream, 0, 4000, 160_000, 1.0, late=1)
        events.append(BlockArrived(at=1.0, block=block, read=4001, late=1, rejected=1,
                                   progress=4001))
    events += [
        BlockHot(at=1.0, stream="stream_0", number=0, bytes=160_000),
        JobDecided(at=1.0, job=1, kind="segment", reason="the oldest", seconds=0.001, work=PathWork(
            segment="p", riders=1, stream="stream_0", blocks=(0,), rows=4000)),
        JobFinished(at=1.25, job=1, kind="segment", seconds=0.2,
                    rows_out={name: n for n, name in enumerate(names)}, spark_jobs=1,
                    result=SegmentResult(rows_in=4000)),
        BlockArrived(at=2.0, block=Block("stream_0", 1, 1000, 40_000, 2.0), read=1000,
                     progress=5001),
        Memory(at=2.0, driver=200 * 2**20, jvm=300 * 2**20),
        Tick(at=2.5),
    ]
    return Summary.of(events)


def drawn(what: object, width: int, height: int = 24) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True,
                      color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
@pytest.mark.parametrize("queries", [1, 12, 1000])
def test_the_picture_fits_the_terminal(width: int, queries: int) -> None:
    lines = drawn(Picture(summary(queries), "app.sql"), width)
    assert len(lines) <= 23
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("plain", [0, 4])
def test_names_are_shown_whole_and_other_columns_make_room(width: int, plain: int) -> None:
    names = [f"a_query_with_quite_a_long_name_{n}" for n in range(4)]
    some = Summary.of([
        EngineStarted(at=0.0, streams=("s",), policies={"operators": "fifo"}, cores=2),
        *(QueryAdded(at=0.0, query=name, inputs=(("s",),),
                     window=None if n < plain else (10_000_000, 2_000_000))
          for n, name in enumerate(names))])
    text = "\n".join(drawn(Picture(some, "app.sql"), width))
    for name in names:
        assert f" {name} " in text
    assert "p99" in text
    assert ("lag·1m" in text) == (width == 140 or (plain > 0 and width == 100))


@pytest.mark.parametrize(("width", "whole"), [(80, 38), (100, 48), (160, 60)])
def test_a_name_takes_half_of_the_terminal_before_it_is_cut(width: int, whole: int) -> None:
    some = Summary.of([
        EngineStarted(at=0.0, streams=("s",), policies={"operators": "fifo"}, cores=2),
        *(QueryAdded(at=0.0, query=name, inputs=(("s",),))
          for name in ("n" * whole, "x" * (width // 2 + 20)))])
    text = "\n".join(drawn(Picture(some, "app.sql"), width))
    assert f" {'n' * whole} " in text
    assert "x" * (width // 2 + 20) not in text
    assert "p99" in text


def test_the_picture_says_what_a_run_waits_for_from_the_first_moment_on() -> None:
    some = Summary()
    some.apply(StartupStep(at=50.0, step="starting Spark"))
    some.apply(Tick(at=53.0))
    (line,) = drawn(Picture(some, "app.sql"), 80)
    assert line.split() == ["penstock", "app.sql", "starting", "Spark", "0:03"]
    assert progress_line(some) == "starting Spark"
    for event in (
        EngineStarted(at=54.0, streams=("s",), policies={"operators": "fifo"}, cores=2),
        QueryAdded(at=54.0, query="q", inputs=(("s",),)),
        StartupStep(at=54.0, step="compiling 1 path"),
    ):
        some.apply(event)
    text = "\n".join(drawn(Picture(some, "app.sql"), 80))
    assert "compiling 1 path" in text
    assert "0:04" in text
    assert " q " in text


def test_the_last_minute_and_the_lag_stand_beside_the_figures_of_the_run() -> None:
    some = summary()
    some.apply(BlockArrived(at=500.0, block=Block("stream_0", 2, 10, 400, 500.0,
                                                  newest=499_500_000), read=10))
    some.apply(JobDecided(at=500.0, job=2, kind="segment", reason="the oldest", work=PathWork(
        segment="p", riders=1, stream="stream_0", blocks=(2,), rows=10)))
    some.apply(JobFinished(at=502.0, job=2, kind="segment", seconds=2.0,
                           result=SegmentResult(rows_in=10)))
    shown = cells([line.replace(".0 s", ".0s").replace(".5 s", ".5s")
                   for line in drawn(Picture(some, "app.sql"), 100)], "query_1")
    assert (shown["p50·1m"], shown["p99·1m"], shown["lag·1m"]) == ("2.0s", "2.0s", "2.5s")
    assert shown["p50"] == "261ms"  # the middle of a bucket, at most 4.4 % off 250
    account = " ".join(" ".join(drawn(RunTotals(some), 140)).split())
    assert "first answer after 1.2 s" in account
    assert "from event to answer 2.5 s (p50)" in account


@pytest.mark.parametrize("height", [10, 24, 50])
def test_the_picture_fits_any_height_with_many_streams_and_queries(height: int) -> None:
    lines = drawn(Picture(summary(100, 40), "app.sql"), 80, height)
    assert len(lines) <= max(height - 1, 12)
    assert any("more streams" in line for line in lines)
    assert any("more queries" in line for line in lines)


def test_the_picture_says_what_a_person_asks() -> None:
    text = "\n".join(drawn(Picture(summary(), "app.sql"), 80))
    for words in ("app.sql", "running", "fifo, 2 cores", "0:02", "1 block", "39.1 KB", "156 KB",
                  "50%", "query_2", "5.00k", "4.00k", "3 queries", "Ctrl-C stops"):
        assert words in text, words


def test_a_wide_terminal_shows_more() -> None:
    text = "\n".join(drawn(Picture(summary(), "app.sql"), 160))
    for words in ("late", "rejected", "hot peak", "max", "into", "parquet", "driver 500 MB"):
        assert words in text, words


def windowed(plain: int, windows: int) -> Summary:
    """Queries of both kinds; the aggregates have answered for three windows."""
    names = [f"sum_{number}" for number in range(windows)]
    return Summary.of([
        EngineStarted(at=0.0, streams=("s",), cores=2,
                      policies={"operators": "chain", "refresh": "hybrid+late"}),
        *(QueryAdded(at=0.0, query=f"q_{number}", inputs=(("s",),)) for number in range(plain)),
        *(QueryAdded(at=0.0, query=name, inputs=(("s",),),
                     window=(600_000_000, 2_500_000)) for name in names),
        BlockArrived(at=1.0, block=Block("s", 0, 4000, 160_000, 1.0), read=4000),
        JobDecided(at=1.25, job=2, kind="refresh", reason="due", work=RefreshWork(
            group="g", scans=(ScanWork(end=3, queries=tuple(names), reason="due"),))),
        JobFinished(at=1.5, job=2, kind="refresh", seconds=0.2,
                    rows_out={name: 70 for name in names}, result=RefreshResult(
                        answers={name: 3 for name in names}, arrived=1.25,
                        ends={name: 1_735_689_607_500_000 for name in names})),
        Memory(at=2.0, driver=200 * 2**20, jvm=300 * 2**20, synopses=5 * 2**20),
        Tick(at=2.5),
    ])


def test_window_aggregates_show_their_windows_answers_and_latency() -> None:
    for width in (80, 140):
        lines = drawn(Picture(windowed(2, 2), "app.sql"), width)
        shown = cells([line.replace(" min", "min").replace("last end", "last_end")
                       for line in lines], "sum_1")
        assert (shown["window"], shown["slide"]) == ("10min", "2500ms")
        assert (shown["windows"], shown["out"], shown["last_end"]) == ("3", "70", "00:00:07.5")
        assert shown["p99"] == "250ms"
        text = "\n".join(lines)
        assert "chain, hybrid+late, 2 cores" in text
        assert "1 refresh " in text
        assert ("synopses 5.00 MB" in text) == (width == 140)
    account = " ".join(" ".join(drawn(RunTotals(windowed(2, 2)), 140)).split())
    for words in ("1 refresh by hybrid+late", "synopses 5.00 MB", "sum_0 10 min 2500 ms",
                  "2025-01-01 00:00:07.5"):
        assert words in account, words


def joined(plain: int, joins: int, windows: int) -> Summary:
    """Queries of all kinds; each join has had a block of either stream, and has found 700 pairs."""
    names = [f"near_{number}" for number in range(joins)]
    minute = (-59_999_999, 59_999_999)
    blocks = [Block("a", 0, 300, 9_000, 1.0), Block("b", 0, 200, 6_000, 1.0)]
    return Summary.of([
        EngineStarted(at=0.0, streams=("a", "b"), cores=2,
                      policies={"operators": "chain", "joins": "mqt"}),
        *(QueryAdded(at=0.0, query=f"q_{number}", inputs=(("a",),)) for number in range(plain)),
        *(QueryAdded(at=0.0, query=name, inputs=(("a", "b"),),
                     join=minute if number else (0, 5_000_000))
          for number, name in enumerate(names)),
        *(QueryAdded(at=0.0, query=f"sum_{number}", inputs=(("a",),),
                     window=(600_000_000, 2_500_000)) for number in range(windows)),
        RidersFormed(at=0.0, riders=1, path="p", members=tuple(names)),
        *(BlockArrived(at=1.0, block=block, read=block.rows) for block in blocks),
        JobDecided(at=1.25, job=1, kind="probe", reason="serves 2 queries", work=ProbeWork(
            join="a*b", riders=1, outer=0, since=0, until=9, nearest=0, farthest=60_000_000,
            rows=500)),
        JobFinished(at=1.5, job=1, kind="probe", seconds=0.2,
                    rows_out={name: 700 for name in names}, result=ProbeResult(
                        through=(Through(stream="a", blocks=(0,), members=tuple(names)),
                                 Through(stream="b", blocks=(0,),
                                         members=tuple(f"{name}#0.1" for name in names))),
                        ends={name: 1_735_689_607_500_000 for name in names},
                        late={name: 4 for name in names}, added={name: 300 for name in names})),
        Tick(at=2.5),
    ])


def test_window_joins_show_their_windows_pairs_and_response() -> None:
    seen = joined(2, 2, 1)
    for width in (80, 140):
        lines = [line.replace(" min", "min").replace("pairs until", "pairs_until")
                 for line in drawn(Picture(seen, "app.sql"), width, 40)]
        shown = cells(lines, "near_1")
        assert (shown["window"], shown["pairs"], shown["p99"]) == ("1min", "700", "500ms")
        assert shown["pairs_until"] == "00:00:07", "to the second"
        assert "0 s to 5 s" in "\n".join(lines), "bounds that are not equal are both shown"
        assert "mqt" in lines[0]
    account = " ".join(" ".join(drawn(RunTotals(seen), 140)).split())
    assert "near_1 1 min 500 300 96 4 0 700 2025-01-01 00:00:07.5" in account
    assert "accounting balanced" in account
    told = digest(seen)["queries"]
    assert [query["join"] for query in told if query["name"] == "near_0"] == [(0, 5_000_000)]


@pytest.mark.parametrize("kinds", [(1, 1, 0), (0, 3, 4), (12, 5, 12), (300, 300, 300)])
@pytest.mark.parametrize("height", [10, 24, 60])
def test_the_picture_fits_with_queries_of_three_kinds(
    kinds: tuple[int, int, int], height: int
) -> None:
    lines = drawn(Picture(joined(*kinds), "app.sql"), 80, height)
    assert len(lines) <= max(height - 1, 13)
    assert max(map(len, lines)) <= 80
    if height == 60:
        for name, count in zip(("q_0", "near_0", "sum_0"), kinds, strict=True):
            assert any(name in line for line in lines) == bool(count)


def test_answers_that_a_late_machine_skipped_are_shown_and_counted() -> None:
    seen = windowed(1, 2)
    assert "skipped" not in progress_line(seen)
    for count in (3, 4):
        seen.apply(AnswersSkipped(at=3.0, job=2, group="g", answers={"sum_1": count}, after=0,
                                  before=9_000_000, reason="1 pane late"))
    assert (seen.queries["sum_1"].skipped, seen.run.skipped) == (7, 7)
    lines = [line.replace(" min", "min").replace("last end", "last_end")
             for line in drawn(Picture(seen, "app.sql"), 100)]
    assert cells(lines, "sum_1")["skipped"] == "7"
    assert "· 7 answers skipped" in "\n".join(drawn(Picture(seen, "app.sql"), 80))
    assert "7 answers skipped" in progress_line(seen)
    account = " ".join(" ".join(drawn(RunTotals(seen), 140)).split())
    assert "the machine was late and skipped 7 answers of 1 query" in account
    told = digest(seen)
    assert told["run"]["skipped"] == 7
    assert [query["skipped"] for query in told["queries"]] == [0, 0, 7]


@pytest.mark.parametrize("plain", [0, 1, 12, 300])
@pytest.mark.parametrize("windows", [0, 1, 12, 300])
@pytest.mark.parametrize("height", [10, 24, 60])
def test_the_picture_fits_with_queries_of_both_kinds(plain: int, windows: int, height: int) -> None:
    lines = drawn(Picture(windowed(plain, windows), "app.sql"), 80, height)
    assert len(lines) <= max(height - 1, 12)
    assert max(map(len, lines)) <= 80
    both = height > 10 or not (plain and windows)  # a low terminal shows the busiest alone
    assert any("q_0" in line for line in lines) == bool(plain) or not both
    assert any("sum_0" in line for line in lines) == bool(windows) or not both


def late(promised: float | None = 0.2) -> Summary:
    """A query whose first block, of 4000 rows, took 250 ms, and whose second took 50 ms."""
    return Summary.of([
        EngineStarted(at=0.0, streams=("s",), policies={"operators": "fifo"}, cores=2),
        QueryAdded(at=0.0, query="q", inputs=(("s",),), latency=promised),
        RidersFormed(at=0.0, riders=1, path="p", members=("q",)),
        BlockArrived(at=1.0, block=Block("s", 0, 4000, 160_000, 1.0), read=4000),
        JobDecided(at=1.0, job=1, kind="segment", reason="the oldest", work=PathWork(
            segment="p", riders=1, stream="s", blocks=(0,), rows=4000)),
        JobFinished(at=1.25, job=1, kind="segment", seconds=0.2, rows_out={"q": 7}, spark_jobs=1,
                    result=SegmentResult(rows_in=4000)),
        BlockArrived(at=2.0, block=Block("s", 1, 10, 400, 2.0), read=10),
        JobDecided(at=2.0, job=2, kind="segment", reason="the oldest", work=PathWork(
            segment="p", riders=1, stream="s", blocks=(1,), rows=10)),
        JobFinished(at=2.05, job=2, kind="segment", seconds=0.05, rows_out={"q": 1}, spark_jobs=1,
                    result=SegmentResult(rows_in=10)),
    ])


def cells(lines: list[str], row: str) -> dict[str, str]:
    """The columns of a table's row by their titles; only for cells of one word."""
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == [row])
    head = next(line for line in reversed(lines[:at]) if "─" not in line and "p99" in line)
    return dict(zip(head.split(), lines[at].replace(" ms", "ms").split(), strict=False))


def test_what_came_later_than_promised_is_in_the_picture_and_in_the_account() -> None:
    for what in (Picture(late(), "app.sql"), RunTotals(late())):
        lines = drawn(what, 80)
        shown = cells(lines, "q")
        assert (shown["p50"], shown["p99"]) == ("250ms", "250ms")
        assert shown["missed"].replace(",", "") in ("4.00k", "4000")
    text = " ".join(" ".join(drawn(RunTotals(late()), 200)).split())
    assert "later than the latency goal: 1 block of 4,000 rows, for 1 query" in text
    assert "250 ms (p50), 250 ms (p99), 250 ms (max) by rows" in text
    assert "50 ms (p50), 250 ms (p99) by blocks" in text
    assert "1 block late" in "\n".join(drawn(Picture(late(), "app.sql"), 80))


def test_a_query_that_was_promised_nothing_has_a_dash_where_misses_are_counted() -> None:
    for what in (Picture(late(None), "app.sql"), RunTotals(late(None))):
        lines = drawn(what, 80)
        assert cells(lines, "q")["missed"] == "-"
        assert "later than the latency goal" not in "\n".join(lines)


def test_queues_are_shown_hot_and_cold_where_there_are_several() -> None:
    some = summary()
    before = drawn(Picture(some, "app.sql"), 80)
    some.apply(Queued(at=2.5, blocks=3, bytes=3000, hot=1024,
                      queues={"a#0": QueueLevel(entries=2, bytes=2048, hot=1024)}))
    assert len(drawn(Picture(some, "app.sql"), 80)) == len(before), "one is that of its stream"
    some.apply(Queued(at=2.6, blocks=4, bytes=4000, hot=1024,
                      queues={"a#0@1": QueueLevel(entries=1, bytes=1024, hot=1024)}))
    some.apply(Queued(at=2.7, blocks=4, bytes=4000, hot=1024,
                      queues={"a#0": QueueLevel(entries=0, bytes=0, hot=0)}))
    lines = [" ".join(line.split()) for line in drawn(Picture(some, "app.sql"), 80)]
    assert any(line.startswith("a#0 0 0 B 0 B 0 B 2.00 KB") for line in lines)
    assert any(line.startswith("a#0@1 1 1.00 KB 1.00 KB 0 B 1.00 KB") for line in lines)


@pytest.mark.parametrize("height", [10, 14, 24, 50])
def test_the_picture_fits_with_many_queues(height: int) -> None:
    some = summary(100, 3)
    queues = {f"path_{n}": QueueLevel(entries=n, bytes=n * 1000) for n in range(40)}
    some.apply(Queued(at=2.6, blocks=4, bytes=4000, hot=1024, queues=queues))
    lines = drawn(Picture(some, "app.sql"), 80, height)
    assert len(lines) <= max(height - 1, 12)
    assert any(line.startswith(" path_39 ") for line in lines) == (height >= 24)


def test_where_there_is_no_room_the_failed_and_the_busiest_are_shown() -> None:
    many = summary(1000)
    many.apply(QueryFailed(at=2.0, query="query_5", reason="no room"))
    lines = drawn(Picture(many, "app.sql"), 80)
    shown = [line.split()[0] for line in lines if line.startswith(" query_")]
    assert shown[:3] == ["query_5", "query_999", "query_998"]
    assert any(f"and {1000 - len(shown)} more queries" in line for line in lines)
    assert any("1 failed" in line for line in lines)


def test_names_are_not_read_as_markup() -> None:
    odd = Summary.of([QueryAdded(at=0.0, query="[red]q[/red]", inputs=(("[s]",),)),
                      QueryFailed(at=1.0, query="[red]q[/red]", reason="[bold]why[/bold]")])
    for what in (Picture(odd, "[app]"), RunTotals(odd)):
        text = "\n".join(drawn(what, 220))
        assert "[red]q[/red]" in text
        assert "[bold]why[/bold]" in text


def test_an_endless_stream_and_a_failed_one_have_no_bar() -> None:
    some = Summary.of([EngineStarted(at=0.0, streams=("endless", "broken"), cores=1,
                                     policies={"operators": "fifo"}, totals={"broken": 5}),
                       StreamFailed(at=1.0, stream="broken", reason="no such path")])
    text = "\n".join(drawn(Picture(some, "app.sql"), 200))
    assert "failed: no such path" in text
    assert "endless" in text


# --- the account --------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_account_fits_and_is_exact(width: int) -> None:
    lines = drawn(RunTotals(summary()), width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    for words in ("5,001", "5,000", "4,000", "balanced"):
        assert words in text, words


def test_the_account_of_many_queries_is_short() -> None:
    lines = drawn(RunTotals(summary(1000), most=40), 120)
    assert len(lines) < 60
    assert any("and 960 more queries" in line for line in lines)
    assert len(drawn(RunTotals(summary(1000)), 120)) > 1000


def test_the_account_lists_faults_failures_and_warnings() -> None:
    bad = summary()
    for event in (JobFinished(at=3.0, job=99, kind="segment", seconds=0.1,
                              result=SegmentResult(rows_in=1)),
    Warned(at=3.0, subject="stream_0", text="a strange file"),
                  QueryFailed(at=3.0, query="query_1", reason="disk full"),
                  EngineStopped(at=4.0, outcome="failed", reason="no query")):
        bad.apply(event)
    text = "\n".join(drawn(RunTotals(bad), 100))
    for words in ("job 99 finished, but nobody had decided it", "1 fault", "stream_0: a strange",
                  "query query_1 failed: disk full", "no query"):
        assert words in text, words


# --- watching -----------------------------------------------------------------------------------


def plain() -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=120, highlight=False), file


def test_lines_come_once_a_second_and_only_when_something_changed() -> None:
    console, file = plain()
    view = watch(console, "app.sql")
    assert isinstance(view, PlainWatch)
    some = summary()
    for at in (2.5, 2.6, 2.7, 9.0, 20.0, 30.0):
        some.apply(Tick(at=at))
        view.show(some)
    lines = file.getvalue().splitlines()
    assert len(lines) == 2  # as it stood, and once more when the rate had fallen to 0
    assert "stream_0 5,001 rows" in lines[0]
    assert "1 block waiting; 3 queries, 3 rows out, p99 " in lines[0]
    assert "\x1b" not in file.getvalue()


def test_what_goes_wrong_is_told_at_once_and_once() -> None:
    console, file = plain()
    view, some = PlainWatch(console), summary()
    view.show(some)
    some.apply(QueryFailed(at=2.6, query="query_1", reason="disk full\n  at java.io"))
    some.apply(Warned(at=2.6, subject="stream_0", text="a strange file"))
    view.show(some)
    view.show(some)
    lines = [line.split(" s  ", 1)[1] for line in file.getvalue().splitlines()]
    assert lines[1:] == ["stream_0: a strange file", "query query_1 failed: disk full"]


def test_the_live_picture_is_wiped_and_the_account_remains() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    view = watch(console, "app.sql")
    assert isinstance(view, LiveWatch)
    some = summary()
    view.show(some)
    some.apply(Warned(at=2.6, subject="stream_0", text="a strange file"))
    view.show(some)
    view.close()
    view.close()
    show_account(console, some)
    assert isinstance(console.file, io.StringIO)
    assert "balanced" in console.file.getvalue()


def test_a_watch_that_never_showed_anything_closes() -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    watch(console, "app.sql").close()
    assert isinstance(console.file, io.StringIO)


def test_a_failure_is_one_line_and_is_not_told_again_at_the_end() -> None:
    console, file = plain()
    view = watch(console, "app.sql")
    lost = "stream s failed: no such folder"
    some = Summary.of([
        QueryAdded(at=0.0, query="a", inputs=(("s",),)),
        QueryAdded(at=0.0, query="b", inputs=(("s",),)),
        QueryAdded(at=0.0, query="c", inputs=(("t",),)),
        StreamFailed(at=1.0, stream="s", reason="no such folder"),
        QueryFailed(at=1.0, query="a", reason=lost),
        QueryFailed(at=1.0, query="b", reason=lost),
        QueryFailed(at=1.0, query="c", reason="its disk is full"),
        Warned(at=1.0, subject="stream t", text="a strange file"),
        EngineStopped(at=2.0, outcome="failed",
                 reason=f"no query is left (a: {lost}; c: its disk is full)"),
    ])
    view.show(some)
    view.show(some)
    view.close()
    show_account(console, some, told=view.told)
    for text in ("no such folder", "its disk is full", "a strange file", "no query is left"):
        assert file.getvalue().count(text) == 1, file.getvalue()
    assert "query b failed" not in file.getvalue()
    assert "\n".join(drawn(RunTotals(some), 120)).count("its disk is full") == 1, "of a record"


def test_what_data_put_into_a_reason_does_not_control_the_terminal() -> None:
    console, file = plain()
    view, bad = watch(console, "app.sql"), "\x1b]0;mine\x07\x1b[2J"
    some = Summary.of([
        EngineStarted(at=0.0, streams=("s", "t"), policies={"operators": "fifo"}, cores=2),
        QueryAdded(at=0.0, query="a", inputs=(("s",),)),
        FileSetAside(at=1.0, stream="s", file=f"in/{bad}.csv", reason="it is empty"),
        QueryFailed(at=1.0, query="a",
                    reason=f"its callback raised ValueError: {bad}\nfor two lines"),
        StreamFailed(at=1.0, stream="t", reason=bad),
        EngineStopped(at=2.0, outcome="broken", reason=bad),
    ])
    view.show(some)
    view.close()
    show_account(console, some, told=view.told)
    console.print(RunTotals(some))
    console.print(Picture(some, "app.sql"))
    assert "\x1b" not in file.getvalue() and "\x07" not in file.getvalue()
    assert "in/\\x1b]0;mine" in file.getvalue()


def test_the_policy_for_joins_is_shown_where_there_are_joins() -> None:
    from penstock.testing import FakeHost
    from penstock.view.tables import _policies

    streams = "CREATE STREAM s (k INT) FROM rate; CREATE STREAM t (k INT) FROM rate;"
    plain = FakeHost.of(streams + "CREATE QUERY q AS SELECT k FROM s;")
    joined = FakeHost.of(
        streams + "CREATE QUERY q AS SELECT A.k FROM s A, t B WHERE A.k = B.k WINDOW 1 MIN;")
    assert list(_policies(Summary.of(plain.record), 100)) == ["fifo"]
    assert list(_policies(Summary.of(joined.record), 100)) == ["fifo", "mqt"]


def reordered() -> Summary:
    summary = Summary.of([EngineStarted(at=0.0, streams=("s",), cores=2, policies={
        "operators": "fifo", "filters": "a_greedy", "joins": "mqt"})])
    summary.stream("s")
    summary.apply(OrderChanged(
        at=3.5, path="q#0", stages=("q#0:python2", "q#0:python1"),
        order=("is_rare(dst)", "is_slow(src)"), reason="is_rare(dst) before is_slow(src): drops 9",
        before=4e-6, after=1.5e-6, rows=950, matrix=((900, 20), (0, 10))))
    return summary


def test_the_order_of_probes_and_the_reason_are_in_the_account() -> None:
    summary = reordered()
    summary.apply(ProbesReordered(
        at=4.0, join="a*b*c@1", stream="a", order=("c", "b"), reason="c before b: drops 21",
        before=2.0, after=1.0, rows=30, matrix=((9, 21), (0, 4))))
    text = " ".join(line.strip() for line in drawn(RunTotals(summary), 200))
    assert "a in a*b*c@1 probes c, b in this order since 4.0 s (1 change): c before b" in text


def test_the_order_of_predicates_and_the_reason_are_in_the_account() -> None:
    text = " ".join(line.strip() for line in drawn(RunTotals(reordered()), 200))
    assert "q#0 evaluates is_rare(dst), is_slow(src) in this order since 3.5 s (1 change)" in text
    assert "is_rare(dst) before is_slow(src): drops 9" in text


def test_the_live_view_has_a_line_for_every_conjunction_that_was_reordered() -> None:
    lines = drawn(Picture(reordered(), "app"), 140, 40)
    assert "a_greedy" in lines[0]
    (line,) = [line for line in lines if "q#0" in line]
    assert "is_rare(dst), is_slow(src)" in line and "1.5 us" in line and "4 us" in line
    for height in range(10, 40):
        assert len(drawn(Picture(reordered(), "app"), 80, height)) <= height


def test_without_a_conjunction_the_filters_policy_has_nothing_to_decide() -> None:
    summary = Summary.of([EngineStarted(at=0.0, streams=("s",), cores=2, policies={
        "operators": "fifo", "filters": "a_greedy"})])
    summary.stream("s")
    assert "a_greedy" not in drawn(Picture(summary, "app"), 140)[0]
