"""Python functions in queries: results, errors, nesting, and how they reach the workers."""

from __future__ import annotations

import importlib
import json
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.functions import predicate, scalar
from penstock.model import (
    BIGINT,
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
from penstock.planning.passes import plan
from penstock.spark.compile.compiler import Compiler

pytestmark = pytest.mark.spark

X, Y, NAME = Column("x", INT), Column("y@", INT), Column("name", STRING)
STREAM = Stream("s", tuple(Field(c.name, c.type) for c in (X, Y, NAME)), "parquet")
HOSTS = Relation("hosts", (Field("id", INT), Field("site", STRING)), "csv")
ROWS = pa.table({
    "x": pa.array([1, 2, 3, 4, None], pa.int32()),
    "y@": pa.array([10, 20, 30, 40, 50], pa.int32()),
    "name": ["a", "b", None, "d", "e"],
})  # fmt: skip


@predicate
def is_even(x):
    return pc.equal(pc.bit_wise_and(x, 1), 0)


@predicate(columns="pandas")
def is_small(x):
    return x < 4


@scalar("BIGINT")
def tenfold(x):
    if 3 in x.to_pylist():
        raise ValueError("three is too much")
    return pc.multiply(x.cast(pa.int64()), 10)


@scalar("STRING")
def shout(name):
    return pc.utf8_upper(name)


@scalar("BIGINT")
def short(x):
    return x[:1]


FUNCTIONS = {f.call.__name__: f for f in (is_even, is_small, tenfold, shout, short)}


def python(name, *args):
    types = {"BOOLEAN": BOOLEAN, "BIGINT": BIGINT, "STRING": STRING}
    return PythonCall(name, args, types[FUNCTIONS[name].returns])


def over(expression, value):
    return Call("gt", (expression, Literal(value, expression.type)), BOOLEAN)


def answer(spark, where=(), select=(X,), lookups=(), functions=FUNCTIONS):
    outputs = tuple(Output(f"c{n}", e) for n, e in enumerate(select))
    query = Query("q", (Branch((Input("s"),), outputs, tuple(where), lookups),))
    app = Application({"s": STREAM}, {"hosts": HOSTS}, {}, {"q": query})
    made = plan(app)
    hosts = spark.createDataFrame([(1, "here"), (2, "there"), (2, "both")], "id int, site string")
    compiler = Compiler(spark, app, made, lambda name, version: hosts, functions.__getitem__)
    (path,) = made.paths
    block = spark.createDataFrame(ROWS).coalesce(1)
    answers = compiler.answers(path, path.members, block)
    assert answers.has_rejects
    frame = answers.frame.persist()
    frame.count()
    try:
        kept = [tuple(row)[1:] for row in answers.project(path.members).collect()]
        rejected = [tuple(row) for row in answers.rejects().collect()]
        return kept, rejected, answers.counts()
    finally:
        frame.unpersist()


def test_cheap_conditions_first_then_python_with_counts(spark):
    kept, rejected, counts = answer(spark, [python("is_even", X), over(Y, 10)], [X, NAME])
    assert kept == [(2, "b"), (4, "d")]
    assert rejected == []
    assert counts == {"q#0:filter": 4, "q#0:python1": 2}


def test_rows_for_which_a_function_raises_are_rejected_and_the_others_go_on(spark):
    kept, rejected, counts = answer(spark, [over(python("tenfold", X), 10)], [X, Y])
    assert kept == [(2, 20), (4, 40)]
    ((member, row, error),) = rejected
    assert (member, error) == (0, "ValueError: three is too much")
    assert json.loads(row) == {"x": 3, "y@": 30}
    assert counts == {"q#0:python1": 2}


def test_columns_of_the_answer_are_computed_for_the_rows_that_are_left(spark):
    doubled = Call("add", (python("tenfold", X), Literal(1, BIGINT)), BIGINT)
    kept, rejected, _ = answer(spark, [python("is_even", X)], [X, doubled, python("shout", NAME)])
    assert kept == [(2, 21, "B"), (4, 41, "D")]
    assert rejected == [], "row 3 was gone before it could raise"


def test_calls_nest(spark):
    inner = Call("cast", (python("tenfold", X),), INT)
    kept, rejected, _ = answer(spark, select=[python("tenfold", inner)])
    assert sorted(kept, key=str) == [(100,), (200,), (400,), (None,)]
    assert [row[2] for row in rejected] == ["ValueError: three is too much"]


def test_several_conditions_guard_each_other_in_the_order_written(spark):
    kept, rejected, _ = answer(spark, [python("is_even", X), over(python("tenfold", X), 0)])
    assert (kept, rejected) == ([(2,), (4,)], [])


def test_pandas_functions_and_conditions_inside_others(spark):
    either = Call("or", (python("is_small", X), over(X, 3)), BOOLEAN)
    kept, rejected, _ = answer(spark, [either])
    assert (kept, rejected) == ([(1,), (2,), (3,), (4,)], [])


def test_a_wrong_length_rejects_the_batch_with_a_reason(spark):
    kept, rejected, _ = answer(spark, [over(X, 0)], [python("short", X)])
    assert kept == []
    assert {row[2] for row in rejected} == {"the function returned 1 values for 4 rows"}


def test_joined_rows_reach_python_and_their_counts_are_known(spark):
    ident, site = Column("id", INT, 1), Column("site", STRING, 1)
    join = Lookup("hosts", Call("eq", (X, ident), BOOLEAN))
    kept, rejected, counts = answer(
        spark, [python("is_even", X)], [python("shout", site)], lookups=(join,)
    )
    assert sorted(kept) == [("BOTH",), ("THERE",)]
    assert rejected == []
    assert counts == {"q#0:lookup1": 3, "q#0:python1": 2, "q#0:python2": 2}


def test_a_module_that_workers_cannot_import_is_shipped_whole(spark, tmp_path, monkeypatch):
    (tmp_path / "far_away_helper.py").write_text("def factor():\n    return 7\n")
    (tmp_path / "far_away.py").write_text(
        "import far_away_helper\nimport pyarrow.compute as pc\nimport penstock.functions as f\n"
        "@f.scalar('BIGINT')\ndef sevenfold(x):\n"
        "    return pc.multiply(x.cast('int64'), far_away_helper.factor())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("far_away")
    sys.path.remove(str(tmp_path))  # what a worker on another machine sees
    call = PythonCall("sevenfold", (X,), BIGINT)
    kept, rejected, _ = answer(spark, select=[call], functions={"sevenfold": module.sevenfold})
    assert sorted(kept, key=str) == [(14,), (21,), (28,), (7,), (None,)]
    assert rejected == []


def test_an_empty_block_never_calls_the_function(spark):
    kept, rejected, counts = answer(spark, [over(Y, 1000), python("is_even", X)])
    assert (kept, rejected) == ([], [])
    assert counts == {"q#0:filter": 0, "q#0:python1": 0}
