"""The graph of a join: its classes, trees and orders hold for every connected set of equalities."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.join_graph import JoinGraph, classes_of
from penstock.model import BOOLEAN, INT, Call, Column


def column(name: str, stream: int) -> Column:
    return Column(name, INT, stream)


def equal(one: Column, other: Column) -> Call:
    return Call("eq", (one, other), BOOLEAN)


@st.composite
def connected(draw: st.DrawFn) -> tuple[int, list[Call]]:
    """Equalities that connect all streams, in any order, and some more."""
    streams = draw(st.integers(3, 5))
    pairs = [(draw(st.integers(0, stream - 1)), stream) for stream in range(1, streams)]
    pairs += draw(st.lists(st.sampled_from(list(combinations(range(streams), 2))), max_size=4))
    names = st.sampled_from(("k", "m", "n"))
    equalities = [equal(column(draw(names), one), column(draw(names), other))
                  for one, other in pairs]
    return streams, draw(st.permutations(equalities))


def implied(equalities: list[Call], one: Column, other: Column) -> bool:
    """Whether equalities lead from one column to another, step by step."""
    reached = {one}
    for _ in equalities:
        reached |= {side for call in equalities for side in call.args
                    if not reached.isdisjoint(call.args)}
    return other in reached


@given(connected())
def test_classes_are_what_follows_from_the_equalities(given_):
    _, equalities = given_
    found = classes_of(equalities)
    sides = {side for call in equalities for side in call.args}
    assert sorted(map(repr, sides)) == sorted(repr(side) for one in found for side in one)
    for one, other in combinations(sides, 2):
        together = any(one in some and other in some for some in found)
        assert together == implied(equalities, one, other)


@given(connected())
def test_every_stream_has_a_tree_to_all_others(given_):
    streams, equalities = given_
    graph = JoinGraph.of(streams, equalities)
    for root in range(streams):
        parents = graph.parents(root)
        assert sorted(graph.reachable(root)) == list(range(streams))
        for stream in range(streams):
            steps = 0
            while stream != root:
                parent = parents[stream]
                assert parent in graph.neighbours[stream] and steps < streams
                assert len(graph.keys(stream, parent)) == len(graph.keys(parent, stream)) > 0
                stream, steps = parent, steps + 1


@given(connected(), st.randoms(use_true_random=False))
def test_a_valid_order_has_every_stream_once_after_what_leads_to_it(given_, chance):
    streams, equalities = given_
    graph = JoinGraph.of(streams, equalities)
    for root in range(streams):
        order = [stream for stream in range(streams) if stream != root]
        chance.shuffle(order)
        found = graph.valid(root, order)
        assert sorted(found) == sorted(order)
        parents = graph.parents(root)
        for place, stream in enumerate(found):
            assert parents[stream] in (root, *found[:place])
        if all(parents[stream] == root for stream in order):
            assert found == tuple(order), "a stream that the root reaches stays where it is"


@given(connected())
def test_one_equality_for_each_class_is_checked_when_a_stream_is_added(given_):
    streams, equalities = given_
    graph = JoinGraph.of(streams, equalities)
    order = graph.reachable(0)
    checked = [call for place, stream in enumerate(order[1:], 1)
               for call in graph.equalities(stream, order[:place])]
    # Columns of one stream that are equal are a selection, which is made before the join.
    own = [equal(*pair) for one in graph.classes for pair in combinations(one, 2)
           if pair[0].source == pair[1].source]
    for call in equalities:
        assert call.args[0] == call.args[1] or implied([*checked, *own], *call.args)


@pytest.mark.parametrize("edges, shape", [
    ([("k0", "k1"), ("k1", "k2"), ("k2", "k3")], "star"),
    ([("a0", "a1"), ("b0", "b2"), ("c0", "c3")], "star"),
    ([("a0", "a1"), ("b1", "b2"), ("c2", "c3")], "acyclic"),
    ([("a0", "a1"), ("b1", "b2"), ("c2", "c3"), ("d3", "d0")], "cyclic"),
    ([("a0", "a1"), ("b0", "b1"), ("c1", "c2"), ("d1", "d3")], "star"),
])
def test_the_shape_of_a_graph_is_told(edges, shape):
    for some in permutations(edges):
        calls = [equal(*(column(side[0], int(side[1])) for side in edge)) for edge in some]
        assert JoinGraph.of(4, calls).shape == shape
