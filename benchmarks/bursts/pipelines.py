"""Queries with the chain paper's own progress charts, and with charts of ours, for both engines.

The conditions are Python functions that work for some microseconds of processor time on every row
and keep a part of them: so the charts have the same shape on every machine. The same functions,
from the same text, serve Penstock's queries and the native ones.

Those of the paper have its selectivities and its shares of the cost. Ours have a first condition
that keeps a tenth and most of the work behind it, as a detector behind a cheap test has: more than
in the paper's is to be gained there, so both are measured. All of them cost some `TOTAL`
microseconds a row, so that a burst of 45 blocks lasts half a minute.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.chain.queries import ABOVE_ONE, FOUR, TWO, Points
from penstock.policies.operators import Route, Stage
from penstock.policies.operators.model.charts import chart

ROWS = 10_000
"""Rows of a block."""
KEYS = 10
"""Keys of the relation: a row of a block meets the rows of one of them."""
TOTAL = 135.0
"""Microseconds of a core that the paper's charts take for a row from end to end."""
QUANTUM = 1.5
"""Seconds after which a decision comes round: no train is longer."""
_WORK = '''
import time
import numpy as np, pyarrow as pa, penstock

def keeping(salt, micros, kept):
    def function(n, a):
        values = a.to_numpy(zero_copy_only=False).astype(float)
        end = time.thread_time() + len(a) * micros / 1e6
        while time.thread_time() < end:
            values = np.sqrt(values * values + 1.0)
        hashed = (n.to_numpy(zero_copy_only=False) * 2654435761) % 2**32
        return pa.array(hashed % salt < kept * salt)
    return function

'''
_PRIMES = (1009, 2003, 4001, 8009)
"""Each condition draws its rows by another one, so that they are independent."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A Python function in a query's WHERE."""

    micros: float
    """Its work per row, in microseconds of a core."""
    kept: float
    """The part of the rows for which it holds."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query over a stream of its own: the rows that meet its conditions, one after the other."""

    name: str
    conditions: tuple[Condition, ...]
    matches: int = 0
    """Rows of a relation that every row meets before its conditions; 0 for no join."""

    @property
    def calls(self) -> list[str]:
        """The names of its functions."""
        return [f"{self.name}{number}" for number in range(len(self.conditions))]

    @property
    def columns(self) -> str:
        """Those of its stream; it needs them all, so that a condition alone makes rows fewer."""
        return "n BIGINT, a DOUBLE, text STRING" + (", k BIGINT" if self.matches else "")

    def route(self) -> Route:
        """Its progress chart, if nothing but its conditions took time."""
        join = (Stage("join", 0.0, float(self.matches)),) if self.matches else ()
        ends = len(self.conditions) - 1
        return Route(self.name, (*join, *(
            Stage(call, condition.micros / 1e6, condition.kept if n < ends else 0.0)
            for n, (call, condition) in enumerate(zip(self.calls, self.conditions, strict=True)))))

    def functions(self) -> str:
        """The Python text that defines its functions."""
        return "".join(
            f"{call} = keeping({prime}, {condition.micros}, {condition.kept})\n"
            for call, prime, condition in zip(self.calls, _PRIMES, self.conditions, strict=False))

    def sql(self) -> str:
        """Its stream, its functions and itself."""
        declared = "".join(
            f"CREATE FUNCTION {call} FROM 'burst_functions:{call}_';\n" for call in self.calls)
        row = f"n * {self.matches} + m" if self.matches else "n"
        where = " AND ".join(f"{call}({row}, a)" for call in self.calls)
        joined = f" JOIN r ON s_{self.name}.k = r.k" if self.matches else ""
        relation = "CREATE RELATION r (k BIGINT, m BIGINT) FROM csv 'r.csv';\n"
        return (f"CREATE STREAM s_{self.name} ({self.columns}) FROM parquet 'in-{self.name}' "
                f"OPTIONS (maxFilesPerTrigger = 1);\n{relation if self.matches else ''}{declared}"
                f"CREATE QUERY {self.name} INTO parquet 'out-{self.name}' AS "
                f"SELECT n, text FROM s_{self.name}{joined} WHERE {where};\n")

    def native(self, rows: Any, relation: Callable[[], Any]) -> Any:
        """The same on a frame of Spark."""
        if self.matches:
            rows = rows.join(relation(), "k", "inner")
        calls, matches, text = self.calls, self.matches, _WORK + self.functions()

        def through(batches: Any) -> Any:
            known: dict[str, Any] = {}
            exec(text, known)
            for batch in batches:
                for call in calls:
                    n = batch["n"].to_numpy()
                    row = pa.array(n * matches + batch["m"].to_numpy() if matches else n)
                    batch = batch.filter(known[call](row, batch["a"]))
                yield batch

        return rows.mapInArrow(through, rows.schema).select("n", "text")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Questions that are asked at once; blocks come to their streams in turn."""

    name: str
    questions: tuple[Question, ...]
    blocks: int
    """Blocks of the burst, of all streams together."""
    arrivals: tuple[str, ...] = ("even",)
    """How they come."""
    thorough: bool = False
    """Whether all policies go through it, and not only the main ones."""
    windows: int = 0
    """Window aggregates over each stream beside the question, by the time of arrival: what-if must
    predict with them, too. Native Spark is not asked for them, so it is not measured here."""

    @property
    def id(self) -> str:
        """Its name in a command and in a file."""
        return self.name.replace(" ", "-")

    @property
    def most(self) -> float:
        """How many times Chain's memory FIFO's can be, at most, however a burst comes.

        Both have the same seconds of work before them at any time. FIFO has it in whole blocks; at
        best all of it lies on the gentlest segments, where a second of work is the least memory.
        """
        routes = [question.route() for question in self.questions]
        service = sum(route.cost for route in routes) / len(routes)
        return 1 / (service * min(chart(route).slopes[-1] for route in routes))

    @property
    def at_once(self) -> int:
        """Blocks that come at once where it is measured what a block takes."""
        return 6 * len(self.questions)

    def stream(self, number: int) -> str:
        """The question to whose stream a block comes."""
        return self.questions[number % len(self.questions)].name

    def write(self, folder: Path) -> None:
        """The folders, functions and relation that its queries need."""
        for question in self.questions:
            (folder / f"in-{question.name}").mkdir(parents=True)
        defined = "".join(question.functions() for question in self.questions)
        declared = "".join(f"{call}_ = penstock.predicate({call})\n"
                           for question in self.questions for call in question.calls)
        (folder / "burst_functions.py").write_text(_WORK + defined + declared)
        matches = max(question.matches for question in self.questions)
        with open(folder / "r.csv", "w", newline="") as file:
            csv.writer(file).writerows((k, m) for k in range(KEYS) for m in range(matches))

    def sql(self, policy: str) -> str:
        """The whole application."""
        return (f"SET operators = '{policy}'; SET trigger = '100 ms'; "
                f"SET quantum = '{QUANTUM:g} seconds';\n"
                + "".join(question.sql() for question in self.questions)
                + "".join(self._aggregates(question) for question in self.questions))

    def _aggregates(self, question: Question) -> str:
        return "".join(
            f"CREATE QUERY w_{question.name}{n} INTO noop AS SELECT COUNT(*) AS rows, SUM(a) AS a "
            f"FROM s_{question.name} [WINDOW {2 + n} SECONDS SLIDE EXACTLY 1 SECONDS];\n"
            for n in range(self.windows))


def prepare(folder: Path, blocks: int) -> None:
    """Write the files that the blocks are."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(5)
    for number in range(blocks):
        n = np.arange(number * ROWS, (number + 1) * ROWS)
        pq.write_table(pa.table({
            "n": n, "a": random.random(ROWS), "text": [f"row {i:012d}" for i in n],
            "k": n % KEYS}), folder / f"{number}.parquet")


