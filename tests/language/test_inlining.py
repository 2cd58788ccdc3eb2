"""A query over views, WITH and queries in FROM is the query that the same text by hand would be."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.positions import digests
from penstock.errors import LanguageError
from penstock.language import bind, bind_question, bind_statements
from penstock.model import Application
from penstock.plan import Plan
from penstock.planning.passes import plan
from tests.language import kit

ONTO = kit.declared()


@dataclass(frozen=True)
class Rows:
    """Rows that can be read by a name, and what their columns and their SELECT are by hand."""

    columns: dict[str, str]
    where: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()

    @property
    def select(self) -> str:
        listed = ", ".join(f"{text} AS {name}" for name, text in self.columns.items())
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {listed} FROM packets p{''.join(self.lookups)}{where}"


def drawn(chance: random.Random, read: Rows, alias: str) -> tuple[str, Rows]:
    """A SELECT over some rows without its FROM, and the same by hand; it may look up a relation."""
    def made() -> tuple[str, str]:
        parts = [chance.choice(list(read.columns)) for _ in range(chance.randint(1, 2))]
        operator, constant = chance.choice("+-*"), chance.randrange(9)
        return (f" {operator} ".join([f"{alias}.{name}" for name in parts] + [str(constant)]),
                f" {operator} ".join([f"({read.columns[n]})" for n in parts] + [str(constant)]))

    columns = {f"c{n}": made() for n in range(chance.randint(1, 3))}
    kept = chance.choice(list(read.columns))
    columns["kept"] = (kept, f"({read.columns[kept]})")
    join, lookups = "", read.lookups
    if chance.random() < 0.4:
        over, hand = made()
        name = f"h{len(lookups)}"
        kind = chance.choice(["JOIN", "LEFT JOIN"])
        join = f" {kind} hosts {name} ON {name}.id = {over}"
        lookups = (*lookups, f" {kind} hosts {name} ON {name}.id = {hand}")
        columns["found"] = (f"{name}.id", f"{name}.id")
    asked = [made() for _ in range(chance.randint(0, 2))]
    where = " AND ".join(f"{over} > 5" for over, _ in asked)
    text = ("SELECT " + ", ".join(f"{over} AS {name}" for name, (over, _) in columns.items())
            + " FROM {read} " + alias + join + (f" WHERE {where}" if where else ""))
    by_hand = Rows({name: hand for name, (_, hand) in columns.items()},
                   (*read.where, *(f"{hand} > 5" for _, hand in asked)), lookups)
    return text, by_hand


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from(["view", "with", "from"]))
def test_queries_over_queries_are_those_by_hand(seed, steps, way):
    chance = random.Random(seed)
    rows = Rows({name: f"p.{name}" for name in ("src", "dst", "port", "length")})
    read, given_ = "packets", []
    for step in range(steps):
        text, rows = drawn(chance, rows, f"a{step}")
        text = text.replace("{read}", read)
        read = f"({text})" if way == "from" else f"v{step}"
        given_.append(text)
    last = given_.pop()
    views = "".join(f"CREATE VIEW v{n} AS {text}; " for n, text in enumerate(given_))
    ctes = ", ".join(f"v{n} AS ({text})" for n, text in enumerate(given_))
    whole = {"view": f"{views}CREATE QUERY q AS {last}", "from": f"CREATE QUERY q AS {last}",
             "with": f"CREATE QUERY q AS {f'WITH {ctes} ' if ctes else ''}{last}"}[way]
    bound = bind(whole, ONTO)
    by_hand = bind(f"CREATE QUERY q AS {rows.select}", ONTO)
    assert bound.queries["q"].branches == by_hand.queries["q"].branches, whole
    assert bound.queries["q"].views == tuple(f"v{n}" for n in range(steps - 1) if way == "view")
    assert bind_statements(bound.statements, load=kit.detectors) == bound


def test_a_thousand_queries_over_one_view_are_one_path_as_they_are_by_hand():
    view = "CREATE VIEW web AS SELECT ts, src, length * 8 AS bits FROM packets WHERE port = 80;"
    over = [f"SELECT ts, bits FROM web WHERE src = {n} AND bits > {n % 7}" for n in range(1000)]
    hand = [f"SELECT ts, length * 8 AS bits FROM packets WHERE port = 80 AND src = {n} "
            f"AND length * 8 > {n % 7}" for n in range(1000)]
    def planned(declared: str, queries: list[str]) -> Plan:
        named = [f"CREATE QUERY r{n} AS {text};" for n, text in enumerate(queries)]
        return plan(bind(declared + "".join(named), ONTO))

    shared, alone = planned(view, over), planned("", hand)
    assert shared.paths == alone.paths
    assert [len(path.members) for path in shared.paths] == [1000]


def test_one_view_read_twice_by_a_join_and_by_an_aggregate_is_read_as_its_stream():
    bound = bind("""
        CREATE VIEW web AS SELECT ts, src, dst FROM packets WHERE port = 80;
        CREATE QUERY pairs AS SELECT a.src FROM web a, web b WHERE a.src = b.dst WINDOW 1 MIN;
        CREATE QUERY counts AS SELECT src, COUNT(*) FROM web [WINDOW 1 MIN] GROUP BY src;
    """, ONTO)
    by_hand = bind("""
        CREATE QUERY pairs AS SELECT a.src FROM packets a, packets b
          WHERE a.port = 80 AND b.port = 80 AND a.src = b.dst WINDOW 1 MIN;
        CREATE QUERY counts AS SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] WHERE port = 80
          GROUP BY src;
    """, ONTO)
    for name, query in by_hand.queries.items():
        assert bound.queries[name].branches == query.branches
    asked = bind_question("SELECT src FROM web", bound).query
    assert (asked.views, asked.streams) == (("web",), ("packets",))


@pytest.mark.parametrize("over, by_hand", [
    ("SELECT src, port FROM web ORDER BY bits DESC, src LIMIT 5",
     "SELECT src, port FROM packets WHERE port = 80 ORDER BY length * 8 DESC, src LIMIT 5"),
    ("WITH w AS (SELECT src AS s FROM web) SELECT DISTINCT s FROM w ORDER BY s",
     "SELECT DISTINCT src AS s FROM packets WHERE port = 80 ORDER BY 1"),
    ("SELECT x.s FROM (WITH w AS (SELECT src AS s, bits FROM web) SELECT s, bits FROM w) AS x "
     "ORDER BY x.bits",
     "SELECT src AS s FROM packets WHERE port = 80 ORDER BY length * 8"),
    ("SELECT src, COUNT(*), FIRST(bits) FROM web GROUP BY src ORDER BY COUNT(*)",
     "SELECT src, COUNT(*), FIRST(length * 8) FROM packets WHERE port = 80 GROUP BY src "
     "ORDER BY COUNT(*)"),
    ("SELECT a.src, b.bits FROM web a JOIN web b ON a.src = b.dst",
     "SELECT a.src, b.length * 8 AS bits FROM packets a JOIN packets b ON a.src = b.dst "
     "WHERE a.port = 80 AND b.port = 80"),
    ("SELECT t.n FROM (SELECT src, n FROM told WHERE n > 2) AS t JOIN web w ON t.src = w.src",
     "SELECT t.n FROM told t JOIN packets w ON t.src = w.src WHERE t.n > 2 AND w.port = 80")])
def test_a_question_over_views_and_answers_is_the_question_by_hand(over, by_hand):
    bound = bind("""
        CREATE VIEW web AS SELECT ts, src, dst, port, length * 8 AS bits FROM packets
          WHERE port = 80;
        CREATE QUERY told AS SELECT src, COUNT(*) AS n FROM web [WINDOW 1 MIN] GROUP BY src;
    """, ONTO)
    asked, plain = bind_question(over, bound), bind_question(by_hand, bound)
    assert [set(branch.where) for branch in asked.query.branches] == [
        set(branch.where) for branch in plain.query.branches]
    told, same = ([replace(branch, where=()) for branch in one.query.branches]
                  for one in (asked, plain))
    assert told == same
    assert replace(asked, query=plain.query) == plain
    assert asked.query.views == (("web",) if "web" in over else ())


def test_a_question_is_ordered_by_a_column_that_only_one_part_of_a_union_shows():
    bound = bind("CREATE VIEW v AS SELECT src AS a, src AS b FROM packets "
                 "UNION ALL SELECT src, dst FROM packets", ONTO)
    assert bind_question("SELECT a FROM v ORDER BY b", bound).order[0].output == 1
    with pytest.raises(LanguageError, match="ordered by its own columns"):
        bind_question("SELECT DISTINCT a FROM v ORDER BY b", bound)


@pytest.mark.parametrize("inner", [
    "SELECT DISTINCT src FROM packets", "SELECT src FROM packets ORDER BY src",
    "SELECT src FROM packets LIMIT 3"])
def test_what_only_a_question_takes_is_refused_within_it(inner):
    with pytest.raises(LanguageError, match="only the whole question takes it"):
        bind_question(f"WITH w AS ({inner}) SELECT src FROM w", ONTO)


def test_a_view_takes_an_array_apart_as_its_text_would():
    declared = """
        CREATE STREAM carts (ts TIMESTAMP, who STRING, items ARRAY<STRING>) FROM rate TIME ts;
        CREATE VIEW single AS SELECT ts, who, t.item FROM carts CROSS JOIN UNNEST(items) AS t (item)
          WHERE who <> 'x';
        CREATE QUERY over AS SELECT item, COUNT(*) AS n, FIRST(who) AS f FROM single [WINDOW 1 MIN]
          GROUP BY item;
        CREATE QUERY hand AS SELECT t.item, COUNT(*) AS n, FIRST(who) AS f FROM carts [WINDOW 1 MIN]
          CROSS JOIN UNNEST(items) AS t (item) WHERE who <> 'x' GROUP BY t.item;
        CREATE QUERY again AS SELECT s.who, u.other FROM single s
          LATERAL VIEW explode(array(s.item, s.who)) u AS other;
    """
    queries = bind(declared, ONTO).queries
    assert queries["over"].branches == queries["hand"].branches
    assert [lookup.unnests for lookup in queries["again"].branches[0].lookups] == [True, True]


@pytest.mark.parametrize("first, step, message", [
    ("SELECT src AS a FROM packets", "SELECT a + a AS a FROM v{n}", "too large"),
    ("SELECT src AS a FROM packets", "SELECT a FROM v{n} UNION ALL SELECT a FROM v{n}",
     "more than 1,000 SELECTs"),
    ("SELECT src AS a FROM packets", "SELECT a FROM v{n} WHERE a" + " + 1" * 30 + " > 0",
     "too large|nested too deeply"),
    ("SELECT src AS a FROM packets", "SELECT a" + " + 1" * 30 + " AS a FROM v{n}",
     "too large|nested too deeply")])
def test_views_that_double_are_refused_before_they_fill_the_memory(first, step, message):
    views = [f"CREATE VIEW v0 AS {first}"]
    views += [f"CREATE VIEW v{n + 1} AS {step.format(n=n)}" for n in range(60)]
    if "WHERE" in step:  # each asks for more of the same rows, which doubles nothing
        assert len(bind(";".join(views), ONTO).views["v60"].branches[0].where) == 60
        return
    with pytest.raises(LanguageError, match=message) as refused:
        bind(";".join(views), ONTO)
    assert refused.value.statement.startswith("view v")


def test_deeply_nested_queries_are_an_error_with_a_place():
    text = "SELECT n FROM " + "(SELECT n FROM " * 2000 + "readings" + ") t" * 2000
    with pytest.raises(LanguageError, match="nested too deeply"):
        bind(text, ONTO)


def test_a_function_that_answers_differently_at_every_call_is_no_column_of_a_view():
    functions = {name: replace(function, deterministic=False)
                 for name, function in ONTO.functions.items()}
    onto = replace(ONTO, functions=functions)
    with pytest.raises(LanguageError, match="the column 's' of view v has another value at every"):
        bind("CREATE VIEW v AS SELECT score(length) AS s FROM packets", onto)
    asks = bind("CREATE VIEW v AS SELECT src FROM packets WHERE is_botnet(src, dst)", onto)
    assert len(asks.views["v"].branches[0].where) == 1


def test_a_query_over_another_view_of_the_same_name_is_another_query():
    def bound(view: str) -> Application:
        return bind(f"{view}; CREATE QUERY q AS SELECT src FROM v; CREATE QUERY r AS SELECT 1 AS a "
                    "FROM packets", ONTO)

    one = digests(bound("CREATE VIEW v AS SELECT src FROM packets"))
    other = digests(bound("CREATE VIEW v AS SELECT dst AS src FROM packets"))
    again = digests(bound("CREATE VIEW v AS SELECT src FROM packets"))
    assert one == again
    assert (one["q"] == other["q"], one["r"] == other["r"]) == (False, True)
