"""The convergence for real: predicates on record batches, measured in seconds.

A predicate matches a column of texts with a regular expression. Rows that are left are known by
their numbers, so a predicate takes only its own column of them. All policies see the same batches,
one after the other, so that whatever else the machine does costs each of them as much. Predicates
are written in pairs that are alike, which is a bad order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from experiments.filters.runs import A_GREEDY, ADAPTIVE, INDEPENDENT, OPTIMAL, Size
from experiments.filters.telling import Telling
from experiments.filters.workload import Filters, optimal
from harness.program import Progress
from penstock.policies.filters import AdaptiveOrder, FilterPredicate, ProfileBatch, policy
from penstock.policies.filters.model.drop_patterns import Bits, Order
from penstock.report.figures import Drawing
from penstock.simulator.filters import CorrelatedFilters, asked_beyond, asked_until

PAIR = (A_GREEDY, INDEPENDENT)
KEPT, FACTORS = (0.1, 0.3, 0.5, 0.7, 0.9), (1, 2, 4, 6, 8)
"""Of Figs 10 and 11: selectivities, and filters in a group."""
ROWS = 400_000
"""Of a record batch."""
PATTERN = r"^[a-z.]+/[a-z]+/\d*[02468]$"
POOL = 2
"""Different batches, which come again and again."""
WRITTEN = "as written"
Numbers = npt.NDArray[np.int64]


@dataclass
class ArrowConjunction:
    """Predicates over the columns of a batch, in a fixed order or in one that adapts."""

    order: Order
    adaptive: AdaptiveOrder | None = None
    seconds: float = 0.0
    profiling: float = 0.0
    rows: int = 0
    passed: list[int] = field(default_factory=list)
    """By batch: rows that met all predicates."""

    def run(self, batch: pa.RecordBatch, rng: np.random.Generator) -> None:
        """Evaluate a batch, and adapt."""
        began = time.perf_counter()
        order = self.adaptive.order if self.adaptive else self.order
        left, taken = pa.array(np.arange(batch.num_rows)), np.full(len(order), np.nan)
        sampled, places = self._sample(batch.num_rows, rng), []
        for predicate in order:
            started, before = time.perf_counter(), left
            met = matches(batch.column(predicate), left)
            left = left.filter(met)
            if len(before):
                taken[predicate] = (time.perf_counter() - started) / len(before)
            self.profiling -= time.perf_counter()
            places.append(met_by(sampled, places, before, met))
            self.profiling += time.perf_counter()
        evaluated = time.perf_counter()
        if self.adaptive:
            self._profile(self.adaptive, batch, sampled, np.array(places), taken, len(left))
        done = time.perf_counter()
        self.seconds += done - began
        self.profiling += done - evaluated
        self.rows += batch.num_rows
        self.passed.append(len(left))

    def _sample(self, rows: int, rng: np.random.Generator) -> Numbers:
        """Rows that will be profiled if they are dropped, in order."""
        if not self.adaptive:
            return np.zeros(0, int)
        request = self.adaptive.request
        probability = min(request.probability, request.most / rows)
        gaps = rng.geometric(probability, int(2 * probability * rows) + 100)
        chosen = np.cumsum(gaps) - 1
        return chosen[chosen < rows]

    def _profile(
        self, adaptive: AdaptiveOrder, batch: pa.RecordBatch, sampled: Numbers, met: Bits,
        taken: np.ndarray, passed: int,
    ) -> None:
        """Show the sampled rows that were dropped the predicates that the policy asks for."""
        request = adaptive.request
        is_dropped = ~met.all(axis=0)
        if is_dropped.any():
            rows, place = sampled[is_dropped], (~met[:, is_dropped]).argmax(axis=0)
            bits = np.zeros((len(rows), len(met)), bool)
            bits[np.arange(len(rows)), np.array(request.order)[place]] = True
            beyond = asked_beyond(request)[place]
            for predicate in range(len(met)):
                asked = np.flatnonzero(beyond[:, predicate])
                if len(asked):
                    also = matches(batch.column(predicate), pa.array(rows[asked]))
                    bits[asked, predicate] = ~also.to_numpy(zero_copy_only=False)
            known = beyond | asked_until(request)[place]
            adaptive.observe(ProfileBatch(bits, np.where(known, taken, np.nan),
                                          passed / (batch.num_rows - passed), request.version))
        adaptive.decide()


def met_by(sampled: Numbers, earlier: Sequence[Bits], left: pa.Array, met: pa.Array) -> Bits:
    """By sampled row, whether a predicate keeps it, if all earlier ones did."""
    keeps = np.ones(len(sampled), bool)
    if len(sampled):
        alive = np.logical_and.reduce([keeps, *earlier])
        at = np.searchsorted(left.to_numpy(), sampled[alive])
        keeps[alive] = met.take(pa.array(at)).to_numpy(zero_copy_only=False)
    return keeps


def matches(column: pa.Array, rows: pa.Array) -> pa.BooleanArray:
    """Whether the texts of these rows match: a host, a path, and an even number."""
    return pc.match_substring_regex(column.take(rows), PATTERN)


def batch_of(dropped: Bits, rng: np.random.Generator) -> pa.RecordBatch:
    """Columns of texts that match unless the filter drops the row."""
    numbers = 2 * rng.integers(0, 50_000, dropped.shape) + dropped
    return pa.record_batch([
        pc.binary_join_element_wise("host.example/path", pa.array(column).cast(pa.string()), "/")
        for column in numbers.T], names=[f"c{number}" for number in range(dropped.shape[1])])


def measured(
    model: CorrelatedFilters, blocks: int, rows: int, seed: int = 0,
    policies: Sequence[str] = ADAPTIVE,
) -> dict[str, ArrowConjunction]:
    """Policies on the same batches, beside two fixed orders; only the second half counts."""
    rng = np.random.default_rng([seed, 3])
    pool = [batch_of(model.drawn(rng, rows), rng) for _ in range(POOL)]
    written = tuple(range(len(model.costs)))
    running = {name: ArrowConjunction(written, _adaptive(name, written)) for name in policies}
    running[OPTIMAL] = ArrowConjunction(optimal(model))
    running[WRITTEN] = ArrowConjunction(written)
    for number in range(2 * blocks):
        if number == blocks:
            for one in running.values():
                one.seconds, one.profiling, one.rows = 0.0, 0.0, 0
        for one in running.values():
            one.run(pool[number % POOL], rng)
    return running


def _adaptive(name: str, written: Order) -> AdaptiveOrder:
    return AdaptiveOrder(policy(name), [
        FilterPredicate(f"c{number}", 1e-7) for number in written])


def tell(telling: Telling, size: Size, progress: Progress) -> None:
    """Fig. 9 again, measured; and the shares of profiling."""
    counts = (4, 6, 8, 10)
    found = {}
    for count in counts:
        progress(f"on Arrow: {count} predicates")
        filters = Filters(count)
        found[count] = measured(filters.model, size.blocks, ROWS)
    names = (*ADAPTIVE, OPTIMAL, WRITTEN)
    rates = {name: [1e-6 * found[count][name].rows / found[count][name].seconds
                    for count in counts] for name in names}
    shares = {name: [found[count][name].profiling / found[count][name].seconds
                     for count in counts] for name in ADAPTIVE}
    same = all(len({tuple(one.passed) for one in running.values()}) == 1
               for running in found.values())
    telling.check("arrow-same", "on Arrow every policy lets the same rows through",
                  "as many in every batch", "the same" if same else "others", same)
    ahead = np.array(rates[A_GREEDY]) / np.array(rates[INDEPENDENT])
    telling.check("arrow-ahead", "on Arrow A-Greedy is ahead of Independent",
                  "at every number of predicates", _each(counts, ahead, " times"),
                  bool((ahead > 1).all()))
    near = np.array(rates[A_GREEDY]) / np.array(rates[OPTIMAL])
    telling.check("arrow-near", "on Arrow A-Greedy comes within 10 % of the best order by hand",
                  "at every number of predicates", _each(counts, near, " times"),
                  bool((near >= 0.9).all()))
    part = 100 * np.array(shares[A_GREEDY])
    telling.check("arrow-profiling", "on Arrow A-Greedy's profiling takes at most 5 % of the time",
                  "at every number of predicates", _each(counts, part, " %"),
                  bool((part <= 5).all()))
    progress("on Arrow: batches of half the size")
    half = measured(Filters(counts[-1]).model, size.blocks, ROWS // 2)[A_GREEDY]
    share = 100 * half.profiling / half.seconds
    telling.check("arrow-profiling-rows", "on Arrow that share falls with the size of a batch, as "
                  "the calls and the decision cost the same (beyond the paper)",
                  f"above {part[-1]:.2f} % in batches of half as many rows, "
                  f"{counts[-1]} predicates", f"{share:.2f} %", bool(share > part[-1]))
    telling.figure("arrow", Drawing("On Arrow: the number of predicates", "predicates",
                                    "million rows per second", marks=True),
                   {name: (counts, rates[name]) for name in names},
                   "Measured on record batches of 400,000 rows, one core.",
                   ("arrow-ahead", "arrow-near", "arrow-profiling", "arrow-same"))
    telling.rows("arrow", "predicates", counts, {
        **rates, **{f"{name}, profiling": shares[name] for name in ADAPTIVE}})
    _tell_overlaps(telling, size, progress)


def _tell_overlaps(telling: Telling, size: Size, progress: Progress) -> None:
    """Figs 10 and 11 again, measured."""
    kept = _rates([Filters(keeps=(one,)) for one in KEPT], size, progress, "selectivities")
    lead = kept[A_GREEDY] / kept[INDEPENDENT]
    telling.check("arrow-selectivity", "on Arrow A-Greedy gains most over Independent at "
                  "intermediate selectivities", "the largest lead between 0.3 and 0.7, the ends at "
                  "most half of it", _each(KEPT, lead, " times"),
                  0.3 <= KEPT[int(np.argmax(lead))] <= 0.7
                  and max(lead[0], lead[-1]) - 1 <= (lead.max() - 1) / 2)
    alike = _rates([Filters(size=one) for one in FACTORS], size, progress, "correlation factors")
    lead = alike[A_GREEDY] / alike[INDEPENDENT]
    telling.check("arrow-correlation", "on Arrow its lead grows with the correlation factor and "
                  "shrinks when all predicates are alike", "the largest lead at a factor of 2 to "
                  "6; that at 8 at most half of it", _each(FACTORS, lead, " times"),
                  2 <= FACTORS[int(np.argmax(lead))] <= 6 and lead[-1] - 1 <= (lead.max() - 1) / 2)
    for id, name, x, rates, check in (
            ("arrow-fig10", "selectivity", KEPT, kept, "arrow-selectivity"),
            ("arrow-fig11", "predicates in a group", FACTORS, alike, "arrow-correlation")):
        telling.figure(id, Drawing(f"On Arrow: {name}", name, "million rows per second",
                                   marks=True), {one: (x, found.tolist()) for one, found
                                                 in rates.items()},
                       "8 predicates, measured on one core.", (check,))
        telling.rows(id, name, x, rates)


def _rates(
    filters: Sequence[Filters], size: Size, progress: Progress, what: str
) -> dict[str, np.ndarray]:
    """Million rows per second of each policy, and of the best order."""
    progress(f"on Arrow: {what}")
    found = [measured(one.model, size.blocks, ROWS, policies=PAIR) for one in filters]
    return {name: np.array([1e-6 * one[name].rows / one[name].seconds for one in found])
            for name in (*PAIR, OPTIMAL)}


def _each(counts: Sequence[float], values: np.ndarray, unit: str) -> str:
    listed = ", ".join(f"{value:.3f}" for value in values)
    return f"{listed}{unit} at {', '.join(map(str, counts))}"
