"""Questions: a SELECT answered once, from a synopsis that runs or from what the spool holds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.api import Engine
from penstock.errors import CheckpointError, RunError, SyntaxFault, UnknownName
from tests.spark.kit import eventually
from tests.spark.test_engine import BEGIN, module, put, sources, stream

pytestmark = pytest.mark.spark
__all__ = ["module"]

PER_PORT = "SELECT port, COUNT(*) AS n, MAX(src) AS top FROM packets [WINDOW {}] GROUP BY port"


def expected(numbers: Iterable[int]) -> list[tuple[int, int, int]]:
    """Port, count and largest source of rows that are told by their numbers."""
    ports = {n: (80, 443, 22)[n % 3] for n in numbers}
    counted = Counter(ports.values())
    return sorted((p, c, max(n for n in ports if ports[n] == p)) for p, c in counted.items())


def found(table) -> list[tuple[int, int, int]]:
    return sorted(zip(*(table[name].to_pylist() for name in ("port", "n", "top")), strict=True))


def bounds(table) -> tuple[int, int]:
    """The window in seconds since the first row."""
    (start,), (end,) = ({*table[name].to_pylist()} for name in ("window_start", "window_end"))
    return (start - BEGIN) // timedelta(seconds=1), (end - BEGIN) // timedelta(seconds=1)


def contents(folder: Path) -> dict[str, str]:
    """Every file of a checkpoint that tells what was delivered and what stands."""
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in ("spark.log", "lock")}


def test_a_checkpoint_at_rest_answers_every_form_and_stays_as_it_is(engine, module, tmp_path):
    put(tmp_path / "in", 0, 0, 60)
    put(tmp_path / "in", 1, 60, 40)
    put(tmp_path / "more", 0, 1000, 10)
    (tmp_path / "hosts.csv").write_text("id,site\n1,a\n2,b\n2,c\n3,d\n")
    module("questions_called", (
        "import penstock, pyarrow.compute as pc\n"
        "@penstock.predicate\n"
        "def odd(src): return pc.equal(pc.bit_wise_and(src, 1), 1)\n"))
    one = engine()
    one.execute(f"""
        {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
        {stream(tmp_path / "more", "more")}
        {stream(tmp_path / "none", "silent")}
        CREATE RELATION hosts (id INT, site STRING) FROM csv 'hosts.csv' OPTIONS (header = true);
        CREATE FUNCTION odd FROM 'questions_called:odd';
        CREATE QUERY standing AS SELECT src FROM packets WHERE src < 3
            UNION ALL SELECT src FROM more WHERE src < 1002;
    """, folder=tmp_path)
    one.run()
    before = contents(one.checkpoint)

    assert sources(one.ask("SELECT src FROM packets WHERE port = 80;")) == [*range(0, 100, 3)]
    assert sources(one.ask("SELECT src FROM packets WHERE odd(src) AND src < 6")) == [1, 3, 5]
    joined = one.ask("SELECT h.site, p.src FROM packets p JOIN hosts h ON p.src = h.id")
    assert joined.schema.names == ["site", "src"]
    assert sorted(joined["site"].to_pylist()) == ["a", "b", "c", "d"]
    both = one.ask("SELECT src, 'in' AS seen FROM packets WHERE src > 97 UNION ALL "
                   "SELECT src, 'in' FROM packets WHERE src = 99 UNION ALL "
                   "SELECT src, 'more' FROM more WHERE src = 1001")
    assert sorted(zip(*both.to_pydict().values(), strict=True)) == [
        (98, "in"), (99, "in"), (99, "in"), (1001, "more")]

    last = one.ask(PER_PORT.format("30 SECONDS"))
    assert bounds(last) == (70, 100)
    assert found(last) == expected(range(70, 100))
    minute = one.ask("SELECT window_start, window_end, port, COUNT(*) AS n, MAX(src) AS top "
                     "FROM packets WHERE src >= 5 GROUP BY port, TUMBLE(ts, INTERVAL '1' MINUTE)")
    assert bounds(minute) == (60, 120)
    assert found(minute) == expected(range(60, 100))
    few = one.ask("SELECT src % 7 AS k, SUM(src) / COUNT(*) AS mean FROM packets [WINDOW 1 MIN] "
                  "WHERE odd(src) GROUP BY src % 7 HAVING mean > 72", to="pandas")
    mean = {k: [n for n in range(40, 100) if n % 2 and n % 7 == k] for k in range(7)}
    assert dict(zip(few["k"], few["mean"], strict=True)) == {
        k: sum(ns) / len(ns) for k, ns in mean.items() if sum(ns) / len(ns) > 72}
    assert one.ask("SELECT COUNT(*) FROM packets [WINDOW 1 MIN] WHERE src < 0").num_rows == 0

    # another engine may look at the checkpoint that this one has; it takes more rows as expected
    with Engine(spark=one.session, checkpoint=one.checkpoint, reading=True) as reader:
        other = reader.ask(PER_PORT.format("30 SECONDS"))
        assert bounds(other) == (69, 99)
        assert found(other) == expected(range(69, 99))
        assert sources(reader.results("standing")) == [0, 1, 2, 1000, 1001]
        with pytest.raises(RunError, match="opened for reading"):
            reader.execute("DROP QUERY standing")
        with pytest.raises(RunError, match="opened for reading"):
            reader.start()
    assert contents(one.checkpoint) == before

    with pytest.raises(UnknownName, match="no stream, relation or view 'packet'"):
        one.ask("SELECT src FROM packet")
    with pytest.raises(SyntaxFault, match="expected SELECT"):
        one.ask("DROP QUERY standing")
    with pytest.raises(RunError, match="nothing is held of silent"):
        one.ask("SELECT src FROM silent")
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        Engine(spark=one.session, checkpoint=tmp_path / "in", reading=True)


def test_a_running_engine_answers_from_its_synopsis_or_from_the_spool(engine, tmp_path):
    put(tmp_path / "in", 0, 0, 60)
    put(tmp_path / "in", 1, 60, 40)
    one = engine()
    one.execute(f"""
        {stream(tmp_path / "in", options="maxFilesPerTrigger = 1")}
        CREATE QUERY standing WITH (start = 'earliest') AS
            SELECT port, COUNT(*) AS n, MAX(src) AS top, SUM(src) AS total
            FROM packets [WINDOW 30 SECONDS SLIDE EXACTLY 10 SECONDS] GROUP BY port;
    """)
    one.start()
    eventually(lambda: one.status().queries["standing"].answers >= 9, "all windows are answered")
    # Panes of ten seconds are closed up to 90, as a row of the 100th second may still come. Those
    # before 70 are gone, as the next answer is for 100. What needs others comes from the spool.
    for window, ends in (("20 SECONDS", (70, 90)), ("10 SECONDS", (80, 90)),
                         ("30 SECONDS", (69, 99)), ("25 SECONDS", (74, 99)),
                         ("60 SECONDS", (39, 99))):
        answer = one.ask(PER_PORT.format(window))
        assert bounds(answer) == ends
        assert found(answer) == expected(range(*ends))
    assert one.ask("SELECT MIN(src) AS low FROM packets [WINDOW 20 SECONDS]")["low"].to_pylist() \
        == [79]  # other groups, so other panes
    assert len(sources(one.ask("SELECT src FROM packets"))) == 100
    put(tmp_path / "in", 2, 100, 21)
    eventually(lambda: one.status().queries["standing"].answers >= 12, "the rest is answered")
    one.stop()
    answers = one.results("standing")
    for end in range(10, 130, 10):
        rows = answers.filter([at == BEGIN + timedelta(seconds=end)
                               for at in answers["window_end"].to_pylist()])
        assert found(rows) == expected(range(max(0, end - 30), end)), end
