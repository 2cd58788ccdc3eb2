"""A branch's answers in a fan-out are its answers alone, row for row."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.arrow import arrow_schema
from penstock.errors import PlanError
from penstock.model import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Application,
    Branch,
    Call,
    Column,
    Field,
    Input,
    Literal,
    Lookup,
    Output,
    Query,
    Relation,
    Stream,
    Type,
)
from penstock.plan import Member
from penstock.planning.passes import plan
from penstock.spark.compile.compiler import Compiler

pytestmark = pytest.mark.spark

DECIMAL = Type("DECIMAL", precision=10, scale=2)
START = datetime(2024, 1, 1, tzinfo=UTC)
VALUES = {
    INT: [*range(-4, 5), -(2**31), 2**31 - 1],
    BIGINT: [*range(-4, 5), -(2**63), 2**63 - 1, 2**53, 2**53 + 1],
    DOUBLE: [*map(float, range(-4, 5)), math.nan, math.inf, -math.inf, -0.0, 0.1, 1e308, 5e-324],
    STRING: ["", "a", "b", "ab", "é", "plumless", "buckeroo"],  # the last two have one checksum
    BOOLEAN: [True, False],
    DECIMAL: [Decimal(n) / 10 for n in range(-20, 20)],
    DATE: [date(1969, 12, 28) + timedelta(days=n) for n in range(8)],
    TIMESTAMP: [START + timedelta(seconds=n, microseconds=n) for n in range(-4, 5)],
}
ODD = "odd@1 `name`.x"
COLUMNS = (
    *(Column(type_.name.lower(), type_) for type_ in VALUES),
    Column(ODD, INT),
    Column("@member", INT),
    Column("id@1", INT),
)
STREAM = Stream("s", tuple(Field(c.name, c.type) for c in COLUMNS), "parquet")
HOSTS = Relation("hosts", (Field("id", INT), Field("site", STRING)), "csv")
SITES = [(1, "x"), (1, "y"), (2, "z"), (None, "n"), (9, None)]


def call(function, *args, type_=BOOLEAN):
    return Call(function, args, type_)


def literal(chance, type_):
    return Literal(chance.choice(VALUES[type_]), type_)


def condition(chance, depth=2):
    kind = chance.random()
    if depth and kind < 0.25:
        function = chance.choice(["and", "or"])
        return call(function, condition(chance, depth - 1), condition(chance, depth - 1))
    if depth and kind < 0.32:
        return call("not", condition(chance, depth - 1))
    column = chance.choice(COLUMNS)
    if kind < 0.5:
        items = [literal(chance, column.type) for _ in range(chance.randint(1, 6))]
        return call("in", column, *items)
    if kind < 0.55:
        return call(chance.choice(["is_null", "is_not_null"]), column)
    function = chance.choice(["eq", "eq", "eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"])
    return call(function, column, literal(chance, column.type))


def outputs(chance):
    chosen = [Output(c.name.strip("@"), c) for c in chance.sample(COLUMNS, 3)]
    rule = Output("rule", literal(chance, STRING))
    more = Call("add", (COLUMNS[0], Literal(chance.randint(0, 9), INT)), INT)
    return (*chosen, rule, Output("more", more))


def branch(chance):
    where = tuple(condition(chance) for _ in range(chance.randint(0, 3)))
    return Branch((Input("s"),), outputs(chance), where)


def rows(chance, count):
    return [
        tuple(None if chance.random() < 0.15 else chance.choice(VALUES[c.type]) for c in COLUMNS)
        for _ in range(count)
    ]


def frame(spark, data, fields=STREAM.columns):
    schema = arrow_schema(fields)
    columns = list(zip(*data, strict=True)) or [()] * len(fields)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def application(*branches):
    queries = {f"q{n}": Query(f"q{n}", (b,)) for n, b in enumerate(branches)}
    return Application({"s": STREAM}, {"hosts": HOSTS}, {}, queries)


def compiler(spark, app):
    hosts = frame(spark, SITES, HOSTS.columns)
    return Compiler(
        spark, app, plan(app), lambda name, _: {"hosts": hosts}[name], lambda name: None)


def bag(answer, *, member=False):
    """Rows as a multiset; NaN equals itself, and -0.0 equals 0.0 as in Spark."""
    def settled(value):
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else value
        return value

    picked = answer if member else answer.drop("@member")
    return Counter(tuple(map(settled, row)) for row in picked.collect())


def check_alike(spark, app, block, members=None):
    """Together and one by one; a projection for one member has exactly that member's columns."""
    made, compiled = plan(app), compiler(spark, app)
    (path,) = made.paths
    members = members or path.members
    together = compiled.answers(path, members, block)
    assert not together.has_rejects
    frame = together.frame.persist()
    try:
        for member in members:
            alone = compiled.answers(path, (member,), block).project([member])
            shared = together.project([member])
            assert shared.columns == alone.columns
            assert shared.dtypes == alone.dtypes
            assert bag(shared) == bag(alone), app.queries[member.query]
    finally:
        frame.unpersist()


