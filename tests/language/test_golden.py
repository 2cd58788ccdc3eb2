"""Text and what it means, pair by pair. ``UPDATE_GOLDEN=1 pytest`` rewrites the answers."""

from __future__ import annotations

import os

import pytest

from tests.language import kit

FILES = sorted(p for p in kit.GOLDEN.glob("*.sql") if p.name != "declarations.sql")
CASES = [(path, case) for path in FILES for case in kit.cases(path)]


@pytest.fixture(scope="module")
def application():
    return kit.declared()


@pytest.mark.parametrize(
    "path, case", CASES, ids=[f"{path.stem}: {case.title}" for path, case in CASES]
)
def test_text_means_what_the_golden_file_says(path, case, application):
    if not os.environ.get("UPDATE_GOLDEN"):
        assert kit.outcome(case.text, application) == case.expected


@pytest.mark.skipif(not os.environ.get("UPDATE_GOLDEN"), reason="only when asked for")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_golden_file_is_written_anew(path, application):
    cases = list(kit.cases(path))
    path.write_text("".join(kit.written(c, kit.outcome(c.text, application)) for c in cases))


def test_titles_are_unique():
    titles = [(path.stem, case.title) for path, case in CASES]
    assert len(titles) == len(set(titles))
