"""Figs 19 and 20 and Table 1: Mixed and Chain-Flush between Chain and FIFO."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from experiments.chain.book import Book, Plan, times
from experiments.chain.latency import LATE
from experiments.chain.queries import QUERIES, most
from experiments.chain.rivals import flush, labels
from experiments.chain.runs import AVERAGED, Found, Job, Load
from experiments.chain.sweeps import burst
from penstock.report.figures import Drawing

QUERY = "falling slopes"
GAMMAS = (0.0001, 0.0002, 0.0008)
TABLE = {
    "chain": (2.5, 76.2),
    "fifo": (17.1, 24.1),
    "chain_flush(50 ms)": (9.2, 50.9),
    "chain_flush(10 ms)": (17.6, 10.6),
    "mixed(0.0001)": (2.9, 48.0),
    "mixed(0.0002)": (6.3, 34.4),
    "mixed(0.0008)": (17.1, 24.2),
}
"""As printed: peak queue size in KB, peak latency in ms."""
ORDER = ("chain", "mixed(0.0001)", "mixed(0.0002)", "mixed(0.0008)", "fifo")
FLUSHES = (0.025, 0.028, 0.032, 0.036, 0.04, 0.045)
LIMITS = (0.025, 0.028, 0.032, 0.036, 0.04, 0.045, 0.05, 0.06)
INTENSITIES: Sequence[float] = (1.03, 1.06, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0)
FIFO_PEAK = TABLE["fifo"][0]


def jobs(plan: Plan) -> list[Job]:
    """The rows of the table, more thresholds, limits for Mixed, and bursts to compare with."""
    load = plan.real[QUERY]
    policies = [*_table_policies().values(), *map(flush, plan.pick(FLUSHES, FLUSHES[1::3])),
                *map(_limited, plan.pick(LIMITS, LIMITS[1::4]))]
    bursts = [Job(_sized(x), policy) for x in _intensities(plan)
              for policy in _ordered().values()]
    return [Job(load, policy) for policy in policies] + bursts


def tell(book: Book) -> None:
    """Figures, the table, and what they say."""
    found = book.all(book.plan.real[QUERY], _table_policies())
    _over_time(book, found)
    _table(book, found)
    _trade_off(book, found)
    _where(book)


def _table_policies() -> dict[str, str]:
    known = labels(0.05, 0.01, gammas=GAMMAS)
    return {label: known[label] for label in TABLE}


def _ordered() -> dict[str, str]:
    return {label: _table_policies()[label] for label in ORDER}


def _limited(latency: float) -> str:
    return f"mixed(latency={latency:g})"


# --- figures 19 and 20 ---------------------------------------------------------------------------


def _over_time(book: Book, found: dict[str, Found]) -> None:
    shown = {label: found[label] for label in ORDER}
    book.draw(
        "fig19", Drawing("Fig. 19: Mixed, real data set", "seconds", "waiting tuples (KB)"),
        {label: run.memory for label, run in shown.items()},
        "The text of the paper says real data, the caption of its figure synthetic; this is the "
        "trace. Peaks: " + ", ".join(f"{label} {run.peak:.1f}" for label, run in shown.items())
        + " KB.", ["order"])
    book.draw(
        "fig20", Drawing("Fig. 20: Mixed, real data set", "seconds",
                         f"latency (ms), mean of {AVERAGED} outputs"),
        {label: run.latencies for label, run in shown.items()},
        "The worst of all outputs: "
        + ", ".join(f"{label} {run.latency:.0f}" for label, run in shown.items()) + " ms.",
        ["order", "table-late"])


# --- table 1 -------------------------------------------------------------------------------------


def _table(book: Book, found: dict[str, Found]) -> None:
    book.rows("table1", "Table 1", found, TABLE)
    peaks, waits = ([getattr(found[label], name) for label in ORDER]
                    for name in ("peak", "latency"))
    book.check(
        "order", "Mixed lies between Chain and FIFO, in the order of Table 1",
        "peaks rise and latencies fall: Chain, Mixed(0.0001), (0.0002), (0.0008), FIFO",
        " ≤ ".join(f"{peak:.2f}" for peak in peaks) + " KB; "
        + " ≥ ".join(f"{wait:.1f}" for wait in waits) + " ms",
        all(a <= b for a, b in pairwise(peaks)) and all(a >= b for a, b in pairwise(waits)))
    late, printed = _ratio(found, "latency"), TABLE["chain"][1] / TABLE["fifo"][1]
    book.check(
        "table-late", "Chain's peak latency is a multiple of FIFO's on Table 1's chart",
        f"at least {LATE:g}x (printed: {times(printed)})", times(late), late >= LATE)
    fast = found["chain_flush(10 ms)"]
    book.check(
        "table-10ms", "Chain-Flush with 10 ms has a peak latency of 10.6 ms where FIFO has 24.1",
        "within 10% of 10 ms",
        f"{fast.latency:.1f} ms, FIFO {found['fifo'].latency:.1f} ms. For one query no schedule "
        "has a lower worst latency than FIFO on the same arrivals (earliest deadline first is "
        "FIFO), so the two printed rows cannot come from the same run of tuples one by one",
        fast.latency <= 11)
    limit = most(QUERIES[QUERY]())
    gap = found["fifo"].peak / found["chain"].peak
    book.check(
        "table-ratio", "FIFO's peak is 6.8 times Chain's in Table 1", "at least 6x",
        f"{times(gap)}. On the printed chart it cannot exceed {times(limit)} in expectation: "
        "FIFO and Chain have the same work before them, and a second of it is "
        f"{limit:.2f} times as much memory in whole tuples as before the last operator",
        gap >= 6)


def _ratio(found: dict[str, Found], name: str) -> float:
    return float(getattr(found["chain"], name) / getattr(found["fifo"], name))


# --- memory against latency ----------------------------------------------------------------------


def _trade_off(book: Book, found: dict[str, Found]) -> None:
    load = book.plan.real[QUERY]
    flushes = [book.of(load, flush(latency))
               for latency in book.plan.pick(FLUSHES, FLUSHES[1::3])]
    limits = book.plan.pick(LIMITS, LIMITS[1::4])
    limited = [book.of(load, _limited(latency)) for latency in limits]
    fixed = [found[label] for label in ORDER[1:4]]
    book.draw(
        "table1", Drawing("Table 1: peak queue size against peak latency",
                          "peak latency (ms)", "peak (KB)", marks=True),
        {"chain": _points([found["chain"]]), "fifo": _points([found["fifo"]]),
         "chain_flush(latency)": _points([*flushes, found["chain_flush(50 ms)"]]),
         "mixed(gamma)": _points(fixed), "mixed(latency)": _points(limited)},
        "Each point is a run on the same tuples. Mixed with a fixed gamma has three settings "
        "between Chain and FIFO, Chain-Flush and Mixed with a latency go by what they are "
        "promised.", ["order", "table-ratio", "table-10ms", "adaptive"])
    book.rows("table1", "Mixed that finds its gamma",
              {"chain": found["chain"],
               **{f"mixed(latency {limit * 1e3:.3g} ms)": run
                  for limit, run in zip(limits, limited, strict=True)}})
    _adaptive(book, found, dict(zip(limits, limited, strict=True)))


def _points(runs: list[Found]) -> tuple[list[float], list[float]]:
    ordered = sorted(runs, key=lambda run: run.latency)
    return [run.latency for run in ordered], [run.peak for run in ordered]


def _adaptive(book: Book, found: dict[str, Found], limited: dict[float, Found]) -> None:
    """Beyond the paper: how well a limit is kept by reckoning what is ahead."""
    over = {limit: run.latency / limit / 1e3 - 1 for limit, run in limited.items()}
    inside = all(found["chain"].peak * 0.99 <= run.peak <= found["fifo"].peak * 1.01
                 for run in limited.values())
    book.check(
        "adaptive", "Mixed with a latency finds a gamma between Chain and FIFO by itself",
        "memory between Chain's and FIFO's; its limit exceeded by at most 10%",
        ", ".join(f"limit {limit * 1e3:.3g} ms: {run.peak:.1f} KB, {run.latency:.0f} ms "
                  f"({over[limit]:+.0%})" for limit, run in limited.items())
        + ". It looks at the heads of queues only, so tuples behind one may be late by a little",
        inside and max(over.values()) <= 0.1)


# --- where the paper's run lies ------------------------------------------------------------------


def _sized(intensity: float) -> Load:
    """A burst of this intensity in which FIFO's queue comes to the printed 17.1 KB."""
    return burst(QUERY, intensity, round(FIFO_PEAK * 1000 / 24 / (1 - 1 / intensity)))


