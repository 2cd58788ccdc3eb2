"""From a path of the plan and a block of rows to the rows of its answers.

A path of one member is a plain filter, so that Spark pushes it down into the files. Several members
are a fan-out. A member that calls Python goes through `penstock.spark.compile.python_stage`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial, reduce
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.storagelevel import StorageLevel

from penstock.engine.instructions import AS_WRITTEN, Evaluation, ProbeScan
from penstock.engine.version_history import RelationHistory
from penstock.errors import PlanError
from penstock.functions import PythonFunction
from penstock.model import (
    INT,
    OURS,
    STREAM,
    TIMESTAMP,
    Aggregate,
    Application,
    Block,
    Branch,
    Column,
    Expression,
    Field,
    Literal,
    Output,
    lookup_source,
    name_key,
)
from penstock.plan import Group, Member, Path, Plan, SharedJoin
from penstock.planning.check import MEMBER
from penstock.planning.efforts import cheapest_first
from penstock.planning.outputs import distinct, merged
from penstock.spark.aggregates.pane_groupings import PaneGroup
from penstock.spark.compile.columns import all_of, compiled, in_turn, ours, place, renamed
from penstock.spark.compile.elements import unnested
from penstock.spark.compile.expressions import data_type
from penstock.spark.compile.fanout import CompiledFanout, output_name
from penstock.spark.compile.file_scans import FileScan
from penstock.spark.compile.multiway import MultiwayCompiler, Survivors
from penstock.spark.compile.pair_counts import PairCounts
from penstock.spark.compile.pair_numbers import PAIR_PANE, pair_pane
from penstock.spark.compile.pairs import PairCompiler
from penstock.spark.compile.pipeline import Pipeline, Progress
from penstock.spark.compile.python_stage import ERROR
from penstock.spark.compile.row_pairs import RowPairCompiler
from penstock.spark.compile.shared_conjunction import SharedConjunction
from penstock.spark.compile.worker_sinks import WorkerSink
from penstock.spark.jobs.rows_read import ProbeReading, Reading
from penstock.spark.storage.spool import ARRIVED, EVENT_TIME
from penstock.synopses import Family

REJECTED = "@rejected"
ROW = "@row"
"""A rejected row as JSON, among collected answers."""
TIME = Field("time", TIMESTAMP)
"""The time of a row, among what Python computes for window aggregates."""
MOST_COLLECTED = 1_000_000
"""The most rows that a task may send to the driver. A job that was expected to have few fails at
this number instead of filling the driver's memory, and is retried on the executors."""
_IN_PARTITION = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that number the rows of one task."""
_VERSION = "@version"
"""The column of a relation's rows that tells their version, where there are several."""
_Pairs = TypeVar("_Pairs", PairCompiler, RowPairCompiler, MultiwayCompiler)
MOST_FANOUTS = 64
"""The most tables of constants kept in the JVM; the least recently used go first."""


