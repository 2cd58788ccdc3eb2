"""Every admitted function binds, with the type that Spark gives it; the rest is refused."""

from __future__ import annotations

import pytest

from penstock.errors import LanguageError, Refused, TypeFault
from penstock.language import bind
from penstock.language.aggregates import AGGREGATES
from penstock.language.aggregates import SYNONYMS as AGGREGATE_SYNONYMS
from penstock.language.foreign import OF_SPARK
from penstock.language.functions import ADMITTED, REFUSED, SYNONYMS
from penstock.rendering import render
from tests.language import kit

ONTO = kit.declared()
EXAMPLES = {
    "ABS": ("ABS(price)", "abs(price)", "DECIMAL(10,2)"),
    "ARRAY": ("ARRAY(n, big)", "array(CAST(n AS BIGINT), big)", "ARRAY<BIGINT>"),
    "CEIL": ("CEIL(price)", "ceil(price)", "DECIMAL(9,0)"),
    "COALESCE": ("COALESCE(n, 0)", "coalesce(n, 0)", "INT"),
    "CONCAT": ("CONCAT(name, n)", "concat(name, CAST(n AS STRING))", "STRING"),
    "CONTAINS": ("CONTAINS(name, 'x')", "contains(name, 'x')", "BOOLEAN"),
    "DATE_TRUNC": ("DATE_TRUNC('hour', at)", "date_trunc('HOUR', at)", "TIMESTAMP"),
    "DAY": ("DAY(day)", "day(CAST(day AS TIMESTAMP))", "INT"),
    "DAYOFWEEK": ("EXTRACT(DOW FROM at)", "dayofweek(at)", "INT"),
    "DAYOFYEAR": ("DAYOFYEAR(at)", "dayofyear(at)", "INT"),
    "DIV": ("n DIV 2", "CAST(n AS BIGINT) DIV 2::BIGINT", "BIGINT"),
    "ENDSWITH": ("ENDSWITH(name, name)", "endswith(name, name)", "BOOLEAN"),
    "EXP": ("EXP(n)", "exp(CAST(n AS DOUBLE))", "DOUBLE"),
    "FLOOR": ("FLOOR(real)", "floor(real)", "BIGINT"),
    "FROM_JSON": (
        "FROM_JSON(name, 'MAP<STRING, INT>')",
        "from_json(name, 'MAP<STRING, INT>')",
        "MAP<STRING, INT>",
    ),
    "GREATEST": ("GREATEST(n, 5, big)", "greatest(CAST(n AS BIGINT), 5::BIGINT, big)", "BIGINT"),
    "HOUR": ("EXTRACT(HOUR FROM at)", "hour(at)", "INT"),
    "IF": ("IF(ok, 1, NULL)", "if(ok, 1, NULL::INT)", "INT"),
    "LEAST": ("LEAST(day, at)", "least(CAST(day AS TIMESTAMP), at)", "TIMESTAMP"),
    "LENGTH": ("LENGTH(raw)", "length(raw)", "INT"),
    "LN": ("LN(2)", "ln(2.0)", "DOUBLE"),
    "LOWER": ("LOWER(name)", "lower(name)", "STRING"),
    "LTRIM": ("TRIM(LEADING 'x' FROM name)", "ltrim(name, 'x')", "STRING"),
    "MD5": ("MD5(name)", "md5(name)", "STRING"),
    "MINUTE": ("MINUTE(name)", "minute(CAST(name AS TIMESTAMP))", "INT"),
    "MOD": ("MOD(n, 3)", "n % 3", "INT"),
    "MONTH": ("MONTH(at)", "month(at)", "INT"),
    "NULLIF": ("NULLIF(price, 0)", "nullif(price, 0.00)", "DECIMAL(10,2)"),
    "POWER": ("POW(n, 2)", "power(CAST(n AS DOUBLE), 2.0)", "DOUBLE"),
    "QUARTER": ("QUARTER(at)", "quarter(at)", "INT"),
    "REGEXP_EXTRACT": (
        "REGEXP_EXTRACT(name, '(a)(b)')",
        "regexp_extract(name, '(a)(b)', 1)",
        "STRING",
    ),
    "REGEXP_REPLACE": (
        "REGEXP_REPLACE(name, '(?<x>a)', '${x}$1')",
        "regexp_replace(name, '(?<x>a)', '${x}$1')",
        "STRING",
    ),
    "REPLACE": ("REPLACE(name, 'a', 'b')", "replace(name, 'a', 'b')", "STRING"),
    "RLIKE": ("REGEXP_LIKE(name, 'a+')", "name RLIKE 'a+'", "BOOLEAN"),
    "ROUND": ("ROUND(price, 1)", "round(price, 1)", "DECIMAL(10,1)"),
    "RTRIM": ("RTRIM(name)", "rtrim(name)", "STRING"),
    "SECOND": ("SECOND(at)", "second(at)", "INT"),
    "SIGN": ("SIGN(n)", "sign(CAST(n AS DOUBLE))", "DOUBLE"),
    "SPLIT_PART": ("SPLIT_PART(name, ',', n)", "split_part(name, ',', n)", "STRING"),
    "SQRT": ("SQRT(price)", "sqrt(CAST(price AS DOUBLE))", "DOUBLE"),
    "STARTSWITH": ("STARTSWITH(name, 'a')", "startswith(name, 'a')", "BOOLEAN"),
    "SUBSTR": ("SUBSTRING(name FROM 2 FOR 3)", "substr(name, 2, 3)", "STRING"),
    "TRIM": ("TRIM(BOTH 'x' FROM name)", "trim(name, 'x')", "STRING"),
    "UNIX_TIMESTAMP": ("UNIX_TIMESTAMP(at)", "unix_timestamp(at)", "BIGINT"),
    "UPPER": ("UPPER(name)", "upper(name)", "STRING"),
    "WEEK": ("WEEKOFYEAR(at)", "week(at)", "INT"),
    "XXHASH64": ("XXHASH64(n, name, path)", "xxhash64(n, name, path)", "BIGINT"),
    "YEAR": ("YEAR(at)", "year(at)", "INT"),
}


