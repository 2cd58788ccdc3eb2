"""The demonstration binds, lasts as long as it is asked to, and ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import demo
from penstock.demo import machine
from penstock.language import bind
from penstock.planning import plan

PACKAGE = Path(demo.__file__).parent


def test_the_application_that_ships_is_twenty_two_varied_queries() -> None:
    text = (PACKAGE / "packets.sql").read_text()
    application = bind(text, folder=PACKAGE)
    assert len(application.queries) == 22
    join, multiway = plan(application.queries.values()).joins
    assert multiway.streams == ("temperature", "humidity", "temperature")
    assert [member.query for member in join.members] == ["muggy_2s", "climate_10s", "climate_30s"]
    shared = {name for name, query in application.queries.items() if query.branches[0].grouping}
    assert len(shared) == 6
    assert {query.sink.kind for query in application.queries.values()} == {
        "memory", "noop", "parquet"}
    assert any(len(query.branches) == 2 for query in application.queries.values())


def test_the_application_that_ships_lasts_half_a_minute() -> None:
    text = (PACKAGE / "packets.sql").read_text()
    assert demo.sized(text, 30, machine.FULL) == text


@given(st.integers(10, 200_000), st.integers(1, 60))
def test_streams_keep_their_part_of_any_rate(rate: int, seconds: int) -> None:
    text = (PACKAGE / "packets.sql").read_text()
    made = bind(demo.sized(text, seconds, rate), folder=PACKAGE).streams
    packets, edge = (dict(made[name].options) for name in ("packets", "edge"))
    assert float(packets["rate"]) + float(edge["rate"]) == pytest.approx(rate, abs=1)
    assert float(packets["rate"]) == pytest.approx(4 * float(edge["rate"]), abs=3)
    assert int(packets["rows"]) >= 0
    slow = [dict(made[name].options) for name in ("temperature", "humidity")]
    assert [float(options["rate"]) for options in slow] == [20, 20], "whatever the machine"
    assert [float(options["rows"]) for options in slow] == pytest.approx([20 * seconds] * 2,
                                                                         rel=0.3, abs=40)


def test_a_slower_machine_gets_fewer_packets_and_none_gets_too_few() -> None:
    speeds = [0.0, 1e6, 5e6, 10e6, 20e6, 1e9]
    rates = [machine.rate_at(speed) for speed in speeds]
    assert rates == sorted(rates)
    assert rates[0] == machine.FEWEST
    assert rates[-1] == machine.FULL


def test_the_machine_is_measured_by_the_clock_that_is_given() -> None:
    time = iter(range(0, 1_000_000, 1_000))  # every look at the clock is a thousand seconds later
    assert machine.suitable_rate(lambda: float(next(time))) == machine.FEWEST
    time = iter(n * 1e-4 for n in range(100_000))
    assert machine.suitable_rate(lambda: next(time)) == machine.FULL


def test_preparing_copies_the_application_and_clears_earlier_answers(tmp_path: Path) -> None:
    folder = tmp_path / "penstock-demo"
    file = demo.prepare(folder, 5, rate=100, fresh=True)
    bind(file.read_text(), folder=folder)
    for name in ("answers", "checkpoint", "mine"):
        (folder / name).mkdir()
    demo.prepare(folder, 5, rate=100, fresh=False)
    assert (folder / "answers").exists()
    demo.prepare(folder, 5, rate=100, fresh=True)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["mine"]
