"""Bound expressions on Spark: nothing throws; the answers are DuckDB's where SQL is the same."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.arrow import arrow_schema
from penstock.errors import LanguageError, PlanError
from penstock.language import bind
from penstock.model import BOOLEAN, INT, Call, Column, Literal, PythonCall, Type, walk
from penstock.rendering import render

pytestmark = pytest.mark.spark

APPLICATION = bind("""
CREATE STREAM s (t TINYINT, i INT, b BIGINT, f FLOAT, d DOUBLE, p DECIMAL(10,2), w DECIMAL(38,10),
  s STRING, raw BINARY, ok BOOLEAN, at TIMESTAMP, day DATE,
  m MAP<STRING, INT>, a ARRAY<INT>, r STRUCT<x: INT, y: STRING>) FROM rate
""")
WIDEST = Decimal("9" * 28 + "." + "9" * 10)
ROWS = [
    (None,) * 15,
    (
        127,
        2**31 - 1,
        2**63 - 1,
        math.inf,
        math.nan,
        Decimal("99999999.99"),
        WIDEST,
        "abc",
        b"\xff\x00",
        True,
        datetime(9999, 12, 31, 23, 59, 59),
        date(9999, 12, 31),
        {"a": 1},
        [1, 2],
        (1, "x"),
    ),
    (
        -128,
        -(2**31),
        -(2**63),
        -math.inf,
        -1e308,
        Decimal("-99999999.99"),
        WIDEST.copy_negate(),
        "5",
        b"",
        False,
        datetime(1, 1, 1),
        date(1, 1, 1),
        {},
        [],
        (None, None),
    ),
    (
        0,
        0,
        0,
        0.0,
        -0.0,
        Decimal("0.00"),
        Decimal(0),
        "",
        b"x",
        True,
        datetime(1970, 1, 1),
        date(1970, 1, 1),
        {"k": None},
        [None],
        (0, ""),
    ),
    (
        1,
        2,
        3,
        1.5,
        2.5,
        Decimal("12.34"),
        Decimal("1.5"),
        "a,b;%_x\n",
        b"ab",
        False,
        datetime(2024, 2, 29, 12, 34, 56, 789000),
        date(2024, 2, 29),
        {"x": 5},
        [3, None, 4],
        (5, '{"x":1}'),
    ),
    (
        -1,
        7,
        -4,
        -0.25,
        1e-9,
        Decimal("-0.05"),
        Decimal("-2.5"),
        "2024-01-01 10:00:00",
        b"\x00",
        None,
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        date(1600, 2, 29),
        {"a": 2},
        [0],
        (7, "[1]"),
    ),
]


def listed(text: str) -> list[str]:
    """What stands between line ends or wide gaps."""
    return re.split(r"\s{2,}", text.strip())


OPERANDS = {
    "number": listed("""
        t  i  b  f  d  p  w  0  1  -1  2147483647  9223372036854775807  1.5  0.01  1e308
        CAST(NULL AS INT)  a[0]  m['a']  r.x
    """),
    "string": listed("""
        s  ''  'a'  '5'  CAST(NULL AS STRING)  r.y  CAST(raw AS STRING)
    """),
    "time": listed("""
        at  day  CAST(s AS TIMESTAMP)  TIMESTAMP '2024-01-01 00:00:00'  CAST(b AS TIMESTAMP)
    """),
    "boolean": listed("""
        ok  TRUE  CAST(NULL AS BOOLEAN)
    """),
    "array": listed("""
        a  ARRAY(1, NULL, 2)  SLICE(a, 2, 1)
    """),
}
GRAMMAR = {
    "number": listed("""
        ({number} + {number})  ({number} - {number})  ({number} * {number})  ({number} / {number})
        ({number} % {number})  (- {number})  ABS({number})  ROUND({number}, {digits})
        ROUND({number})  FLOOR({number})  CEIL({number})  SQRT({number})
        POWER({number}, {number})  LN({number})  EXP({number})  SIGN({number})
        MOD({number}, {number})  LENGTH({string})  (b DIV {whole})  CAST({number} AS {numeric})
        CAST({string} AS {numeric})  CAST({time} AS BIGINT)  COALESCE({number}, {number})
        NULLIF({number}, {number})  GREATEST({number}, {number})  LEAST({number}, {number})
        IF({boolean}, {number}, {number})  CASE WHEN {boolean} THEN {number} END  YEAR({time})
        MONTH({time})  DAY({time})  HOUR({time})  MINUTE({time})  SECOND({time})  WEEK({time})
        EXTRACT(SECOND FROM {time})  UNIX_TIMESTAMP({time})  XXHASH64({number}, {string})
        a[{whole}]  m[{string}]  ARRAY({number}, {number})[{whole}]
        FROM_JSON({string}, 'x INT').x  EXTRACT(DOW FROM {time})  QUARTER({time})
        SIN({number})  COS({number})  TAN({number})  ASIN({number})  ACOS({number})
        ATAN({number})  ATAN2({number}, {number})  SINH({number})  COSH({number})
        TANH({number})  DEGREES({number})  RADIANS({number})  CBRT({number})  LOG10({number})
        LOG2({number})  LOG1P({number})  EXPM1({number})  HYPOT({number}, {number})  PI()  E()
        NANVL(d, {number})  PMOD({whole}, {whole})  SHIFTLEFT({whole}, {whole})
        SHIFTRIGHT({whole}, {whole})  BIT_COUNT({whole})  ({whole} & i)  ({whole} | b)
        ({whole} ^ i)  (~ {whole})  HASH({number}, {string})  NULLIFZERO({number})
        ZEROIFNULL({number})  WIDTH_BUCKET({number}, {number}, {number}, {whole})
        ASCII({string})  BIT_LENGTH({string})  OCTET_LENGTH({string})  CRC32({string})
        FIND_IN_SET({string}, {string})  INSTR({string}, {string})
        LOCATE({string}, {string}, {whole})  REGEXP_COUNT({string}, '[a-z]')
        JSON_ARRAY_LENGTH({string})  DATEDIFF({time}, {time})  MONTHS_BETWEEN({time}, {time})
        TIMESTAMPDIFF(MICROSECOND, {time}, {time})  TIMESTAMPDIFF(MONTH, {time}, {time})
        UNIX_DATE({time})  UNIX_MICROS({time})  UNIX_MILLIS({time})  WEEKDAY({time})
        DAYOFYEAR({time})  UNIX_TIMESTAMP({string}, 'yyyy-MM-dd')  SIZE({array})  SIZE(m)
        ARRAY_MAX({array})  ARRAY_MIN({array})  ARRAY_POSITION({array}, {number})
        ELEMENT_AT({array}, {whole})  ELEMENT_AT(m, {string})  NAMED_STRUCT('x', {number}).x
        MAP('a', {number}, 'b', {number})[{string}]
    """),
    "array": listed("""
        ARRAY_APPEND({array}, {whole})  ARRAY_PREPEND({array}, {whole})  ARRAY_COMPACT({array})
        ARRAY_DISTINCT({array})  ARRAY_EXCEPT({array}, {array})  ARRAY_SORT({array})
        ARRAY_INTERSECT({array}, {array})  ARRAY_UNION({array}, {array})
        ARRAY_REMOVE({array}, {whole})  ARRAY_REPEAT({number}, 3)  REVERSE({array})
        SLICE({array}, {whole}, {whole})  SORT_ARRAY({array}, FALSE)  SORT_ARRAY({array})
        FLATTEN(ARRAY({array}, a))  CONCAT({array}, {array})  MAP_VALUES(m)
    """),
    "string": listed("""
        LOWER({string})  UPPER({string})  TRIM({string})  TRIM(BOTH 'a' FROM {string})
        SUBSTR({string}, {whole})  SUBSTR({string}, {whole}, {whole})  CONCAT({string}, {number})
        ({string} || {time})  REPLACE({string}, {string}, {string})
        SPLIT_PART({string}, {string}, {whole})  REGEXP_EXTRACT({string}, '([a-z])(,?)', 2)
        REGEXP_REPLACE({string}, '([a-z])', '<$1>')  MD5({string})  CAST({number} AS STRING)
        CAST({time} AS STRING)  CAST({boolean} AS STRING)  LTRIM({string})  RTRIM({string})
        COALESCE({string}, 'x')  CASE {string} WHEN 'a' THEN 'b' ELSE {string} END
        BASE64({string})  CAST(UNBASE64({string}) AS STRING)  HEX({string})  HEX({whole})
        CAST(UNHEX({string}) AS STRING)  CHR({whole})
        CONCAT_WS(',', {string}, SPLIT({string}, ','))
        FORMAT_NUMBER({number}, 2)  INITCAP({string})  LEFT({string}, {whole})
        RIGHT({string}, {whole})  LPAD({string}, 5, 'ab')  RPAD({string}, 5, '')
        PARSE_URL({string}, 'HOST')  PARSE_URL({string}, 'QUERY', 'q')
        REGEXP_EXTRACT_ALL({string}, '([a-z])(,?)', 2)[0]  REGEXP_SUBSTR({string}, '[a-z]+')
        REPEAT({string}, 3)  REVERSE({string})  SHA1({string})  SHA2({string}, 256)
        SOUNDEX({string})  SPLIT({string}, '[,;]')[0]  SPLIT({string}, ',', 2)[1]
        SUBSTRING_INDEX({string}, {string}, {whole})  TRANSLATE({string}, {string}, {string})
        URL_DECODE({string})  URL_ENCODE({string})  BTRIM({string}, 'a')
        GET_JSON_OBJECT({string}, '$.x')  JSON_OBJECT_KEYS({string})[0]  TO_JSON(r)  TO_JSON(a)
        ARRAY_JOIN({array}, '-', '?')  ARRAY_JOIN({array}, '-')  MAP_KEYS(m)[0]
        DATE_FORMAT({time}, 'yyyy-MM-dd E HH:mm:ss.SSS')  FROM_UNIXTIME({number})
        DAYNAME({time})  MONTHNAME({time})  NVL2({number}, {string}, 'none')
    """),
    "time": listed("""
        ({time} + INTERVAL '10' MINUTE)  ({time} - INTERVAL 1000000 DAYS)
        DATE_TRUNC('week', {time})  CAST({string} AS DATE)  CAST({number} AS TIMESTAMP)
        GREATEST({time}, {time})  (day + INTERVAL '1' DAY)
        ADD_MONTHS({time}, {whole})  DATE_ADD({time}, {whole})  DATE_SUB({time}, {whole})
        DATE_FROM_UNIX_DATE({whole})  FROM_UTC_TIMESTAMP({time}, 'America/New_York')
        TO_UTC_TIMESTAMP({time}, 'Asia/Kolkata')  ({time} AT TIME ZONE '+02:00')
        CONVERT_TIMEZONE('Asia/Tokyo', 'Europe/Lisbon', {time})  LAST_DAY({time})
        NEXT_DAY({time}, 'Sun')  MAKE_DATE({whole}, {whole}, {whole})  TRUNC({time}, 'MM')
        MAKE_TIMESTAMP({whole}, {whole}, {whole}, {whole}, {whole}, {number})
        TIMESTAMPADD(YEAR, {whole}, {time})  TIMESTAMPADD(MICROSECOND, {whole}, {time})
        TIMESTAMP_SECONDS({number})  TIMESTAMP_MILLIS({whole})  TIMESTAMP_MICROS({whole})
        TIME_BUCKET(INTERVAL '7' MINUTE, {time})  TO_DATE({string}, 'dd/MM/yyyy')
        TO_TIMESTAMP({string}, 'yyyy-MM-dd HH:mm:ss')  TO_TIMESTAMP({number})
        TO_TIMESTAMP_LTZ({whole}, 3)
    """),
    "boolean": listed("""
        ({number} {comparison} {number})  ({string} {comparison} {string})
        ({time} {comparison} {time})  ({string} {comparison} {number})  ({boolean} AND {boolean})
        ({boolean} OR {boolean})  (NOT {boolean})  ({number} IS NULL)  ({string} IS NOT NULL)
        ({number} BETWEEN {number} AND {number})  ({number} IN (1, 2.5, NULL))
        ({string} NOT IN ('a', '5'))  ({string} LIKE 'a%')  ({string} RLIKE '^[a-z]+')
        CONTAINS({string}, {string})  STARTSWITH({string}, {string})  ENDSWITH({string}, 'c')
        ({boolean} IS NOT TRUE)  ({number} IS DISTINCT FROM {number})  CAST({number} AS BOOLEAN)
        (a = ARRAY({whole}))  ARRAY_CONTAINS({array}, {number})  ARRAYS_OVERLAP({array}, a)
        MAP_CONTAINS_KEY(m, {string})  EQUAL_NULL({number}, {number})  ISNAN({number})
        ISNULL({number})  ISNOTNULL({string})  LUHN_CHECK({string})
    """),
}
SLOTS = {
    "digits": ["-38", "-1", "0", "1", "2", "38"],
    "whole": ["t", "i", "b", "0", "1", "-1", "2", "CAST(NULL AS INT)"],
    "numeric": [
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(5,2)",
        "DECIMAL(38,0)",
    ],
    "comparison": ["=", "<>", "<", "<=", ">", ">=", "<=>"],
}


@st.composite
def texts(draw, kind: str, depth: int = 2) -> str:
    """A well-formed expression of a kind, with holes of the templates filled in."""
    if kind in SLOTS:
        return draw(st.sampled_from(SLOTS[kind]))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(OPERANDS[kind]))
    template = draw(st.sampled_from(GRAMMAR[kind]))
    while (start := template.find("{")) >= 0:
        end = template.index("}", start)
        hole = draw(texts(template[start + 1 : end], depth - 1))
        template = template[:start] + hole + template[end + 1 :]
    return template


ANY = st.sampled_from(sorted(GRAMMAR)).flatmap(texts)
EACH = [template for templates in GRAMMAR.values() for template in templates]


def bound(text: str, application=APPLICATION):
    query = bind(f"SELECT {text} AS x FROM s", application).queries["q1"]
    return query.branches[0].select[0].expression


def bound_if_it_fits(text: str):
    """The expression, or None: some mixtures of types do not fit."""
    try:
        return bound(text)
    except LanguageError:
        return None


def filled(template: str, choice: int):
    """A template with the operands of that number in its holes."""
    for slot, values in {**OPERANDS, **SLOTS}.items():
        template = template.replace("{" + slot + "}", values[choice % len(values)])
    return bound_if_it_fits(template)


@pytest.fixture(scope="module")
def frame(spark):
    from penstock.spark.compile.expressions import schema

    zone = [
        tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in row) for row in ROWS
    ]
    frame = (
        spark.createDataFrame(zone, schema(APPLICATION.streams["s"].columns)).coalesce(1).cache()
    )
    yield frame
    frame.unpersist()


@pytest.fixture(params=["true", "false"], ids=["ansi", "not ansi"])
def ansi(spark, request):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", before)


def check(frame, expressions) -> None:
    """All of them evaluate to the types that the binder inferred."""
    from penstock.spark.compile.expressions import column, data_type

    selected = frame.select(*(column(e, f"c{k}") for k, e in enumerate(expressions)))
    for field, expression in zip(selected.schema, expressions, strict=True):
        assert field.dataType == data_type(expression.type), render(expression)
    selected.write.format("noop").mode("overwrite").save()


def test_every_function_runs_over_every_row(frame, ansi):
    found = [filled(template, choice) for template in EACH for choice in (0, 1)]
    expressions = [expression for expression in found if expression is not None]
    assert len(expressions) > 1.5 * len(EACH)
    for start in range(0, len(expressions), 40):
        check(frame, expressions[start : start + 40])


@pytest.fixture
def interpreted(spark):
    """Without compiling every expression, which takes most of the time of a small query."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield
    spark.conf.unset("spark.sql.codegen.wholeStage")
    spark.conf.unset("spark.sql.codegen.factoryMode")


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(st.lists(ANY, min_size=15, max_size=30))
def test_generated_expressions_never_throw(frame, ansi, interpreted, generated):
    expressions = [e for e in map(bound_if_it_fits, generated) if e is not None]
    if expressions:
        check(frame, expressions)


