"""What-if over window joins: a replay forms outers and slices anew, at the costs of the record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from penstock.cli import main
from penstock.engine import ProbeJob
from penstock.engine.settings import Settings
from penstock.events import Recorder, Summary
from penstock.events import kinds as ev
from penstock.policies import joins
from penstock.policies.operators import policies, policy
from penstock.testing import FakeHost
from penstock.whatif.advice import AdviceGoals, advise
from penstock.whatif.alike_queries import folded
from penstock.whatif.predictions import Comparison, Latency, compare
from penstock.whatif.recorded import Recording, replay

STREAMS = """
    CREATE STREAM s (ts TIMESTAMP, k INT) FROM rate TIME ts;
    CREATE STREAM t (ts TIMESTAMP, k INT) FROM rate TIME ts LATENESS 1 SECOND;
"""
PAIRS = "".join(
    f"CREATE QUERY w{length} AS SELECT A.k FROM s A, t B WHERE A.k = B.k WINDOW {length} SECONDS;"
    for length in (1, 4, 30)) + """
    CREATE QUERY after AS SELECT A.k FROM s A JOIN t B ON A.k = B.k
      AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 9 SECONDS;
    CREATE QUERY twin AS SELECT A.k FROM s A, t B WHERE A.k = B.k WINDOW 30 SECONDS;
"""
OTHERS = """
    CREATE QUERY plain AS SELECT k FROM s;
    CREATE QUERY counts AS SELECT COUNT(*) FROM s A, t B WHERE A.k = B.k
      WINDOW 8 SECONDS SLIDE 2 SECONDS;
    CREATE QUERY longer AS SELECT COUNT(*) FROM s A, t B WHERE A.k = B.k
      WINDOW 20 SECONDS SLIDE 4 SECONDS;
    CREATE QUERY latest AS SELECT A.k FROM s A, t B WHERE A.k = B.k WINDOW 7 ROWS;
