"""The tables of constants of a fan-out: which columns say that they have no NULL, and when."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.language import bind
from penstock.model import Branch
from penstock.planning import plan
from penstock.planning.fanout import CODE, SHAPE, fan_out
from penstock.spark.compile import compiler, fanout

APPLICATION = """
    CREATE STREAM s (a INT, b INT, t STRING) FROM parquet 'in';
    CREATE QUERY one INTO parquet 'out' AS SELECT a FROM s WHERE a = 1 AND b > 5;
    CREATE QUERY two INTO parquet 'out' AS SELECT a FROM s WHERE a = 2 AND b > 7;
    CREATE QUERY other INTO parquet 'out' AS SELECT a FROM s WHERE t = 'x';
"""


def test_columns_of_constants_without_null_say_so_and_the_others_do_not(tmp_path: Any) -> None:
    planned = plan(bind(APPLICATION, folder=tmp_path))
    (path,) = planned.paths
    found = fan_out([planned.branch(member) for member in path.members])
    rows = fanout._rows_of(found, range(len(found.shapes)))
    assert rows.to_pylist() == found.table.to_pylist()
    nullable = {field.name: field.nullable for field in rows.schema}
    assert not nullable[CODE] and not nullable[SHAPE]
    assert any(nullable.values())  # not every shape has every constant
    assert nullable == {name: rows[name].null_count > 0 for name in rows.column_names}


def test_a_fan_out_that_is_being_built_is_not_built_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = bind(APPLICATION, folder=tmp_path)
    planned, built = plan(application), []

    class Counted:
        def __init__(self, spark: Any, branches: Sequence[Branch]) -> None:
            built.append(len(branches))

    monkeypatch.setattr(compiler, "CompiledFanout", Counted)
    made = compiler.Compiler(None, application, planned, None, None)  # type: ignore[arg-type]
    (path,) = planned.paths
    branches = {member: planned.branch(member) for member in path.members}
    with ThreadPoolExecutor(2) as pool:
        early = pool.submit(made.build_fanouts)
        needed = pool.submit(made._fanout, path, branches)
        early.result()
    assert needed.result() is made._fanout(path, branches)
    assert built == [3]