def test_every_compiled_function_is_reached_by_the_language():
    from penstock.spark.compile.expressions import FUNCTIONS

    more = ["DAYOFYEAR(at)", "s ILIKE 'A'", "CEIL(d)", "FLOOR(d)", "i < b", "i > b", "i <> b"]
    expressions = [*(filled(template, 0) for template in EACH), *(bound(text) for text in more)]
    parts = [part for expression in expressions if expression for part in walk(expression)]
    assert FUNCTIONS.keys() - {part.function for part in parts if isinstance(part, Call)} == set()


# --- the same as DuckDB ------------------------------------------------------------------------

NUMBERS = ["i", "b2", "p", "0", "1", "7", "-3", "d", "1.5"]
COMMON = {
    "number": listed("""
        ({number} + {number})  ({number} - {number})  ({number} * {number})  ABS({number})
        COALESCE({number}, {number})  NULLIF({number}, {number})  GREATEST({number}, {number})
        LEAST({number}, {number})  CASE WHEN {boolean} THEN {number} ELSE {number} END
        LENGTH({string})  (- {number})
    """),
    "string": listed("""
        LOWER({string})  UPPER({string})  TRIM({string})  REPLACE({string}, 'a', 'b')
        ({string} || 'x')  COALESCE({string}, '')  SUBSTR({string}, 2, 2)
        CASE WHEN {boolean} THEN {string} ELSE {string} END
    """),
    "boolean": listed("""
        ({number} {comparison} {number})  ({string} {comparison} {string})
        ({boolean} AND {boolean})  ({boolean} OR {boolean})  (NOT {boolean})  ({number} IS NULL)
        ({string} IS NOT NULL)  ({number} BETWEEN {number} AND {number})
        ({number} IN (1, 7, NULL))  ({string} NOT IN ('a', 'b'))  ({string} LIKE '%a_')
        STARTSWITH({string}, 'a')  CONTAINS({string}, 'a')  (ts > '2024-01-01')
        (ts - INTERVAL '1' DAY < TIMESTAMP '2024-02-29 00:00:00')  ok
    """),
}
COMMON_OPERANDS = {
    "number": NUMBERS,
    "string": ["s", "'abc'", "''"],
    "boolean": ["ok", "TRUE", "FALSE"],
}
COMMON_SLOTS = {"comparison": ["=", "<>", "<", "<=", ">", ">="]}
ORDINARY = bind(
    "CREATE STREAM s (i INT, b2 BIGINT, p DECIMAL(10,2), d DOUBLE, s STRING, ok BOOLEAN,"
    " ts TIMESTAMP) FROM rate"
)
CELLS = st.tuples(
    st.none() | st.integers(-20, 20),
    st.none() | st.integers(-1000, 1000),
    st.none() | st.decimals(-1000, 1000, places=2),
    st.none() | st.integers(-40, 40).map(lambda n: n / 4),
    st.none() | st.text("abcABC ", max_size=5),
    st.none() | st.booleans(),
    st.none()
    | st.datetimes(datetime(2024, 1, 1), datetime(2024, 3, 1)).map(lambda t: t.replace(tzinfo=UTC)),
)


