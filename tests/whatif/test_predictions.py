"""What-if: replays of records that the test kit made, whose every cost is known."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.cli import main
from penstock.engine import SegmentJob
from penstock.engine.cost_model import Cost, fit
from penstock.engine.settings import Settings
from penstock.errors import CheckpointError, PolicyError
from penstock.events import Recorder, Summary, read_events
from penstock.events import kinds as ev
from penstock.policies.operators import POLICIES, policies, policy
from penstock.testing import FakeHost
from penstock.whatif.alike_queries import folded
from penstock.whatif.predictions import Comparison, PolicyOutcome, alike, compare
from penstock.whatif.recorded import Recording, replay

TWO = """
    CREATE STREAM s (a INT) FROM rate;
    CREATE STREAM t (a INT) FROM rate;
    CREATE QUERY slow AS SELECT a FROM s;
    CREATE QUERY fast AS SELECT a FROM t;
"""
MANY = TWO + """
    CREATE RELATION r (a INT) FROM csv 'r';
    CREATE QUERY both WITH (priority = 3) AS SELECT a FROM s WHERE a > 1 UNION ALL SELECT a FROM t;
    CREATE QUERY own INTO parquet 'out' WITH (latency = '3 seconds') AS
      SELECT s.a FROM s JOIN r ON s.a = r.a;
    CREATE QUERY twin AS SELECT a FROM t WHERE a = 5;
    CREATE QUERY brief WITH (lifetime = '25 seconds') AS SELECT a FROM t WHERE a < 7;
