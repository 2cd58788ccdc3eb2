"""The one form of benchmarks and experiments, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.findings import Report
from harness.origin import Origin
from harness.program import Option, Progress, Selective, main, several
from penstock.report.figures import Drawing, draw


def one(quick: bool, out: Path, progress: Progress) -> Report:
    report = Report("one", rows=[{"figure": "a", "policy": "fifo", "peak_kb": 17.1},
                                 {"figure": "none", "policy": "chain", "peak_kb": 2.5}])
    report.check("low", "Chain's <peak> is low", "2x", "3x", True)
    report.check("late", "Chain is late", "2x", "1x", False)
    report.title = "Memory & latency"
    file = draw(out / "a.png", Drawing("Fig. 1: peaks", "x", "y"), {"fifo": ([0, 1], [1, 2])})
    report.figure("a", "Fig. 1: peaks", file, "What is shown.", ["low"])
    return report


def two(quick: bool, out: Path, progress: Progress) -> Report:
    return Report("two", rows=[{"quick": quick}])


def broken(quick: bool, out: Path, progress: Progress) -> Report:
    raise RuntimeError("no luck")


def test_a_named_program_runs_alone(tmp_path: Path) -> None:
    assert main("experiments", {"one": one, "two": two}, ["two", "--out", str(tmp_path)]) == 0
    assert [file.name for file in tmp_path.iterdir()] == ["two.json"]
    assert json.loads((tmp_path / "two.json").read_text())["rows"] == [{"quick": False}]


def test_without_a_name_all_programs_run(tmp_path: Path) -> None:
    assert main("experiments", {"one": one, "two": two}, ["--quick", "--out", str(tmp_path)]) == 0
    assert {"one.json", "one.html", "two.json"} <= {file.name for file in tmp_path.iterdir()}
    assert json.loads((tmp_path / "two.json").read_text())["rows"] == [{"quick": True}]


def test_a_program_that_breaks_does_not_keep_the_next_from_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("experiments", {"broken": broken, "two": two}, ["--out", str(tmp_path)]) == 1
    assert "no luck" in capsys.readouterr().err
    assert (tmp_path / "two.json").exists()


def test_a_check_that_does_not_hold_is_no_failure_and_is_kept(tmp_path: Path) -> None:
    assert main("experiments", {"one": one}, ["one", "--out", str(tmp_path)]) == 0
    checks = json.loads((tmp_path / "one.json").read_text())["checks"]
    assert [(check["id"], check["holds"]) for check in checks] == [("low", True), ("late", False)]


def test_the_page_shows_claims_beside_their_figures_and_needs_no_other_file(tmp_path: Path) -> None:
    main("experiments", {"one": one}, ["one", "--out", str(tmp_path)])
    text = (tmp_path / "one.html").read_text()
    assert "<h1>Memory &amp; latency</h1>" in text
    assert "Claims: 1 of 2 hold" in text
    assert "src='data:image/png;base64," in text
    top, section = text.split("<h2 id='a'>")
    assert "Chain is late: <b>does not hold</b>" in top
    assert "Chain&#x27;s &lt;peak&gt; is low: <b>holds</b> (<a href='#a'>Fig. 1</a>)" in top
    assert "low" in section and "Chain is late" not in section


def test_rows_stand_under_their_figure_and_the_rest_at_the_end(tmp_path: Path) -> None:
    main("experiments", {"one": one}, ["one", "--out", str(tmp_path)])
    section, rest = (tmp_path / "one.html").read_text().split("<h2>Numbers</h2>")
    assert "numbers (1)" in section and "17.1" in section and "17.1" not in rest
    assert "2.5" in rest and "<th>peak kb" in rest


def parts(quick: bool, out: Path, progress: Progress, only: tuple[str, ...] = ()) -> list[Report]:
    return [Report(f"parts-{name}", rows=[{"n": 1}]) for name in only or ("a", "b")]


PARTS = Selective(parts, (Option("only", "which parts", several(("a", "b"))),))


def test_every_report_of_a_program_is_written_and_parts_can_be_chosen(tmp_path: Path) -> None:
    assert main("experiments", {"parts": PARTS}, ["parts", "--out", str(tmp_path)]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"parts-a.json", "parts-b.json"}
    some = ["parts", "--only", "b", "--out", str(tmp_path / "some")]
    assert main("experiments", {"parts": PARTS}, some) == 0
    assert [file.name for file in (tmp_path / "some").iterdir()] == ["parts-b.json"]


@pytest.mark.parametrize(("given", "told"), [
    (["parts", "--only", "c"], "--only: there is no 'c'; there are a, b"),
    (["two", "--only", "a"], "two has no option --only"),
])
def test_what_a_program_cannot_be_told_is_refused(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main("experiments", {"parts": PARTS, "two": two}, given)
    assert told in capsys.readouterr().err


def test_what_is_written_names_its_day_its_commit_and_its_machine(tmp_path: Path) -> None:
    assert main("experiments", {"two": two}, ["--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "two.json").read_text())
    origin = Origin.now()
    assert (found["date"], found["commit"], found["changed"]) == (
        origin.date, origin.commit, origin.changed)
    assert found["machine"]["cores"] and found["quick"] is True