@st.composite
def ordinary(draw, kind: str, depth: int = 3) -> str:
    if kind in COMMON_SLOTS:
        return draw(st.sampled_from(COMMON_SLOTS[kind]))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(COMMON_OPERANDS[kind]))
    template = draw(st.sampled_from(COMMON[kind]))
    while (start := template.find("{")) >= 0:
        end = template.index("}", start)
        hole = draw(ordinary(template[start + 1 : end], depth - 1))
        template = template[:start] + hole + template[end + 1 :]
    return template


def _for_duckdb(conditions: list[str]) -> str:
    return ", ".join(conditions).replace("STARTSWITH(", "STARTS_WITH(")


@settings(
    max_examples=15,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    st.lists(CELLS, min_size=1, max_size=8), st.lists(ordinary("boolean"), min_size=8, max_size=16)
)
def test_conditions_hold_where_duckdb_says_so(spark, interpreted, rows, conditions):
    import pyarrow as pa

    from penstock.spark.compile.expressions import column

    schema = arrow_schema(ORDINARY.streams["s"].columns)
    table = pa.table(
        {f.name: pa.array([row[k] for row in rows], f.type) for k, f in enumerate(schema)}, schema
    )
    bound_conditions = [bound(condition, ORDINARY) for condition in conditions]
    frame = spark.createDataFrame(table).coalesce(1)
    ours = frame.select(*(column(e, f"c{k}") for k, e in enumerate(bound_conditions))).collect()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("s", table)
        theirs = connection.execute(f"SELECT {_for_duckdb(conditions)} FROM s").fetchall()
    for mine, other in zip(ours, theirs, strict=True):
        for condition, a, b in zip(conditions, mine, other, strict=True):
            assert a == b, condition


