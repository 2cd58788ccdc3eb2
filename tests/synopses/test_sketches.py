"""Sketches keep the error they state in at least 95 of 100 trials; a trial is a key of its own."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from penstock.model import BIGINT, DOUBLE, INT, Aggregate, Column, Field, Type
from penstock.synopses import Family, Question, Synopsis, gathered
from penstock.synopses import sketches as sk
from tests.synopses.reference import partials

X, KEY = Column("x", INT), Column("key", INT)
PANES, TRIALS = 3, 100
LISTED = Type("ARRAY", element=Type("STRUCT", fields=(Field("value", INT), Field("count", BIGINT))))


def grouped(
    ids: dict[str, np.ndarray], values: np.ndarray, merge: np.ufunc
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The groups of some columns, and the values of each merged."""
    order = np.lexsort(list(ids.values()))
    sorted_ = {name: column[order] for name, column in ids.items()}
    edges = np.any([c[1:] != c[:-1] for c in sorted_.values()], axis=0)
    starts = np.flatnonzero(np.concatenate([[True], edges]))
    return ({name: c[starts] for name, c in sorted_.items()}, merge.reduceat(values[order], starts))


def table(ids: dict[str, np.ndarray], values: np.ndarray, merge: np.ufunc) -> pa.Table:
    found, merged = grouped(ids, values, merge)
    types = {"pane": pa.int64(), "k0": pa.int32(), "cell": pa.int32()}
    columns = {name: pa.array(c).cast(types[name]) for name, c in found.items()}
    return pa.table({**columns, "m0": merged})


def estimates(aggregate: Aggregate, tables: dict[Family, pa.Table]) -> list[object]:
    synopsis = Synopsis([INT], gathered([aggregate]), PANES)
    synopsis.add(tables)
    (answers,) = synopsis.scan(PANES, [Question(PANES, (aggregate,))])
    answers = answers.sort_by("key0")
    assert answers["key0"].to_pylist() == list(range(TRIALS))
    return answers["agg0"].to_pylist()  # type: ignore[no-any-return]


def within(error: float, found: list[float], truth: float, slack: float = 0.0) -> float:
    """The share of trials that keep the error, or are off by no more than the slack."""
    return float(np.mean(np.abs(np.array(found) - truth) <= max(slack, error * truth)))


@pytest.mark.parametrize("distinct", [1, 30, 1_500, 2_500, 12_000])
@pytest.mark.parametrize(("method", "error", "slack"), [("hll", 0.0325, 1), ("fm", 0.06, 2)])
def test_distinct_counts_keep_their_error(
    method: str, error: float, slack: int, distinct: int
) -> None:
    rng = np.random.default_rng(distinct)
    aggregate = Aggregate("APPROX_COUNT_DISTINCT", (X,), BIGINT, method=method)
    (family,) = gathered([aggregate])
    # every value is in every other pane too: a distinct count must not count it again
    hashes = np.repeat(rng.integers(0, 2**64, TRIALS * distinct, dtype=np.uint64), 2)
    keys = np.repeat(np.arange(TRIALS), 2 * distinct)
    bits = int(family.parameters[0]) if method == "hll" else 10
    rest = (hashes >> np.uint64(bits)).astype(np.int64)
    ids = {"pane": np.arange(len(keys)) % PANES, "k0": keys,
           "cell": (hashes % np.uint64(2**bits)).astype(np.int64)}
    kept = table(ids, rest, np.minimum) if method == "hll" else (
        table(ids, rest & -rest, np.bitwise_or))
    assert within(error, estimates(aggregate, {family: kept}), distinct, slack) >= 0.95


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.3])
def test_f2_keeps_its_error(skew: float) -> None:
    rng = np.random.default_rng(7)
    aggregate = Aggregate("APPROX_F2", (X,), DOUBLE, method="ams")
    (family,) = gathered([aggregate])
    counts = np.maximum(1, 5_000 / np.arange(1, 3_001) ** skew).astype(np.int64)
    shape = (TRIALS, len(counts), sk.AMS_ROWS)
    cells = rng.integers(0, sk.AMS_WIDTH, shape) + np.arange(sk.AMS_ROWS) * sk.AMS_WIDTH
    signs = rng.choice([-1, 1], shape)
    keys = np.broadcast_to(np.arange(TRIALS)[:, None, None], shape)
    ids = {"pane": np.zeros(cells.size, np.int64), "k0": keys.ravel(), "cell": cells.ravel()}
    kept = table(ids, (signs * counts[:, None]).ravel(), np.add)
    assert within(0.088, estimates(aggregate, {family: kept}), float((counts**2).sum())) >= 0.95