def _intensities(plan: Plan) -> Sequence[float]:
    return plan.pick(INTENSITIES, INTENSITIES[2::3])


def _where(book: Book) -> None:
    intensities = _intensities(book.plan)
    found = [book.all(_sized(x), _ordered()) for x in intensities]
    ratio = {
        **{f"{label}: latency / FIFO's": [runs[label].latency / runs["fifo"].latency
                                          for runs in found] for label in ORDER[:3]},
        "fifo: peak / Chain's": [1 / _ratio(runs, "peak") for runs in found],
    }
    printed = tuple((TABLE[label][1] / TABLE["fifo"][1], f"printed: latency of {label}")
                    for label in ORDER[:3])
    nearest = intensities[max(range(len(found)), key=lambda i: ratio["chain: latency / FIFO's"][i])]
    book.draw(
        "where", Drawing("Where Table 1 lies: bursts that bring FIFO to 17.1 KB",
                         "burst rate / FIFO's consumption rate (1 / T)", "ratio",
                         marks=True, log_x=True, lines=printed),
        {label: (intensities, y) for label, y in ratio.items()},
        "Even bursts of every intensity, each so long that FIFO's queue reaches the printed peak. "
        "The printed ratios of latencies lie above all of these, and nearest to the mildest "
        f"bursts (Chain's is greatest at {nearest:g}): the paper's bursts exceed FIFO's rate by "
        "little and last long, as those of the trace do, and more tuples follow them.",
        ["table-late", "table-ratio"])
    for x, runs in zip(intensities, found, strict=True):
        book.rows("where", f"burst of {x:g}", runs)