"""
EVERY = (*joins.POLICIES, "swf(merge=false)", "mqt(merge=false)")


def ran(
    sql: str, joining: str, seed: int = 1, settings: Settings | None = None, drained: bool = True,
    changes: bool = False,
) -> FakeHost:
    """A burst after a calm beginning; probes cost what their sizes say, and a little by chance."""
    def probing(job: ProbeJob) -> float:
        decided = host.record[-1]
        assert isinstance(decided, ev.JobDecided) and decided.job == job.number
        return 0.15 + 4e-4 * decided.work.size

    host = FakeHost.of(STREAMS + sql, joins=joining, probing=probing, cost=lambda job: 0.1,
                       refreshing=lambda job: 1e-4,  # replays leave them out
                       settings=settings or Settings(until_drained=True, paced=True, quantum=1.0))
    rng, now = np.random.default_rng(seed), 0.0
    for number in range(30):
        rows = int(rng.integers(5, 60))
        now += 6.0
        came = now if number < 12 else 72.0 + number / 4  # the rest is a burst
        for stream, late in (("s", 0.0), ("t", 0.125)):
            times = np.sort(rng.uniform(now - 6.0, now, rows)).round(3)
            host.arrive(stream, at=came + late, times=list(times),
                        keys=list(map(int, rng.integers(0, 5, rows))))
    if changes:
        host.run(until=60.0)
        host.drop("twin")
        host.add("CREATE QUERY guest AS SELECT A.k FROM s A, t B WHERE A.k = B.k "
                 "WINDOW 12 SECONDS;")
    if drained:
        host.end("s", at=300.0)
        host.end("t", at=301.0)
    host.run()
    assert Summary.of(host.record).accounting() == []
    return host


def probes(events: Iterable[ev.Event]) -> list[tuple]:
    return [(round(e.at, 3), e.work.join, e.work.outer, e.work.since, e.work.until,
             e.work.nearest, e.work.farthest)
            for e in events if isinstance(e, ev.JobDecided) and isinstance(e.work, ev.ProbeWork)]


def again(record: list[ev.Event], joining: str) -> list[ev.Event]:
    recording = Recording.of(folded(record).events)
    return replay(recording, policy("fifo"), joins.policy(joining))


@pytest.mark.parametrize("recorded", EVERY)
def test_a_replay_under_any_policy_is_the_run_that_would_have_been(recorded):
    record = ran(PAIRS, recorded).record
    for other in EVERY:
        wanted = probes(ran(PAIRS, other).record)
        assert len(wanted) > 15
        assert probes(again(record, other)) == wanted, other


@pytest.mark.parametrize("drained", [True, False])
@pytest.mark.parametrize("changes", [True, False])
def test_the_run_itself_is_replayed_with_all_that_came_and_went(drained, changes):
    settings = None if drained else Settings(quantum=1.0)
    record = ran(PAIRS + OTHERS, "mqt", settings=settings, drained=drained, changes=changes).record
    found = compare(record, policies("fifo"))
    for name, close in found.closeness().items():
        assert close.percent == pytest.approx(0.0, abs=3.0), name
    mine, theirs = found.simulated[0].queries, found.recorded.queries
    assert mine.keys() == theirs.keys() == {
        "w1", "w4", "w30", "after", "twin", "plain", "latest", *(["guest"] if changes else [])}
    for query, latency in theirs.items():
        assert latency is not None and mine[query] is not None
        assert mine[query].mean == pytest.approx(latency.mean, rel=0.05), query
    assert set(found.windows) == {"counts", "longer"}
    (note,) = (note for note in found.notes if "window aggregates" in note)
    assert note.startswith("counts, longer: ")


def latency_of(host: FakeHost, query: str) -> Latency | None:
    """The latency of blocks, told from the record by other means than those of what-if."""
    came = {(e.block.stream, e.block.number): e.block for e in host.record
            if isinstance(e, ev.BlockArrived)}
    through = [(e.at - came[each.stream, number].arrived, came[each.stream, number].rows)
               for e in host.record if isinstance(e, ev.JobFinished)
               and isinstance(e.result, ev.ProbeResult)
               for each in e.result.through for name in each.members
               if name.split("#")[0] == query for number in each.blocks]
    seconds, rows = zip(*through, strict=True)
    return Latency.of(np.array(seconds), np.array(rows, float))


def compared(record: list[ev.Event]) -> Comparison:
    return compare(record, policies("fifo, chain"), {name: joins.policy(name) for name in EVERY})


def test_latencies_of_window_joins_are_compared_between_policies():
    found = compared(ran(PAIRS, "lwo").record)
    named = {outcome.policy: outcome for outcome in found.simulated}
    assert list(named) == ["fifo", "chain", *(f"joins {name}" for name in EVERY if name != "lwo")]
    for name in ("swf(merge=false)", "mqt", "isolated"):
        really = ran(PAIRS, name)
        for query in ("w1", "w30", "after"):
            predicted, latency = named[f"joins {name}"].queries[query], latency_of(really, query)
            assert predicted is not None and latency is not None
            assert predicted.mean == pytest.approx(latency.mean, rel=0.01), (name, query)
    smallest = {name: outcome.queries["w1"].mean for name, outcome in named.items()}
    assert smallest["joins mqt(merge=false)"] < 0.8 * smallest["fifo"]


def test_joins_policies_are_not_tried_where_nothing_is_joined():
    host = FakeHost.of("CREATE STREAM s (k INT) FROM rate; CREATE QUERY q AS SELECT k FROM s;")
    host.arrive("s", at=1.0)
    host.run()
    assert [outcome.policy for outcome in compared(host.record).simulated] == ["fifo", "chain"]


def test_a_join_that_never_probed_is_named():
    host = FakeHost.of(STREAMS + "CREATE QUERY plain AS SELECT k FROM s;" + PAIRS)
    for number in range(6):
        host.arrive("s", at=1.0 + number, times=(float(number),), keys=(1,))
    host.run()
    found = compare(host.record, policies("fifo"), {"lwo": joins.policy("lwo")})
    (note,) = (note for note in found.notes if "nothing is known of the cost" in note)
    assert note.startswith("w1, w4, w30, after, twin: no job finished")


def test_the_model_tells_the_cost_of_a_probe_and_how_many_pairs_it_finds():
    record = ran(PAIRS, "swf(merge=false)").record
    (model,) = Recording.of(record).joins.values()
    assert (model.cost.fixed, model.cost.per_row) == pytest.approx((0.15, 4e-4))
    sizes = sum(e.work.size for e in record if isinstance(e, ev.JobDecided))
    found = Summary.of(record).queries["w30"].rows_out
    assert model.found(["w30"], sizes) == {"w30": pytest.approx(found, abs=1)}


def test_advice_names_a_joins_policy_where_that_meets_the_limits(tmp_path: Path, capsys):
    record = ran(PAIRS, "isolated").record
    ranked = compared(record).simulated
    best = min(ranked, key=lambda outcome: outcome.latency.max)
    assert best.policy.startswith("joins ")
    advice = advise(record, AdviceGoals(latency=best.latency.max * 1.001))
    assert advice.chosen is not None and advice.setting(advice.chosen)[0] == "joins"
    with Recorder(tmp_path / "events.jsonl") as write:
        for event in record:
            write(event)
    limit = f"{best.latency.max * 1.001:.3f} seconds"
    assert main(["advise", str(tmp_path / "events.jsonl"), "--latency", limit]) == 0
    chosen = advice.setting(advice.chosen)[1]
    assert f"SET joins = '{chosen}' would have met" in capsys.readouterr().out.replace("\n", " ")
    assert main(["advise", str(tmp_path / "events.jsonl"), "--latency", limit, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["joins"], told["operators"]) == (chosen, None)


def test_the_command_tells_of_window_joins(tmp_path: Path, capsys):
    with Recorder(tmp_path / "events.jsonl") as write:
        for event in ran(PAIRS, "lwo").record:
            write(event)
    record = str(tmp_path / "events.jsonl")
    assert main(["whatif", record, "--policies", "fifo", "--joins", "mqt", "--no-figures"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "joins mqt" in shown and "latency of w1" in shown and "s*t@" in shown
    assert main(["whatif", record, "--json", "--joins", "swf, mqt", "--no-figures"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"joins swf", "joins mqt"} < told["policies"].keys()
    (cost,) = told["join_costs"].values()
    assert cost["runs"] > 5
