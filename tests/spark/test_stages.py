"""Staged runs on Spark: whatever a policy cuts and keeps, the answers are the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.events import kinds as ev
from penstock.policies.operators import POLICIES
from tests.spark.kit import eventually

pytestmark = pytest.mark.spark

FUNCTIONS = """
import penstock, pyarrow as pa, pyarrow.compute as pc

@penstock.predicate
def odd(n):
    return pc.equal(pc.bit_wise_and(n, 1), 1)

@penstock.predicate
def fine(n):
    if any(value == 77 for value in n.to_pylist()):
        raise ValueError("seventy-seven")
    return pc.not_equal(n, 5)

@penstock.scalar("BIGINT")
def tenfold(n):
    return pc.multiply(n.cast(pa.int64()), 10)
"""

APPLICATION = """
    CREATE STREAM numbers (n INT, name STRING) FROM parquet 'in' OPTIONS (maxFilesPerTrigger = 1);
    CREATE RELATION twice (id INT, site STRING) FROM csv 'twice.csv' OPTIONS (header = true);
    CREATE FUNCTION odd FROM 'staged:odd';
    CREATE FUNCTION fine FROM 'staged:fine';
    CREATE FUNCTION tenfold FROM 'staged:tenfold';
    CREATE QUERY three AS SELECT n, tenfold(n) AS ten, name FROM numbers
        WHERE n < 90 AND odd(n) AND fine(n);
    CREATE QUERY joined AS SELECT m.n, t.site FROM numbers m JOIN twice t ON m.n % 10 = t.id
        WHERE odd(m.n) AND t.site <> 'c';
    CREATE QUERY nothing AS SELECT n FROM numbers WHERE n > 1000 AND odd(n);
    CREATE QUERY cheap AS SELECT n FROM numbers WHERE n < 10;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sys.modules.pop("staged", None)
    (tmp_path / "staged.py").write_text(FUNCTIONS)
    (tmp_path / "twice.csv").write_text("id,site\n1,a\n1,b\n3,c\n5,d\n")
    (tmp_path / "in").mkdir()
    for file in range(4):
        values = range(file * 30, file * 30 + 30)
        table = pa.table({"n": pa.array(values, pa.int32()), "name": [f"<{v}>" for v in values]})
        pq.write_table(table, tmp_path / "in" / f"{file}.parquet")
    return tmp_path


def rows(table: pa.Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


ODD = [n for n in range(120) if n % 2]
EXPECTED = {
    "three": sorted((n, n * 10, f"<{n}>") for n in ODD if n < 90 and n not in (5, 77)),
    "joined": sorted((n, site) for n in ODD for id, site in ((1, "a"), (1, "b"), (5, "d"))
                     if n % 10 == id),
    "nothing": [],
    "cheap": [(n,) for n in range(10)],
}


QUICKLY = ("fifo", "chain", "chain_flush", "preemptive_rate_based")
"""The policies that every run of the tests tries; the others are as long again."""


@pytest.mark.parametrize("policy", [
    name if name in QUICKLY else pytest.param(name, marks=pytest.mark.long) for name in POLICIES])
def test_every_policy_gives_the_same_answers(policy: str, folder: Path, engine) -> None:
    events: list[ev.Event] = []
    with engine(on_event=events.append) as e:
        e.execute(APPLICATION + f"SET operators = '{policy}';", folder=folder)
        summary = e.run()
        assert (summary.run.state, summary.failures()) == ("drained", [])
        assert {name: rows(e.results(name)) for name in EXPECTED} == EXPECTED
        assert summary.queries["three"].rejected == 1
        assert not [event for event in events if isinstance(event, ev.JobFailed)]
        kept = [event for event in events if isinstance(event, ev.JobFinished) and event.kept]
        if policy in ("fifo", "edf"):
            assert not kept
        if policy in ("round_robin", "greedy", "rate_based", "preemptive_rate_based"):
            assert kept
    check_measured(events)


def check_measured(events: list[ev.Event]) -> None:
    """Jobs say what their stages cost and keep, whichever jobs these were in; none was sampled."""
    results = [event.result for event in events
               if isinstance(event, ev.JobFinished) and isinstance(event.result, ev.PathResult)]
    assert not any(result.sampling for result in results)
    found: dict[tuple[str, str], list[ev.StageFigures]] = {}
    for result in results:
        for stage, figures in result.measured.items():
            found.setdefault((stage, figures.how), []).append(figures)
    kept = {key: sum(f.rows_out for f in told) / sum(f.rows_in for f in told)
            for key, told in found.items()}
    assert kept == pytest.approx({
        ("three#0:filter", "count"): 90 / 120, ("three#0:python1", "worker"): 45 / 90,
        ("three#0:python2", "worker"): 44 / 45, ("three#0:python3", "worker"): 43 / 43,
        ("joined#0:lookup1", "count"): 48 / 120, ("joined#0:filter", "count"): 36 / 48,
        ("joined#0:python1", "worker"): 1.0, ("nothing#0:filter", "count"): 0.0})
    assert all((f.seconds > 0) == (how == "worker") for (_, how), told in found.items()
               for f in told)


def test_with_two_slots_runs_overlap_and_the_answers_are_the_same(folder: Path, engine) -> None:
    events: list[ev.Event] = []
    with engine(on_event=events.append) as e:
        e.execute(APPLICATION + "SET slots = 2; SET operators = 'round_robin';", folder=folder)
        summary = e.run()
        assert (summary.run.state, summary.failures()) == ("drained", [])
        assert {name: rows(e.results(name)) for name in EXPECTED} == EXPECTED
    under_way, most = 0, 0
    for event in events:
        under_way += isinstance(event, ev.JobDecided)
        under_way -= isinstance(event, ev.JobFinished)
        most = max(most, under_way)
    assert most == 2


def test_policies_changed_in_the_middle_of_a_burst_lose_and_repeat_no_row(
    folder: Path, engine
) -> None:
    events: list[ev.Event] = []
    with engine(on_event=events.append) as e:
        e.execute(APPLICATION + "SET quantum = '1 ms';", folder=folder)
        e.start()
        for policy, keeps in (("greedy", False), ("chain", True)):
            eventually(lambda keeps=keeps: any(isinstance(event, ev.JobFinished)
                                               and bool(event.kept) is keeps for event in events),
                       "a job has kept rows" if keeps else "a job has delivered")
            e.execute(f"SET operators = '{policy}'")
        told = e.status().queries
        eventually(lambda: all(name in told and told[name].rows_in == 120 for name in EXPECTED),
                   "every query has had every row", 240)
        e.stop()
        assert {name: rows(e.results(name)) for name in EXPECTED} == EXPECTED
    changes = [n for n, event in enumerate(events) if isinstance(event, ev.PolicyChanged)]
    told = [{"operators": "greedy"}, {"operators": "chain"}]
    assert [events[n].policies for n in changes] == told
    for n in changes:
        waited = [event.blocks for event in events[:n] if isinstance(event, ev.Queued)]
        assert waited[-1] > 1, "there was a burst"
