"""Who rides which path, and what a broken plan is told."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from penstock.errors import PlanError
from penstock.model import (
    BOOLEAN,
    INT,
    STRING,
    Application,
    Branch,
    Call,
    Column,
    Field,
    Join,
    Literal,
    Output,
    PythonCall,
    Query,
    Relation,
    Stream,
)
from penstock.plan import Member, Operator, Plan
from penstock.planning.check import check
from penstock.planning.passes import plan

PORT, LENGTH = Column("port", INT), Column("length", INT)
ID, SITE = Column("id", INT, 1), Column("site", STRING, 1)
HOSTS = Join("hosts", Call("eq", (PORT, ID), BOOLEAN))
BOTNET = PythonCall("is_botnet", (PORT,), BOOLEAN)
PACKETS = Stream("packets", (Field("port", INT), Field("length", INT)), "parquet")
EVENTS = Stream("events", (Field("port", INT),), "json")


def over(column, value):
    return Call("gt", (column, Literal(value, INT)), BOOLEAN)


def branch(*where, stream="packets", joins=(), select=PORT):
    return Branch(stream, (Output("x", select),), where, joins)


def application(**queries):
    return Application(
        streams={"packets": PACKETS, "events": EVENTS},
        relations={"hosts": Relation("hosts", (Field("id", INT), Field("site", STRING)), "csv")},
        queries={
            name: Query(name, branches if isinstance(branches, tuple) else (branches,))
            for name, branches in queries.items()
        },
    )


def riders(made):
    return {path.id: [str(member) for member in path.members] for path in made.paths}


def kinds(made, id):
    return [operator.kind for operator in made.path(id).operators]


def test_cheap_branches_over_one_stream_share_a_path():
    made = plan(application(a=branch(over(PORT, 1)), b=branch(), c=branch(stream="events")))
    assert riders(made) == {"packets/fanout": ["a", "b"], "events/fanout": ["c"]}
    assert kinds(made, "packets/fanout") == ["fanout", "sink"]


def test_a_group_of_one_is_a_plain_filter():
    made = plan(application(a=branch(over(PORT, 1))))
    assert kinds(made, "packets/fanout") == ["filter", "project", "sink"]


def test_python_stays_apart():
    slow = branch(over(PORT, 1), BOTNET)
    made = plan(application(a=branch(), slow=slow, b=branch()))
    assert riders(made) == {"packets/fanout": ["a", "b"], "slow#0": ["slow"]}
    assert kinds(made, "slow#0") == ["filter", "python", "project", "sink"]
    assert made.path("slow#0").expensive


def test_a_python_column_of_the_answer_is_expensive_too():
    made = plan(application(a=branch(select=PythonCall("score", (PORT,), INT))))
    assert kinds(made, "a#0") == ["python", "project", "sink"]


def test_branches_with_the_same_joins_share_them():
    left = replace(HOSTS, kind="left")
    made = plan(application(
        a=branch(joins=(HOSTS,)), b=branch(joins=(HOSTS,)), c=branch(joins=(left,)), d=branch(),
    ))  # fmt: skip
    assert sorted(riders(made).values()) == [["a", "b"], ["c"], ["d"]]
    shared = made.paths[0]
    assert shared.id.startswith("packets+hosts@") and shared.id.endswith("/fanout")
    assert kinds(made, shared.id) == ["join", "fanout", "sink"]


def test_branches_of_a_union_ride_where_they_belong():
    made = plan(application(u=(branch(), branch(stream="events"), branch(BOTNET))))
    assert riders(made) == {"packets/fanout": ["u"], "events/fanout": ["u#1"], "u#2": ["u#2"]}
    assert [path.id for path in made.paths_of("u")] == ["packets/fanout", "events/fanout", "u#2"]


def test_ids_do_not_depend_on_other_queries():
    all_of_them = application(
        a=branch(), b=branch(over(PORT, 1)), j=branch(joins=(HOSTS,)), p=branch(BOTNET)
    )
    together = plan(all_of_them)
    for name, query in all_of_them.queries.items():
        alone = plan([query])
        assert [p.id for p in alone.paths] == [p.id for p in together.paths_of(name)]


def test_odd_names_do_not_make_ids_meet():
    made = plan(application(**{"a": (branch(), branch(BOTNET)), "a#1": branch(BOTNET)}))
    assert len({path.id for path in made.paths}) == 3


def test_a_thousand_queries_are_planned_within_a_second():
    queries = {f"q{n}": branch(over(PORT, n), over(LENGTH, n)) for n in range(1000)}
    started = time.perf_counter()
    made = plan(application(**queries))
    assert time.perf_counter() - started < 1.0
    assert len(made.paths) == 1


# --- broken plans --------------------------------------------------------------------------------


def good():
    return application(a=branch(over(PORT, 1)), b=branch(), slow=branch(BOTNET))


def broken(change):
    app = good()
    made = plan(app)
    fanout, slow = made.paths
    return app, change(made, fanout, slow)


FAULTS = {
    "occurs 2 times": lambda p, f, s: replace(p, paths=(f, replace(s, id=f.id))),
    "query 'a' occurs": lambda p, f, s: replace(p, queries=(*p.queries, p.queries[0])),
    "operator 'slow#0:sink' occurs": lambda p, f, s: replace(
        p, paths=(f, replace(s, operators=(*s.operators, s.operators[-1])))),
    "no path carries slow": lambda p, f, s: replace(p, paths=(f,)),
    "a rides 2 paths": lambda p, f, s: replace(
        p, paths=(replace(f, members=(*f.members, f.members[0])), s)),
    "is no branch": lambda p, f, s: replace(
        p, paths=(replace(f, members=(*f.members, Member("ghost", 0))), s)),
    "has no members": lambda p, f, s: replace(p, paths=(f, s, replace(s, id="x", members=(),
                                                                    operators=()))),
    "calls Python": lambda p, f, s: replace(
        p, paths=(replace(f, members=(*f.members, *s.members)),)),
    "wrongly marked expensive": lambda p, f, s: replace(p, paths=(replace(f, expensive=True), s)),
    "wrongly marked not expensive": lambda p, f, s: replace(
        p, paths=(f, replace(s, expensive=False))),
    "but rides on 'events'": lambda p, f, s: replace(p, paths=(replace(f, stream="events"), s)),
    "does not have the joins": lambda p, f, s: replace(p, paths=(replace(f, joins=(HOSTS,)), s)),
    "runs project after sink": lambda p, f, s: replace(
        p, paths=(f, replace(s, operators=s.operators[::-1]))),
    "has no fanout": lambda p, f, s: replace(p, paths=(replace(f, operators=f.operators[1:]), s)),
    "has no python": lambda p, f, s: replace(p, paths=(f, replace(s, operators=s.operators[1:]))),
    "kind 'magic'": lambda p, f, s: replace(
        p, paths=(f, replace(s, operators=(Operator("m", "magic", ""), *s.operators)))),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_check_tells(fault):
    app, bad = broken(FAULTS[fault])
    with pytest.raises(PlanError) as told:
        check(bad, app)
    assert fault in str(told.value)


@pytest.mark.parametrize(("query", "fault"), [
    (branch(over(Column("prot", INT), 1)), "no column 'prot'"),
    (branch(over(Column("port", STRING), 1)), "no column 'port' of type STRING"),
    (branch(over(Column("id", INT, 1), 1)), "of source 1"),
    (branch(stream="nowhere"), "no stream 'nowhere'"),
    (branch(joins=(replace(HOSTS, relation="nowhere"),)), "no relation 'nowhere'"),
    (branch(joins=(replace(HOSTS, kind="full"),)), "kind 'full'"),
    (branch(joins=(replace(HOSTS, on=over(Column("id", INT, 2), 1)), HOSTS)), "a later one"),
    (branch(joins=(replace(HOSTS, on=BOTNET),)), "joins on a Python function"),
    (Branch("packets", (Output("@Member", PORT),)), "which is ours"),
])  # fmt: skip
def test_a_plan_of_a_query_that_does_not_fit_is_refused(query, fault):
    with pytest.raises(PlanError) as told:
        plan(application(q=query))
    assert fault in str(told.value)
    assert "after isolate" in str(told.value)


def test_unknown_names_are_errors_of_ours():
    empty = Plan((), ())
    for ask in (empty.query, empty.path):
        with pytest.raises(PlanError, match="no (query|path) 'x'"):
            ask("x")