@dataclass(frozen=True)
class PathAnswers:
    """The answers of some members to a block, not yet computed."""

    frame: DataFrame
    """One row per row of the block and member that wants it, or whose Python function rejected it.
    """
    branches: Mapping[Member, Branch]
    """The members in the order in which ``@member`` numbers them."""
    columns: Callable[[Field], SparkColumn]
    """Where the frame holds an output of this name and type."""
    row: Callable[[], SparkColumn] | None = None
    """A rejected row as JSON. It takes milliseconds to describe, and there is seldom one."""
    shown: Callable[[], Sequence[SparkColumn]] = tuple
    """The columns in it."""
    progress: Progress | None = None
    reading: Reading | ProbeReading | None = None
    taken: tuple[str, ...] = ()
    """If workers hand the answers to their sink, the columns of what its takers tell. Then the
    frame has these rows, without a member, and the rejects."""

    @property
    def has_rejects(self) -> bool:
        """Whether Python is involved: then persist the frame before using it twice."""
        return self.row is not None

    def persisted(self) -> PathAnswers:
        """The same answers, computed once however often they are used, until `unpersist`."""
        return replace(self, frame=self.frame.persist(StorageLevel.MEMORY_AND_DISK))

    def unpersist(self) -> None:
        """Release what `persisted` holds."""
        self.frame.unpersist()

    def collect(self) -> pa.Table:
        """Bring all answers to the driver, by one Spark job.

        The columns are ``@member``, then the outputs of all members, the n-th of `distinct` as
        `output_name` (n). If Python is involved, the ``@error`` of a rejected row and the ``@row``
        as JSON follow.
        """
        number = sf.monotonically_increasing_id().bitwiseAND(sf.lit(_IN_PARTITION))
        too_many = sf.raise_error(sf.lit(
            f"there are more than {MOST_COLLECTED} answers where few were expected"))
        member = sf.when(number < MOST_COLLECTED, ours(MEMBER)).otherwise(too_many)
        columns = [self.columns(field) for field in distinct(self.branches.values())]
        extra = []
        if self.row is not None:  # outputs of rejected rows are not computed: they might raise
            columns = [sf.when(ours(ERROR).isNull(), column) for column in columns]
            extra = [ours(ERROR), sf.when(ours(ERROR).isNotNull(), self.row()).alias(ROW)]
        named = [column.alias(output_name(n)) for n, column in enumerate(columns)]
        return self.frame.select(member.alias(MEMBER), *named, *extra).toArrow()

    def told(self) -> pa.Table | None:
        """What the takers told, by one Spark job, if workers hand the answers to their sink."""
        if not self.taken:
            return None
        told = self.frame.where(ours(MEMBER).isNull())
        return told.select(*(ours(name) for name in self.taken)).toArrow()

    def rows(self, members: Sequence[Member]) -> dict[str, int] | None:
        """Rows that each query gets, if already known; here only Spark can say."""
        return None

    def table(self, members: Sequence[Member]) -> pa.Table | None:
        """What `project` gives, if the driver already has it."""
        return None

    def project(self, members: Sequence[Member]) -> DataFrame:
        """``@member``, then the members' columns by name; NULL if a member lacks a column.

        ``@member`` is the position among the members given to `Compiler.answers`. Rejected rows are
        left out.
        """
        if self.taken:
            raise PlanError("answers that workers have handed to their sink are not in Spark")
        fields = distinct(self.branches[member] for member in members)
        columns = [self._merged(wanted, fields).alias(wanted.name) for wanted in merged(fields)]
        return self._rows_of(members).select(ours(MEMBER), *columns)

    def rejects(self) -> DataFrame:
        """``@member``, the ``row`` as JSON and the ``error`` of every row that Python rejected."""
        if self.row is None:
            raise PlanError("only paths that call Python have rejects")
        rejected = self.frame.where(ours(ERROR).isNotNull())
        return rejected.select(ours(MEMBER), self.row().alias("row"), ours(ERROR).alias("error"))

    def first_error(self) -> str:
        """What Python raised for some row that it rejected."""
        found = self.rejects().select("error").first()
        return "" if found is None else str(found[0])

    def rejected(self) -> int:
        """How many rows Python rejected, once a job has computed the frame."""
        return self.progress.counts()[REJECTED] if self.progress else 0

    def check(self) -> None:
        """Refuse the computed answers if rows of the block were not read."""
        if self.reading is not None:
            self.reading.check()

    def counts(self) -> dict[str, int]:
        """Rows out of each observed operator, once a job has computed the frame."""
        counted = self.progress.counts() if self.progress else {}
        return {name: rows for name, rows in counted.items() if name != REJECTED}

    def _rows_of(self, members: Sequence[Member]) -> DataFrame:
        frame = self.frame.where(ours(ERROR).isNull()) if self.has_rejects else self.frame
        wanted = set(members)
        if wanted >= self.branches.keys():
            return frame
        numbers = [n for n, member in enumerate(self.branches) if member in wanted]
        return frame.where(ours(MEMBER).isin(numbers))

    def _merged(self, wanted: Field, fields: Sequence[Field]) -> SparkColumn:
        """One column of the dataset; of its types at most one is set in a row."""
        alike = [f for f in fields if name_key(f.name) == name_key(wanted.name)]
        type_ = data_type(wanted.type)
        columns = [
            self.columns(f) if f.type == wanted.type else self.columns(f).cast(type_) for f in alike
        ]
        return columns[0] if len(columns) == 1 else sf.coalesce(*columns)


