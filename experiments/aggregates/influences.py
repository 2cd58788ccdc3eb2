"""What the figures depend on: how overloaded the machine is, and what an answer costs."""

from __future__ import annotations

from experiments.aggregates.figures import (
    LATE,
    LATENCY,
    QUERIES,
    THROUGHPUT,
    Telling,
    hybrid,
    late,
)
from experiments.aggregates.queries import Load
from experiments.aggregates.runs import AS, CS, H_LP, HS, Size, Sweep
from penstock.report.figures import Drawing, Points

_POLICIES = (AS, CS, HS, H_LP)
RATES = ("low", "high")
CHEAP = 0.3
"""Times a: answers that are cheap beside the scan."""
_GIVEN = ", if answers are free"


def loads(size: Size, ratio: float) -> list[Sweep]:
    """Slower and faster machines, at both rates."""
    return [Sweep(f"{rate} rate, load", size.factors, tuple(
        Load(size.varied, rate == "high", ratio, factor, size.seconds)
        for factor in size.factors), _POLICIES, size.seeds) for rate in RATES]


def answers(size: Size, factor: float, told: bool = True) -> list[Sweep]:
    """Cheaper and costlier answers, at both rates; of which the policy may not be told."""
    return [Sweep(f"{rate} rate, price of an answer{'' if told else ' (not told)'}", size.ratios,
                  tuple(Load(size.varied, rate == "high", ratio, factor, size.seconds, told)
                        for ratio in size.ratios), _POLICIES, size.seeds) for rate in RATES]


def tell_loads(telling: Telling, sweeps: list[Sweep]) -> None:
    """A figure of the gains over the load."""
    series = _gains(telling, sweeps)
    queries = sweeps[0].loads[0].queries
    telling.figure(
        "load", Drawing(f"Gains in throughput, {queries} queries, over the load",
                        "load of the conservative schedule of 40 queries", "times",
                        marks=True, log_x=True), series,
        "HS gains over CS by having fewer tasks, which needs no overload. What H-LP gains over HS "
        "grows with the overload: the later tasks are, the more of them are late together.",
        ("load-grows",))
    rises = all(values[-1] > values[0] for name, (_, values) in series.items() if "H-LP" in name)
    telling.check("load-grows", "what H-LP gains over HS grows with the overload",
                  "higher at the heaviest load than at the lightest, at both rates",
                  _ends(series), rises)
    for sweep in sweeps:
        telling.rows("load", sweep, "throughput")
        telling.rows("load", sweep, "latency")


def tell_answers(
    telling: Telling, sweeps: list[Sweep], untold: list[Sweep], tables: float, arrays: float
) -> None:
    """A figure of the gains over the price of an answer."""
    series = _gains(telling, sweeps)
    falls = all(values[-1] < values[0] for _, values in series.values())
    telling.check("answers-fall", "beyond the paper: the costlier the answers, the less is gained",
                  "lower for the costliest answers than for free ones", _ends(series), falls)
    merging = {name.replace("HS over CS", "HS over CS, merges only"): points
               for name, points in _gains(telling, untold).items() if "HS over CS" in name}
    cheap = [value for points in merging.values()
             for ratio, value in zip(*points, strict=True) if ratio <= CHEAP]
    telling.check(
        "merges-only", "beyond the paper: a hybrid that counts merges only doubles CS's throughput "
        f"as long as b is at most {CHEAP:g} a", "2 times or more, at both rates",
        f"{min(cheap):.2f} times at the least; {_ends(merging)}", min(cheap) >= 2)
    telling.figure(
        "answers", Drawing(f"Gains in throughput, {sweeps[0].loads[0].queries} queries, over the "
                           "price of an answer",
                           "looking at a value for an answer, as a part of merging one", "times",
                           marks=True,
                           posts=((tables, "hash tables"), (arrays, "arrays"))), series | merging,
        "A scan is shared, an answer is not. Where the values of a window are nearly as many as "
        "those of its panes (pairs of addresses), looking at all of them for every answer costs "
        "as much as the scan. Hybrid weighs a schedule in which nobody is late. Under overload it "
        "would do better to share more than that, so one that does not count answers gains more.",
        ("answers-fall", "merges-only"))
    for sweep in (*sweeps, *untold):
        telling.rows("answers", sweep, "throughput")
        telling.rows("answers", sweep, "latency")


def tell_free(telling: Telling, low: Sweep, high: Sweep) -> None:
    """The claims again, if answers cost nothing: then scans are all there is, and all is shared."""
    hybrid(telling, low, "-free", _GIVEN)
    late(telling, high, "-free", _GIVEN)
    checks = {"low": ("hs-doubles-free", "hs-tenth-free", "hs-half-free"),
              "high": ("lp-doubles-free", *(f"{id}-free" for id in LATE))}
    for rate, sweep in (("low", low), ("high", high)):
        for what, y in (("throughput", THROUGHPUT), ("latency", LATENCY)):
            telling.curves(
                f"free-{rate}-{what}",
                Drawing(f"If answers were free: {what}, {rate} rate", QUERIES, y, marks=True),
                sweep, what, "The cost model of the paper's example: merges of panes and nothing "
                "else.", checks[rate] if what == "throughput" else ())


def _ends(series: dict[str, Points]) -> str:
    """From where to where each line goes, in words."""
    return "; ".join(f"{name} {values[0]:.2f} to {values[-1]:.2f}"
                     for name, (_, values) in series.items())


def _gains(telling: Telling, sweeps: list[Sweep]) -> dict[str, Points]:
    found: dict[str, Points] = {}
    for rate, sweep in zip(RATES, sweeps, strict=True):
        for label, over, under in (("HS over CS", HS, CS), ("H-LP over HS", H_LP, HS)):
            gain = (telling.mean(sweep, over, "throughput")
                    / telling.mean(sweep, under, "throughput"))
            found[f"{label}, {rate} rate"] = (sweep.x, [float(value) for value in gain])
    return found
