"""LIKE means what it means in Spark, and no text makes it try all combinations."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import functions as F

from penstock.model import BOOLEAN, STRING, Call, Column, Literal
from penstock.spark.compile.expressions import column

pytestmark = pytest.mark.spark

LETTERS = "aaAbB%_.\n*😀éÉ $^"
ITEMS = [*"aaAbB%%%%_.\n*😀éÉ$[", "!%", "!_", "!!"]


def test_like_is_that_of_spark_for_any_pattern_and_text(spark):
    chance = random.Random(7)
    texts = [None, "", *("".join(chance.choices(LETTERS, k=chance.randint(0, 9)))
                         for _ in range(60))]
    patterns = ["", "%", "%%", "%a%", "%%a%%", *(
        "".join(chance.choices(ITEMS, k=chance.randint(1, 7))) for _ in range(70))]
    frame = spark.createDataFrame([(text,) for text in texts], "v string").coalesce(1)
    text = Column("v", STRING)
    ours, theirs = [], []
    for n, pattern in enumerate(patterns):
        for name, function in (("like", F.like), ("ilike", F.ilike)):
            call = Call(name, (text, Literal(pattern, STRING)), BOOLEAN, detail="!")
            ours.append(column(call, f"{name}{n}"))
            theirs.append(function(F.col("v"), F.lit(pattern), F.lit("!")).alias(f"{name}{n}"))
    assert frame.select(*ours).collect() == frame.select(*theirs).collect()


def test_no_text_makes_like_try_all_combinations(spark):
    frame = spark.createDataFrame([("a" * 4000,), ("a" * 4000 + "b",)], "v string").coalesce(1)
    patterns = ["%a" * 10 + "%b", "%a_" * 10 + "%b", "%_a" * 400 + "%b%"]
    calls = [Call("like", (Column("v", STRING), Literal(pattern, STRING)), BOOLEAN)
             for pattern in patterns]
    columns = [column(call, f"c{n}") for n, call in enumerate(calls)]
    assert [tuple(row) for row in frame.select(*columns).collect()] == [(False,) * 3, (True,) * 3]