# --- the contract ------------------------------------------------------------------------------


def test_a_relations_columns_carry_its_number(spark):
    from penstock.spark.compile.expressions import column

    frame = spark.createDataFrame([(1, 2, 3)], "`a.b` INT, `id@1` INT, `x``y@2` INT")
    found = frame.select(
        column(Column("a.b", INT)),
        column(Column("id", INT, 1)),
        column(Column("x`y", INT, 2), "odd.name"),
    )
    assert found.columns == ["a.b", "id@1", "odd.name"]
    assert found.first() == (1, 2, 3)


@pytest.mark.parametrize(
    "literal",
    [
        Literal(None, INT),
        Literal(5, Type("TINYINT")),
        Literal(5, INT),
        Literal(-(2**63), Type("BIGINT")),
        Literal(1.5, Type("FLOAT")),
        Literal(1.5, Type("DOUBLE")),
        Literal("it's", Type("STRING")),
        Literal(b"\x00\xff", Type("BINARY")),
        Literal(True, BOOLEAN),
        Literal(date(2024, 2, 29), Type("DATE")),
        Literal(date(1000, 1, 1), Type("DATE")),
        Literal(datetime(1000, 1, 1, tzinfo=UTC), Type("TIMESTAMP")),
        Literal(datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC), Type("TIMESTAMP")),
        Literal(Decimal("9" * 38), Type("DECIMAL", precision=38, scale=0)),
        Literal(Decimal("-0.05"), Type("DECIMAL", precision=10, scale=2)),
    ],
    ids=lambda literal: str(literal.type),
)
def test_a_literal_keeps_its_type_and_value(spark, literal):
    from penstock.spark.compile.expressions import column, data_type

    frame = spark.range(1).select(column(literal, "x"))
    assert frame.schema["x"].dataType == data_type(literal.type)
    assert frame.toArrow()["x"][0].as_py() == literal.value


def test_a_python_call_never_reaches_spark():
    from penstock.spark.compile.expressions import column

    with pytest.raises(PlanError, match="f"):
        column(PythonCall("f", (), INT))


def test_an_admitted_pattern_survives_a_long_string(spark):
    from penstock.spark.compile.expressions import column

    patterns = [
        "^(abc)*$",
        "^[a-c]*z",
        "a.*c$",
        "(?:ab|c){0,1000}x",
        "(a(b|c){0,9}){0,100}",
        "(a+b){0,500}$",
    ]
    conditions = [bound(f"s RLIKE '{pattern}'") for pattern in patterns]
    frame = spark.sql("SELECT repeat('abc', 20000) AS s")
    frame.select(*(column(c, f"c{k}") for k, c in enumerate(conditions))).collect()


def test_a_thousand_alternatives_compile(spark):
    from penstock.spark.compile.expressions import column

    text = " OR ".join(f"i = {k}" for k in range(1000))
    frame = spark.createDataFrame([(999,), (1000,)], "i INT")
    assert frame.where(column(bound(text))).count() == 1