@dataclass(frozen=True)
class Summarised:
    """The rows that window aggregates of a path summarise, not yet computed."""

    frame: DataFrame
    time: Expression
    """The time of the rows, over the columns of the frame."""
    python: PathAnswers | None = None
    """If Python is involved, what it rejected."""
    _places: Mapping[Expression, Expression] | None = None
    """Where the frame holds what Python has computed; None if its columns are the stream's."""
    columns: tuple[SparkColumn, ...] = ()
    """What is shown of a row: the stream's columns, or those that a path through Python has."""
    reading: Reading | None = None
    paired: bool = False
    """Whether they are pairs, whose time is the number of their panes."""

    def __enter__(self) -> Summarised:
        """Compute Python's part once, since several groupings may read it."""
        if self.python is not None:
            self.python.persisted()
        return self

    def __exit__(self, *_: object) -> None:
        """Release it."""
        if self.python is not None:
            self.python.unpersist()

    def has(self, group: Group) -> bool:
        """Whether the frame holds everything that a group summarises: it may have grown since."""
        wanted = (output.expression for output in group.rows.select)
        return self._places is None or all(one in self._places for one in wanted)

    def over(self, aggregate: Aggregate) -> Aggregate:
        """An aggregate over the columns of the frame."""
        if self._places is None:
            return aggregate
        return replace(aggregate, args=tuple(self._places[arg] for arg in aggregate.args))

    def before(self, group: Group, time: int) -> DataFrame:
        """The rows that a group would summarise if their time were not earlier."""
        if self.python is None:
            rows, at, wanted = self.frame, compiled(self.time), all_of(group.where)
        else:
            rows, at = self.python.frame, self.python.columns(TIME)
            wanted = ours(ERROR).isNull()
        early = rows.where(sf.unix_micros(at) < sf.lit(time))
        return (early if wanted is None else early.where(wanted)).select(
            *self.columns)

    def check(self) -> None:
        """Refuse the panes made from them if rows of the block were not read."""
        if self.reading is not None:
            self.reading.check()

    def compute(self) -> None:
        """Compute Python's part if no panes are made from it: it counts rows as it computes."""
        if self.python is not None:
            self.python.frame.write.format("noop").mode("overwrite").save()
            self.check()

    def group(self, group: Group, families: Sequence[Family]) -> PaneGroup:
        """What a synopsis of these families needs from the frame."""
        pane = 1 if self.paired else group.pane
        if self._places is None:
            return PaneGroup(group.keys, tuple(families), pane, group.where)
        keys = tuple(self._places[key] for key in group.keys)
        return PaneGroup(keys, tuple(f.over(self._places.__getitem__) for f in families), pane)


