"""Joins over windows of rows on Spark: a row meets the latest rows of the other stream, once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

import pytest

from penstock.events import kinds as ev
from tests.spark import test_joins
from tests.spark.test_joins import COLUMNS, EVERY, STREAMS, bag, pairs, run, timely, write

pytestmark = pytest.mark.spark
folder, small_outers = test_joins.folder, test_joins.small_outers

ROWS = {"last": 1, "few": 7, "many": 60}
CHOSEN = {"few": " AND A.v > 20", "many": " AND A.v < B.v"}


def written(names: Sequence[str] = tuple(ROWS)) -> str:
    return "".join(f"CREATE QUERY {name} AS SELECT {COLUMNS} FROM a A, b B WHERE A.k = B.k"
                   f"{CHOSEN.get(name, '')} WINDOW {ROWS[name]} ROWS;\n" for name in names)


def expected(sides: dict[str, list[tuple]], name: str) -> Counter:
    """Each row of one stream beside the latest of the other that are not later than it."""
    ordered = [sorted(((row[0], number, row) for number, row in enumerate(sides[side]) if row[0]))
               for side in ("a", "b")]
    times = [[time for time, _, _ in side] for side in ordered]
    found: dict[tuple[int, int], tuple[tuple, tuple]] = {}
    for mine, other in ((0, 1), (1, 0)):
        for time, number, row in ordered[mine]:
            end = bisect_right(times[other], time)
            for _, theirs, there in ordered[other][max(0, end - ROWS[name]) : end]:
                place = (number, theirs) if mine == 0 else (theirs, number)
                found[place] = (row, there) if mine == 0 else (there, row)
    return bag((a[0], a[2], b[0], b[2]) for a, b in found.values()
               if a[1] is not None and a[1] == b[1]
               and (name != "few" or a[2] > 20) and (name != "many" or a[2] < b[2]))


@pytest.mark.parametrize("policy", ["mqt(merge=false)", "isolated"])
def test_a_row_meets_the_latest_rows_of_the_other_stream(engine, folder, policy, small_outers):
    seed = 40 + EVERY.index(policy)
    blocks = {"a": test_joins.rows(seed, 2.0, 4), "b": test_joins.rows(100 + seed, 0.7, 5)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    tables, events, summary = run(
        engine, folder, STREAMS + written() + f"SET joins = '{policy}'; SET retention = '0 s';")
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    for name in ROWS:
        assert expected(sides, name).total() > 5
        assert pairs(tables[name]) == expected(sides, name), name
    assert len({query.late for query in summary.queries.values()}) == 1
    probes = [e.work for e in events if isinstance(e, ev.JobDecided) and e.kind == "probe"]
    assert len({work.join for work in probes}) == 1
    assert len({work.outer for work in probes}) > 2


def test_files_that_come_after_a_drain_meet_the_rows_before(engine, folder, small_outers):
    blocks = {"a": test_joins.rows(51, 2.0, 4), "b": test_joins.rows(151, 2.0, 4)}
    sql = STREAMS + written(["few"])
    for stream, some in blocks.items():
        write(folder, stream, some[:2])
    run(engine, folder, sql)
    for stream, some in blocks.items():
        write(folder, stream, some)
    tables, _, _ = run(engine, folder, sql)
    last = max(row[0] for some in blocks.values() for block in some[:2] for row in block if row[0])
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    early = {stream: timely(stream, some[:2]) for stream, some in blocks.items()}
    mark = last.replace(tzinfo=None).isoformat()
    after = Counter({pair: count for pair, count in expected(sides, "few").items()
                     if max(pair[0], pair[2]) > mark})
    assert after.total() > 0
    assert pairs(tables["few"]) == expected(early, "few") + after


def test_a_question_pairs_what_the_spool_holds(engine, folder):
    blocks = {"a": test_joins.rows(61, 2.0, 3), "b": test_joins.rows(161, 1.0, 3)}
    for stream, some in blocks.items():
        write(folder, stream, some)
    with engine() as e:
        e.execute(STREAMS + written(["last"]), folder=folder)
        e.run()
        found = e.ask(f"SELECT {COLUMNS} FROM a A, b B WHERE A.k = B.k AND A.v > 20 WINDOW 7 ROWS")
    sides = {stream: timely(stream, some) for stream, some in blocks.items()}
    assert pairs(found) == expected(sides, "few")