@pytest.mark.parametrize(("seed", "few"), [(0, 0), (1, 0), (1, 1000), (2, 1000)])
def test_answers_in_a_fan_out_are_those_of_the_branch_alone(spark, seed, few, monkeypatch):
    """Whether constants are looked up or every row meets all of them."""
    monkeypatch.setattr("penstock.spark.compile.fanout.FEW", few)
    chance = random.Random(seed)
    app = application(*(branch(chance) for _ in range(10)))
    check_alike(spark, app, frame(spark, rows(chance, 150)))


def test_an_empty_block_has_no_answers(spark):
    chance = random.Random(1)
    app = application(*(branch(chance) for _ in range(4)))
    path = plan(app).paths[0]
    answers = compiler(spark, app).answers(path, path.members, frame(spark, []))
    assert answers.project(path.members).collect() == []


def test_some_members_may_be_answered_without_the_others(spark):
    chance = random.Random(2)
    app = application(*(branch(chance) for _ in range(8)))
    path = plan(app).paths[0]
    check_alike(spark, app, frame(spark, rows(chance, 60)), path.members[2:5])


def test_a_member_never_gets_a_row_twice_and_equal_rows_stay_apart(spark):
    column = COLUMNS[0]
    listed = call("in", column, *(Literal(n, INT) for n in (1, 1, 2, 1)))
    either = call("or", call("eq", column, Literal(1, INT)), call("eq", column, Literal(1, INT)))
    app = application(*(
        Branch((Input("s"),), (Output("int", column),), (w,)) for w in (listed, either)))
    data = [(1, *[None] * (len(COLUMNS) - 1))] * 3
    path = plan(app).paths[0]
    answer = compiler(spark, app).answers(path, path.members, frame(spark, data))
    assert bag(answer.project(path.members), member=True) == {(0, 1): 3, (1, 1): 3}


def test_columns_are_joined_by_name_and_missing_ones_are_null(spark):
    ints, texts = COLUMNS[0], COLUMNS[3]
    app = application(
        Branch((Input("s"),), (Output("a", ints), Output("b", texts))),
        Branch((Input("s"),), (Output("A", COLUMNS[1]),)),
        Branch((Input("s"),), (Output("c", Literal("rule", STRING)),)),
    )
    data = [(7, 8, None, "t", *[None] * (len(COLUMNS) - 4))]
    path = plan(app).paths[0]
    answer = compiler(spark, app).answers(path, path.members, frame(spark, data))
    table = answer.project(path.members)
    assert table.dtypes == [("@member", "int"), ("a", "bigint"), ("b", "string"), ("c", "string")]
    assert bag(table, member=True) == Counter(
        [(0, 7, "t", None), (1, 8, None, None), (2, None, None, "rule")]
    )
    with pytest.raises(PlanError, match="rejects"):
        answer.rejects()