class Compiler:
    """Compiles paths of one plan for one session.

    ``relation`` gives the frame of a stored relation and ``function`` a registered Python function,
    both by the name in SQL.
    """

    def __init__(
        self,
        spark: SparkSession,
        application: Application,
        plan: Plan,
        relation: Callable[[str, int], DataFrame],
        function: Callable[[str], PythonFunction],
        timeless: bool = False,
        history: Callable[[], RelationHistory] = RelationHistory,
    ) -> None:
        """Begin with nothing compiled; if it is ``timeless``, all rows have one time (`HELD`).

        ``history`` tells which versions of relations blocks are joined with; what it does not know
        is joined with the latest.
        """
        self._timeless, self._history = timeless, history
        self._versions: Mapping[str, tuple[int, ...]] = {}
        self._spark, self._application, self._plan = spark, application, plan
        self._relation, self._function = relation, function
        self._fanouts: OrderedDict[tuple[str, tuple[Member, ...]], CompiledFanout] = OrderedDict()
        self._building = threading.Lock()
        self._joins: dict[str, PairCompiler] = {}
        self._row_joins: dict[str, RowPairCompiler] = {}
        self._multiway: dict[str, MultiwayCompiler] = {}
        self._pair_counts: OrderedDict[tuple[str, tuple[Member, ...]], PairCounts] = OrderedDict()
        self._pair_paths = {join.path.id: len(join.streams) for join in plan.joins}

    def at(self, path: Path, block: Block) -> Compiler:
        """The same, for blocks that are joined with the same versions of relations as this one."""
        history = self._history()
        return self._with({name: (history.seen(name, block.stream, block.number),)
                           for name in _relations(path) if name in history.versions})

    def _with(self, versions: Mapping[str, tuple[int, ...]]) -> Compiler:
        if versions == self._versions:
            return self
        other = copy(self)  # what is compiled does not depend on versions, and is shared
        other._versions = versions
        return other

    def answers(
        self, path: Path, members: tuple[Member, ...], block: DataFrame, first: int = 0,
        evaluation: Evaluation = AS_WRITTEN, scan: FileScan | None = None,
        sink: WorkerSink | None = None,
    ) -> PathAnswers:
        """The answers of some members of a path to a block of its stream.

        With ``first`` the block has already passed the stages before it. With a ``scan`` the block
        is the frame of that scan, whose rows Python workers read themselves. A ``sink`` that takes
        all answers may be handed them by the workers.
        """
        if not members:
            raise PlanError(f"nobody asks for answers of path {path.id!r}")
        branches = {member: self._branch(path, member) for member in members}
        if path.shared:
            return self._through_shared(path, branches, block, evaluation, scan, sink)
        if path.expensive:
            return self._through_python(path, branches, block, first, evaluation, scan)
        rows = self._joined(path, block)
        if len(members) > 1:
            return self._fanned_out(path, branches, rows)
        return _plain(branches, rows, evaluation.order)

    def paired(
        self, join: SharedJoin, members: tuple[Member, ...], scans: Sequence[ProbeScan],
        rows: Callable[[str, Sequence[int]], DataFrame],
        survivors: Sequence[Survivors] = (),
    ) -> PathAnswers:
        """What some members of a shared join get of the pairs that scans find.

        ``rows`` gives the timely rows of blocks of a stream. Results of a multiway join are found
        among the rows with keys that ``survivors`` has for each scan, if drops were probed.
        """
        mine, rows = self._seeing(join, scans, rows)
        found = mine._found(join, scans, rows, survivors)
        if all(scan.members == members for scan in scans):
            return mine.answers(join.path, members, reduce(DataFrame.unionAll, found))
        return mine._only(join.path, members, found, scans)

    def summarised_pairs(
        self, join: SharedJoin, scans: Sequence[ProbeScan],
        rows: Callable[[str, Sequence[int]], DataFrame],
        survivors: Sequence[Survivors] = (),
    ) -> Summarised:
        """The pairs that the window aggregates over a join summarise."""
        mine, rows = self._seeing(join, scans, rows)
        found = reduce(DataFrame.unionAll, mine._found(join, scans, rows, survivors))
        if not join.path.expensive:
            return Summarised(mine._joined(join.path, found), PAIR_PANE, paired=True)
        made = mine._summarised_by_python(join.path, join.members[0], found, 0, AS_WRITTEN)
        return replace(made, paired=True)

    def counted(
        self, join: SharedJoin, members: tuple[Member, ...], scans: Sequence[ProbeScan],
        rows: Callable[[str, Sequence[int]], DataFrame],
        survivors: Sequence[Survivors] = (),
    ) -> dict[Member, int]:
        """How many rows some members get of the pairs that scans find; this runs a Spark job.

        It is for joins behind which no relation is looked up and no Python is called.
        """
        counts, found = self._counts(join, members), self._found(join, scans, rows, survivors)
        return counts.counted(counts.frame(found), [scan.members for scan in scans])

    def _counts(self, join: SharedJoin, members: tuple[Member, ...]) -> PairCounts:
        """What counts for all members of a join, if they differ in their windows only.

        Then its code is compiled once, whoever takes part in a job.
        """
        branches = {member: self._plan.branch(member) for member in join.members}
        all_alike = len({branch.where for branch in branches.values()}) == 1
        key = join.id, join.members if all_alike else members
        if key not in self._pair_counts:
            self._pair_counts[key] = PairCounts(
                self._spark, join, {member: branches[member] for member in key[1]})
            if len(self._pair_counts) > MOST_FANOUTS:
                self._pair_counts.popitem(last=False)
        self._pair_counts.move_to_end(key)
        return self._pair_counts[key]

    def _only(
        self, path: Path, members: tuple[Member, ...], found: Sequence[DataFrame],
        scans: Sequence[ProbeScan],
    ) -> PathAnswers:
        """The answers to several scans, each for its own members only."""
        parts = [self.answers(path, members, pairs) for pairs in found]
        frames = [part.frame.where(ours(MEMBER).isin([members.index(m) for m in scan.members]))
                  for part, scan in zip(parts, scans, strict=True)]
        return replace(parts[0], frame=reduce(DataFrame.unionAll, frames))

    def oldest(
        self, join: SharedJoin, scan: ProbeScan,
        rows: Callable[[str, Sequence[int]], DataFrame],
    ) -> tuple[int, ...]:
        """By side of a join over rows, the time of the oldest row that later rows can meet."""
        return self._row_pairs(join).oldest(scan, rows)

    def _found(
        self, join: SharedJoin, scans: Sequence[ProbeScan],
        rows: Callable[[str, Sequence[int]], DataFrame], survivors: Sequence[Survivors],
    ) -> list[DataFrame]:
        """By scan, its pairs, or the results of a multiway join."""
        if len(join.streams) > 2:
            left: Sequence[Survivors | None] = survivors or [None] * len(scans)
            results = self._carrying(join, self.multiway(join)).results
            return [results(scan, rows, some) for scan, some in zip(scans, left, strict=True)]
        if join.rows:
            numbered = self._carrying(join, self._row_pairs(join))
            return [numbered.pairs(scan, rows) for scan in scans]
        pairs = self._carrying(join, self._pairs(join))
        return [pairs.pairs(scan, rows) for scan in scans]

    # --- versions of relations behind a join ---------------------------------------------------

    def _seeing(
        self, join: SharedJoin, scans: Sequence[ProbeScan],
        rows: Callable[[str, Sequence[int]], DataFrame],
    ) -> tuple[Compiler, Callable[[str, Sequence[int]], DataFrame]]:
        """The versions with which pairs of these scans are joined, and rows that tell theirs.

        A pair is joined with the later one of its rows' versions. Rows tell theirs if there are
        several.
        """
        history = self._history()
        names = [name for name in _relations(join.path) if name in history.versions]
        if not names:
            return self, rows
        read = {(stream, block.number) for scan in scans
                for stream, side in zip(join.streams, scan.sides, strict=True)
                for block in (*side.fresh, *side.window)}
        versions = {name: tuple(sorted({history.seen(name, *place) for place in read}))
                    for name in names}
        several = [name for name in names if len(versions[name]) > 1]

        def telling(stream: str, numbers: Sequence[int]) -> DataFrame:
            parts: dict[tuple[int, ...], list[int]] = {}
            for number in numbers:
                own = tuple(history.seen(name, stream, number) for name in several)
                parts.setdefault(own, []).append(number)
            return reduce(DataFrame.unionAll, (
                rows(stream, some).withColumns({
                    _version_of(name): sf.lit(one)
                    for name, one in zip(several, own, strict=True)})
                for own, some in parts.items()))

        return self._with(versions), telling if several else rows

    def _carrying(self, join: SharedJoin, pairs: _Pairs) -> _Pairs:
        """What compiles pairs, so that they keep the versions that their rows tell."""
        several = [name for name, versions in self._versions.items() if len(versions) > 1]
        if not several:
            return pairs
        return replace(pairs, needed=_with_versions(pairs.needed, several))

    def multiway(self, join: SharedJoin) -> MultiwayCompiler:
        """What compiles a join of three or more streams."""
        if join.id not in self._multiway:
            branches = [self._plan.branch(member) for member in join.members]
            made = MultiwayCompiler.of(self._spark, join, branches, self._time)
            self._multiway[join.id] = replace(made, more=self._pane_columns(join))
        return self._multiway[join.id]

    def _row_pairs(self, join: SharedJoin) -> RowPairCompiler:
        if join.id not in self._row_joins:
            branches = [self._plan.branch(member) for member in join.members]
            self._row_joins[join.id] = RowPairCompiler.of(join, branches, self._time)
        return self._row_joins[join.id]

    def _pairs(self, join: SharedJoin) -> PairCompiler:
        if join.id not in self._joins:
            branches = [self._plan.branch(member) for member in join.members]
            made = PairCompiler.of(join, branches, self._time)
            self._joins[join.id] = replace(made, more=self._pane_columns(join))
        return self._joins[join.id]

    def _pane_columns(self, join: SharedJoin) -> tuple[SparkColumn, ...]:
        """The panes of a pair, where window aggregates summarise it."""
        if join.path.end != "panes":
            return ()
        (group,) = self._plan.groups_on(join.path.id)
        return (pair_pane(ours("@left"), ours("@right"), group.pane),)

    def part(
        self, path: Path, member: Member, block: DataFrame, first: int, last: int,
        evaluation: Evaluation = AS_WRITTEN, scan: FileScan | None = None,
    ) -> Progress:
        """A block after the stages first to last - 1 of a path that calls Python."""
        placed = self._placed(path, block) if first == 0 and scan is None else block
        pipeline = self._pipeline(path, self._branch(path, member), evaluation, scan)
        return pipeline.run(placed, first, last)

    def summarised(
        self, path: Path, members: tuple[Member, ...], block: DataFrame, first: int = 0,
        evaluation: Evaluation = AS_WRITTEN,
    ) -> Summarised:
        """The rows of a block that the window aggregates of a path summarise."""
        time = self._time(path.reads)
        if not path.expensive:
            rows = self._joined(path, block)
            declared = self._application.streams[path.reads].columns
            own = [ours(place(STREAM, column.name)).alias(column.name) for column in declared]
            return Summarised(rows.where(compiled(time).isNotNull()), time,
                              columns=tuple(own))
        return self._summarised_by_python(path, members[0], block, first, evaluation)

    def _summarised_by_python(
        self, path: Path, member: Member, block: DataFrame, first: int, evaluation: Evaluation
    ) -> Summarised:
        """The rows that window aggregates summarise after functions have looked at them.

        The aggregates are alike, so one member stands for all of them.
        """
        branch = self._branch(path, member)
        time = branch.select[0].expression
        answers = self._through_python(path, {member: branch}, block, first, evaluation)
        # An aggregate's argument may be the time, or a grouping key: then it is one column.
        named = {output.expression: output.name for output in branch.select}
        places = {expression: Column(output_name(n), expression.type, OURS)
                  for n, expression in enumerate(named)}
        held = answers.frame.where(ours(ERROR).isNull()).select(
            *(answers.columns(Field(name, expression.type)).alias(places[expression].name)
              for expression, name in named.items()))
        known = held.where(compiled(places[time]).isNotNull())
        return Summarised(known, places[time], answers, places, tuple(answers.shown()))

    def _branch(self, path: Path, member: Member) -> Branch:
        """What a path computes for a member: for window aggregates, the rows they summarise."""
        is_paired = path.id in self._pair_paths
        branch = self._plan.branch(member)
        if path.end != "panes":
            return branch.over_pairs if is_paired else branch
        (group,) = self._plan.groups_on(path.id)
        timed = Output(TIME.name, PAIR_PANE if is_paired else self._time(path.reads))
        return replace(branch, select=(timed, *group.rows.select), where=group.where,
                       grouping=None)

    def _time(self, stream: str, source: int = STREAM) -> Expression:
        """The time of a row: its own, or when its block arrived."""
        if self._timeless:
            return Literal(datetime(1970, 1, 1, tzinfo=UTC), TIMESTAMP)
        declared = self._application.streams[stream]
        if declared.time is None:
            return Column(ARRIVED, TIMESTAMP, source)
        return Column(EVENT_TIME if declared.unit else declared.time, TIMESTAMP, source)

    def _placed(self, path: Path, block: DataFrame) -> DataFrame:
        """The rows with their columns at their places; pairs have them there already."""
        return block if path.id in self._pair_paths else renamed(block, STREAM)

    def _joined(self, path: Path, block: DataFrame) -> DataFrame:
        rows = self._placed(path, block)
        for number in range(len(path.lookups)):
            rows = self._looked_up(path, rows, number)
        return rows

    def _looked_up(self, path: Path, rows: DataFrame, number: int) -> DataFrame:
        """Rows with what the path's lookup of this number finds for them."""
        lookup = path.lookups[number]
        source = lookup_source(number, self._pair_paths.get(path.id, 1))
        if lookup.unnests:
            return unnested(rows, lookup, source)
        versions = self._versions.get(lookup.relation, (0,))
        found = [renamed(self._relation(lookup.relation, one), source) for one in versions]
        if len(found) == 1:
            return rows.join(sf.broadcast(found[0]), compiled(lookup.on), lookup.kind)
        of_pair = sf.greatest(*(ours(place(STREAM + side, _version_of(lookup.relation)))
                                for side in range(self._pair_paths[path.id])))
        known = reduce(DataFrame.unionAll, (
            frame.withColumn(_VERSION, sf.lit(one))
            for frame, one in zip(found, versions, strict=True)))
        met = compiled(lookup.on) & (ours(_VERSION) == of_pair)
        return rows.join(sf.broadcast(known), met, lookup.kind).drop(_VERSION)

    def _fanned_out(
        self, path: Path, branches: dict[Member, Branch], rows: DataFrame
    ) -> PathAnswers:
        compiled_fanout = self._fanout(path, branches)
        places = {_identity(f): output_name(n) for n, f in enumerate(compiled_fanout.outputs)}
        frame = compiled_fanout.answers(rows)
        return PathAnswers(frame, branches, lambda output: ours(places[_identity(output)]))

    def build_fanouts(self) -> None:
        """Hand the constants of all fan-outs to the JVM, before a job needs them."""
        for path in self._plan.paths:
            if path.end == "sink" and len(path.members) > 1 and not path.expensive:
                self._fanout(path, {member: self._branch(path, member) for member in path.members})

    def _fanout(self, path: Path, branches: dict[Member, Branch]) -> CompiledFanout:
        key = path.id, tuple(branches)
        with self._building:
            if key not in self._fanouts:
                self._fanouts[key] = CompiledFanout(self._spark, tuple(branches.values()))
                if len(self._fanouts) > MOST_FANOUTS:
                    self._fanouts.popitem(last=False)
            self._fanouts.move_to_end(key)
            return self._fanouts[key]

    def _through_python(
        self, path: Path, branches: dict[Member, Branch], block: DataFrame, first: int,
        evaluation: Evaluation, scan: FileScan | None = None,
    ) -> PathAnswers:
        (branch,) = branches.values()
        pipeline = self._pipeline(path, branch, evaluation, scan)
        placed = self._placed(path, block) if first == 0 and scan is None else block
        progress = pipeline.run(placed, first, len(path.stages))
        progress.frame = progress.frame.withColumn(MEMBER, sf.lit(0))
        progress.observe(REJECTED, ours(ERROR).isNotNull())
        columns = _columns(branch, pipeline.stage.outputs)
        stage = pipeline.stage
        return PathAnswers(
            progress.frame, branches, columns, lambda: stage.row, lambda: stage.shown, progress)

    def _through_shared(
        self, path: Path, branches: dict[Member, Branch], block: DataFrame,
        evaluation: Evaluation, scan: FileScan | None, sink: WorkerSink | None,
    ) -> PathAnswers:
        """The answers of queries that have predicates in common."""
        trip = self._shared(path, branches, evaluation, scan)
        progress, is_handed = trip.run(
            self._joined(path, block) if scan is None else block, sink)
        progress.observe(REJECTED, ours(ERROR).isNotNull())
        taken = tuple(sink.told.names) if sink and is_handed else ()
        return PathAnswers(
            progress.frame, branches, trip.outputs(), trip.row, progress=progress, taken=taken)

    def _shared(
        self, path: Path, branches: Mapping[Member, Branch], evaluation: Evaluation = AS_WRITTEN,
        scan: FileScan | None = None,
    ) -> SharedConjunction:
        planned = [self._plan.branch(member) for member in path.members]
        return SharedConjunction(path, planned, branches, self._function, evaluation, scan)

    def _pipeline(
        self, path: Path, branch: Branch, evaluation: Evaluation = AS_WRITTEN,
        scan: FileScan | None = None,
    ) -> Pipeline:
        return Pipeline(
            path, branch, partial(self._looked_up, path), self._function, evaluation, scan)

    def columns_in_python(
        self, path: Path, members: Sequence[Member]
    ) -> tuple[Column, ...] | None:
        """The columns of the stream that some members need in Python, if nothing comes before."""
        if not path.expensive or path.end != "sink" or path.id in self._pair_paths:
            return None
        branches = {member: self._branch(path, member) for member in members}
        if path.shared:
            return self._shared(path, branches).stage.columns
        (branch,) = branches.values()
        return self._pipeline(path, branch).stage.columns