"""
Costs = Mapping[str, tuple[float, float]]


def linear(costs: Costs) -> Callable[[SegmentJob], float]:
    """Seconds per job and per row, by the first letter of the path: its stream, or s+r."""
    def cost(job: SegmentJob) -> float:
        name = "r" if "+r" in job.path else job.path[0]
        fixed, per_row = costs[name]
        return fixed + per_row * sum(block.rows for block in job.blocks)
    return cost


def decisions(events: Iterable[ev.Event]) -> list[tuple[float, str, tuple[int, ...]]]:
    return [(round(e.at, 6), e.work.segment, e.work.blocks)
            for e in events if isinstance(e, ev.JobDecided)]


def again(record: Sequence[ev.Event], name: str) -> list[ev.Event]:
    return replay(Recording.of(folded(record).events), policy(name))


def play(host: FakeHost, arrivals: Iterable[tuple[float, str, int]]) -> FakeHost:
    for at, stream, rows in arrivals:
        host.arrive(stream, at, rows)
    host.run()
    return host


# --- a burst that can be followed by hand ----------------------------------------------------

BURST = [
    (1.0, "s", 10), (3.0, "t", 40), (15.0, "s", 20), (20.0, "t", 80),  # the engine learns costs
    (30.0, "s", 100), (31.0, "s", 100), (32.0, "t", 400), (45.0, "s", 300),
]
BY_HAND: Costs = {"s": (0.0, 0.1), "t": (0.0, 0.0025)}
ROW = 16
"""Bytes of a row in the test kit."""


def burst(policy: str = "fifo") -> FakeHost:
    return play(FakeHost.of(TWO, policy, cost=linear(BY_HAND), settings=Settings(quantum=5.0)),
                BURST)


def found(comparison: Comparison, policy: str) -> PolicyOutcome:
    return next(outcome for outcome in comparison.simulated if outcome.policy == policy)


def test_chain_would_have_let_the_fast_path_pass() -> None:
    # Until 40 the first 100 rows of s are under way. FIFO then runs 100 more of s until 50 and t
    # until 51; 300 rows arrive at 45 and meet 100 + 400. Under Chain t overtakes what is under way
    # and shares the cores with it until 34, so that at 45 there are 100 of s; its peak is that of
    # 32: 100 + 100 + 400.
    comparison = compare(burst().record, policies("chain"))
    fifo, chain = found(comparison, "fifo"), found(comparison, "chain")
    assert (fifo.peak_bytes, fifo.peak_blocks) == (800 * ROW, 3)
    assert (chain.peak_bytes, chain.peak_blocks) == (600 * ROW, 3)
    assert fifo.queries["fast"].max == pytest.approx(51.0 - 32.0)  # type: ignore[union-attr]
    assert chain.queries["fast"].max == pytest.approx(34.0 - 32.0)  # type: ignore[union-attr]
    assert chain.queries["slow"].max == pytest.approx(81.0 - 45.0)  # type: ignore[union-attr]


def test_rate_based_would_have_too() -> None:
    comparison = compare(burst().record, policies("rate_based"))
    assert found(comparison, "rate_based").latency.mean < (  # type: ignore[union-attr]
        found(comparison, "fifo").latency.mean)  # type: ignore[union-attr]


def test_the_policy_that_ran_is_simulated_first_and_is_exact() -> None:
    comparison = compare(burst("chain").record, policies("fifo, chain"))
    assert [outcome.policy for outcome in comparison.simulated] == ["chain", "fifo"]
    assert {name: round(found.percent or 0.0, 6) for name, found in comparison.closeness().items()
            } == {"peak waiting": 0.0, "mean latency": 0.0, "seconds running": 0.0}


def test_latencies_are_weighted_by_rows() -> None:
    host = play(FakeHost.of(TWO, cost=linear({"s": (1.0, 0.0), "t": (1.0, 0.0)})),
                [(0.0, "s", 30), (0.5, "s", 10)])
    slow = compare(host.record, {}).recorded.queries["slow"]
    assert slow is not None
    assert (slow.mean, slow.p50, slow.p99, slow.max) == (
        (30 * 1.0 + 10 * 1.5) / 40, 1.0, 1.5, 1.5)


def test_policies_that_decide_alike_stand_together() -> None:
    # A path is one job: there are no operators in between for Greedy and Chain to differ on.
    comparison = compare(burst().record, policies("chain, greedy"))
    assert [names for names, _ in alike(comparison.simulated)] == ["fifo", "chain, greedy"]


# --- replays are exact when costs are linear ---------------------------------------------------


def scenario(seed: int, policy: str, settings: Settings) -> FakeHost:
    """Random arrivals; a query joins in between, one is dropped, one lives 25 seconds."""
    random = np.random.default_rng(seed)
    costs = {"s": (0.3, 0.011), "t": (0.2, 0.0013), "r": (0.9, 0.0007)}
    host = FakeHost.of(MANY, policy, settings=settings, cost=linear(costs))
    times = np.sort(random.uniform(0.0, 60.0, 120))
    rows = 2 * random.integers(1, 100, 120)
    for at, stream, count in zip(times, random.choice(["s", "t"], 120), rows, strict=True):
        host.arrive(str(stream), float(at), int(count))
    host.run(until=20.03)
    host.clock.advance(20.03)
    host.add("CREATE QUERY late WITH (latency = '1 second') AS SELECT a FROM s WHERE a = 2;")
    host.run(until=33.07)
    host.clock.advance(33.07)
    host.handle(ev.QueryDropped(at=33.07, query="both"))
    host.add("DROP QUERY both;")
    host.run()
    return host


SETTINGS = {"live": Settings(), "drain": Settings(until_drained=True, gather=1.0),
            "two slots": Settings(slots=2)}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", [*POLICIES, "mixed(latency=2)", "chain_flush(latency=1)"])
def test_a_replay_of_the_policy_that_ran_decides_as_it_did(name: str, settings: Settings) -> None:
    host = scenario(1, name, settings)
    assert decisions(again(host.record, name)) == decisions(host.record)


@pytest.mark.parametrize("name", [*POLICIES, "mixed(latency=2)", "chain_flush(latency=1)"])
@pytest.mark.parametrize("seed", [2, 3])
def test_from_a_run_of_fifo_follows_what_another_policy_really_does(name: str, seed: int) -> None:
    recorded, real = (scenario(seed, each, Settings()) for each in ("fifo", name))
    assert decisions(again(recorded.record, name)) == decisions(real.record)


def test_policies_do_differ_in_these_scenarios() -> None:
    record = scenario(1, "fifo", Settings()).record
    courses = {name: tuple(decisions(again(record, name))) for name in POLICIES}
    assert len(set(courses.values())) >= 5


def test_priorities_and_promises_are_in_the_record() -> None:
    recording = Recording.of(scenario(1, "fifo", Settings()).record)
    plans = [step.plan for step in recording.script if step.plan is not None]
    queries = {query.name: query for plan in plans for query in plan.queries}
    assert queries["both"].priority == 3
    assert queries["own"].latency == 3.0
    assert str(queries["own"].sink.target).endswith("out")
    assert queries["brief"].lifetime == 25.0
    assert [query.name for query in plans[-1].queries] == [
        "slow", "fast", "own", "twin", "brief", "late"]


def test_all_sinks_of_a_query_are_in_the_record() -> None:
    host = FakeHost.of("""
        CREATE STREAM s (a INT) FROM rate;
        CREATE QUERY two INTO parquet '/x/two', csv '/y', memory AS SELECT a FROM s;
        CREATE QUERY own INTO parquet '/x/own', json '/x/text' AS SELECT a FROM s WHERE a > 1;
        CREATE QUERY half INTO json '/x/half', csv '/y' AS SELECT a FROM s WHERE a < 1;""")
    host.arrive("s", at=1.0)
    host.end("s", at=2.0)
    host.run()
    *_, plan = (step.plan for step in Recording.of(host.record).script if step.plan is not None)
    assert {query.name: query.into for query in plan.queries} == {
        "two": "parquet '/x/two', csv '/y', memory",
        "own": "parquet '/x/own', json '/x/text'", "half": "json '/x/half', csv '/y'"}
    assert plan.alone == host.planned.alone == {"own"}


def test_first_runs_that_were_slow_are_slow_again_and_spoil_no_fit() -> None:
    extra = {"s": [5.0, 2.0], "t": [3.0]}

    def cost(job: SegmentJob) -> float:
        left = extra[job.path[0]]
        return linear(BY_HAND)(job) + (left.pop(0) if left else 0.0)

    host = play(FakeHost.of(TWO, cost=cost), [
        *((float(at), "s", 10 + at % 7 * 10) for at in range(0, 300, 15)),
        *((at + 0.5, "t", 10 + at % 5 * 50) for at in range(0, 300, 12))])
    recording = Recording.of(host.record)
    slow, fast = (recording.paths[path].cost for path in ("s/fanout", "t/fanout"))
    assert (slow.fixed, slow.per_row) == pytest.approx((0.0, 0.1))
    assert (fast.fixed, fast.per_row) == pytest.approx((0.0, 0.0025))
    assert slow.cold == pytest.approx((5.0, 2.0))
    assert fast.cold == pytest.approx((3.0,))
    assert decisions(replay(recording, policy("fifo"))) == decisions(host.record)


# --- measures ----------------------------------------------------------------------------------


def test_the_recorded_figures_are_those_of_the_account() -> None:
    record = scenario(4, "fifo", Settings()).record
    recorded, account = compare(record, {}).recorded, Summary.of(record)
    assert set(recorded.queries) == {name for name, q in account.queries.items()
                                     if q.latency.weight}
    for name, latency in recorded.queries.items():
        assert latency is not None
        assert latency.max == account.queries[name].latency.maximum
        assert latency.p50 == pytest.approx(account.queries[name].latency.percentile(0.5), rel=0.05)
    assert recorded.runs == account.run.finished
    peaks = [stream.queue_peak for stream in account.streams.values()]
    assert max(peaks) <= recorded.peak_bytes <= sum(peaks)


def test_queries_that_fared_alike_are_replayed_as_one_and_shown_as_many() -> None:
    twins = "".join(f"CREATE QUERY q{n} AS SELECT a FROM s WHERE a = {n};" for n in range(50))
    shared = "".join(f"CREATE QUERY p{n} INTO parquet 'out' WITH (latency = '9 seconds') AS "
                     f"SELECT a FROM t WHERE a = {n};" for n in range(2))
    host = play(FakeHost.of(TWO + twins + shared, cost=linear(BY_HAND),
                            settings=Settings(quantum=5.0)), BURST)
    comparison = compare(host.record, policies("chain"))
    assert len(comparison.recording.script[1:]) < 20
    alone = compare(burst().record, policies("chain"))
    for many, one in zip(comparison.simulated, alone.simulated, strict=True):
        assert (many.times, many.waiting) == (one.times, one.waiting)
        assert many.queries["q49"] == many.queries["slow"] == one.queries["slow"]
        assert many.queries["p1"] == many.queries["fast"] == one.queries["fast"]
        assert len(many.queries) == 54
    # 51 queries read s and 3 read t, so the overall mean is nearly that of s.
    overall, slow = comparison.recorded.latency, comparison.recorded.queries["slow"]
    fast = comparison.recorded.queries["fast"]
    assert overall is not None and slow is not None and fast is not None
    rows = {"s": 530 * 51, "t": 520 * 3}
    mean = (rows["s"] * slow.mean + rows["t"] * fast.mean) / (rows["s"] + rows["t"])
    assert overall.mean == pytest.approx(mean)


# --- fits --------------------------------------------------------------------------------------


@given(st.floats(0, 5), st.floats(0, 0.01), st.lists(st.integers(1, 10_000), min_size=2))
@example(0.0, 0.0078125, [8, 8, 8, 11])  # the last counts less, in its rows as in its seconds
def test_a_fit_finds_the_line_that_runs_lie_on(
    fixed: float, per_row: float, sizes: list[int]
) -> None:
    cost = fit([(rows, fixed + per_row * rows) for rows in sizes], cheapest=fixed)
    for rows in sizes:
        assert cost.seconds(rows) == pytest.approx(fixed + per_row * rows, abs=1e-6)


@given(st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 100)), min_size=1))
def test_no_part_of_a_cost_is_negative(runs: list[tuple[int, float]]) -> None:
    cost = fit(runs, cheapest=min(seconds for _, seconds in runs))
    assert cost.fixed >= 0
    assert cost.per_row >= 0
    assert len(cost.cold) <= len(runs) // 2
    assert all(cost.seconds(rows, at) >= -1e-9 for at, (rows, _) in enumerate(runs))


def test_smaller_runs_that_took_longer_mean_no_cost_per_row() -> None:
    assert fit([(100, 2.0), (900, 1.0)] * 4, cheapest=0.0) == Cost(
        1.5, 0.0, error=1 / 3, distinct=False)


def test_a_single_run_is_no_cold_one() -> None:
    assert fit([(100, 8.0)], cheapest=8.0) == Cost(8.0, 0.0, distinct=False)


# --- records as they are -----------------------------------------------------------------------


def test_a_record_without_an_end_is_replayed_as_far_as_it_goes() -> None:
    record = burst().record
    cut = next(i for i, e in enumerate(record) if isinstance(e, ev.BlockArrived) and e.at == 45.0)
    comparison = compare(record[:cut], policies("chain"))
    assert comparison.state == "running"
    assert any("no end" in note for note in comparison.notes)
    assert any("2 blocks still waited" in note for note in comparison.notes)
    # The 100 rows of t had not been delivered: in the comparison they count for nobody.
    assert comparison.closeness()["mean latency"].percent == pytest.approx(0.0)
    assert max(found(comparison, "chain").times) > 45.0


def test_runs_that_failed_are_left_out_and_counted() -> None:
    tries: list[int] = []

    def fails(job: SegmentJob) -> str:
        tries.append(job.number)
        return "a passing fault" if len(tries) == 2 else ""

    host = play(FakeHost.of(TWO, cost=linear(BY_HAND), fails=fails), BURST)
    comparison = compare(host.record, {})
    assert any("1 jobs failed" in note for note in comparison.notes)
    assert comparison.simulated[0].runs == comparison.recorded.runs


def test_a_query_that_never_had_a_run_waits_in_the_replay_too() -> None:
    host = FakeHost.of(TWO, cost=linear(BY_HAND),
                       fails=lambda run: "boom" if run.path[0] == "t" else "")
    comparison = compare(play(host, BURST).record, {})
    assert any(note.startswith("fast: no job finished") for note in comparison.notes)
    assert list(comparison.simulated[0].queries) == ["slow"]
    assert comparison.closeness()["peak waiting"].simulated > 0


def test_blocks_from_before_a_query_joined_do_not_count_as_its_latency() -> None:
    host = play(FakeHost.of(TWO, cost=linear(BY_HAND)), [(1.0, "s", 10)])
    host.clock.advance(100.0)
    host.add("CREATE QUERY early WITH (start = 'earliest') AS SELECT a FROM s WHERE a = 9;",
             backlog=((0, 0, 0),))
    host.arrive("s", 110.0, 20)
    host.run()
    comparison = compare(host.record, {})
    for outcome in (comparison.recorded, *comparison.simulated):
        early = outcome.queries["early"]
        assert early is not None
        assert early.max == pytest.approx(2.0)


def test_events_that_were_stamped_out_of_order_happen_in_the_order_of_the_record() -> None:
    record = burst().record
    place = next(i for i, e in enumerate(record) if isinstance(e, ev.BlockArrived) and e.at == 31.0)
    early = record[place]
    assert isinstance(early, ev.BlockArrived)
    swapped = [*record[:place],
    ev.BlockArrived(at=29.9, block=early.block, read=early.read), *record[place + 1:]]
    times = [step.event.at for step in Recording.of(swapped).script]
    assert times == sorted(times)
    assert [e.block.number for e in replay(Recording.of(swapped), policy("fifo"))
            if isinstance(e, ev.BlockArrived) and e.block.stream == "s"] == [0, 1, 2, 3, 4]


def test_an_empty_record_is_refused() -> None:
    with pytest.raises(CheckpointError, match="empty"):
        Recording.of([])


def test_a_record_without_a_finished_run_is_refused() -> None:
    host = FakeHost.of(TWO)
    host.arrive("s", 1.0)
    host.run(until=1.5)
    with pytest.raises(CheckpointError, match="no job finished"):
        Recording.of(host.record)


def test_a_policy_that_nobody_knows_any_more_is_named() -> None:
    record = [ev.EngineStarted(at=0.0, streams=("s",), policies={"operators": "lottery"},
                            cores=2), *burst().record[1:]]
    with pytest.raises(PolicyError, match="lottery"):
        compare(record, {})


# --- the command -------------------------------------------------------------------------------


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint with the record of the burst."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    write(tmp_path / "state", [*burst().record, ev.EngineStopped(at=90.0, outcome="drained")])
    return tmp_path / "state"


def write(checkpoint: Path, events: Iterable[ev.Event]) -> None:
    with Recorder(checkpoint / "runs" / "yesterday" / "events.jsonl") as recorder:
        for event in events:
            recorder.record(event)


def test_whatif_shows_policies_queries_costs_and_how_close_it_is(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "state", "--policies", "chain, greedy, round_robin(quantum=2)"]) == 0
    out, err = capsys.readouterr()
    rows = {line.split("  ")[0].strip(): line.split() for line in out.splitlines() if line.strip()}
    alike = "chain, greedy"  # where paths are single jobs
    for name in ("recorded", "fifo", alike, "s/fanout", "mean latency"):
        assert name in rows
    assert "latency of slow" in out
    assert "12.5 KB" in out
    assert "9.38 KB" in out
    assert rows["peak waiting"][-2:] == ["+0.0", "%"]
    assert "a turn is a whole job" in out
    figure = Path("penstock-figures/whatif/yesterday/waiting.png")
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert str(figure) in err


def test_whatif_as_json_has_every_policy_and_query(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", "state", "--json", "--no-figures"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(data["policies"]) == list(POLICIES)
    assert data["policies"]["chain"]["peak_bytes"] == 600 * ROW
    assert data["policies"]["chain"]["queries"]["fast"]["max"] == pytest.approx(2.0)
    assert data["closeness"]["mean_latency"]["percent"] == pytest.approx(0.0)
    assert data["costs"]["s/fanout"]["per_row"] == pytest.approx(0.1)
    assert not Path("penstock-figures").exists()


def test_whatif_without_matplotlib_gives_the_tables_and_one_sentence(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["whatif", "state"]) == 0
    out, err = capsys.readouterr()
    assert "chain" in out
    remedy = "pip install 'penstock-spark[figures]'"
    assert err == f"penstock: no figure: it needs matplotlib, {remedy}\n"


@pytest.mark.parametrize(("call", "message"), [
    (["nowhere"], "no record of a run"),
    (["state", "--policies", "chian"], "did you mean 'chain'"),
    (["state", "--policies", ","], "no policy")])
def test_a_wrong_call_gives_status_2_and_says_why(
    call: list[str], message: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["whatif", *call, "--no-figures"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize(("events", "message"), [
    ((), "is empty"), ((ev.EngineStarted(at=0.0, streams=("s",), policies={"operators": "fifo"},
                                      cores=2),), "no job finished")])
def test_a_record_that_tells_nothing_gives_status_2(
    events: tuple[ev.Event, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, events)
    assert main(["whatif", str(tmp_path), "--no-figures"]) == 2
    assert message in capsys.readouterr().err


def test_whatif_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["whatif", "--help"])
    assert left.value.code == 0
    assert "usage: penstock whatif" in capsys.readouterr().out


# --- on Spark ----------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
def test_the_record_of_a_run_on_spark_can_be_replayed(spark: Any, tmp_path: Path) -> None:
    """A replay knows what jobs usually cost, and not what else the machine does meanwhile.

    So one of four runs has to be undisturbed.
    """
    off: dict[str, float] = {}
    for number in range(4):
        off = _off(spark, tmp_path / str(number))
        if max(off.values()) <= 25:
            return
    pytest.fail(f"the replay is off by these percentages: {off}")


def _off(spark: Any, folder: Path) -> dict[str, float]:
    """By how many percent the replay of one more run is off."""
    from penstock.api import Engine

    folder.mkdir()
    with Engine(spark=spark, checkpoint=folder) as engine:
        engine.load("""
            CREATE STREAM packets (ts TIMESTAMP, src INT, port INT) FROM onoff
              OPTIONS (rate = 2000, rows = 12000, seed = 3, pace = 'clock') TIME ts;
            CREATE RELATION hosts (id INT) FROM csv 'hosts';
            CREATE QUERY web WITH (priority = 2) AS SELECT ts FROM packets WHERE port = 443;
            CREATE QUERY known AS SELECT p.ts FROM packets p JOIN hosts h ON p.src = h.id;
        """.replace("'hosts'", f"'{_hosts(folder)}'"), folder=folder)
        engine.run()
    comparison = compare(read_events(folder), policies("chain"))
    assert comparison.state == "drained"
    assert comparison.recording.started.gather == 0.0, "packets come in their own time"
    assert set(comparison.recorded.queries) == {"web", "known"}
    closeness = comparison.closeness()
    assert set(closeness) == {"peak waiting", "mean latency", "seconds running"}
    assert all(one.recorded for one in closeness.values())
    return {name: abs(one.percent or 0.0) for name, one in closeness.items()}


def _hosts(folder: Path) -> Path:
    file = folder / "hosts.csv"
    file.write_text("1\n2\n3\n")
    return file


# --- window aggregates --------------------------------------------------------------------------


def test_latencies_of_window_aggregates_are_left_out_and_that_is_said(tmp_path, capsys) -> None:
    host = FakeHost.of("""
        CREATE STREAM s (ts TIMESTAMP, a INT) FROM rate TIME ts;
        CREATE QUERY plain AS SELECT a FROM s WHERE a > 1;
        CREATE QUERY counted AS SELECT COUNT(*) FROM s [WINDOW 4 SECONDS SLIDE 2 SECONDS];
    """, refreshing=lambda refresh: 0.25)
    for second in range(12):
        host.arrive("s", at=1.0 + 3 * second, times=[float(second)] * 10)
    host.end("s", at=60.0)
    host.run()
    refreshes = [e for e in host.record if isinstance(e, ev.JobFinished) and e.kind == "refresh"]
    found = compare(host.record, policies("chain"))
    assert found.windows == ("counted",)
    for outcome in (found.recorded, *found.simulated):
        assert list(outcome.queries) == ["plain"]
        assert outcome.runs == found.recorded.runs == 24  # its panes are made all the same
    assert found.recorded.latency == found.recorded.queries["plain"]
    said = (f"counted: the replays put the rows of window aggregates into panes, but do not answer "
            f"from them, so there are no latencies; in the recorded run {len(refreshes)} refreshes "
            f"took {0.25 * len(refreshes):.1f} s, which the replays have to spare")
    assert found.notes[0] == said
    with Recorder(tmp_path / "events.jsonl") as record:
        for event in host.record:
            record(event)
    assert main(["whatif", str(tmp_path / "events.jsonl"), "--no-figures"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown and "2 queries" in shown and "latency of plain" in shown
    assert "latency of counted" not in shown


def test_a_derived_stream_has_its_recorded_blocks_in_a_replay_which_says_so():
    host = FakeHost.of("""
        CREATE STREAM s (a INT) FROM rate;
        CREATE STREAM few AS SELECT a FROM s;
        CREATE QUERY q AS SELECT a FROM few;
    """)
    for number in range(4):
        host.arrive("s", at=1.0 + 3 * number, rows=100)
    host.end("s", at=20.0)
    host.run()
    found = compare(host.record, policies("greedy"))
    assert any(note.startswith("few: a derived stream;") for note in found.notes)
    assert decisions(replay(Recording.of(host.record), policy("fifo"))) == decisions(host.record)