def test_one_name_with_two_types_is_refused_only_where_it_meets(spark):
    app = application(
        Branch((Input("s"),), (Output("a", COLUMNS[0]),)),
        Branch((Input("s"),), (Output("a", COLUMNS[3]),)),
    )
    path = plan(app).paths[0]
    answer = compiler(spark, app).answers(path, path.members, frame(spark, []))
    assert answer.project(path.members[1:]).dtypes[1] == ("a", "string")
    with pytest.raises(PlanError, match="both as INT and as STRING"):
        answer.project(path.members)


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_relation_joins_multiply_rows_and_are_shared(spark, kind):
    ident, site = Column("id", INT, 1), Column("site", STRING, 1)
    join = Lookup("hosts", call("eq", COLUMNS[0], ident), kind)
    selects = (Output("int", COLUMNS[0]), Output("site", site), Output("odd", Column("id@1", INT)))
    app = application(
        Branch((Input("s"),), selects, (), (join,)),
        Branch((Input("s"),), selects, (call("eq", site, Literal("x", STRING)),), (join,)),
        Branch((Input("s"),), selects, (call("is_null", site),), (join,)),
    )
    data = [(n, *[None] * (len(COLUMNS) - 2), 5) for n in (1, 2, 3, 9, None)]
    block = frame(spark, data)
    check_alike(spark, app, block)
    path = plan(app).paths[0]
    answer = compiler(spark, app).answers(path, path.members, block).project([Member("q0", 0)])
    expected = [(1, "x", 5), (1, "y", 5), (2, "z", 5), (9, None, 5)]
    if kind == "left":
        expected += [(3, None, 5), (None, None, 5)]
    assert bag(answer) == Counter(expected)


def test_many_shapes_are_split_into_several_joins(spark, monkeypatch):
    monkeypatch.setattr("penstock.spark.compile.fanout.LARGEST_PART", 20)
    chance = random.Random(5)
    app = application(*(branch(chance) for _ in range(5)))
    check_alike(spark, app, frame(spark, rows(chance, 60)))


def test_constants_are_data_and_not_part_of_the_plan(spark):
    app = application(*(
        Branch((Input("s"),), (Output("rule", Literal(f"rule-{n}", STRING)),),
               (call("eq", COLUMNS[0], Literal(4711 + n, INT)),))
        for n in range(20)
    ))  # fmt: skip
    path = plan(app).paths[0]
    block = frame(spark, rows(random.Random(4), 5))
    answer = compiler(spark, app).answers(path, path.members, block).project(path.members)
    text = answer._jdf.queryExecution().toString()
    assert "BroadcastHashJoin" in text
    assert "4711" not in text and "rule-" not in text


def test_a_few_constants_are_met_by_every_row_without_a_job_for_a_broadcast(spark, monkeypatch):
    app = application(*(
        Branch((Input("s"),), (Output("rule", Literal(f"rule-{n}", STRING)),),
               (call("eq", COLUMNS[0], Literal(n, INT)),))
        for n in range(4)
    ))  # fmt: skip
    path = plan(app).paths[0]
    block = frame(spark, rows(random.Random(4), 40))
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()

    def jobs() -> int:
        answer = compiler(spark, app).answers(path, path.members, block).project(path.members)
        before = scheduler.numTotalJobs()
        answer.write.format("noop").mode("overwrite").save()
        return scheduler.numTotalJobs() - before

    assert jobs() == 1
    check_alike(spark, app, block)
    monkeypatch.setattr("penstock.spark.compile.fanout.FEW", 0)
    assert jobs() == 2


def test_one_member_is_a_plain_filter_that_spark_pushes_down(spark, tmp_path):
    app = application(Branch((Input("s"),), (Output("x", COLUMNS[3]),),
                             (call("eq", COLUMNS[0], Literal(3, INT)),)))  # fmt: skip
    frame(spark, rows(random.Random(3), 20)).write.parquet(str(tmp_path / "in"))
    path = plan(app).paths[0]
    block = spark.read.parquet(str(tmp_path / "in"))
    answer = compiler(spark, app).answers(path, path.members, block).project(path.members)
    text = answer._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(int,3)" in text
    assert "Join" not in text


def test_tables_of_constants_are_kept_and_the_oldest_forgotten(spark, monkeypatch):
    monkeypatch.setattr("penstock.spark.compile.compiler.MOST_FANOUTS", 2)
    app = application(*(Branch((Input("s"),), (Output("a", COLUMNS[0]),)) for _ in range(4)))
    path, compiled = plan(app).paths[0], compiler(spark, app)
    block = frame(spark, [])
    for members in (path.members, path.members[:2], path.members, path.members[:3]):
        compiled.answers(path, members, block)
    assert [len(members) for _, members in compiled._fanouts] == [4, 3]
