"""One-time questions: a SELECT that is answered once, from what the spool holds now.

A window aggregate is answered from a synopsis of the running engine, if one covers the question.
Otherwise its panes are made from the blocks in the spool and then discarded. Every other form is
answered from all blocks in the spool. A question writes nothing: it only reads the spool. So it may
be asked during a run, even of a checkpoint that another process runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import gcd

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.arrow import arrow_type
from penstock.engine.aggregates.coverage import families_of
from penstock.engine.instructions import JoinSide, ProbeScan
from penstock.engine.joins.outers import LATEST, side
from penstock.errors import CheckpointError, PenstockError, RunError
from penstock.model import Application, Block, Branch, Query, Window, name_key
from penstock.plan import EARLIEST, Group, Member, Plan, SharedJoin
from penstock.planning import plan as planned
from penstock.spark.aggregates.driver_answers import DriverAnswers, asked_of
from penstock.spark.aggregates.pane_job import FEW_ROWS, PaneJob
from penstock.spark.aggregates.synopsis_store import GroupSynopsis
from penstock.spark.compile.columns import compiled
from penstock.spark.compile.compiler import Compiler, Summarised
from penstock.spark.compile.references import References
from penstock.spark.compile.relations import Relations
from penstock.spark.ingest.sources import plain
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

    def answer(self, application: Application, query: Query) -> pa.Table:
        """The answer to a bound question."""
        relations = Relations(self.spark, None, lambda subject, text: None)
        needs = References(application, relations)
        try:
            for _ in range(TRIES):
                asked = _Question(self, needs, query, planned([query]), self._spools(needs, query))
                try:
                    return asked.answer()
                except PenstockError as error:
                    gone = isinstance(error, CheckpointError) and self._has_lost(needs, asked)
                    if not gone:
                        raise
                except Exception as error:
                    if not self._has_lost(needs, asked):
                        raise RunError(
                            f"the question cannot be answered: {plain(error)}") from error
        finally:
            relations.close()
        raise RunError("blocks leave the spool faster than the question can be answered; "
                       "SET retention keeps them longer")

    @property
    def running(self) -> bool:
        """Whether more rows are expected: an engine is running, here or elsewhere."""
        if self.synopsis is not None:
            return True
        return not self.checkpoint.is_own and self.checkpoint.is_taken

    def _spools(self, needs: References, query: Query) -> dict[str, Spool]:
        streams = set(query.streams)
        return {stream: Spool.look(self.spark, self.checkpoint, Files(self.spark),
                                   needs.application.streams[stream]) for stream in streams}

    def _has_lost(self, needs: References, asked: _Question) -> bool:
        """Whether a block that was to be read no longer exists."""
        now = self._spools(needs, asked.query)
        return any(block not in now[name].held()
                   for name, spool in asked.spools.items() for block in spool.held())


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, and the spools as they were when it was asked."""

    by: Questions
    needs: References
    query: Query
    plan: Plan
    spools: dict[str, Spool]

    def answer(self) -> pa.Table:
        if not any(spool.held() for spool in self.spools.values()):
            names = " and ".join(sorted(self.spools))
            raise RunError(f"nothing is held of {names}: no run on {self.by.checkpoint.root} has "
                           "read rows of it, or their retention is over")
        compiler = Compiler(self.by.spark, self.needs.application, self.plan, self.needs.relation,
                            self.needs.function)
        if self.plan.groups and self.plan.joins:
            return self._windowed_pairs(compiler, self.plan.groups[0])
        if self.plan.groups:
            return self._windowed(compiler, self.plan.groups[0])
        if self.plan.joins:
            return self._paired(compiler, self.plan.joins[0])
        return self._rows(compiler)

    # --- row by row --------------------------------------------------------------------------

    def _rows(self, compiler: Compiler) -> pa.Table:
        """The answer of a query of form 1, 2 or 3 to all blocks in the spool."""
        parts = []
        for path in self.plan.paths:
            numbers = [block.number for block in self._blocks(path.reads)]
            if numbers:
                frame = self.spools[path.reads].timed_frame(numbers)
                answers = compiler.answers(path, path.members, frame)
                parts.append(self._shaped(answers.project(path.members).toArrow()))
        return pa.concat_tables([self._schema.empty_table(), *parts])

    def _blocks(self, stream: str) -> list[Block]:
        return [block for block in self.spools[stream].held() if block.rows]

    def _paired(self, compiler: Compiler, join: SharedJoin) -> pa.Table:
        """The pairs of a window join among all blocks in the spool."""
        blocks = [tuple(self._blocks(stream)) for stream in join.streams]
        if not all(blocks):
            return self._schema.empty_table()
        scan = ProbeScan(
            since=EARLIEST, until=LATEST, nearest=0, farthest=join.span, members=join.members,
            sides=tuple(JoinSide(fresh=some, window=some) for some in blocks))

        def rows(stream: str, numbers: Sequence[int]) -> DataFrame:
            spool = self.spools[stream]
            return spool.numbered_frame(numbers) if join.rows else spool.timely_frame(numbers)

        answers = compiler.paired(join, join.members, [scan], rows)
        return self._shaped(answers.project(join.members).toArrow())

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
                join, [scan], lambda stream, numbers: self.spools[stream].timely_frame(numbers)
            ) as rows:
                asked = rows.group(group, families)
                (tables,) = PaneJob([asked], rows.time).tables(rows.frame, FEW_ROWS + 1)
            synopsis.add(tables)
        (table,) = synopsis.scan(end // group.pane, [Question(group.span, asked_of(branch))])
        return self._selected(branch, start, end, table)

    def _from_synopsis(
        self, group: Group, branch: Branch, blocks: Sequence[Block]
    ) -> tuple[int, pa.RecordBatch] | None:
        """The end of the window and the answer, if a synopsis has everything that is asked."""
        kept = self.by.synopsis(group.id) if self.by.synopsis else None
        window = branch.window
        if kept is None or kept.far is not None or window is None:
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
            frame = self.spools[own.reads].timely_frame([block.number for block in blocks])
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

    def _shaped(self, table: pa.Table) -> pa.Table:
        """The question's own columns, in its order."""
        spelt = {name_key(name): name for name in table.column_names}
        columns = [table[spelt[name_key(name)]] for name in self._schema.names]
        return pa.table(columns, names=self._schema.names).cast(self._schema)

    @property
    def _schema(self) -> pa.Schema:
        outputs = self.query.branches[0].outputs
        return pa.schema([(name, arrow_type(type_)) for name, type_ in outputs])


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
