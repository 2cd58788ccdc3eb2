"""Any text either binds or raises one of our errors with a place inside the text."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import LanguageError
from penstock.language import bind
from penstock.language.tokens import tokenise
from penstock.model import Application
from tests.language import kit

ONTO = kit.declared()
VALID = [case.text for path in kit.GOLDEN.glob("*.sql") for case in kit.cases(path)]
WORDS = (
    """
SELECT FROM WHERE JOIN LEFT ON AND OR NOT IN BETWEEN LIKE RLIKE IS NULL CASE WHEN THEN ELSE END
AS UNION ALL GROUP BY HAVING ORDER LIMIT WINDOW SLIDE EXACTLY ROWS MIN INTERVAL CAST EXTRACT
ARRAY MAP STRUCT DISTINCT OVER PARTITION WITH CREATE STREAM RELATION FUNCTION QUERY DROP SET
INTO OPTIONS TIME LATENESS parquet memory packets readings hosts src dst ts name n ok tags path
nested price day ( ) [ ] { } , ; . : :: = <> < > <= >= <=> + - * / % || ! & | ^ ~ ? @ # $ -> =>
'text' "text" `name` 1 2.5 1e3 10L .5 99999999999999999999 X'ab' DATE TIMESTAMP TRUE FALSE abs
substr from_json is_botnet score count sum INT DECIMAL STRING -- /* */ ' " ` LATERAL VIEW PIVOT
TABLESAMPLE EXISTS USING NATURAL CROSS VALUES TABLE HOP TUMBLE ESCAPE DIV ILIKE FOR
MATCH_RECOGNIZE QUALIFY CONNECT PRIOR START median topk FILTER DESCRIPTOR window_end percentile 0.5
""".split()
    + ["\\", "\x00", "\n"]
)


def check(text: str) -> None:
    """The property: nothing but an application or an error with its place."""
    try:
        bound = bind(text, ONTO, folder="/app", load=no_modules)
    except LanguageError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert error.statement
        assert error.message
        assert "^" in str(error)
    else:
        assert isinstance(bound, Application)


def no_modules(module: str, attribute: str, folder: str):
    raise ValueError("there are no modules here")


@given(st.text(max_size=200))
@example("\x00")
@example("SELECT \x00 FROM packets")
@example("\ud800")
@example("SELECT `` FROM packets")
@example("SELECT '\\")
@example("{# x")
@example("x'zz'")
@example("\u2028SELECT src FROM packets")
@example("SELECT 1e FROM packets")
@example("SELECT " + "9" * 500 + " FROM packets")
@example("SET")
@example("CREATE")
@example("CREATE QUERY q AS")
@example("WINDOW 5 MIN")
@example("SELECT src FROM packets WHERE src IN (")
def test_random_text(text):
    check(text)


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_token_soup(words):
    check(" ".join(words))


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_token_soup_in_a_query(words):
    check("SELECT src FROM packets WHERE " + " ".join(words))


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_token_soup_in_a_window_aggregate(words):
    check("SELECT src, COUNT(*) FROM packets [WINDOW 1 MIN] GROUP BY src " + " ".join(words))


@settings(max_examples=400)
@given(st.sampled_from(VALID), st.integers(0, 2**32), st.integers(1, 3))
def test_mutated_applications(text, seed, times):
    chance = random.Random(seed)
    for _ in range(times):
        text = mutated(text, chance)
    check(text)


def mutated(text: str, chance: random.Random) -> str:
    """The text with a token deleted, doubled, exchanged or replaced, or a character broken."""
    try:
        spans = sorted({(t.start, t.end + 1) for t in tokenise(text)})
    except LanguageError:
        spans = []
    if len(spans) < 2 or chance.random() < 0.2:
        at = chance.randrange(len(text) + 1)
        return text[:at] + chance.choice("'\"`(){}[]\\\x00;é\U0001f600 \n") + text[at + 1 :]
    (a, b), (c, d) = sorted(chance.sample(spans, 2))
    return chance.choice(
        [
            text[:a] + text[b:],
            text[:b] + " " + text[a:b] + text[b:],
            text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:],
            text[:a] + chance.choice(WORDS) + text[b:],
            text[:b],
        ]
    )


@pytest.mark.parametrize(
    "opening, closing",
    [
        ("(", ")"),
        ("NOT ", ""),
        ("- ", ""),
        ("abs(", ")"),
        ("CASE WHEN ok THEN ", " END"),
        ("ARRAY(", ")[0]"),
    ],
)
def test_deep_nesting_is_an_error_with_a_place(opening, closing):
    text = f"SELECT n FROM readings WHERE {opening * 3000}n{closing * 3000} = 1"
    with pytest.raises(LanguageError, match="nested too deeply"):
        bind(text, ONTO)
    check(text)


def test_long_chains_are_not_deep():
    ports = " OR ".join(f"port = {k}" for k in range(5000))
    where = bind(f"SELECT src FROM packets WHERE {ports}", ONTO).queries["q1"].branches[0].where
    assert len(where[0].args) == 5000
    union = " UNION ALL ".join(["SELECT src FROM packets"] * 500)
    assert len(bind(union, ONTO).queries["q1"].branches) == 500
