"""One-time questions: a SELECT that is answered once, from what the spool holds now.

A window aggregate is answered from a synopsis of the running engine, if one covers the question.
Otherwise its panes are made from the blocks in the spool and then discarded. Every other form is
answered from all blocks in the spool. An aggregate or a join without a window is one over a single
pane: all rows get the same time. The answers of a query are read like a stream of one block. A
question writes nothing: it only reads. So it may be asked during a run, even of a checkpoint that
another process runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import gcd

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.arrow import arrow_schema, arrow_type
from penstock.engine.aggregates.coverage import families_of
from penstock.engine.instructions import JoinSide, ProbeScan
from penstock.engine.joins.outers import LATEST, side
from penstock.errors import CheckpointError, PenstockError, RunError
from penstock.model import (
    ANSWERS,
    Application,
    Block,
    Branch,
    OneTimeQuery,
    OrderKey,
    Query,
    Window,
    name_key,
    quoted,
)
from penstock.plan import EARLIEST, Group, Member, Plan, SharedJoin
from penstock.planning import plan as planned
from penstock.spark.aggregates.driver_answers import DriverAnswers, asked_of
from penstock.spark.aggregates.pane_job import FEW_ROWS, PaneJob
from penstock.spark.aggregates.synopsis_store import GroupSynopsis
from penstock.spark.compile.columns import compiled
from penstock.spark.compile.compiler import Compiler, Summarised
from penstock.spark.compile.references import References
from penstock.spark.compile.relation_versions import RelationVersions
from penstock.spark.compile.relations import Relations
from penstock.spark.delivery.stored_answers import Results
from penstock.spark.ingest.sources import plain
from penstock.spark.provided import Provided
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.storage.files import Files
from penstock.spark.storage.spool import Spool
from penstock.synopses import Question, Synopsis

TRIES = 3
"""How often a question is retried because blocks left the spool meanwhile."""
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Questions:
    """Answers questions about a checkpoint."""

    spark: SparkSession
    checkpoint: Checkpoint
    synopsis: Callable[[str], GroupSynopsis | None] | None = None
    """The synopses of the engine that runs here, by group; None if none runs."""
    provided: Provided = field(default_factory=Provided)

    def answer(self, application: Application, asked_for: OneTimeQuery) -> pa.Table:
        """The answer to a bound question."""
        relations = Relations(self.spark, self.checkpoint)
        answers = {stream.name: stream for stream in asked_for.answers}
        needs = References(
            replace(application, streams={**application.streams, **answers}), relations,
            self.provided,
            RelationVersions(self.spark, self.checkpoint, relations).look(application.relations))
        query = asked_for.query
        plan = planned([query])
        try:
            for _ in range(TRIES):
                held = self._held(application, needs, query)
                asked = _Question(self, needs, asked_for, plan, held)
                try:
                    return asked.answer()
                except PenstockError as error:
                    gone = isinstance(error, CheckpointError) and self._has_lost(
                        application, asked)
                    if not gone:
                        raise
                except Exception as error:
                    if not self._has_lost(application, asked):
                        raise RunError(
                            f"the question cannot be answered: {plain(error)}") from error
        finally:
            needs.close()
        raise RunError("blocks leave the spool faster than the question can be answered; "
                       "SET retention keeps them longer")

    @property
    def running(self) -> bool:
        """Whether more rows are expected: an engine is running, here or elsewhere."""
        if self.synopsis is not None:
            return True
        return not self.checkpoint.is_own and self.checkpoint.is_taken

    def _held(
        self, application: Application, needs: References, query: Query
    ) -> dict[str, Spool | HeldAnswers]:
        """By stream, the spool; by query whose answers are read, these answers."""
        found: dict[str, Spool | HeldAnswers] = {}
        for name in query.streams:
            stream = needs.application.streams[name]
            if stream.format == ANSWERS:
                table = Results(self.checkpoint).table(application, name)
                found[name] = HeldAnswers(self.spark, table.cast(arrow_schema(stream.columns)))
            else:
                found[name] = Spool.look(self.spark, self.checkpoint, Files(self.spark), stream)
        return found

    def _has_lost(self, application: Application, asked: _Question) -> bool:
        """Whether a block that was to be read no longer exists."""
        now = self._held(application, asked.needs, asked.query)
        return any(block not in now[name].held()
                   for name, held in asked.held.items() for block in held.held())


@dataclass(frozen=True, slots=True)
class HeldAnswers:
    """The answers of a query, read as the blocks of a stream are: there is one block."""

    spark: SparkSession
    table: pa.Table

    def held(self) -> list[Block]:
        """The block with all answers."""
        return [Block(ANSWERS, 0, self.table.num_rows, self.table.nbytes, 0.0)]

    def timed_frame(self, numbers: Sequence[int]) -> DataFrame:
        """The answers; nobody looks at their time."""
        return self.spark.createDataFrame(self.table)

    timely_frame = numbered_frame = timed_frame


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, and the spools as they were when it was asked."""

    by: Questions
    needs: References
    asked: OneTimeQuery
    plan: Plan
    held: Mapping[str, Spool | HeldAnswers]

    @property
    def query(self) -> Query:
        return self.asked.query

    def answer(self) -> pa.Table:
        if not any(held.held() for held in self.held.values()):
            names = " and ".join(sorted(self.held))
            raise RunError(f"nothing is held of {names}: no run on {self.by.checkpoint.root} has "
                           "read rows of it, or their retention is over")
        compiler = Compiler(self.by.spark, self.needs.application, self.plan, self.needs.relation,
                            self.needs.function, timeless=self.asked.is_held)
        if self.plan.groups and self.asked.is_held:
            return self._finished_table(self._all_at_once(compiler, self.plan.groups[0]))
        if self.plan.groups:
            windowed = self._windowed_pairs if self.plan.joins else self._windowed
            return self._finished_table(windowed(compiler, self.plan.groups[0]))
        if self.plan.joins:
            return self._finished(self._paired(compiler, self.plan.joins[0]))
        return self._finished(self._rows(compiler))

    # --- row by row --------------------------------------------------------------------------

    def _rows(self, compiler: Compiler) -> list[DataFrame]:
        """The answers of a query of form 1, 2 or 3 to all blocks in the spool."""
        parts = []
        for path in self.plan.paths:
            numbers = [block.number for block in self._blocks(path.reads)]
            if numbers:
                frame = self.held[path.reads].timed_frame(numbers)
                answers = compiler.answers(path, path.members, frame)
                parts.append(answers.project(path.members))
        return parts

    def _blocks(self, stream: str) -> list[Block]:
        return [block for block in self.held[stream].held() if block.rows]

    def _paired(self, compiler: Compiler, join: SharedJoin) -> list[DataFrame]:
        """The pairs of a window join among all blocks in the spool."""
        scan = self._scan_of_all(join)
        if scan is None:
            return []
        answers = compiler.paired(join, join.members, [scan], self._rows_of(join))
        return [answers.project(join.members)]

    def _scan_of_all(self, join: SharedJoin) -> ProbeScan | None:
        """The scan that finds all pairs; None if a stream has no rows."""
        blocks = [tuple(self._blocks(stream)) for stream in join.streams]
        if not all(blocks):
            return None
        return ProbeScan(
            since=EARLIEST, until=LATEST, nearest=0, farthest=join.span, members=join.members,
            sides=tuple(JoinSide(fresh=some, window=some) for some in blocks))

    def _rows_of(self, join: SharedJoin) -> Callable[[str, Sequence[int]], DataFrame]:
        """What reads the rows of a join: without a window all of them, also late ones."""
        def rows(stream: str, numbers: Sequence[int]) -> DataFrame:
            held = self.held[stream]
            if self.asked.is_held:
                return held.timed_frame(numbers)
            return held.numbered_frame(numbers) if join.rows else held.timely_frame(numbers)

        return rows

    # --- without a window --------------------------------------------------------------------

    def _all_at_once(self, compiler: Compiler, group: Group) -> pa.Table:
        """An aggregate over everything that is held, in one pane."""
        branch, joins = self.query.branches[0], self.plan.joins
        families = families_of(group)
        synopsis = Synopsis([key.type for key in group.keys], families, group.span,
                            paired=bool(joins))
        blocks = [] if joins else self._blocks(group.reads)
        scan = self._scan_of_all(joins[0]) if joins else None
        if scan is not None:
            rows = compiler.summarised_pairs(joins[0], [scan], self._rows_of(joins[0]))
            self._summarise(synopsis, rows, group, FEW_ROWS + 1)
        elif blocks:
            frame = self.held[group.reads].timed_frame([block.number for block in blocks])
            path = self.plan.path(group.path)
            with compiler.summarised(path, group.members, frame) as rows:
                self._summarise(synopsis, rows, group, sum(block.rows for block in blocks))
        (table,) = synopsis.scan(1, [Question(group.span, asked_of(branch))])
        if not table.num_rows and not group.keys:
            table = _of_no_rows(table.schema, branch)
        return self._selected(branch, 0, 1, table)

    def _summarise(
        self, synopsis: Synopsis, rows: Summarised, group: Group, count: int
    ) -> None:
        families = families_of(group)
        asked = rows.group(group, families)
        (tables,) = PaneJob([asked], rows.time).tables(rows.frame, count)
        synopsis.add({f: tables[at] for f, at in zip(families, asked.families, strict=True)})

    # --- windows -----------------------------------------------------------------------------

    def _windowed(self, compiler: Compiler, group: Group) -> pa.Table:
        branch = self.query.branches[0]
        window, blocks = branch.window, self._blocks(group.reads)
        assert window is not None
        found = self._from_synopsis(group, branch, blocks)
        if found is None:
            end = end_of(window, blocks[-1], self.by.running) if blocks else None
            if end is None:
                return self._schema.empty_table()
            found = end, self._from_blocks(compiler, group, branch, end)
        end, table = found
        return self._selected(branch, end - window.length, end, table)

    def _windowed_pairs(self, compiler: Compiler, group: Group) -> pa.Table:
        """The answer of an aggregate over a join, from the pairs of its window."""
        branch, join = self.query.branches[0], self.plan.join(group.reads)
        blocks = [self._blocks(stream) for stream in join.streams]
        window = branch.window
        assert window is not None
        end = pairs_end(group.pane, window, blocks, self.by.running)
        if end is None:
            return self._schema.empty_table()
        start = end - window.length
        scan = ProbeScan(
            since=start, until=end, nearest=0, farthest=join.span, members=join.members,
            sides=tuple(side(some, start, end, 0, join.span) for some in blocks))
        families = families_of(group)
        synopsis = Synopsis([key.type for key in group.keys], families, group.span, paired=True)
        if scan.may_find:
            with compiler.summarised_pairs(
                join, [scan], lambda stream, numbers: self.held[stream].timely_frame(numbers)
            ) as rows:
                asked = rows.group(group, families)
                (tables,) = PaneJob([asked], rows.time).tables(rows.frame, FEW_ROWS + 1)
            synopsis.add(tables)
        (table,) = synopsis.scan(end // group.pane, [Question(group.span, asked_of(branch))])
        return self._selected(branch, start, end, table)

    @property
    def _looks_up_anew(self) -> bool:
        """Whether it looks up a relation that changes: panes hold what was found when they were
        made, and a question looks everything up in the latest version.
        """
        relations = self.needs.application.relations
        return any(relations[lookup.relation].refresh is not None
                   for lookup in self.query.branches[0].lookups if not lookup.unnests)

    def _from_synopsis(
        self, group: Group, branch: Branch, blocks: Sequence[Block]
    ) -> tuple[int, pa.RecordBatch] | None:
        """The end of the window and the answer, if a synopsis has everything that is asked."""
        kept = self.by.synopsis(group.id) if self.by.synopsis else None
        window = branch.window
        if kept is None or kept.far is not None or window is None or self._looks_up_anew:
            return None
        pane = kept.group.pane
        step = window.slide if window.exactly else pane
        alike = replace(group, pane=pane, span=window.length // pane)
        if window.length % pane or step % pane or not kept.covers(alike):
            return None
        with kept.lock:
            closed = closed_by(blocks, kept.had)
            if closed is None:
                return None
            end = closed // step * step
            begin = end - window.length
            if kept.near.first > begin // pane or any(
                    block.number not in kept.had for block in reaching(blocks, begin, end)):
                return None
            question = Question(alike.span, asked_of(branch))
            (table,) = kept.near.scan(end // pane, [question])
        return end, table

    def _from_blocks(
        self, compiler: Compiler, group: Group, branch: Branch, end: int
    ) -> pa.RecordBatch:
        """The answer from panes that are made for it.

        They are as long as the window. Wherever the window ends, it lies in two of them, and rows
        outside it are left out before.
        """
        assert branch.window is not None
        length = branch.window.length
        own = replace(group, pane=length, span=2)
        families = families_of(own)
        synopsis = Synopsis([key.type for key in own.keys], families, own.span)
        blocks = reaching(self._blocks(own.reads), end - length, end)
        if blocks:
            frame = self.held[own.reads].timely_frame([block.number for block in blocks])
            path = self.plan.path(own.path)
            with compiler.summarised(path, own.members, frame) as rows:
                asked = rows.group(own, families)
                job = PaneJob([asked], rows.time)
                (tables,) = job.tables(_between(rows, end - length, end),
                                       sum(block.rows for block in blocks))
            synopsis.add({f: tables[at] for f, at in zip(families, asked.families, strict=True)})
        (table,) = synopsis.scan((end - 1) // length + 1, [Question(own.span, asked_of(branch))])
        return table

    def _selected(
        self, branch: Branch, start: int, end: int, table: pa.RecordBatch
    ) -> pa.Table:
        """HAVING and the SELECT list over an answer."""
        member = Member(self.query.name, 0)
        held = DriverAnswers(self.by.spark, {member: branch})
        held.add(member, start, end, table)
        found = held.table([member])
        return self._shaped(held.project([member]).toArrow() if found is None else found)

    # --- the form of an answer ---------------------------------------------------------------

    def _finished(self, parts: Sequence[DataFrame]) -> pa.Table:
        """The rows in the order that is asked for, and no more of them than are."""
        if not parts:
            return self._schema.empty_table().select(range(self.asked.shown))
        names = [quoted(name) for name in self._schema.names]
        frame = reduce(DataFrame.unionAll, [part.select(*names) for part in parts])
        if self.asked.distinct:
            frame = frame.distinct()
        if self.asked.order:
            frame = frame.orderBy(*(_sorting(names[key.output], key) for key in self.asked.order))
        if self.asked.offset:
            frame = frame.offset(self.asked.offset)
        if self.asked.limit is not None:
            frame = frame.limit(self.asked.limit)
        shown = frame.select(*names[: self.asked.shown]).toArrow()
        return shown.cast(pa.schema(list(self._schema)[: self.asked.shown]))

    def _finished_table(self, table: pa.Table) -> pa.Table:
        """The same of an answer in the driver."""
        asked = self.asked
        if not (asked.distinct or asked.order or asked.offset or asked.limit is not None):
            return table
        return self._finished([self.by.spark.createDataFrame(table)])

    def _shaped(self, table: pa.Table) -> pa.Table:
        """The question's own columns, in its order."""
        spelt = {name_key(name): name for name in table.column_names}
        columns = [table[spelt[name_key(name)]] for name in self._schema.names]
        return pa.table(columns, names=self._schema.names).cast(self._schema)

    @property
    def _schema(self) -> pa.Schema:
        outputs = self.query.branches[0].outputs
        return pa.schema([(name, arrow_type(type_)) for name, type_ in outputs])


def _sorting(column: str, key: OrderKey) -> Column:
    """A column as Spark sorts by it."""
    found = sf.col(column)
    if key.descending:
        return found.desc_nulls_first() if key.nulls_first else found.desc_nulls_last()
    return found.asc_nulls_first() if key.nulls_first else found.asc_nulls_last()


def _of_no_rows(schema: pa.Schema, branch: Branch) -> pa.RecordBatch:
    """What aggregates without GROUP BY are if there is no row: a count is 0, the others NULL."""
    assert branch.grouping is not None
    row = {f"agg{number}": 0 if aggregate.function in _COUNTS else None
           for number, aggregate in enumerate(branch.grouping.aggregates)}
    return pa.RecordBatch.from_pylist([row], schema=schema)


_COUNTS = ("COUNT", "COUNT_DISTINCT", "APPROX_COUNT_DISTINCT")


def _between(rows: Summarised, start: int, end: int) -> DataFrame:
    at = sf.unix_micros(compiled(rows.time))
    return rows.frame.where((at >= sf.lit(start)) & (at < sf.lit(end)))


def pairs_end(
    pane: int, window: Window, sides: Sequence[Sequence[Block]], running: bool
) -> int | None:
    """The end of a question's window over a join: what both streams have passed, or their end.

    >>> one = [Block("s", 0, 10, 80, 0.0, watermark=55, newest=60)]
    >>> other = [Block("t", 0, 10, 80, 0.0, watermark=72, newest=77)]
    >>> pairs_end(10, Window(60, 10), [one, other], running=True)
    50
    >>> pairs_end(10, Window(60, 10), [one, other], running=False)
    80
    """
    grain = window.slide if window.exactly else pane
    newest = [blocks[-1] for blocks in sides if blocks]
    times = [block.watermark if running else block.newest for block in newest]
    known = [time for time in times if time is not None]
    if len(known) < len(sides):
        return None
    return min(known) // grain * grain if running else (max(known) // grain + 1) * grain


def end_of(window: Window, newest: Block, running: bool) -> int | None:
    """The end of a question's window; None while no row with a time exists.

    While rows are expected, the window ends at the watermark, before which no row can come any
    more. At rest it ends after the newest row. Ends are multiples of the slide if the question says
    so, and otherwise of a second.

    >>> newest = Block("s", 3, 10, 80, 0.0, watermark=55_200_000, newest=60_200_000)
    >>> minute = Window(60_000_000, 60_000_000)
    >>> end_of(minute, newest, running=True), end_of(minute, newest, running=False)
    (55000000, 61000000)
    >>> end_of(replace(minute, exactly=True), newest, running=False)
    120000000
    """
    grain = window.slide if window.exactly else gcd(window.length, SECOND)
    if running:
        return None if newest.watermark is None else newest.watermark // grain * grain
    return None if newest.newest is None else (newest.newest // grain + 1) * grain


def closed_by(blocks: Sequence[Block], had: Collection[int]) -> int | None:
    """The time before which no further row can come to a synopsis that has had some blocks.

    >>> first = Block("s", 0, 10, 80, 0.0, watermark=40, newest=50)
    >>> second = Block("s", 1, 10, 80, 0.0, cutoff=40, watermark=70, newest=80)
    >>> closed_by([first, second], {0}), closed_by([first, second], {0, 1})
    (40, 70)
    """
    if not blocks or not had:
        return None
    coming = [block.cutoff for block in blocks
              if block.number not in had and block.number > min(had)]
    bounds = [blocks[-1].watermark, *coming]
    return None if None in bounds else min(bound for bound in bounds if bound is not None)


def reaching(blocks: Sequence[Block], start: int, end: int) -> list[Block]:
    """The blocks that may hold rows of a span of time."""
    return [block for block in blocks
            if (block.newest is None or block.newest >= start)
            and (block.cutoff is None or block.cutoff < end)]