def of_chart(points: Points, matches: int = 0) -> tuple[Condition, ...]:
    """The conditions of a chart: a share of the cost for each, and what is left behind it.

    The last operator of a chart puts its tuples out, so all rows pass it. Behind a join with
    ``matches`` rows, what comes before the steepest point is one condition: its envelope is the
    chart's.

    >>> [(round(c.micros, 1), round(c.kept, 3)) for c in of_chart(TWO)]
    [(16.9, 0.3), (393.8, 1.0)]
    """
    end = points[-1][0]
    if matches:
        points = (points[0], *points[-2:])
    conditions = []
    for (begin, before), (until, after) in pairwise(points):
        rows = before * matches if matches and not begin else before
        work = TOTAL * (until - begin) / end
        conditions.append(Condition(work / rows, after / rows if after else 1.0))
    return tuple(conditions)


PIPELINES = (
    Pipeline("two operators", (Question("q", (Condition(35, 0.1), Condition(1000, 1.0))),),
             blocks=45, arrivals=("even", "DEC-PKT"), thorough=True),
    Pipeline("four operators", (
        Question("q", (Condition(9, 0.9), Condition(18, 0.98), Condition(9, 0.1),
                       Condition(1100, 1.0))),), blocks=45, arrivals=("onoff",)),
    Pipeline("selectivity above 1", (
        Question("q", (Condition(11, 0.03), Condition(1100, 1.0)), matches=3),), blocks=45),
    Pipeline("three queries", (
        Question("x", (Condition(35, 0.1), Condition(1000, 1.0))),
        Question("y", (Condition(25, 0.2), Condition(450, 1.0))),
        Question("z", (Condition(17, 0.9), Condition(17, 0.1), Condition(1000, 1.0)))),
        blocks=45, arrivals=("onoff",), thorough=True),
    Pipeline("two operators of the paper", (Question("q", of_chart(TWO)),), blocks=45),
    Pipeline("four operators of the paper", (Question("q", of_chart(FOUR)),), blocks=45),
    Pipeline("selectivity above 1 of the paper", (
        Question("q", of_chart(ABOVE_ONE, matches=2), matches=2),), blocks=45),
    Pipeline("three queries of the paper", (
        Question("x", of_chart(TWO)), Question("y", of_chart(FOUR)),
        Question("z", of_chart(ABOVE_ONE, matches=2), matches=2)), blocks=45),
    Pipeline("two operators and aggregates",
             (Question("q", (Condition(35, 0.1), Condition(1000, 1.0))),), blocks=45, windows=4),
)
