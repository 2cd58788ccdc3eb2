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
    "ACOS": ("ACOS(real)", "acos(real)", "DOUBLE"),
    "ADD_MONTHS": ("ADD_MONTHS(day, 1)", "add_months(day, 1)", "DATE"),
    "ARRAY": ("ARRAY(n, big)", "array(CAST(n AS BIGINT), big)", "ARRAY<BIGINT>"),
    "ARRAYS_OVERLAP": (
        "ARRAYS_OVERLAP(path, ARRAY(1, 2))",
        "arrays_overlap(path, array(1, 2))",
        "BOOLEAN",
    ),
    "ARRAY_APPEND": ("ARRAY_APPEND(path, n)", "array_append(path, n)", "ARRAY<INT>"),
    "ARRAY_COMPACT": ("ARRAY_COMPACT(path)", "array_compact(path)", "ARRAY<INT>"),
    "ARRAY_CONTAINS": (
        "ARRAY_CONTAINS(path, big)",
        "array_contains(CAST(path AS ARRAY<BIGINT>), big)",
        "BOOLEAN",
    ),
    "ARRAY_DISTINCT": ("ARRAY_DISTINCT(path)", "array_distinct(path)", "ARRAY<INT>"),
    "ARRAY_EXCEPT": ("ARRAY_EXCEPT(path, path)", "array_except(path, path)", "ARRAY<INT>"),
    "ARRAY_INTERSECT": ("ARRAY_INTERSECT(path, path)", "array_intersect(path, path)", "ARRAY<INT>"),
    "ARRAY_JOIN": (
        "ARRAY_JOIN(path, '-', '?')",
        "array_join(CAST(path AS ARRAY<STRING>), '-', '?')",
        "STRING",
    ),
    "ARRAY_MAX": ("ARRAY_MAX(path)", "array_max(path)", "INT"),
    "ARRAY_MIN": ("ARRAY_MIN(path)", "array_min(path)", "INT"),
    "ARRAY_POSITION": ("ARRAY_POSITION(path, 5)", "array_position(path, 5)", "BIGINT"),
    "ARRAY_PREPEND": ("ARRAY_PREPEND(path, 0)", "array_prepend(path, 0)", "ARRAY<INT>"),
    "ARRAY_REMOVE": ("ARRAY_REMOVE(path, 5)", "array_remove(path, 5)", "ARRAY<INT>"),
    "ARRAY_REPEAT": ("ARRAY_REPEAT(name, 3)", "array_repeat(name, 3)", "ARRAY<STRING>"),
    "ARRAY_SORT": ("ARRAY_SORT(path)", "array_sort(path)", "ARRAY<INT>"),
    "ARRAY_UNION": ("ARRAY_UNION(path, path)", "array_union(path, path)", "ARRAY<INT>"),
    "ASCII": ("ASCII(name)", "ascii(name)", "INT"),
    "ASIN": ("ASIN(real)", "asin(real)", "DOUBLE"),
    "ATAN": ("ATAN(real)", "atan(real)", "DOUBLE"),
    "ATAN2": ("ATAN2(real, n)", "atan2(real, CAST(n AS DOUBLE))", "DOUBLE"),
    "BASE64": ("BASE64(raw)", "base64(raw)", "STRING"),
    "BIT_COUNT": ("BIT_COUNT(n)", "bit_count(CAST(n AS BIGINT))", "INT"),
    "BIT_LENGTH": ("BIT_LENGTH(name)", "bit_length(name)", "INT"),
    "BTRIM": ("BTRIM(name, 'x')", "trim(name, 'x')", "STRING"),
    "CBRT": ("CBRT(real)", "cbrt(real)", "DOUBLE"),
    "CEIL": ("CEIL(price)", "ceil(price)", "DECIMAL(9,0)"),
    "CHR": ("CHR(n)", "chr(n)", "STRING"),
    "COALESCE": ("COALESCE(n, 0)", "coalesce(n, 0)", "INT"),
    "CONCAT": ("CONCAT(name, n)", "concat(name, CAST(n AS STRING))", "STRING"),
    "CONCAT_WS": (
        "CONCAT_WS('-', name, n, SPLIT(name, ','))",
        "concat_ws('-', name, CAST(n AS STRING), split(name, ',', -1))",
        "STRING",
    ),
    "CONTAINS": ("CONTAINS(name, 'x')", "contains(name, 'x')", "BOOLEAN"),
    "CONVERT_TIMEZONE": (
        "CONVERT_TIMEZONE('UTC', 'Europe/Lisbon', at)",
        "from_utc_timestamp(to_utc_timestamp(at, 'UTC'), 'Europe/Lisbon')",
        "TIMESTAMP",
    ),
    "COS": ("COS(real)", "cos(real)", "DOUBLE"),
    "COSH": ("COSH(real)", "cosh(real)", "DOUBLE"),
    "CRC32": ("CRC32(name)", "crc32(CAST(name AS BINARY))", "BIGINT"),
    "DATEDIFF": ("DATEDIFF(day, at)", "datediff(day, CAST(at AS DATE))", "INT"),
    "DATE_ADD": ("DATE_ADD(day, n)", "date_add(day, n)", "DATE"),
    "DATE_FORMAT": ("DATE_FORMAT(at, 'yyyy-MM-dd')", "date_format(at, 'yyyy-MM-dd')", "STRING"),
    "DATE_FROM_UNIX_DATE": ("DATE_FROM_UNIX_DATE(n)", "date_from_unix_date(n)", "DATE"),
    "DATE_PART": ("DATE_PART('hour', at)", "hour(at)", "INT"),
    "DATE_SUB": ("DATE_SUB(at, 1)", "date_sub(CAST(at AS DATE), 1)", "DATE"),
    "DATE_TRUNC": ("DATE_TRUNC('hour', at)", "date_trunc('HOUR', at)", "TIMESTAMP"),
    "DAY": ("DAY(day)", "day(CAST(day AS TIMESTAMP))", "INT"),
    "DAYNAME": ("DAYNAME(day)", "dayname(day)", "STRING"),
    "DAYOFWEEK": ("EXTRACT(DOW FROM at)", "dayofweek(at)", "INT"),
    "DAYOFYEAR": ("DAYOFYEAR(at)", "dayofyear(at)", "INT"),
    "DEGREES": ("DEGREES(real)", "degrees(real)", "DOUBLE"),
    "DIV": ("n DIV 2", "CAST(n AS BIGINT) DIV 2::BIGINT", "BIGINT"),
    "E": ("E()", "e()", "DOUBLE"),
    "ELEMENT_AT": ("ELEMENT_AT(path, -1)", "element_at(path, -1)", "INT"),
    "ENDSWITH": ("ENDSWITH(name, name)", "endswith(name, name)", "BOOLEAN"),
    "EQUAL_NULL": ("EQUAL_NULL(n, big)", "CAST(n AS BIGINT) <=> big", "BOOLEAN"),
    "EXP": ("EXP(n)", "exp(CAST(n AS DOUBLE))", "DOUBLE"),
    "EXPM1": ("EXPM1(real)", "expm1(real)", "DOUBLE"),
    "FIND_IN_SET": ("FIND_IN_SET(name, 'a,b')", "find_in_set(name, 'a,b')", "INT"),
    "FLATTEN": ("FLATTEN(ARRAY(path, path))", "flatten(array(path, path))", "ARRAY<INT>"),
    "FLOOR": ("FLOOR(real)", "floor(real)", "BIGINT"),
    "FORMAT_NUMBER": ("FORMAT_NUMBER(real, 2)", "format_number(real, 2)", "STRING"),
    "FROM_JSON": (
        "FROM_JSON(name, 'MAP<STRING, INT>')",
        "from_json(name, 'MAP<STRING, INT>')",
        "MAP<STRING, INT>",
    ),
    "FROM_UNIXTIME": (
        "FROM_UNIXTIME(big)",
        "date_format(CAST(big AS TIMESTAMP), 'yyyy-MM-dd HH:mm:ss')",
        "STRING",
    ),
    "FROM_UTC_TIMESTAMP": (
        "FROM_UTC_TIMESTAMP(at, 'Asia/Tokyo')",
        "from_utc_timestamp(at, 'Asia/Tokyo')",
        "TIMESTAMP",
    ),
    "GET_JSON_OBJECT": (
        "GET_JSON_OBJECT(name, '$.a.b')",
        "get_json_object(name, '$.a.b')",
        "STRING",
    ),
    "GREATEST": ("GREATEST(n, 5, big)", "greatest(CAST(n AS BIGINT), 5::BIGINT, big)", "BIGINT"),
    "HASH": ("HASH(n, name)", "hash(n, name)", "INT"),
    "HEX": ("HEX(n)", "hex(CAST(n AS BIGINT))", "STRING"),
    "HOUR": ("EXTRACT(HOUR FROM at)", "hour(at)", "INT"),
    "HYPOT": ("HYPOT(real, n)", "hypot(real, CAST(n AS DOUBLE))", "DOUBLE"),
    "IF": ("IF(ok, 1, NULL)", "if(ok, 1, NULL::INT)", "INT"),
    "INITCAP": ("INITCAP(name)", "initcap(name)", "STRING"),
    "INSTR": ("INSTR(name, 'b')", "instr(name, 'b')", "INT"),
    "ISNAN": ("ISNAN(real)", "isnan(real)", "BOOLEAN"),
    "ISNOTNULL": ("ISNOTNULL(n)", "n IS NOT NULL", "BOOLEAN"),
    "ISNULL": ("ISNULL(n)", "n IS NULL", "BOOLEAN"),
    "JSON_ARRAY_LENGTH": ("JSON_ARRAY_LENGTH(name)", "json_array_length(name)", "INT"),
    "JSON_OBJECT_KEYS": ("JSON_OBJECT_KEYS(name)", "json_object_keys(name)", "ARRAY<STRING>"),
    "LAST_DAY": ("LAST_DAY(day)", "last_day(day)", "DATE"),
    "LEAST": ("LEAST(day, at)", "least(CAST(day AS TIMESTAMP), at)", "TIMESTAMP"),
    "LEFT": ("LEFT(name, 2)", "left(name, 2)", "STRING"),
    "LENGTH": ("LENGTH(raw)", "length(raw)", "INT"),
    "LN": ("LN(2)", "ln(2.0)", "DOUBLE"),
    "LOCATE": ("LOCATE('b', name, 2)", "locate('b', name, 2)", "INT"),
    "LOG10": ("LOG10(real)", "log10(real)", "DOUBLE"),
    "LOG1P": ("LOG1P(real)", "log1p(real)", "DOUBLE"),
    "LOG2": ("LOG2(real)", "log2(real)", "DOUBLE"),
    "LOWER": ("LOWER(name)", "lower(name)", "STRING"),
    "LPAD": ("LPAD(name, 5, '0')", "lpad(name, 5, '0')", "STRING"),
    "LTRIM": ("TRIM(LEADING 'x' FROM name)", "ltrim(name, 'x')", "STRING"),
    "LUHN_CHECK": ("LUHN_CHECK(name)", "luhn_check(name)", "BOOLEAN"),
    "MAKE_DATE": (
        "MAKE_DATE(n, 1, 31)",
        "CAST(make_timestamp(n, 1, 31, 0, 0, 0.0) AS DATE)",
        "DATE",
    ),
    "MAKE_TIMESTAMP": (
        "MAKE_TIMESTAMP(2024, n, 1, 0, 0, 1.5)",
        "make_timestamp(2024, n, 1, 0, 0, 1.5)",
        "TIMESTAMP",
    ),
    "MAP": (
        "MAP('a', n, 'b', big)",
        "map('a', CAST(n AS BIGINT), 'b', big)",
        "MAP<STRING, BIGINT>",
    ),
    "MAP_CONTAINS_KEY": ("MAP_CONTAINS_KEY(tags, 'a')", "map_contains_key(tags, 'a')", "BOOLEAN"),
    "MAP_KEYS": ("MAP_KEYS(tags)", "map_keys(tags)", "ARRAY<STRING>"),
    "MAP_VALUES": ("MAP_VALUES(tags)", "map_values(tags)", "ARRAY<INT>"),
    "MD5": ("MD5(name)", "md5(name)", "STRING"),
    "MINUTE": ("MINUTE(name)", "minute(CAST(name AS TIMESTAMP))", "INT"),
    "MOD": ("MOD(n, 3)", "n % 3", "INT"),
    "MONTH": ("MONTH(at)", "month(at)", "INT"),
    "MONTHNAME": ("MONTHNAME(day)", "monthname(day)", "STRING"),
    "MONTHS_BETWEEN": (
        "MONTHS_BETWEEN(at, day)",
        "months_between(at, CAST(day AS TIMESTAMP))",
        "DOUBLE",
    ),
    "NAMED_STRUCT": (
        "NAMED_STRUCT('a', n, 'b', name)",
        "struct(n, name)",
        "STRUCT<`a`: INT, `b`: STRING>",
    ),
    "NANVL": ("NANVL(real, 0)", "nanvl(real, 0.0)", "DOUBLE"),
    "NEXT_DAY": ("NEXT_DAY(day, 'Mon')", "next_day(day, 'MON')", "DATE"),
    "NULLIF": ("NULLIF(price, 0)", "nullif(price, 0.00)", "DECIMAL(10,2)"),
    "NULLIFZERO": ("NULLIFZERO(n)", "nullif(n, 0)", "INT"),
    "NVL2": ("NVL2(n, 'some', 'none')", "if(n IS NOT NULL, 'some', 'none')", "STRING"),
    "OCTET_LENGTH": ("OCTET_LENGTH(name)", "octet_length(name)", "INT"),
    "PARSE_URL": ("PARSE_URL(name, 'QUERY', 'q')", "parse_url(name, 'QUERY', 'q')", "STRING"),
    "PI": ("PI()", "pi()", "DOUBLE"),
    "PMOD": ("PMOD(n, 7)", "pmod(CAST(n AS BIGINT), 7::BIGINT)", "BIGINT"),
    "POWER": ("POW(n, 2)", "power(CAST(n AS DOUBLE), 2.0)", "DOUBLE"),
    "QUARTER": ("QUARTER(at)", "quarter(at)", "INT"),
    "RADIANS": ("RADIANS(real)", "radians(real)", "DOUBLE"),
    "REGEXP_COUNT": ("REGEXP_COUNT(name, 'a')", "regexp_count(name, 'a')", "INT"),
    "REGEXP_EXTRACT": (
        "REGEXP_EXTRACT(name, '(a)(b)')",
        "regexp_extract(name, '(a)(b)', 1)",
        "STRING",
    ),
    "REGEXP_EXTRACT_ALL": (
        "REGEXP_EXTRACT_ALL(name, '(a)(b)', 2)",
        "regexp_extract_all(name, '(a)(b)', 2)",
        "ARRAY<STRING>",
    ),
    "REGEXP_REPLACE": (
        "REGEXP_REPLACE(name, '(?<x>a)', '${x}$1')",
        "regexp_replace(name, '(?<x>a)', '${x}$1')",
        "STRING",
    ),
    "REGEXP_SUBSTR": ("REGEXP_SUBSTR(name, 'a+')", "regexp_substr(name, 'a+')", "STRING"),
    "REPEAT": ("REPEAT(name, 3)", "repeat(name, 3)", "STRING"),
    "REPLACE": ("REPLACE(name, 'a', 'b')", "replace(name, 'a', 'b')", "STRING"),
    "REVERSE": ("REVERSE(path)", "reverse(path)", "ARRAY<INT>"),
    "RIGHT": ("RIGHT(name, 2)", "right(name, 2)", "STRING"),
    "RLIKE": ("REGEXP_LIKE(name, 'a+')", "name RLIKE 'a+'", "BOOLEAN"),
    "ROUND": ("ROUND(price, 1)", "round(price, 1)", "DECIMAL(10,1)"),
    "RPAD": ("RPAD(name, 5)", "rpad(name, 5, ' ')", "STRING"),
    "RTRIM": ("RTRIM(name)", "rtrim(name)", "STRING"),
    "SECOND": ("SECOND(at)", "second(at)", "INT"),
    "SHA1": ("SHA1(name)", "sha1(CAST(name AS BINARY))", "STRING"),
    "SHA2": ("SHA2(name, 512)", "sha2(CAST(name AS BINARY), 512)", "STRING"),
    "SHIFTLEFT": ("SHIFTLEFT(n, 2)", "shiftleft(CAST(n AS BIGINT), 2)", "BIGINT"),
    "SHIFTRIGHT": ("SHIFTRIGHT(n, 2)", "shiftright(CAST(n AS BIGINT), 2)", "BIGINT"),
    "SIGN": ("SIGN(n)", "sign(CAST(n AS DOUBLE))", "DOUBLE"),
    "SIN": ("SIN(real)", "sin(real)", "DOUBLE"),
    "SINH": ("SINH(real)", "sinh(real)", "DOUBLE"),
    "SIZE": ("SIZE(tags)", "size(tags)", "INT"),
    "SLICE": ("SLICE(path, 1, 2)", "slice(path, 1, 2)", "ARRAY<INT>"),
    "SORT_ARRAY": ("SORT_ARRAY(path, FALSE)", "sort_array(path, FALSE)", "ARRAY<INT>"),
    "SOUNDEX": ("SOUNDEX(name)", "soundex(name)", "STRING"),
    "SPLIT": ("SPLIT(name, '[,;]')", "split(name, '[,;]', -1)", "ARRAY<STRING>"),
    "SPLIT_PART": ("SPLIT_PART(name, ',', n)", "split_part(name, ',', n)", "STRING"),
    "SQRT": ("SQRT(price)", "sqrt(CAST(price AS DOUBLE))", "DOUBLE"),
    "STARTSWITH": ("STARTSWITH(name, 'a')", "startswith(name, 'a')", "BOOLEAN"),
    "STRING_TO_ARRAY": ("STRING_TO_ARRAY(name, '.')", "split(name, '\\\\.', -1)", "ARRAY<STRING>"),
    "SUBSTR": ("SUBSTRING(name FROM 2 FOR 3)", "substr(name, 2, 3)", "STRING"),
    "SUBSTRING_INDEX": ("SUBSTRING_INDEX(name, '.', 2)", "substring_index(name, '.', 2)", "STRING"),
    "TAN": ("TAN(real)", "tan(real)", "DOUBLE"),
    "TANH": ("TANH(real)", "tanh(real)", "DOUBLE"),
    "TIMESTAMPADD": (
        "TIMESTAMPADD(MINUTE, 5, at)",
        "timestampadd('MINUTE', 5::BIGINT, at)",
        "TIMESTAMP",
    ),
    "TIMESTAMPDIFF": (
        "TIMESTAMPDIFF(MINUTE, day, at)",
        "timestampdiff('MINUTE', CAST(day AS TIMESTAMP), at)",
        "BIGINT",
    ),
    "TIMESTAMP_MICROS": ("TIMESTAMP_MICROS(big)", "timestamp_micros(big)", "TIMESTAMP"),
    "TIMESTAMP_MILLIS": ("TIMESTAMP_MILLIS(big)", "timestamp_millis(big)", "TIMESTAMP"),
    "TIMESTAMP_SECONDS": ("TIMESTAMP_SECONDS(real)", "CAST(real AS TIMESTAMP)", "TIMESTAMP"),
    "TIME_BUCKET": (
        "TIME_BUCKET(INTERVAL '5' MINUTE, at)",
        "time_bucket(INTERVAL 300 SECOND, at)",
        "TIMESTAMP",
    ),
    "TO_DATE": (
        "TO_DATE(name, 'dd/MM/yyyy')",
        "CAST(to_timestamp(name, 'dd/MM/yyyy') AS DATE)",
        "DATE",
    ),
    "TO_JSON": ("TO_JSON(path)", "to_json(path)", "STRING"),
    "TO_TIMESTAMP": (
        "TO_TIMESTAMP(name, 'yyyy-MM-dd HH:mm')",
        "to_timestamp(name, 'yyyy-MM-dd HH:mm')",
        "TIMESTAMP",
    ),
    "TO_TIMESTAMP_LTZ": ("TO_TIMESTAMP_LTZ(big, 3)", "timestamp_millis(big)", "TIMESTAMP"),
    "TO_UTC_TIMESTAMP": (
        "TO_UTC_TIMESTAMP(at, 'Asia/Tokyo')",
        "to_utc_timestamp(at, 'Asia/Tokyo')",
        "TIMESTAMP",
    ),
    "TRANSLATE": ("TRANSLATE(name, 'ab', 'AB')", "translate(name, 'ab', 'AB')", "STRING"),
    "TRIM": ("TRIM(BOTH 'x' FROM name)", "trim(name, 'x')", "STRING"),
    "TRUNC": (
        "TRUNC(day, 'month')",
        "CAST(date_trunc('MONTH', CAST(day AS TIMESTAMP)) AS DATE)",
        "DATE",
    ),
    "TRY_ADD": ("TRY_ADD(n, 1)", "n + 1", "INT"),
    "TRY_DIVIDE": ("TRY_DIVIDE(n, 2)", "CAST(n AS DOUBLE) / 2.0", "DOUBLE"),
    "TRY_MULTIPLY": ("TRY_MULTIPLY(n, 2)", "n * 2", "INT"),
    "TRY_SUBTRACT": ("TRY_SUBTRACT(n, 1)", "n - 1", "INT"),
    "UNBASE64": ("UNBASE64(name)", "unbase64(name)", "BINARY"),
    "UNHEX": ("UNHEX(name)", "unhex(name)", "BINARY"),
    "UNIX_DATE": ("UNIX_DATE(day)", "unix_date(day)", "INT"),
    "UNIX_MICROS": ("UNIX_MICROS(at)", "unix_micros(at)", "BIGINT"),
    "UNIX_MILLIS": ("UNIX_MILLIS(at)", "unix_millis(at)", "BIGINT"),
    "UNIX_TIMESTAMP": ("UNIX_TIMESTAMP(at)", "unix_timestamp(at)", "BIGINT"),
    "UPPER": ("UPPER(name)", "upper(name)", "STRING"),
    "URL_DECODE": ("URL_DECODE(name)", "url_decode(name)", "STRING"),
    "URL_ENCODE": ("URL_ENCODE(name)", "url_encode(name)", "STRING"),
    "WEEK": ("WEEKOFYEAR(at)", "week(at)", "INT"),
    "WEEKDAY": ("WEEKDAY(day)", "weekday(CAST(day AS TIMESTAMP))", "INT"),
    "WIDTH_BUCKET": (
        "WIDTH_BUCKET(real, 0, 10, 5)",
        "width_bucket(real, 0.0, 10.0, 5::BIGINT)",
        "BIGINT",
    ),
    "XXHASH64": ("XXHASH64(n, name, path)", "xxhash64(n, name, path)", "BIGINT"),
    "YEAR": ("YEAR(at)", "year(at)", "INT"),
    "ZEROIFNULL": ("ZEROIFNULL(n)", "coalesce(n, 0)", "INT"),
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
