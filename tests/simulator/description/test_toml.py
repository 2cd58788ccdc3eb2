"""Workloads described in TOML: what can be said, and how mistakes are answered."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import WorkloadError
from penstock.generators.packets import OnOff
from penstock.policies.operators import POLICIES, Stage
from penstock.policies.operators.model.charts import chart, window_join
from penstock.simulator.description import KEYS, KINDS, load, read
from penstock.simulator.description.feeds import _KINDS
from penstock.simulator.host import Overhead
from penstock.simulator.scenario import Scenario

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))

EVEN = 'arrivals = { kind = "even", gap = 1, count = 7 }\n'
QUERY = "[queries.q]\noperators = [{ cost = 1, selectivity = 0.2 }, { cost = 5 }]\n"


def times(scenario: Scenario, route: str = "q") -> list[float]:
    return scenario.workload.times(route).tolist()


def arriving(table: str, rest: str = "", seed: int | None = None) -> Scenario:
    """One query of one operator of cost 1, with these arrivals."""
    return read(f"{rest}\n[queries.q]\noperators = [{{ cost = 1 }}]\n[arrivals]\n{table}",
                seed=seed)


# --- queries ---------------------------------------------------------------------------------


def test_a_query_and_what_arrives_are_enough() -> None:
    found = read(QUERY + EVEN)
    (route,) = found.workload.network.routes
    assert route.stages == (Stage("q.1", 1.0, 0.2), Stage("q.2", 5.0, 1.0))
    assert (route.latency, route.priority) == (inf, 1.0)
    assert times(found) == [0, 1, 2, 3, 4, 5, 6]
    assert (found.unit, found.window, found.overhead) == ("s", None, Overhead())
    assert found.policies == tuple(POLICIES)
    assert found.queries == {"q": ("q",)}


def test_a_query_has_promises_and_its_operators_names() -> None:
    found = read('[queries.q]\noperators = [{ name = "filter", cost = 1 }]\n'
                 f"latency = 3\npriority = 2.5\n{EVEN}")
    (route,) = found.workload.network.routes
    assert (route.stages[0].operator, route.latency, route.priority) == ("q.filter", 3.0, 2.5)
    assert found.promised("q") == 3.0


def test_a_chart_gives_back_its_own_points() -> None:
    points = [[0, 1], [400, 0.9], [1300, 2.0], [1500, 0.2], [4000, 0]]
    found = read(f"[queries.q]\nchart = {points}\n{EVEN}")
    drawn = chart(found.workload.network.routes[0])
    assert drawn.times == pytest.approx([t for t, _ in points])
    assert drawn.sizes == pytest.approx([s for _, s in points])


def test_the_times_of_a_chart_are_those_of_a_whole_block() -> None:
    found = read('[queries.q]\nchart = [[0, 1], [1, 0.5], [3, 0]]\n'
                 'arrivals = { kind = "even", gap = 1, count = 40, rows = 5, gather = 20 }')
    (route,) = found.workload.network.routes
    assert found.workload.entering("q").tolist() == [100.0, 100.0]
    assert route.cost * 100 == pytest.approx(3.0)


def test_queries_share_the_operators_they_name() -> None:
    found = read(f"""
        [operators.merge]
        cost = 2
        [queries.a]
        operators = [{{ cost = 1 }}, "merge"]
        {EVEN}
        [queries.b]
        operators = ["merge", {{ cost = 3 }}]
        {EVEN}""")
    assert found.workload.network.operators == ("a.1", "merge", "b.2")


def test_what_is_believed_may_differ_from_what_is_true() -> None:
    found = read("[queries.q]\noperators = [{ cost = 1, believed_cost = 4, selectivity = 0.5 }]\n"
                 + EVEN)
    network = found.workload.network
    assert network.routes[0].stages == (Stage("q.1", 1.0, 0.5),)
    assert network.told()[0].stages == (Stage("q.1", 4.0, 0.5),)


JOIN = """
[queries.j]
operators = [{ name = "rare", cost = 0.1, selectivity = 0.05 }]
latency = 9
[queries.j.join.left]
operators = [{ cost = 0.3, selectivity = 0.5 }]
cost = 1
matches = 2
LEFT
[queries.j.join.right]
cost = 5
matches = 4
RIGHT
[arrivals]
kind = "even"
gap = 1
count = 100
"""


def test_a_join_is_two_routes_that_meet_with_true_figures_per_side() -> None:
    found = read(JOIN.replace("LEFT", "rate = 3").replace("RIGHT", "rate = 1"))
    network = found.workload.network
    left, right = network.routes
    assert [stage.operator for stage in left.stages] == ["j.left.1", "j.join.left", "j.rare"]
    assert [stage.operator for stage in right.stages] == ["j.join.right", "j.rare"]
    assert network.joins == (("j.join.left", "j.join.right"),)
    assert left.stages[1] == Stage("j.join.left", 1.0, 4.0)  # it meets the rows on the right
    assert right.stages[0] == Stage("j.join.right", 5.0, 2.0)
    assert {route.latency for route in network.routes} == {9.0}
    assert found.queries == {"j": ("j.left", "j.right")}


def test_of_a_join_a_policy_is_told_the_mean_of_both_sides() -> None:
    found = read(JOIN.replace("LEFT", "rate = 3").replace("RIGHT", "rate = 1"))
    cost, kept = window_join((3.0, 1.0), (2.0, 4.0), (1.0, 5.0))
    left, right = found.workload.network.told()
    assert left.stages[1] == Stage("j.join.left", cost, kept)
    assert right.stages[0] == Stage("j.join.right", cost, kept)


def test_rates_of_a_join_follow_from_what_reaches_it() -> None:
    found = read(JOIN.replace("LEFT", "").replace("RIGHT", ""))
    told = found.workload.network.told()[0].stages[1]
    # 100 rows on either side, of which the left operator keeps half
    assert (told.cost, told.selectivity) == window_join((50.0, 100.0), (2.0, 4.0), (1.0, 5.0))


def test_sides_of_a_join_may_have_arrivals_of_their_own() -> None:
    found = read(JOIN.replace("LEFT", EVEN).replace("RIGHT", ""))
    assert [len(times(found, f"j.{side}")) for side in ("left", "right")] == [7, 100]


TREE = """
[queries.t.tree]
depth = 2
fan_out = 3
cost = { low = 1, high = 10, skew = 0.5 }
selectivity = 0.9
expensive = { depth = 1, count = 2, cost = 100 }
[arrivals]
kind = "poisson"
utilisation = 0.5
count = 20000
"""


def test_a_tree_has_a_route_for_every_leaf_and_expensive_operators_on_the_left() -> None:
    network = read(TREE).workload.network
    assert len(network.routes) == 9
    assert [stage.operator for stage in network.routes[8].stages] == ["t.d2.8", "t.d1.2", "t.d0.0"]
    costs = {s.operator: s.cost for route in network.routes for s in route.stages}
    assert {name for name, cost in costs.items() if cost == 100} == {"t.d1.0", "t.d1.1"}
    assert all(1 <= cost <= 10 for cost in costs.values() if cost != 100)
    assert {s.selectivity for route in network.routes for s in route.stages} == {0.9}


def test_at_a_utilisation_of_1_the_mean_gap_is_the_time_to_execute_the_query_once() -> None:
    found = read(TREE)
    once = sum(route.cost for route in found.workload.network.routes)
    gaps = np.concatenate([np.diff(times(found, f"t.s{leaf}")) for leaf in range(9)])
    assert gaps.mean() == pytest.approx(once / 0.5, rel=0.02)


def test_common_arrivals_share_their_load_among_all_who_have_none_of_their_own() -> None:
    found = read(f"""
        [arrivals]
        kind = "poisson"
        utilisation = 1.0
        count = 20000
        speed = 4
        [queries.a]
        operators = [{{ cost = 1 }}]
        [queries.b]
        operators = [{{ cost = 3 }}]
        [queries.c]
        operators = [{{ cost = 50 }}]
        {EVEN}""")
    assert np.diff(times(found, "a")).mean() == pytest.approx(4.0, rel=0.03)
    assert np.diff(times(found, "b")).mean() == pytest.approx(4.0, rel=0.03)


# --- arrivals --------------------------------------------------------------------------------


def test_every_kind_of_arrivals_can_be_made() -> None:
    assert tuple(_KINDS) == KINDS


def test_bursts_repeat() -> None:
    found = arriving('kind = "bursts"\nrate = 2\non = 1\noff = 9\nrepeat = 2\nstart = 5')
    assert times(found) == [5.0, 5.5, 15.0, 15.5]


def test_onoff_is_the_source_of_the_same_name() -> None:
    found = arriving('kind = "onoff"\nrate = 50\nburst = 2\nlength = 0.5\nseconds = 60\nseed = 7')
    assert times(found) == OnOff(50, 2, 0.5, seed=7).arrivals(0, 60).tolist()
    found = arriving('kind = "onoff"\nrate = 50\nlength = 0.5\ncount = 300\nspeed = 0.001')
    assert len(times(found)) == 300


def test_explicit_times_are_taken_as_they_are() -> None:
    assert times(arriving('kind = "times"\ntimes = [0, 0.5, 0.5, 9]')) == [0, 0.5, 0.5, 9]


def test_a_trace_lies_beside_its_description(tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text("at\n10\n12\n13\n17\n")
    file = tmp_path / "workload.toml"
    file.write_text('[queries.q]\noperators = [{ cost = 1 }]\narrivals = '
                    '{ kind = "trace", file = "seen.csv", column = "at", speed = 2, count = 3 }')
    found = load(file)
    assert times(found) == [0.0, 1.0, 1.5]
    assert found.workload.name == "workload"


def test_arrivals_gather_into_blocks_of_so_many_rows() -> None:
    found = arriving('kind = "even"\ngap = 1\ncount = 10\nrows = 2\ngather = 4')
    assert times(found) == [3.0, 7.0]
    assert found.workload.entering("q").tolist() == [8.0, 8.0]


# --- chance ----------------------------------------------------------------------------------


POISSON = 'kind = "poisson"\ngap = 1\ncount = 50'


def test_the_same_file_and_seed_give_the_same_workload() -> None:
    one, same, other = (arriving(POISSON, seed=seed) for seed in (3, 3, 4))
    assert times(one) == times(same) != times(other)
    assert times(arriving(POISSON, "seed = 3")) == times(one)


def test_another_seed_draws_other_trees() -> None:
    one, same, other = (read(TREE, seed=seed).workload.network for seed in (1, 1, 2))
    assert one == same != other


def test_routes_of_one_table_have_streams_of_their_own() -> None:
    found = read(TREE)
    assert times(found, "t.s0") != times(found, "t.s1")


def test_arrivals_with_a_seed_of_their_own_stay_while_the_rest_changes() -> None:
    one, other = (arriving(f"{POISSON}\nseed = 9", seed=seed) for seed in (1, 2))
    assert times(one) == times(other)
    assert one.workload.seed != other.workload.seed


# --- the rest of a file ----------------------------------------------------------------------


def test_the_whole_file_has_settings() -> None:
    found = read("""
        name = "mine"
        unit = "ms"
        model = "tuples"
        bytes = 24
        seed = 5
        window = 60
        overhead = 0.5
        policies = ["fifo", "mixed(gamma=0.1)"]
        """ + QUERY + EVEN)
    workload = found.workload
    assert (workload.name, workload.model, workload.bytes, workload.seed) == (
        "mine", "tuples", 24.0, 5)
    assert (found.unit, found.window, found.overhead) == ("ms", 60.0, Overhead(0.5, 0.5, 0.5))
    assert found.policies == ("fifo", "mixed(gamma=0.1)")


def test_overhead_may_differ_by_kind() -> None:
    found = read(QUERY + EVEN + "[overhead]\npreempt = 2")
    assert found.overhead == Overhead(0.0, 2.0, 0.0)


# --- mistakes --------------------------------------------------------------------------------

WRONG = {
    "polices = []": "workload has no key 'polices'; did you mean 'policies'?",
    "[queries.q]\ncost = 1": "[queries.q] has no key 'cost'; there is operators, chart, join",
    "[queries]": "workload has no query",
    '[queries."a.b"]\ncost = 1': "cannot have 'a.b' in queries",
    "queries = 3": "queries must be a table of tables, not 3",
    "[queries]\nq = 3": "[queries.q] must be a table, not 3",
    "[queries.q]\noperators = [{ cost = 1 }]": "[queries.q] has no arrivals, and the file has no",
    f"[queries.q]\n{EVEN}": "[queries.q] needs operators, chart, join or tree",
    f"[queries.q]\noperators = []\n{EVEN}": "operators must be a list with something in it",
    f"[queries.q]\noperators = [1]\n{EVEN}": "[queries.q.operators.1] must be a table, not 1",
    f"[queries.q]\noperators = [{{ cost = -1 }}]\n{EVEN}":
        "[queries.q.operators.1] cost must be at least 0, not -1",
    f"[queries.q]\noperators = [{{ cost = 1 }}, {{ cost = '5' }}]\n{EVEN}":
        "[queries.q.operators.2] cost must be a number, not '5'",
    f"[queries.q]\noperators = [{{ cost = true }}]\n{EVEN}": "cost must be a number, not true",
    f"[queries.q]\noperators = [{{ cost = inf }}]\n{EVEN}": "cost must be a number, not inf",
    f"[queries.q]\noperators = [{{ selectivity = 1 }}]\n{EVEN}":
        "[queries.q.operators.1] needs cost",
    f"[queries.q]\noperators = ['merge']\n{EVEN}": "there is no [operators.merge]",
    f"[operators.m]\ncost = 1\n[queries.q]\noperators = ['m', 'm']\n{EVEN}":
        "[queries.q] has the operator 'm' twice on one path",
    f"[operators.m]\nname = 'm'\ncost = 1\n{QUERY}{EVEN}": "has its name from its table already",
    f"{QUERY}latency = 0\n{EVEN}": "[queries.q] latency must be above 0, not 0",
    f"{QUERY}chart = [[0, 1], [1, 0]]\n{EVEN}": "takes only one of operators and chart",
    f"[queries.q]\nchart = [[0, 1], [1, 0.5]]\n{EVEN}": "and 0 at its last point",
    f"[queries.q]\nchart = [[1, 1], [2, 0]]\n{EVEN}": "chart must begin with [0, 1]",
    f"[queries.q]\nchart = [[0, 1], [2, 0.5], [1, 0]]\n{EVEN}": "chart must have ascending times",
    f"[queries.q]\nchart = [[0, 1], [2, 0], [3, 0]]\n{EVEN}": "chart must have sizes above 0",
    f"[queries.q]\nchart = [[0, 1], 2]\n{EVEN}": "chart must be points [time, size], not 2",
    f"{QUERY}arrivals = {{ kind = 'poison', gap = 1 }}":
        "[queries.q.arrivals] kind cannot be 'poison'; did you mean 'poisson'?",
    f"{QUERY}arrivals = {{ gap = 1 }}": "[queries.q.arrivals] needs kind",
    f"{QUERY}arrivals = 3": "[queries.q.arrivals] must be a table, not 3",
    f"{QUERY}arrivals = {{ kind = 'even', gap = 1 }}": "[queries.q.arrivals] needs count",
    f"{QUERY}arrivals = {{ kind = 'even', gap = 1, count = 2.5 }}": "count must be a whole number",
    f"{QUERY}arrivals = {{ kind = 'even', gap = 1, count = 100_000_000 }}":
        "count must be at most 10,000,000",
    f"{QUERY}arrivals = {{ kind = 'even', gap = 0, count = 1 }}": "gap must be above 0, not 0",
    f"{QUERY}arrivals = {{ kind = 'even', gap = 1, count = 9, gather = 10 }}":
        "gather = 10 is more than all that arrives",
    f"{QUERY}arrivals = {{ kind = 'even', gap = 1, count = 9, rate = 10 }}":
        "[queries.q.arrivals] has no key 'rate'",
    f"{QUERY}arrivals = {{ kind = 'poisson', count = 9 }}": "needs gap or utilisation",
    f"{QUERY}arrivals = {{ kind = 'poisson', count = 9, gap = 1, utilisation = 1 }}":
        "takes only one of gap and utilisation",
    "[queries.q]\noperators = [{ cost = 0 }]\n"
    "arrivals = { kind = 'poisson', count = 9, utilisation = 1 }": "operators that cost something",
    f"{QUERY}arrivals = {{ kind = 'bursts', rate = 1, on = 0.1 }}": "gives 0.1 arrivals",
    f"{QUERY}arrivals = {{ kind = 'onoff', rate = 1e9, count = 9 }}": "rate must lie between",
    f"{QUERY}arrivals = {{ kind = 'onoff', rate = 1000, seconds = 1e6 }}":
        "gives more than 10,000,000 arrivals",
    f"{QUERY}arrivals = {{ kind = 'times', times = [2, 1] }}": "and ascend",
    f"{QUERY}arrivals = {{ kind = 'times', times = ['soon'] }}": "times must be numbers",
    f"{QUERY}arrivals = {{ kind = 'trace', file = 'nowhere.csv' }}":
        "[queries.q.arrivals] cannot read arrival times from nowhere.csv",
    f"model = 'fluid'\n{QUERY}{EVEN}": "model cannot be 'fluid'; there is divisible, tuples",
    "model = 'tuples'\n" + QUERY + EVEN.replace("gap", "rows = 0.5, gap"): "rows must be whole",
    f"policies = ['chian']\n{QUERY}{EVEN}": "policies: no operator policy 'chian'; did you mean",
    f"policies = []\n{QUERY}{EVEN}": "policies must be a list with something in it",
    f"unit = ''\n{QUERY}{EVEN}": "unit must be text, not ''",
    f"seed = -1\n{QUERY}{EVEN}": "seed must be at least 0, not -1",
    f"overhead = -1\n{QUERY}{EVEN}": "overhead must be at least 0",
    f"{QUERY}{EVEN}[overhead]\nswitch = 1": "[overhead] has no key 'switch'; there is invoke",
    JOIN.replace("LEFT", "rate = 1").replace("RIGHT", ""): "[queries.j.join] needs a rate for both",
    JOIN.replace("LEFT", "").replace("RIGHT", "rates = 2"): "did you mean 'rate'?",
    JOIN.replace("LEFT", "").replace("RIGHT", "").replace("matches = 4", ""):
        "[queries.j.join.right] needs matches",
    JOIN.replace("LEFT", "").replace("RIGHT", "").replace("latency", "chart = [[0, 1]]\nlatency"):
        "takes only one of join and chart",
    TREE.replace("fan_out = 3", "fan_out = 300"): "[queries.t.tree] has more than 10,000 operators",
    TREE.replace("count = 2", "count = 4"): "[queries.t.tree.expensive] count must be at most 3",
    TREE.replace("high = 10", "high = 0.5"):
        "[queries.t.tree.cost] high must be at least 1, not 0.5",
    TREE.replace("selectivity = 0.9", "selectivity = 1e7"): "selectivity must be at most 1,000,000",
    TREE.replace("cost = { low = 1, high = 10, skew = 0.5 }", ""): "[queries.t.tree] needs cost",
    f"{QUERY}latency = 1e15\n{EVEN}": "latency must be at most 1,000,000,000,000",
    TREE.replace("selectivity = 0.9", "selectivity = 'x'"): "selectivity must be a number",
    "a = = 3": "workload is not TOML: Invalid value (at line 1",
}


@pytest.mark.parametrize("text", WRONG, ids=[message[:40] for message in WRONG.values()])
def test_a_mistake_is_answered_with_its_place_in_one_sentence(text: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        read(text)
    message = str(refused.value)
    assert WRONG[text] in message
    assert message.startswith("workload")
    assert "\n" not in message


ONE_OF_EACH = """
window = 5
overhead = { invoke = 0.1 }
policies = ["fifo", "mixed(gamma=0.1)"]
[operators.merge]
cost = 2
[queries.a]
operators = [{ name = "x", cost = 1, selectivity = 0.2, believed_cost = 2 }, "merge"]
latency = 3
arrivals = { kind = "onoff", rate = 20, count = 30, speed = 0.5 }
[queries.b]
chart = [[0, 1], [1, 0.5], [2, 0]]
priority = 2
arrivals = { kind = "times", times = [0, 1, 2] }
[queries.c.join]
left = { cost = 1, matches = 2, rate = 1, operators = [{ cost = 1 }] }
right = { cost = 1, matches = 2, rate = 1 }
[arrivals]
kind = "bursts"
rate = 2
on = 3
off = 4
gather = 2
"""
JUNK = ("-1", "0", "0.5", "3", "1e300", '""', '"x"', '"merge"', "true", "[]", "[1]", "[[0, 1]]",
        "{}", '{"low": 2}', '{"kind": 1}')


def inline(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in a tree that can be replaced: what holds it, and under which key."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    return [place for key in keys for place in [(value, key), *places(value[key])]]


@settings(max_examples=400)
@given(st.data())
def test_a_description_is_read_or_refused_with_a_sentence(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([ONE_OF_EACH, TREE.replace("20000", "20")]))
    raw = tomllib.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(raw)))
        holder[key] = json.loads(data.draw(st.sampled_from(JUNK)))
    broken = "\n".join(f"{json.dumps(key)} = {inline(value)}" for key, value in raw.items())
    with contextlib.suppress(WorkloadError):
        read(broken)


def test_what_the_fuzzing_begins_with_can_be_read() -> None:
    assert len(read(ONE_OF_EACH).workload.network.routes) == 4


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"nowhere\.toml cannot be read: No such file"):
        load(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(WorkloadError, match="is not text in UTF-8"):
        load(tmp_path / "binary.toml")


# --- documents and examples ------------------------------------------------------------------


def documented() -> dict[str, tuple[str, ...]]:
    """The keys that the tables of the page name, under the marks that stand before them."""
    page = (ROOT / "docs" / "reference" / "simulator.md").read_text(encoding="utf-8")
    found = {}
    for mark, table in re.findall(r"<!-- keys: (.*?) -->\n(.*?)\n\n", page, re.S):
        found[mark] = tuple(key for line in table.splitlines()[2:]
                            for key in re.findall(r"`([a-z_]+)`", line.split(" | ")[0]))
    return found


def test_the_page_tells_every_key_and_no_other() -> None:
    assert documented() == KEYS


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_can_be_read(file: Path) -> None:
    scenario = load(file)
    assert all(len(scenario.workload.times(route.id)) for route in scenario.workload.network.routes)


def test_the_examples_say_everything_that_can_be_said_of_queries() -> None:
    text = "".join(file.read_text() for file in EXAMPLES)
    for key in (*KEYS["a query"], *KEYS["a join"], "depth", "fan_out", "utilisation", "onoff"):
        assert re.search(rf"\b{key}\b", text), key
