"""What was measured goes into a page, and its JSON stays beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.record import main, measured, record

PAGE = """# Benchmarks

<!-- measured: one -->
Recorded in commit 0000000, 2020-01-01. Old.
<!-- end of measured -->

What there is to say.

<!-- measured: two -->
<!-- end of measured -->
"""


def found(**other: Any) -> dict[str, Any]:
    return {
        "name": "one", "date": "2026-11-18", "commit": "abc1234", "changed": False, "quick": False,
        "seconds": 300, "columns": ["policy", "peak"],
        "machine": {"cores": 2, "memory_gb": 23.0, "system": "Linux x86_64", "load": 0.3,
                    "python": "3.11.7", "pyspark": "4.3.0"},
        "rows": [{"policy": "fifo", "peak": 9.25, "unseen": 1}],
        "checks": [{"id": "x", "text": "low", "target": "<= 1", "measured": "2", "holds": False}],
    } | other


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "benchmarks.md"
    path.write_text(PAGE)
    return path


def test_the_page_has_the_figures_with_their_origin_and_keeps_the_rest(page: Path) -> None:
    file = page.parent / "one.json"
    file.write_text(json.dumps(found()))
    assert main([str(page), str(file)]) == 0
    text = page.read_text()
    assert text.startswith("# Benchmarks\n\n<!-- measured: one -->\nRecorded in commit abc1234, "
                           "2026-11-18, on 2 cores")
    assert "| policy | peak |\n|---|---:|\n| fifo | 9.25 |\n" in text
    assert "| low | <= 1 | 2 | **no** |" in text
    assert "Old." not in text and "unseen" not in text
    assert "What there is to say.\n\n<!-- measured: two -->\n<!-- end of measured -->\n" in text
    assert json.loads((page.parent / "data" / "one.json").read_text()) == found()


def test_figures_of_code_that_nobody_has_are_refused(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = page.parent / "one.json"
    file.write_text(json.dumps(found(changed=True)))
    assert main([str(page), str(file)]) == 2
    assert "measured with code that no commit has" in capsys.readouterr().err
    assert page.read_text() == PAGE


def test_a_page_without_a_place_for_them_is_left_alone(page: Path) -> None:
    file = page.parent / "three.json"
    file.write_text(json.dumps(found(name="three")))
    with pytest.raises(ValueError, match="no place for it"):
        record(page, file)
    assert page.read_text() == PAGE


def test_a_part_of_a_program_gets_a_place_of_its_own_once(page: Path) -> None:
    page.write_text(PAGE + "\n<!-- tables of three -->\n")
    file = page.parent / "three-a.json"
    for commit in ("abc1234", "def5678"):
        file.write_text(json.dumps(found(name="three-a", commit=commit)))
        record(page, file)
    text = page.read_text()
    assert text.count("### three-a\n\n<!-- measured: three-a -->\nRecorded in commit def5678") == 1
    assert text.startswith(PAGE) and text.endswith("<!-- tables of three -->\n")
    assert "abc1234" not in text


def test_prose_of_the_origin_is_not_wider_than_a_page() -> None:
    assert all(len(line) <= 100 for line in measured(found()).split("\n\n")[0].splitlines())
