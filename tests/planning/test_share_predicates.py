"""Who shares a trip to Python: queries with a predicate in common that need nothing else there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.language import bind
from penstock.plan import Plan
from penstock.planning import plan

MODULE = "import penstock\n" + "".join(
    f"@penstock.predicate{extra}\ndef {name}(a): ...\n" for name, extra in (
        ("one", ""), ("two", ""), ("three", ""), ("stays", "(deterministic=False)"))
) + "@penstock.scalar('INT')\ndef score(a): ...\n"
STREAM = """
    CREATE STREAM s (a INT, b INT) FROM rate; CREATE STREAM t (a INT, b INT) FROM rate;
    CREATE RELATION r (id INT, site STRING) FROM csv 'r.csv';
""" + "".join(f"CREATE FUNCTION {name} FROM 'sharing:{name}';"
              for name in ("one", "two", "three", "stays", "score"))


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "sharing.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("sharing", None)


def planned(*queries: str) -> Plan:
    return plan(bind(STREAM + "".join(
        f"CREATE QUERY q{number} AS {query};" for number, query in enumerate(queries, 1))))


def riding(made: Plan) -> dict[str, list[str]]:
    return {path.id: [str(member) for member in path.members] for path in made.paths}


def test_queries_with_a_predicate_in_common_share_a_path() -> None:
    made = planned("SELECT a FROM s WHERE one(a) AND two(b)",
                   "SELECT b FROM s WHERE three(a) AND two(b) AND a > 3",
                   "SELECT a FROM s WHERE three(b)")
    assert riding(made) == {"q1#0+": ["q1", "q2"], "q3#0": ["q3"]}
    shared = made.paths[0]
    assert [operator.text for operator in shared.conjunction] == ["one(a)", "two(b)", "three(a)"]
    assert len(shared.stages) == 1 and shared.expensive and shared.shared


def test_a_chain_of_common_predicates_is_one_path() -> None:
    made = planned("SELECT a FROM s WHERE one(a)", "SELECT a FROM s WHERE three(a)",
                   "SELECT a FROM s WHERE one(a) AND two(a)",
                   "SELECT a FROM s WHERE two(a) AND three(a)")
    assert riding(made) == {"q1#0+": ["q1", "q2", "q3", "q4"]}


@pytest.mark.parametrize("other", [
    "SELECT a FROM t WHERE one(a)",
    "SELECT score(a) AS x FROM s WHERE one(a)",
    "SELECT a FROM s WHERE one(a) AND score(a) + 1 > 3",
    "SELECT score(a) AS x FROM s WHERE one(a) AND score(a) > 3",
    "SELECT a FROM s WHERE one(a) AND stays(a)",
    "SELECT s.a FROM s JOIN r ON s.a = r.id WHERE one(s.a)",
])
def test_others_keep_a_path_of_their_own(other: str) -> None:
    made = planned("SELECT a FROM s WHERE one(a)", other)
    assert riding(made) == {"q1#0": ["q1"], "q2#0": ["q2"]}


def test_the_same_relations_may_be_joined_before() -> None:
    made = planned("SELECT s.a FROM s JOIN r ON s.a = r.id WHERE one(s.a)",
                   "SELECT r.site FROM s JOIN r ON s.a = r.id WHERE one(s.a) AND two(s.b)")
    (path,) = made.paths
    assert [operator.kind for operator in path.operators] == [
        "lookup", "python", "python", "fanout", "sink"]


def test_a_query_that_is_left_alone_has_its_own_path_again() -> None:
    first = "SELECT a FROM s WHERE one(a)"
    assert list(riding(planned(first, "SELECT b FROM s WHERE one(a)"))) == ["q1#0+"]
    assert list(riding(planned(first))) == ["q1#0"]
