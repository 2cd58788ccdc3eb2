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
    Input,
    Literal,
    Lookup,
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
HOSTS = Lookup("hosts", Call("eq", (PORT, ID), BOOLEAN))
BOTNET = PythonCall("is_botnet", (PORT,), BOOLEAN)
PACKETS = Stream("packets", (Field("port", INT), Field("length", INT)), "parquet")
EVENTS = Stream("events", (Field("port", INT),), "json")


def over(column, value):
    return Call("gt", (column, Literal(value, INT)), BOOLEAN)


def branch(*where, stream="packets", lookups=(), select=PORT):
    return Branch((Input(stream),), (Output("x", select),), where, lookups)


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
        a=branch(lookups=(HOSTS,)), b=branch(lookups=(HOSTS,)), c=branch(lookups=(left,)),
        d=branch(),
    ))  # fmt: skip
    assert sorted(riders(made).values()) == [["a", "b"], ["c"], ["d"]]
    shared = made.paths[0]
    assert shared.id.startswith("packets+hosts@") and shared.id.endswith("/fanout")
    assert kinds(made, shared.id) == ["lookup", "fanout", "sink"]


def test_branches_of_a_union_ride_where_they_belong():
    made = plan(application(u=(branch(), branch(stream="events"), branch(BOTNET))))
    assert riders(made) == {"packets/fanout": ["u"], "events/fanout": ["u#1"], "u#2": ["u#2"]}
    assert [path.id for path in made.paths_of("u")] == ["packets/fanout", "events/fanout", "u#2"]


def test_ids_do_not_depend_on_other_queries():
    all_of_them = application(
        a=branch(), b=branch(over(PORT, 1)), j=branch(lookups=(HOSTS,)), p=branch(BOTNET)
    )
    together = plan(all_of_them)
    for name, query in all_of_them.queries.items():
        alone = plan([query])
        assert [p.id for p in alone.paths] == [p.id for p in together.paths_of(name)]


def test_odd_names_do_not_make_ids_meet():
    made = plan(application(**{"a": (branch(), branch(BOTNET)), "a#1": branch(
        PythonCall("other", (PORT,), BOOLEAN))}))
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
    "but rides on 'events'": lambda p, f, s: replace(p, paths=(replace(f, reads="events"), s)),
    "does not have the lookups": lambda p, f, s: replace(
        p, paths=(replace(f, lookups=(HOSTS,)), s)),
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
    (branch(lookups=(replace(HOSTS, relation="nowhere"),)), "no relation 'nowhere'"),
    (branch(lookups=(replace(HOSTS, kind="full"),)), "kind 'full'"),
    (branch(lookups=(replace(HOSTS, on=over(Column("id", INT, 2), 1)), HOSTS)), "a later one"),
])
def test_a_query_that_names_what_was_not_declared_is_refused(query, fault):
    with pytest.raises(PlanError) as told:
        plan(application(q=query))
    assert str(told.value).startswith("query 'q': ")
    assert fault in str(told.value)


@pytest.mark.parametrize(("query", "fault"), [
    (branch(lookups=(replace(HOSTS, on=BOTNET),)), "joins on a Python function"),
    (Branch((Input("packets"),), (Output("@Member", PORT),)), "which is ours"),
    (Branch((Input("packets"), Input("events")), (Output("x", PORT),)), "one of several inputs"),
])  # fmt: skip
def test_a_plan_of_a_query_that_does_not_fit_is_refused(query, fault):
    with pytest.raises(PlanError) as told:
        plan(application(q=query))
    assert fault in str(told.value)
    assert "after isolate" in str(told.value)


# --- paths that read what others make ------------------------------------------------------------


def derived():
    """The filters of a stream end in a window, and a path reads that and delivers."""
    app = application(a=branch(over(PORT, 1)), b=branch(BOTNET))
    made = plan(app)
    cheap, slow = made.paths
    window = Operator("w:window", "window", "kept until its rows have met the others")
    before = replace(cheap, id="w", operators=(cheap.operators[0], window), end="window")
    after = replace(cheap, id="j", reads="w", operators=cheap.operators[1:])
    return app, replace(made, paths=(before, after, slow)), before, after, slow


def test_a_path_may_read_what_an_earlier_path_makes():
    app, made, *_ = derived()
    check(made, app)
    check(made)
    assert [(path.reads, path.end) for path in made.paths] == [
        ("packets", "window"), ("w", "sink"), ("packets", "sink")]


@pytest.mark.parametrize(("fault", "change"), [
    ("'j' reads 'nowhere', which is no stream and no path",
     lambda w, j, s: (w, replace(j, reads="nowhere"), s)),
    ("'j' stands before path 'w', which it reads", lambda w, j, s: (j, w, s)),
    ("'j' reads what it makes itself", lambda w, j, s: (w, replace(j, reads="j"), s)),
    ("'w' reads what it makes itself", lambda w, j, s: (replace(w, reads="j"), j, s)),
    ("'j' reads path 'b#0', which ends in a sink",
     lambda w, j, s: (s, w, replace(j, reads="b#0"))),
    ("no path reads the window of path 'w'", lambda w, j, s: (w, replace(j, reads="packets"), s)),
    ("b rides path 'j', but not path 'w' that it reads",
     lambda w, j, s: (w, replace(j, members=(*j.members, Member("b", 0))), s)),
    ("a does not have the lookups", lambda w, j, s: (w, replace(j, lookups=(HOSTS,)), s)),
    ("path 'w' has no window", lambda w, j, s: (replace(w, operators=w.operators[:1]), j, s)),
])
def test_a_path_that_cannot_read_what_it_names_is_refused(fault, change):
    app, made, *paths = derived()
    with pytest.raises(PlanError) as told:
        check(replace(made, paths=change(*paths)), app)
    assert fault in str(told.value)


def test_unknown_names_are_errors_of_ours():
    empty = Plan((), ())
    for ask in (empty.query, empty.path):
        with pytest.raises(PlanError, match="no (query|path) 'x'"):
            ask("x")
