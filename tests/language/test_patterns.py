"""Patterns that would fail in Java, or run out of stack there, are refused beforehand."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.language.patterns import (
    characters,
    check_like,
    check_regex,
    check_replacement,
    like_regex,
)
from penstock.language.places import Misfit

GOOD = {
    "": 0, "a": 0, "^a.b$": 0, "a|b": 0, "(a|b)": 1, "(a)(b(c))": 3, "(?:a)+": 0, "(?i)abc": 0,
    "(?<name>a)b": 1, r"\d{2,3}": 0, r"[a-z\d_.-]+": 0, r"[^\]]*": 0, "a*?b+?c??": 0, "a*+": 0,
    "(abc)*": 1, "(?:ab{3}c)+": 0, "(a|b){0,100}": 1, "(a(b|c){0,9}){0,100}": 2, r"\$\.\(": 0,
    "x{3}": 0, "x{3,}": 0, "(?=a)b(?!c)": 0, "é+": 0, "[é-ü]": 0, "a-b": 0, "[-a]": 0, "[a-]": 0,
    r"\bword\b": 0, "(?s:.)": 0, "(a?)": 1,
}  # fmt: skip
BAD = r"""
( ) a) (a [ [a [] a** * +a ? { a{ a{b} a{3,2} a{99999} \ \p{L} \1 \Q \x41 \u0041 (?<=a)b (?>a)
(?P<x>a) (? (?) [[a]] [a&&b] [z-a] ] } (?<a>x)(?<a>y) (?x)a ^* \b+ (a|b)* (a*)* (a+)+$ (?:a|b)+
((a|b){0,100}){0,100} (a|b){5,} (?=a)* [a-\d] (?i)* \é
""".split()


@pytest.mark.parametrize("pattern", GOOD)
def test_a_good_pattern_has_its_groups(pattern):
    assert check_regex(pattern).groups == GOOD[pattern]


@pytest.mark.parametrize("pattern", BAD)
def test_a_bad_pattern_is_refused(pattern):
    with pytest.raises(Misfit):
        check_regex(pattern)


FEW_WAYS = [
    r"^.*foo.*bar.*$", r".*foo.*bar.*", r"(\d+)\.(\d+)\.(\d+)\.(\d+)", "a*a*b", ".*.*foo",
    r"[\w.+-]+@[\w-]+\.[\w.-]+", r"\s*(\w+)\s*=\s*(\w+)\s*", "(?i)error|warn(ing)?|timed? ?out",
    r'^(\S+) (\S+) (\S+) \[([^\]]+)\] "(\S+) (\S+) (\S+)" (\d+) (\d+)', "a*b*c*d*e*f*g*h*$",
    r"(\w+\.){1,10}\w+$", "[^,]*,[^,]*,[^,]*,[^,]*,[^,]*$", "a*+a*+a*+a*+b", "(.*?),(.*?),(.*?)",
    r"(https?://)?([\w-]+\.){0,5}[\w-]+(/\S*)?", "^a?a?a?a?a?a?a?a?aaaaaaaa$",
]  # fmt: skip
MANY_WAYS = [
    "a*a*a*b", "^a*a*a*a*b", "a*" * 100 + "b", '".*".*".*"', "a?" * 30 + "a" * 30, "(a*){0,10}b",
    r"^(\w+\s?){0,50}$", "(a|a){0,30}b", "(a|ab|b){0,40}c", "(ab)*(ab)*(ab)*c", "(?:aa|a){0,99}$",
    "a{0,100}a{0,100}a{0,100}a{0,100}b", r"\d*[0-9]*\w*x", "(?i)a*A*a*b", r"[^x]*a+.*\D*y",
    "(.*)(.*)(.*)z", "a*?a*?a*?b", "(a+)?(a+)?(a+)?b", "a+b?a+b?a+c",
    "a*(?!x)a*(?!x)a*b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", FEW_WAYS)
def test_what_people_write_is_taken(pattern):
    check_regex(pattern)


@pytest.mark.parametrize("pattern", MANY_WAYS)
def test_repetitions_that_share_a_text_are_refused(pattern):
    with pytest.raises(Misfit, match="ways to try"):
        check_regex(pattern)


@pytest.mark.parametrize("written", [
    "a", ".", "é", "-", r"\d", r"\W", r"\s", r"\.", r"\n", "[a-c]", "[^a-c]", r"[\d_-]", "[é-ü]",
    r"[^\]]", "[-a]", "[a-]"])
def test_the_set_of_an_item_is_the_characters_it_takes(written):
    taken = {c for c in map(chr, range(128)) if re.fullmatch(written, c, re.ASCII | re.DOTALL)}
    assert {c for c in map(chr, range(128)) if characters(written) >> ord(c) & 1} == taken
    assert not re.fullmatch(written, "é", re.ASCII) or characters(written) >> 128


@given(st.text(alphabet="ab|()[]{}*+?^$.\\d-,0123:=!<>&", max_size=12))
def test_what_is_admitted_is_also_a_pattern_in_python(pattern):
    try:
        groups = check_regex(pattern).groups
    except Misfit:
        return
    portable = re.sub(r"\(\?<([A-Za-z])", r"(?P<\1", pattern)
    assert re.compile(portable).groups == groups


@pytest.mark.parametrize(
    "pattern, escape", [("a", "\\"), ("a%_", "\\"), (r"50\%", "\\"), ("!!", "!")]
)
def test_good_like(pattern, escape):
    check_like(pattern, escape)


@pytest.mark.parametrize(
    "pattern, escape", [("a\\", "\\"), (r"\a", "\\"), ("!", "!"), ("a", ""), ("a", "ab")]
)
def test_bad_like(pattern, escape):
    with pytest.raises(Misfit):
        check_like(pattern, escape)


@pytest.mark.parametrize("text", ["", "x", "$0", "$1", r"\$", r"\\", "${n}", "$12"])
def test_good_replacement(text):
    check_replacement(text, check_regex("(?<n>a)"))


@pytest.mark.parametrize("text", ["$", "$2", "$x", "\\", "${m}", "${", "a$"])
def test_bad_replacement(text):
    with pytest.raises(Misfit):
        check_replacement(text, check_regex("(?<n>a)"))


# --- LIKE without going back ----------------------------------------------------------------------


def like(text: str, pattern: str, escape: str) -> bool:
    """What LIKE means, by its definition: a table of prefixes of the text and of the pattern."""
    items, position = [], 0
    while position < len(pattern):
        char = pattern[position]
        if char == escape:
            items.append((pattern[position + 1], True))
            position += 2
        else:
            items.append((char, False))
            position += 1
    reached = {0}
    for char, escaped in items:
        if char == "%" and not escaped:
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            any_one = char == "_" and not escaped
            reached = {k + 1 for k in reached if k < len(text) and (any_one or text[k] == char)}
    return len(text) in reached


LETTERS = st.sampled_from("aab%_\\.\n*😀é ")
ITEMS = st.one_of(st.sampled_from("aab%%%_.\n*😀é [$"), st.sampled_from(["!%", "!_", "!!"]))


@settings(max_examples=500)
@given(st.text(LETTERS, max_size=12), st.lists(ITEMS, max_size=8).map("".join))
def test_the_expression_for_like_finds_what_like_matches(text, pattern):
    check_like(pattern, "!")
    found = re.search(like_regex(pattern, "!").replace(r"\z", r"\Z"), text) is not None
    assert found == like(text, pattern, "!")


def test_a_pattern_with_very_many_parts_is_refused():
    check_like("%a" * 499, "\\")
    with pytest.raises(Misfit, match="500 times"):
        check_like("%a" * 500, "\\")