def test_heavy_hitters_are_found_and_counted_within_the_error() -> None:
    rng = np.random.default_rng(3)
    aggregate = Aggregate("APPROX_TOPK", (X,), LISTED, (10,), "count_min")
    counters, candidates = gathered([aggregate])
    rows = 20_000
    values = np.minimum(rng.zipf(1.2, (TRIALS, rows)), 50_000).astype(np.int64)
    hashes = rng.integers(-(2**63), 2**63, 50_001)
    keys = np.repeat(np.arange(TRIALS), rows)
    panes = np.tile(np.arange(rows) % PANES, TRIALS)
    ids = {"pane": panes, "k0": keys, "cell": values.ravel()}
    found, counts = grouped(ids, np.ones(values.size, np.int64), np.add)
    cells = sk.cm_cells(hashes[found["cell"]])
    spread = {"pane": np.tile(found["pane"], sk.CM_ROWS), "k0": np.tile(found["k0"], sk.CM_ROWS),
              "cell": cells.ravel()}
    heavy = counts >= sk.HEAVY * rows / PANES
    picked = pa.table({
        "pane": found["pane"][heavy], "k0": pa.array(found["k0"][heavy]).cast(pa.int32()),
        "cell": pa.array(found["cell"][heavy]).cast(pa.int32()),
        "m0": counts[heavy], "m1": hashes[found["cell"][heavy]]})
    answers = estimates(aggregate, {
        counters: table(spread, np.tile(counts, sk.CM_ROWS), np.add), candidates: picked})
    kept = []
    for trial, answer in enumerate(answers):
        truth = np.bincount(values[trial], minlength=50_001)
        claimed = {entry["value"]: entry["count"] for entry in answer}  # type: ignore[attr-defined]
        assert all(count >= truth[value] for value, count in claimed.items())
        most = [v for v in np.argsort(-truth, kind="stable")[:5] if truth[v] >= 0.01 * rows]
        assert set(most) <= claimed.keys(), "a heavy value is missing"
        kept += [count - truth[v] <= math.e / sk.CM_WIDTH * rows for v, count in claimed.items()]
    assert np.mean(kept) >= 0.95


def test_quantiles_keep_their_error() -> None:
    rng = np.random.default_rng(11)
    x = Column("x", DOUBLE)
    for p in (0.01, 0.5, 0.99):
        aggregate = Aggregate("APPROX_PERCENTILE", (x,), DOUBLE, (p,), "kll")
        (family,) = gathered([aggregate])
        values = rng.lognormal(size=(TRIALS, 1_500))
        rows = [{"pane": n % PANES, "key": key, "x": float(v)}
                for key in range(TRIALS) for n, v in enumerate(values[key])]
        found = estimates(aggregate, {family: partials(rows, family, [KEY])})
        ranks = (values < np.array(found)[:, None]).mean(axis=1)
        assert np.mean(np.abs(ranks - p) <= 0.0165) >= 0.95


@pytest.mark.parametrize(("function", "type_", "nothing"), [
    ("APPROX_COUNT_DISTINCT", BIGINT, 0), ("APPROX_F2", DOUBLE, 0.0), ("APPROX_TOPK", LISTED, []),
    ("APPROX_PERCENTILE", DOUBLE, None)])
def test_a_group_of_nulls_is_answered_too(function: str, type_: Type, nothing: object) -> None:
    aggregate = Aggregate(function, (X,), type_, (0.5,) if "PERCENTILE" in function else ())
    if function == "APPROX_TOPK":
        aggregate = Aggregate(function, (X,), type_, (3,))
    rows = [{"pane": 0, "key": 1, "x": None}, {"pane": 0, "key": 2, "x": 5}]
    families = gathered([aggregate])
    synopsis = Synopsis([INT], families, 1)
    synopsis.add({family: partials(rows, family, [KEY]) for family in families})
    (table_,) = synopsis.scan(1, [Question(1, (aggregate,))])
    one = {"APPROX_TOPK": [{"value": 5, "count": 1}], "APPROX_PERCENTILE": 5.0}.get(function, 1)
    assert table_.to_pydict() == {"key0": [1, 2], "agg0": [nothing, one]}


def test_all_methods_of_a_distinct_count_are_different_families() -> None:
    asked = [Aggregate("APPROX_COUNT_DISTINCT", (X,), BIGINT, method=m) for m in ("hll", "fm")]
    assert [family.kind for family in gathered(asked)] == ["hll", "fm"]
