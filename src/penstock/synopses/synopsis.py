"""A synopsis: rings of panes that share their keys, updated in one step and read in one scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from penstock.errors import PlanError
from penstock.model import Aggregate, Type
from penstock.plan import EARLIEST
from penstock.synopses.answers import WindowTotals, answer, nothing
from penstock.synopses.dictionaries import Keys
from penstock.synopses.families import ROWS, Family, families, gathered
from penstock.synopses.ring import FILLED, Ring, Totals
from penstock.synopses.sessions import SessionRule, Times, due

SPARE = 64
"""Dead keys or cells that may stay whatever the number of the living: renumbering costs more."""

_needed = lru_cache(maxsize=64)(gathered)
"""Computed for every scan, it would take longer than the sums of a few windows."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a query asks at the end of a window."""

    length: int
    """Panes of the window."""
    aggregates: tuple[Aggregate, ...]
    session: SessionRule | None = None
    """What a session is, if sessions are asked for: the answer is for those due at the end."""
    kept: int = 0
    """So many first panes of the window only say which groups are known."""

    @property
    def is_of_one_window(self) -> bool:
        """Whether the answer is about the rows of the window alone, whatever their panes."""
        return self.session is None and not self.kept


class Synopsis:
    """The panes of a group of queries with the same rows and keys.

    >>> from penstock.model import Column, INT, BIGINT
    >>> from penstock.synopses.families import gathered
    >>> total = Aggregate("SUM", (Column("length", INT),), BIGINT)
    >>> families = gathered([total])
    >>> synopsis = Synopsis([INT], families, span=10)
    >>> table = pa.table({"pane": [4, 5, 5], "k0": pa.array([7, 7, 8], pa.int32()),
    ...                   "m0": [2, 1, 1], "m1": [2, 1, 1], "m2": [30, 5, 9]})
    >>> synopsis.add({families[0]: table})
    >>> for answers in synopsis.scan(6, [Question(1, (total,)), Question(2, (total,))]):
    ...     print(answers.to_pydict())
    {'key0': [7, 8], 'agg0': [5, 9]}
    {'key0': [7, 8], 'agg0': [35, 9]}
    """

    def __init__(
        self, keys: Sequence[Type], families: Sequence[Family], span: int, filled: float = FILLED,
        paired: bool = False,
    ) -> None:
        """No pane yet. ``span`` is the longest window, in panes; the others as in `Ring`."""
        self._keys = Keys(keys)
        self._first_keys: list[pa.Array] = []
        self._width = len(keys)
        self._rings = {family.name: Ring(family, filled, paired) for family in families}
        self.span = span
        self.first = EARLIEST
        """The first pane that is not forgotten."""

    def add(self, tables: Mapping[Family, pa.Table]) -> None:
        """Merge the pane tables of a block in, those of all families in one step.

        All are read before any is merged, so a table that cannot be read changes no answer.
        Several blocks may hold parts of a pane. Rows of forgotten panes are passed by.
        """
        updates = []
        for family, table in tables.items():
            columns = [table[f"k{n}"] for n in range(self._width)]
            ring = self._rings[family.name]
            updates.append((ring, ring.read(self._keys.ids(columns, len(table)), table)))
        with np.errstate(all="ignore"):
            for ring, update in updates:
                ring.merge(update, self.first)

    def scan(self, end: int, questions: Sequence[Question]) -> list[pa.RecordBatch]:
        """The answers to questions about windows that end at a pane (exclusive), in their order.

        One scan serves all: it reads each pane of the longest window once and answers the shorter
        ones on the way. An answer has the columns ``key0``, ... and ``agg0``, ..., and a row for
        every group that has rows in the window.
        """
        plain = [one for one in questions if one.is_of_one_window]
        if len(plain) < len(questions):
            told = dict(zip(map(id, plain), self.scan(end, plain), strict=True))
            return [told[id(one)] if one.is_of_one_window else self._one(end, one)
                    for one in questions]
        lengths = {question.length for question in questions}
        if lengths and (min(lengths) < 1 or max(lengths) > self.span):
            raise PlanError(f"windows of {min(lengths)} to {max(lengths)} panes over {self.span}")
        with np.errstate(all="ignore"):  # infinities add up to NaN, as they do in Spark
            found = self._at_once(end, questions)
            return self._one_by_one(end, questions) if found is None else found

    def _one(self, end: int, question: Question) -> pa.RecordBatch:
        """The answer to a question that is about more than the rows of one window."""
        if question.session is not None:
            return self._sessions(end, question, question.session)
        asks = question.aggregates
        found, known = self.scan(end, [Question(question.length - question.kept, asks),
                                       Question(question.length, asks[:1])])
        empty = known.filter(pa.array(~np.isin(self._ids(known), self._ids(found))))
        columns = [empty[f"key{n}"] for n in range(self._width)]
        columns += [nothing(aggregate, len(empty)) for aggregate in asks]
        return pa.concat_batches([found, pa.RecordBatch.from_arrays(columns, schema=found.schema)])

    def _sessions(self, end: int, question: Question, rule: SessionRule) -> pa.RecordBatch:
        """The sessions that are due at the end of a pane: each is scanned like a window."""

        def times(number: int) -> Times:
            (found,) = self.scan((number + 1) * rule.panes, [Question(rule.panes, rule.times)])
            first, last = (np.asarray(found[name].cast(pa.int64())) for name in ("agg0", "agg1"))
            return self._ids(found), first, last

        found = due(rule, end // rule.panes, question.length // rule.panes, len(self._keys), times)
        answers = []
        for first, last in sorted(set(zip(found.firsts.tolist(), found.lasts.tolist(),
                                          strict=True))):
            window = Question((last - first + 1) * rule.panes, question.aggregates)
            (answer,) = self.scan((last + 1) * rule.panes, [window])
            keys = found.keys[(found.firsts == first) & (found.lasts == last)]
            answers.append(answer.filter(pa.array(np.isin(self._ids(answer), keys))))
        if not answers:
            (answer,) = self.scan(end, [Question(1, question.aggregates)])
            return answer.slice(0, 0)
        return pa.concat_batches(answers)

    def _ids(self, answer: pa.RecordBatch) -> np.ndarray:
        """The numbers of the keys of an answer."""
        return self._keys.ids([answer[f"key{n}"] for n in range(self._width)], len(answer))

    def _at_once(self, end: int, questions: Sequence[Question]) -> list[pa.RecordBatch] | None:
        """The answers from running sums; None: they do not serve.

        What is asked is compared by identity, as equality is costly to find out.
        """
        asked = [tuple(map(id, question.aggregates)) for question in questions]
        alike: dict[tuple[int, ...], dict[int, Question]] = {}
        for same, question in zip(asked, questions, strict=True):
            alike.setdefault(same, {})[question.length] = question
        found: dict[tuple[int, ...], dict[int, pa.RecordBatch]] = {}
        for same, by_length in alike.items():
            aggregates = next(iter(by_length.values())).aggregates
            needed = _needed(aggregates)
            if [family.kind for family in needed] != ["scalars"]:
                return None
            totals = self._rings[needed[0].name].windows(end, list(by_length), needed[0].measures)
            if totals is None:
                return None
            answers = self._apart(totals, aggregates, len(by_length))
            found[same] = dict(zip(by_length, answers, strict=True))
        return [found[same][question.length]
                for same, question in zip(asked, questions, strict=True)]

    def _apart(
        self, totals: Totals, aggregates: Sequence[Aggregate], windows: int
    ) -> list[pa.RecordBatch]:
        """The answers of windows whose totals follow one after the other."""
        family, cells = totals.ring.family, len(totals.ring)
        held = None if totals.everywhere(ROWS) else np.flatnonzero(totals.present)
        scope = WindowTotals({family.name: totals}, slice(None) if held is None else held,
                             windows * cells)
        columns = [answer(aggregate, [family], scope) for aggregate in aggregates]
        if held is None:  # all have the same keys, which need not be copied for each
            keys = [pa.chunked_array([key] * windows) for key in self._first(cells)]
            return list(_table(keys, columns).to_batches(max_chunksize=cells))
        whole = _batch(self._keys.take(held % cells), columns)
        bounds = np.searchsorted(held, np.arange(windows + 1) * cells).tolist()
        return [whole.slice(first, end - first) for first, end in pairwise(bounds)]

    def _first(self, number: int) -> list[pa.Array]:
        """The columns of this many keys; cached, as most scans ask for the same."""
        if not self._first_keys or len(self._first_keys[0]) != number:
            self._first_keys = self._keys.take(np.arange(number))
        return self._first_keys

    def _one_by_one(self, end: int, questions: Sequence[Question]) -> list[pa.RecordBatch]:
        """The answers from one pass over the panes."""
        asked: dict[int, dict[int, Aggregate]] = {}  # by identity
        for question in questions:
            asked.setdefault(question.length, {}).update((id(a), a) for a in question.aggregates)
        found = dict(zip(sorted(asked), self._scanned(end, asked), strict=True))
        return [_batch(keys, [columns[id(a)] for a in question.aggregates])
                for question in questions for keys, columns in [found[question.length]]]

    def _scanned(
        self, end: int, asked: Mapping[int, Mapping[int, Aggregate]]
    ) -> Iterator[_Found]:
        """The keys and the aggregates of each length, ascending."""
        distinct = {id: aggregate for some in asked.values() for id, aggregate in some.items()}
        needed = gathered(distinct.values())
        sources = {id: families(aggregate) for id, aggregate in distinct.items()}
        names = [family.name for family in needed]
        lengths = sorted(asked)
        scans = [self._rings[f.name].scan(end, lengths, f.measures) for f in needed]
        keys: list[pa.Array] = []
        groups, known = np.empty(0, np.int64), -1
        for length, *totals in zip(lengths, *scans, strict=True):
            if known < len(self._keys):  # longer windows hold the groups of the shorter ones
                groups = self._groups(totals)
            if len(groups) != known:
                keys, known = self._keys.take(groups), len(groups)
            scope = WindowTotals(dict(zip(names, totals, strict=True)), groups, len(self._keys))
            yield keys, {id: answer(aggregate, sources[id], scope)
                         for id, aggregate in asked[length].items()}

    def _groups(self, totals: Sequence[Totals]) -> np.ndarray:
        """The keys with rows in the window; every family but candidates knows all of them."""
        known = [t for t in totals if t.ring.family.kind != "candidates"]
        best = next((t for t in known if t.ring.values is None), known[0])
        if best.ring.values is None:
            return np.flatnonzero(best.present)
        held = np.zeros(len(self._keys), bool)
        held[best.ring.key_of[best.present]] = True
        return np.flatnonzero(held)

    def forget(self, before: int) -> None:
        """Drop the panes before this one, and in time the keys and cells that no pane holds.

        Those go when they are more than the living ones, so that the work is spread over the panes
        and memory stays within twice what the live panes need.
        """
        self.first = max(self.first, before)
        for ring in self._rings.values():
            ring.forget(self.first)
        alive = [ring.alive(self.first) for ring in self._rings.values()]
        if any(len(ring) > 2 * len(cells) + SPARE
               for ring, cells in zip(self._rings.values(), alive, strict=True)):
            self._compact(alive)

    def settle(self, before: int) -> None:
        """Of pairs: no coming window ends before this pane."""
        with np.errstate(all="ignore"):
            for ring in self._rings.values():
                ring.settle(before)

    def _compact(self, alive: Sequence[np.ndarray]) -> None:
        rings = list(self._rings.values())
        held = [ring.key_of[cells] for ring, cells in zip(rings, alive, strict=True)]
        keys = np.unique(np.concatenate(held))
        renumbered = np.full(len(self._keys), -1)
        renumbered[keys] = np.arange(len(keys))
        self._keys, self._first_keys = self._keys.kept(keys), []
        self._rings = {
            name: ring.kept(cells, renumbered)
            for (name, ring), cells in zip(self._rings.items(), alive, strict=True)
        }

    @property
    def keys(self) -> int:
        """Keys held, some of which may have left every pane."""
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """The memory it takes."""
        held = self._keys.nbytes + sum(ring.nbytes for ring in self._rings.values())
        return held + sum(int(column.nbytes) for column in self._first_keys)


_Found: TypeAlias = tuple[list[pa.Array], dict[int, pa.Array]]
"""The keys of a window, and its aggregates by their identity."""


def _names(keys: int, aggregates: int) -> list[str]:
    return [f"key{n}" for n in range(keys)] + [f"agg{n}" for n in range(aggregates)]


def _table(keys: Sequence[pa.ChunkedArray], columns: Sequence[pa.Array]) -> pa.Table:
    return pa.Table.from_arrays([*keys, *columns], names=_names(len(keys), len(columns)))


def _batch(keys: Sequence[pa.Array], columns: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*keys, *columns], names=_names(len(keys), len(columns)))
