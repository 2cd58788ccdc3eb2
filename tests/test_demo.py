"""The demonstration binds, lasts as long as it is asked to, and ends."""

from __future__ import annotations

from pathlib import Path

from penstock import demo
from penstock.language import bind

PACKAGE = Path(demo.__file__).parent


def test_the_application_that_ships_is_eighteen_varied_queries() -> None:
    text = (PACKAGE / "packets.sql").read_text()
    application = bind(text, folder=PACKAGE)
    assert len(application.queries) == 18
    shared = {name for name, query in application.queries.items() if query.branches[0].grouping}
    assert len(shared) == 6
    assert {query.sink.kind for query in application.queries.values()} == {
        "memory", "noop", "parquet"}
    assert any(len(query.branches) == 2 for query in application.queries.values())


def test_the_application_that_ships_lasts_half_a_minute() -> None:
    text = (PACKAGE / "packets.sql").read_text()
    assert demo.lasting(text, 30) == text


def test_preparing_copies_the_application_and_clears_earlier_answers(tmp_path: Path) -> None:
    folder = tmp_path / "penstock-demo"
    file = demo.prepare(folder, 5, fresh=True)
    bind(file.read_text(), folder=folder)
    for name in ("answers", "checkpoint", "mine"):
        (folder / name).mkdir()
    demo.prepare(folder, 5, fresh=False)
    assert (folder / "answers").exists()
    demo.prepare(folder, 5, fresh=True)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["mine"]