def expression(text: str):
    return (
        bind(f"SELECT {text} AS x FROM readings", ONTO)
        .queries["q1"]
        .branches[0]
        .select[0]
        .expression
    )


def test_every_admitted_function_has_an_example():
    assert EXAMPLES.keys() == ADMITTED.keys()


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_admitted_function_binds(name):
    text, rendered, type_ = EXAMPLES[name]
    bound = expression(text)
    assert (render(bound), str(bound.type)) == (rendered, type_)


@pytest.mark.parametrize("name", sorted(SYNONYMS))
def test_a_synonym_is_the_function(name):
    text, rendered, _ = EXAMPLES[SYNONYMS[name]]
    arguments = text[text.index("(") :] if "FROM" not in text else "(at)"
    if SYNONYMS[name] == "SUBSTR":
        arguments = "(name, 2, 3)"
    assert render(expression(name + arguments)) == rendered


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_dangerous_function_is_refused_with_the_reason(name):
    with pytest.raises(Refused, match=REFUSED[name]):
        expression(f"{name}()")


KEYWORDS = {"AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "BETWEEN", "CASE", "WHEN"}
KNOWN = {*ADMITTED, *SYNONYMS, *AGGREGATES, *AGGREGATE_SYNONYMS, *REFUSED, *KEYWORDS}
OTHERS = OF_SPARK - KNOWN


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_no_other_function_of_spark_is_admitted(name):
    with pytest.raises(LanguageError):
        expression(f"{name}(n)")
    with pytest.raises(LanguageError):
        expression(f"`{name}`(n)")


@pytest.mark.parametrize(
    "text, message",
    [
        ("ABS(ok)", "expected a number, not a BOOLEAN"),
        ("ROUND(real, n)", "expected a constant whole number"),
        ("ROUND(real, 100)", "-38 to 38"),
        ("GREATEST(n)", "at least 2"),
        ("LOWER(path)", "expected a STRING, not an ARRAY<INT>"),
        ("YEAR(n)", "expected a TIMESTAMP, not an INT"),
        ("HOUR('noon')", "'noon' is not a TIMESTAMP"),
        ("SUBSTR(name, 1.5)", "expected a whole number"),
        ("XXHASH64(tags)", "cannot hash"),
        ("GREATEST(tags, tags)", "cannot order"),
        ("FROM_JSON(name, 'MAP<INT, INT>')", "keys of a MAP"),
        ("IF(n, 1, 2)", "must be BOOLEAN"),
        ("n DIV real", "whole numbers"),
        ("tags[5]", "keys of this map are STRING"),
        ("path['a']", "expected a whole number"),
        ("nested[0]", "has no elements"),
        ("EXTRACT(CENTURY FROM at)", "knows no part"),
        ("-name", "expected a number"),
    ],
)
def test_arguments_that_do_not_fit(text, message):
    with pytest.raises(TypeFault, match=message):
        expression(text)
