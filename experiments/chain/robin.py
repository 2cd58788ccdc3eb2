"""What the number of operators does to Round-Robin, and wrong figures to Chain."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from experiments.chain.book import Book, Plan, times
from experiments.chain.runs import Job, Load
from experiments.chain.sweeps import burst
from penstock.report.figures import Drawing

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16)
QUANTA = (40e-6, 400e-6, 4e-3)
INTENSITY = 2.0
"""Of the bursts: between FIFO's rate and Chain's, which is 8 for these charts."""
MISTAKE = 0.2
DRAWS = 12


def jobs(plan: Plan) -> list[Job]:
    """A row of operators under Round-Robin, and Chain that was told wrong figures."""
    policies = ["chain", "fifo", *(_turns(quantum) for quantum in QUANTA)]
    rows = [Job(_row(count), policy) for count in COUNTS for policy in policies]
    return rows + [Job(load, policy) for load in _misjudged() for policy in ("chain", "fifo")]


def tell(book: Book) -> None:
    """Two figures' worth of ratios."""
    _more_operators(book)
    _robust(book)


def _turns(quantum: float) -> str:
    return f"round_robin(quantum={quantum:g})"


def _row(count: int) -> Load:
    return burst(f"{count} operators in a row", INTENSITY)


def _more_operators(book: Book) -> None:
    shown = {"fifo": "fifo", **{f"round_robin({quantum * 1e6:.0f} µs)": _turns(quantum)
                                for quantum in QUANTA}}
    ratio: dict[str, list[float]] = {}
    for count in COUNTS:
        least = book.of(_row(count), "chain").peak
        for label, policy in shown.items():
            ratio.setdefault(label, []).append(book.of(_row(count), policy).peak / least)
        book.rows("operators", f"{count} operators", {
            "chain": book.of(_row(count), "chain"), "fifo": book.of(_row(count), "fifo"),
            "round_robin": book.of(_row(count), _turns(QUANTA[1]))})
    book.draw(
        "operators",
        Drawing("Round-Robin over the number of operators", "operators on the path",
                "peak / Chain's peak", marks=True),
        {label: (COUNTS, y) for label, y in ratio.items()},
        "The chart of two operators with the second cut into equal parts, so that work, envelope "
        f"and Chain stay the same; one burst at {INTENSITY:g} times FIFO's rate. With n operators "
        "the selective first one gets an n-th of the turns. Three lengths of a turn.",
        ["round-robin"])
    middle = ratio[f"round_robin({QUANTA[1] * 1e6:.0f} µs)"]
    book.check(
        "round-robin", "Round-Robin degrades with the number of operators",
        "its peak rises with every step until it is FIFO's (within 5%), and stays there",
        "peak over Chain's: " + ", ".join(f"{count}: {times(value)}"
                                          for count, value in zip(COUNTS, middle, strict=True)),
        _rises_to(middle, ratio["fifo"]))


def _rises_to(found: list[float], top: list[float]) -> bool:
    """Whether values rise step by step to others (from the second on), and stay with them."""
    there = [value >= 0.95 * most for value, most in zip(found, top, strict=True)][1:]
    rising = found[1:][: there.index(True) + 1] if True in there else []
    return (bool(rising) and all(a < b for a, b in pairwise(rising))
            and all(there[len(rising) - 1 :]))


def _misjudged() -> list[Load]:
    return [replace(burst("falling slopes", 1.3), mistake=MISTAKE if seed else 0.0, seed=seed)
            for seed in range(DRAWS + 1)]


def _robust(book: Book) -> None:
    loads = _misjudged()
    right = book.of(loads[0], "chain").peak
    fifo = book.of(loads[0], "fifo").peak
    wrong = [book.of(load, "chain").peak / right for load in loads[1:]]
    untouched = sum(ratio <= 1 + 1e-9 for ratio in wrong)
    book.check(
        "robust", "Chain is robust to small deviations from the chart it was told",
        f"{DRAWS} times all costs and selectivities wrong by up to {MISTAKE:.0%}: peak at most "
        "10% higher",
        f"{untouched} of {DRAWS} times nothing changed, at worst the peak is {times(max(wrong))} "
        f"that with true figures (FIFO {times(fifo / right)}). Errors matter when they make two "
        "slopes look the wrong way round: the last two of Table 1's chart differ by a third, and "
        "taken for one segment they are served as by Mixed(0.0001)",
        max(wrong) <= 1.1)
