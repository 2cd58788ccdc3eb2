"""`penstock simulate`, as people call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.policies.operators import POLICIES

ONE = """
[queries.web]
operators = [{ name = "filter", cost = 1, selectivity = 0.2 }, { name = "join", cost = 5 }]
arrivals = { kind = "even", gap = 1, count = 7 }
"""
TWO = ONE + """
[queries.mail]
operators = [{ cost = 0.5 }]
latency = 3
arrivals = { kind = "poisson", gap = 4, count = 10 }
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "one.toml").write_text(ONE)
    (tmp_path / "two.toml").write_text(TWO)
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    assert main(["simulate", *arguments]) == status
    found = capsys.readouterr()
    return found.out, found.err


def line(text: str, first: str) -> list[str]:
    """The words of the first line that begins with a word."""
    return next(words for words in map(str.split, text.splitlines()) if words[:1] == [first])


def test_all_policies_and_the_bound_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "one.toml", "--no-figures")
    assert all(line(out, name) for name in POLICIES)
    assert line(out, "fifo") == ["fifo", "4", "1.82", "2.1", "5", "7.94", "8"]
    assert line(out, "bound") == ["bound", "2.2", "1", "0.95"]
    assert "7 blocks within 6 s bring 14 s of work" in out
    assert "query web" not in out  # a single query is what the table tells already


def test_policies_may_be_chosen_and_have_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "one.toml", "--no-figures", "--policies", "fifo, mixed(gamma=0.5)")
    assert line(out, "mixed(gamma=0.5)")
    assert "greedy" not in out


def test_the_policies_of_the_file_are_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.toml").write_text(f"policies = ['edf']\n{ONE}")
    out, _ = call(capsys, "one.toml", "--no-figures")
    assert line(out, "edf")
    assert "fifo" not in out


def test_several_queries_have_a_table_each(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "two.toml", "--no-figures", "--policies", "fifo")
    assert "query web, latency in s" in out
    assert "query mail, latency in s" in out
    assert "missed" in out


def test_charts_are_printed_with_their_segments(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = call(capsys, "one.toml", "--no-figures", "--charts")
    assert line(out, "web.filter") == ["web.filter", "1", "0.2", "0.8", "1"]
    assert line(out, "web.join") == ["web.join", "2", "0", "0.2", "2"]


def test_figures_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = call(capsys, "two.toml", "--out", "pictures")
    assert {file.name for file in Path("pictures").iterdir()} == {
        "memory.png", "latency.png", "chart-web.png", "chart-mail.png"}
    assert "figures in pictures" in err


def test_without_matplotlib_the_table_still_comes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.view.simulations.available", lambda: False)
    out, err = call(capsys, "one.toml")
    assert line(out, "chain")
    remedy = "pip install 'penstock-spark[figures]'"
    assert err == f"penstock: no figures: they need matplotlib, {remedy}\n"
    assert not Path("penstock-figures").exists()


def numbers(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_json_has_the_averages_the_queries_and_every_run(
    capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = call(capsys, "two.toml", "--json", "--no-figures", "--seeds", "3",
                  "--policies", "fifo,chain")
    found = numbers(out)
    assert found["workload"] == "two"
    assert list(found["policies"]) == ["fifo", "chain", "bound"]
    assert set(found["queries"]) == {"web", "mail"}
    assert len(found["runs"]) == 9
    assert [run["seed"] for run in found["runs"][:3]] == [0, 1, 2]
    peaks = [run["peak"] for run in found["runs"][:3]]
    assert found["policies"]["fifo"]["peak"] == pytest.approx(sum(peaks) / 3)


def test_the_same_call_gives_the_same_numbers_on_any_number_of_processes(
    capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["two.toml", "--json", "--no-figures", "--seeds", "2"]
    found = [call(capsys, *arguments, *more)[0]
             for more in ([], [], ["--processes", "1"], ["--processes", "2"])]
    assert len(set(found)) == 1


@pytest.mark.spark
def test_the_same_call_gives_the_same_numbers_on_spark(
    capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    arguments = ["two.toml", "--json", "--no-figures", "--policies", "fifo,chain"]
    assert call(capsys, *arguments)[0] == call(capsys, *arguments, "--spark")[0]


@pytest.mark.parametrize(("arguments", "message"), [
    (["nowhere.toml"], "penstock: nowhere.toml cannot be read: No such file or directory\n"),
    (["bad.toml"], "penstock: bad.toml: [queries.web] has no key 'operator'; did you mean"
                   " 'operators'?\n"),
    (["one.toml", "--policies", "chian"],
     "penstock: no operator policy 'chian'; did you mean 'chain'?\n"),
    (["one.toml", "--policies", " , "], "penstock: --policies names no policy\n"),
])
def test_a_mistake_is_one_sentence_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.toml").write_text(ONE.replace("operators", "operator"))
    out, err = call(capsys, *arguments, status=2)
    assert (out, err) == ("", message)


@pytest.mark.parametrize("arguments", [
    ["--seeds", "0"], ["--seeds", "many"], ["--processes", "2", "--spark"]])
def test_a_wrong_call_gives_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["simulate", "one.toml", *arguments])
    assert left.value.code == 2
    assert "usage: penstock simulate" in capsys.readouterr().err


def test_simulating_needs_no_spark() -> None:
    code = """
import sys
from penstock.cli import main
main(["simulate", "one.toml", "--no-figures"])
assert not {"pyspark", "py4j", "matplotlib"} & sys.modules.keys(), "more was imported than needed"
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
