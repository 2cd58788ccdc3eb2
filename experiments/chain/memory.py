"""Figs 4 to 12: the total size of the queues over time (section 6.1)."""

from __future__ import annotations

from experiments.chain.book import Book, Plan, times
from experiments.chain.rivals import BOUND, OTHERS, labels
from experiments.chain.runs import Found, Job, Load
from penstock.report.figures import Drawing

FIGURES = (
    (4, "two operators", "real"),
    (5, "two operators", "synthetic"),
    (6, "four operators", "real"),
    (7, "four operators", "synthetic"),
    (8, "selectivity above 1", "synthetic"),
    (9, "window join", "real"),
    (10, "window join", "synthetic"),
    (11, "three queries", "real"),
    (12, "three queries", "synthetic"),
)
WITHOUT_BOUND = ("window join", "three queries")
"""For joins of streams the paper has no bound: a side may have to wait for the other."""


def jobs(plan: Plan) -> list[Job]:
    """Every policy of the paper on every load, the other three policies too in the full form."""
    found = []
    for _, query, kind in FIGURES:
        policies = [*labels().values(), *plan.pick(OTHERS, ())]
        if query not in WITHOUT_BOUND:
            policies.append(BOUND)
        found += [Job(_load(plan, query, kind), policy) for policy in policies]
    return found


def tell(book: Book) -> None:
    """Figures, rows, and the claims on the chart of two operators."""
    for number, query, kind in FIGURES:
        _figure(book, number, query, kind)
    real, synthetic = (_all(book, "two operators", kind) for kind in ("real", "synthetic"))
    _two_operators(book, real, synthetic)
    _round_robin(book)


def _load(plan: Plan, query: str, kind: str) -> Load:
    return (plan.real if kind == "real" else plan.synthetic)[query]


def _all(book: Book, query: str, kind: str) -> dict[str, Found]:
    return book.all(_load(book.plan, query, kind), labels())


def _figure(book: Book, number: int, query: str, kind: str) -> None:
    load = _load(book.plan, query, kind)
    policies = labels()
    found = book.all(load, policies)
    drawn = {label: run.memory for label, run in found.items()}
    if query not in WITHOUT_BOUND:
        drawn["bound (clairvoyant)"] = book.of(load, BOUND).memory
    book.draw(
        f"fig{number:02}",
        Drawing(f"Fig. {number}: {query}, {kind} data set", "seconds", "waiting tuples (KB)"),
        drawn, _caption(found), checks=_checks(query))
    everyone = {**policies, **{name: name for name in book.plan.pick(OTHERS, ())}}
    if query not in WITHOUT_BOUND:
        everyone[BOUND] = BOUND
    book.rows(f"fig{number:02}", f"{query}, {kind}", book.all(load, everyone))


def _caption(found: dict[str, Found]) -> str:
    listed = ", ".join(f"{label} {run.peak:.1f} KB" for label, run in found.items())
    return f"Peaks: {listed}. Each point is the highest level in its interval."


def _checks(query: str) -> tuple[str, ...]:
    if query == "two operators":
        return "two-equal", "two-fifo", "two-round-robin"
    about_turns = {"four operators": ("four-round-robin",), "window join": ("join-round-robin",)}
    return f"lowest: {query}", *about_turns.get(query, ())


def _two_operators(book: Book, *both: dict[str, Found]) -> None:
    kinds = ("real", "synthetic")
    gaps = [abs(found["greedy"].peak / found["chain"].peak - 1) for found in both]
    book.check(
        "two-equal", "On two operators Chain and Greedy are the same schedule",
        "peaks within 1%",
        ", ".join(f"{kind}: {found['chain'].peak:.2f} and {found['greedy'].peak:.2f} KB"
                  for kind, found in zip(kinds, both, strict=True)),
        max(gaps) <= 0.01)
    book.check(
        "two-fifo", "On two operators FIFO is the worst of the four",
        "FIFO's peak is the highest",
        ", ".join(f"{kind}: {times(found['fifo'].peak / found['chain'].peak)} Chain's"
                  for kind, found in zip(kinds, both, strict=True)),
        all(max(found, key=lambda label: found[label].peak) == "fifo" for found in both))
    book.check(
        "two-round-robin", "On two operators Round-Robin is almost as good as Chain",
        "nearer to Chain than to FIFO",
        ", ".join(f"{kind}: {times(found['round_robin'].peak / found['chain'].peak)} Chain's, "
                  f"FIFO {times(found['fifo'].peak / found['round_robin'].peak)} Round-Robin's"
                  for kind, found in zip(kinds, both, strict=True)),
        all(found["round_robin"].peak / found["chain"].peak
            < found["fifo"].peak / found["round_robin"].peak for found in both))


def _round_robin(book: Book) -> None:
    """What the paper says of Round-Robin beside its figures."""
    ratio = {query: [found["round_robin"].peak / found["chain"].peak
                     for found in (_all(book, query, kind) for kind in ("real", "synthetic"))]
             for query in ("four operators", "window join")}
    four, join = (ratio[query] for query in ("four operators", "window join"))
    book.check(
        "four-round-robin", "On four operators Round-Robin does badly", "at least 1.5x Chain",
        f"real {times(four[0])}, synthetic {times(four[1])}", min(four) >= 1.5)
    book.check(
        "join-round-robin", "For the window join Round-Robin compares well with Chain on real "
        "data and does very badly on synthetic data", "at most 1.5x Chain, and at least 2x",
        f"real {times(join[0])}, synthetic {times(join[1])}. The paper does not give the query's "
        "costs. With ours Round-Robin is that bad in bursts near Chain's rate only (see the peaks "
        "over burst intensity), which our synthetic stream hardly reaches",
        join[0] <= 1.5 and join[1] >= 2)