def _relations(path: Path) -> list[str]:
    """The stored relations that a path looks up, each once."""
    return list(dict.fromkeys(
        lookup.relation for lookup in path.lookups if not lookup.unnests))


def _with_versions(
    needed: tuple[tuple[Column, ...], ...], relations: Sequence[str]
) -> tuple[tuple[Column, ...], ...]:
    """By stream of a join, the columns that are looked at, and those that tell versions."""
    return tuple((*own, *(Column(_version_of(name), INT, STREAM + side) for name in relations))
                 for side, own in enumerate(needed))


def _version_of(relation: str) -> str:
    """The column of a row that tells the version of a relation with which it is joined."""
    return f"@version of {relation}"


def _plain(
    branches: dict[Member, Branch], rows: DataFrame, order: Sequence[int]
) -> PathAnswers:
    (branch,) = branches.values()
    planned = cheapest_first(branch.where)
    wanted = in_turn(planned[number] for number in order or range(len(planned)))
    frame = rows if wanted is None else rows.where(wanted)
    columns = _columns(branch, [output.expression for output in branch.select])
    return PathAnswers(frame.withColumn(MEMBER, sf.lit(0)), branches, columns)


def _columns(
    branch: Branch, expressions: Sequence[Expression]
) -> Callable[[Field], SparkColumn]:
    """How to find a branch's outputs, given as expressions over a frame."""
    fields = [Field(output.name, output.expression.type) for output in branch.select]
    found = {_identity(f): e for f, e in zip(fields, expressions, strict=True)}
    return lambda output: compiled(found[_identity(output)])


def _identity(output: Field) -> tuple[str, str]:
    return name_key(output.name), str(output.type)
