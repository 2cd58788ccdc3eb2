"""Which synopses go on under a new plan, and which are rebuilt."""

from __future__ import annotations

from penstock.engine.aggregates.coverage import EVERYTHING, Coverage, families_of, to_rebuild
from penstock.language import bind
from penstock.model import Application
from penstock.plan import EARLIEST, Plan
from penstock.planning import plan

STREAM = "CREATE STREAM s (ts TIMESTAMP, a INT, b INT) FROM rate TIME ts;"


def application(*asks: str) -> Application:
    texts = (f"CREATE QUERY q{n} AS SELECT {what} FROM s [WINDOW {window} SECONDS SLIDE 2 SECONDS];"
             for n, (what, window) in enumerate(ask.split(" over ") for ask in asks))
    return bind(STREAM + " ".join(texts))


def made(*asks: str) -> Plan:
    return plan(application(*asks))


def kept(of: Plan, first: int = EARLIEST) -> dict[str, Coverage]:
    return {group.id: Coverage(group, families_of(group), first=first) for group in of.groups}


def rebuilt(before: Plan, after: Plan, needs: int | None = None, first: int = EARLIEST) -> bool:
    return bool(to_rebuild(after, kept(before, first), lambda group: needs))


ONE = "SUM(a) over 10"


def test_a_group_without_a_synopsis_gets_one() -> None:
    assert to_rebuild(made(ONE), {}, lambda group: None) == list(made(ONE).groups)


def test_a_synopsis_goes_on_with_fewer_queries_and_with_what_it_measures_already() -> None:
    assert not rebuilt(made(ONE), made(ONE))
    assert not rebuilt(made(ONE, "MAX(b) over 10"), made(ONE))
    assert not rebuilt(made(ONE), made(ONE, "AVG(a) over 6")), "sums and counts are there"


def test_a_longer_window_another_pane_and_another_measure_need_a_synopsis_of_their_own() -> None:
    assert rebuilt(made(ONE), made(ONE, "SUM(a) over 12"))
    assert rebuilt(made(ONE), made(ONE, "SUM(a) over 5"))
    assert rebuilt(made(ONE), made(ONE, "MAX(b) over 10"))


def test_who_joins_needs_panes_that_were_not_dropped() -> None:
    assert not rebuilt(made(ONE), made(ONE), needs=7, first=7)
    assert rebuilt(made(ONE), made(ONE), needs=6, first=7)
    assert not rebuilt(made(ONE), made(ONE), needs=EARLIEST)
    assert rebuilt(made(ONE), made(ONE), needs=EVERYTHING)


def test_what_goes_through_python_is_kept_for_those_who_are_there_alone(tmp_path) -> None:
    (tmp_path / "marks.py").write_text(
        "import penstock\n\n@penstock.predicate\ndef good(a):\n    return True\n")
    text = STREAM + "CREATE FUNCTION good FROM 'marks:good';" + "".join(
        f"CREATE QUERY {name} AS SELECT {what} FROM s [WINDOW 10 SECONDS SLIDE 2 SECONDS] "
        "WHERE good(a);" for name, what in (("x", "SUM(a)"), ("y", "MAX(b)")))
    both = bind(text, folder=str(tmp_path))
    fewer = bind("DROP QUERY y;", both)
    assert rebuilt(plan(both), plan(fewer))
    assert not rebuilt(plan(both), plan(both))
