"""The `onoff` source: its options, and every packet once as a table."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from penstock.generators.onoff_options import Options
from penstock.generators.packets import OnOff
from penstock.spark.ingest.onoff import SCHEMA, OnOffTable, register
from penstock.spark.session import know_onoff

PORTS = StructType([StructField("port", IntegerType()), StructField("ts", TimestampType())])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": "fast"}, "option 'rate' of onoff must be a number, not 'fast'"),
        ({"rows": "1.5"}, "option 'rows' of onoff must be a whole number, not '1.5'"),
        ({"rate": "-1"}, "rate must lie between"),
        ({"maxrowspertrigger": "0"}, "option 'maxRowsPerTrigger' of onoff must be at least 1"),
        ({"maxRowsPerTriger": "5"}, "did you mean 'maxRowsPerTrigger'"),
        ({"zzz": "5"}, "it has rate, burst"),
        ({"start": "noon"}, "option 'start' of onoff must be a time such as"),
        ({"pace": "quick"}, "option 'pace' of onoff must be 'clock' or 'none', not 'quick'"),
        ({"pace": "none"}, "needs 'rows'"),
    ],
)
def test_a_bad_option_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options.parse(options)


def test_a_schema_that_does_not_fit_is_refused_by_column() -> None:
    bounded = Options.parse({"rows": "1"})
    with pytest.raises(ValueError, match="onoff has no column 'lenght'; it has ts, src"):
        OnOffTable(bounded, StructType([StructField("lenght", IntegerType())]))
    with pytest.raises(ValueError, match="column 'port' of onoff is INT, not BIGINT"):
        OnOffTable(bounded, StructType([StructField("port", LongType())]))


def test_an_endless_stream_is_not_a_table() -> None:
    with pytest.raises(ValueError, match="needs the option 'rows'"):
        OnOffTable(Options.parse({}), PORTS).partitions()


# -- under Spark ---------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_table_has_every_row_once_in_order_and_the_declared_schema(spark: SparkSession) -> None:
    register(spark)
    options: dict[str, Any] = {"ROWS": 45_000, "seed": 3, "maxRowsPerTrigger": 20_000}
    frame = spark.read.format("onoff").options(**options).load()
    assert frame.schema == spark.createDataFrame([], SCHEMA).schema
    packets = OnOff(seed=3, rows=45_000).packets(0, 3600)
    assert [row["src"] for row in frame.collect()] == packets["src"].to_pylist()
    few = spark.read.format("onoff").schema("length INT, ts TIMESTAMP").option("rows", 10).load()
    assert few.collect() == spark.read.format("onoff").option("rows", 10).load().select(
        "length", "ts").collect()


@pytest.mark.spark
def test_a_bad_option_fails_the_load_with_its_name(spark: SparkSession) -> None:
    register(spark)
    with pytest.raises(PySparkException, match="onoff has no option 'raet'; did you mean 'rate'"):
        spark.read.format("onoff").option("raet", 5).load()


@pytest.mark.spark
def test_relations_that_are_read_beside_each_other_make_the_source_known_once(spark, monkeypatch):
    session, calls = spark.newSession(), []

    def slowly(known: SparkSession) -> None:
        calls.append(known)
        time.sleep(0.2)  # long enough for the others to come by
        register(known)

    monkeypatch.setattr("penstock.spark.ingest.onoff.register", slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(know_onoff, [session] * 4))
    assert calls == [session]
