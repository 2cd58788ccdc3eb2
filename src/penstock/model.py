"""The vocabulary: frozen data that every room speaks, with no behaviour beyond reading itself.

A *type* is a Spark SQL type, an *expression* is a typed tree over columns, literals and admitted
functions, a *query* is a sink and one branch per ``SELECT``, an *operator* is a step with a cost,
a *path* is the operators from one input to one end, and a *block* is a bounded run of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal as OneOf
from typing import TypeAlias

from penstock.sinks import SINKS

# --- types -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark SQL type.

    >>> str(Type("DECIMAL", precision=10, scale=2))
    'DECIMAL(10,2)'
    >>> str(Type("ARRAY", element=Type("INT")))
    'ARRAY<INT>'
    """

    name: str
    """BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL STRING BINARY DATE TIMESTAMP
    INTERVAL ARRAY MAP STRUCT, or VOID, the type of a bare NULL."""
    precision: int | None = None
    """Digits of a DECIMAL."""
    scale: int | None = None
    """Digits after the point of a DECIMAL."""
    key: Type | None = None
    """Key type of a MAP."""
    element: Type | None = None
    """Element type of an ARRAY, value type of a MAP."""
    fields: tuple[Field, ...] = ()
    """Fields of a STRUCT."""

    def __str__(self) -> str:
        """The type as Spark's DDL writes it."""
        if self.name == "DECIMAL" and self.precision is not None:
            return f"DECIMAL({self.precision},{self.scale or 0})"
        if self.name == "ARRAY":
            return f"ARRAY<{self.element}>"
        if self.name == "MAP":
            return f"MAP<{self.key}, {self.element}>"
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(f'{quoted(f.name)}: {f.type}' for f in self.fields)}>"
        return self.name


@dataclass(frozen=True, slots=True)
class Field:
    """A named column of a stream, a relation or a struct."""

    name: str
    type: Type


def quoted(name: str) -> str:
    """A name as Spark's DDL takes it, whatever characters it holds.

    >>> quoted("odd`name")
    '`odd``name`'
    """
    return "`" + name.replace("`", "``") + "`"


def name_key(name: str) -> str:
    """What names are compared by, everywhere: as Spark does it, without regard to case.

    >>> name_key("Port") == name_key("PORT"), name_key("straße") == name_key("strasse")
    (True, False)
    """
    return name.lower()


BOOLEAN, INT, BIGINT, DOUBLE = Type("BOOLEAN"), Type("INT"), Type("BIGINT"), Type("DOUBLE")
STRING, BINARY, DATE, TIMESTAMP = Type("STRING"), Type("BINARY"), Type("DATE"), Type("TIMESTAMP")
VOID = Type("VOID")

# --- expressions -----------------------------------------------------------------------------

Value: TypeAlias = None | bool | int | float | str | bytes | Decimal | date | datetime | timedelta


STREAM = 0
"""The source of a stream's columns. A join's second stream is 1, and lookups follow
(`lookup_source`)."""
PARAMETER = -1
"""The source of a column that stands for a constant of a query."""
ANSWER = -2
"""The source of the columns of an answer: ``key0``, ``key1``, ... for what is grouped by, ``agg0``,
``agg1``, ... for the aggregates, ``window_start`` and ``window_end``."""
OURS = -3
"""The source of a column that compiled code adds, such as a value that Python has computed."""


def lookup_source(number: int, inputs: int = 1) -> int:
    """The source of the columns of a branch's lookup, by its number from 0.

    They come after those of the branch's inputs:

    >>> lookup_source(0), lookup_source(1), lookup_source(0, inputs=2)
    (1, 2, 2)
    """
    return STREAM + inputs + number


@dataclass(frozen=True, slots=True)
class Column:
    """A column of what a branch reads, or one that stands for something else: ``source`` tells."""

    name: str
    type: Type
    source: int = STREAM
    """`STREAM`, a `lookup_source`, `PARAMETER`, `ANSWER` or `OURS`."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """An admitted function or operator applied to arguments.

    ``function`` is a name of ``penstock.language.functions``; a cast's target is its ``type``; a
    field access keeps the field's name in ``detail``.
    """

    function: str
    args: tuple[Expression, ...]
    type: Type
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A registered Python function applied to arguments: the expensive kind."""

    function: str
    args: tuple[Expression, ...]
    type: Type
    deterministic: bool = True
    """Whether its value depends on its arguments alone."""


Expression: TypeAlias = Column | Literal | Call | PythonCall


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, parents first."""
    open_ = [expression]
    while open_:
        part = open_.pop()
        yield part
        if isinstance(part, Call | PythonCall):
            open_.extend(reversed(part.args))


def is_expensive(expression: Expression) -> bool:
    """Whether a row must travel to Python for this."""
    if isinstance(expression, Call):
        return any(map(is_expensive, expression.args))
    return isinstance(expression, PythonCall)


# --- windows and aggregates --------------------------------------------------------------------

LONGEST_SESSION = 48
"""The gaps after which a session is cut: a day, if the gap is half an hour."""


@dataclass(frozen=True, slots=True)
class Window:
    """The length of time that an answer covers, and how often it is refreshed, in microseconds."""

    length: int
    slide: int
    exactly: bool = False
    """Whether answers come at the multiples of the slide and at no other time; otherwise the slide
    is the longest time between two answers."""
    gap: int = 0
    """Of sessions: how long nothing comes after the last row of one. ``length`` is then how far an
    answer looks back, and the slide is the gap."""
    kept: int = 0
    """Of EMPTY GROUPS: for how long before the window a row makes its group known. It is part of
    ``length``, since an answer looks back so far."""

    @classmethod
    def of_sessions(cls, gap: int) -> Window:
        """Sessions with this gap.

        >>> Window.of_sessions(10).length, Window.of_sessions(10).longest
        (980, 480)
        """
        return cls(2 * (LONGEST_SESSION + 1) * gap, gap, exactly=True, gap=gap)

    @property
    def covered(self) -> int:
        """The time that an answer is about."""
        return self.length - self.kept

    def keeping(self, time: int) -> Window:
        """The window with rows for groups that are empty, but known from up to so long before it.

        >>> Window(60, 20).keeping(300)
        Window(length=360, slide=20, exactly=False, gap=0, kept=300)
        """
        return replace(self, length=self.length + time, kept=time)

    @property
    def longest(self) -> int:
        """When a session has lasted for so long, it is cut at the next multiple of this."""
        return LONGEST_SESSION * self.gap

    @property
    def recent(self) -> int:
        """Of sessions: how recent a row must be for one to be due, or to be cut; otherwise 0."""
        return 2 * self.gap

    def reaches_back(self, answered: int) -> int:
        """The time before which a row is in no window that is still to be answered.

        All windows that end up to ``answered`` have been. The next one ends at most a slide later.

        >>> Window(60, 20, exactly=True).reaches_back(100), Window(60, 20).reaches_back(110)
        (60, 70)

        Where a slide is longer than the window, the rows between two windows are not meant:

        >>> Window(10, 30, exactly=True).reaches_back(90)
        90

        A row of a session has its gap until the session is answered:

        >>> Window.of_sessions(10).reaches_back(90)
        80
        """
        last = answered // self.slide * self.slide if self.exactly else answered
        return min(last + self.slide - (self.recent or self.covered), answered)


SketchMethod: TypeAlias = OneOf["", "hll", "fm", "kll", "count_min", "ams"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function over the rows of a group and a window.

    ``function`` is SUM COUNT AVG MIN MAX STDDEV VARIANCE STDDEV_POP VAR_POP COUNT_DISTINCT
    PERCENTILE TOPK or APPROX_COUNT_DISTINCT APPROX_PERCENTILE APPROX_TOPK APPROX_F2; a count
    without arguments counts rows. ``MEDIAN`` is a percentile. STDDEV and VARIANCE are those of a
    sample. The second argument of a TOPK is the weight that is summed.
    """

    function: str
    args: tuple[Expression, ...]
    type: Type
    parameters: tuple[float, ...] = ()
    """The p of a percentile, the k of a top-k, the error of an approximation."""
    method: SketchMethod = ""
    """The sketch of an approximate form."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """What makes a SELECT a window aggregate, besides the window of its input.

    The SELECT list and ``having`` of such a branch refer only to columns of source `ANSWER`.
    """

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]
    """Each aggregate once, in the order in which they are first written."""
    having: tuple[Expression, ...] = ()
    session: tuple[Aggregate, ...] = ()
    """Of sessions: the aggregates that say when one begins and ends, MIN and MAX of the time."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is computed from each row: the keys, and the arguments of the aggregates."""
        return (*self.keys, *(arg for aggregate in self.aggregates for arg in aggregate.args))


# --- what an application declares --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """An option's value that an environment variable holds: it is read when the source is opened.

    So a secret is stored nowhere and shown by nothing.
    """

    name: str


Options: TypeAlias = tuple[tuple[str, "str | Variable"], ...]
"""What a source is opened with, in the order it was written."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An unbounded input."""

    name: str
    columns: tuple[Field, ...]
    format: str
    """The name under which ``spark.readStream`` knows the source."""
    path: str | None = None
    options: Options = ()
    time: str | None = None
    """The event-time column; without one the arrival time is used."""
    lateness: float = 0.0
    """Seconds a row may lag behind the largest time seen before its block."""
    unit: str = ""
    """The unit of an event time that is a number since 1970, a key of `EPOCH_UNITS`."""
    max_ahead: float = 86_400.0
    """Seconds that a row's time may be ahead of the clock; a row further ahead is rejected."""
    file_timeout: float = 60.0
    """Seconds for which a file that is not whole is tried again."""
    derived: bool = False
    """Whether its rows are the answers of the query of its name."""
    computed: tuple[Output, ...] = ()
    """How the computed columns are made of those that are read, in the order of ``columns``."""

    @property
    def read(self) -> tuple[Field, ...]:
        """The columns that the source has."""
        made = {output.name for output in self.computed}
        return tuple(column for column in self.columns if column.name not in made)

    @property
    def in_place(self) -> bool:
        """Whether its own files are its blocks, so that nothing is copied."""
        return self.format == "parquet" and not self.computed


EPOCH_UNITS = {"SECONDS": 10**9, "MILLISECONDS": 10**6, "MICROSECONDS": 10**3, "NANOSECONDS": 1}
"""Nanoseconds in each unit in which a time since 1970 may be counted."""
EPOCH_TYPES = ("INT", "BIGINT", "DOUBLE", "DECIMAL")
"""The types that can hold such a time."""


DATAFRAME = "dataframe"
"""The format of a stream or relation whose rows a Python program has given as a DataFrame."""
PROGRAM = "__main__"
"""The module of a function that a Python program has given the engine: it lies in no file."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A stored table."""

    name: str
    columns: tuple[Field, ...]
    format: str
    path: str | None = None
    options: Options = ()
    refresh: float | None = None
    """Seconds after which it is read again; infinite if that is done when asked for only. None if
    it is read once, when a run begins."""


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function named in SQL; ``module:attribute`` says where it lives."""

    name: str
    module: str
    attribute: str
    returns: Type
    arity: int | None = None
    """How many arguments it takes; None when it takes any number."""
    folder: str | None = None
    """The application's folder, which is searched for the module first."""
    deterministic: bool = True
    """Whether its value depends on its arguments alone."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where answers go."""

    kind: str = "memory"
    """A name in `penstock.sinks.SINKS`."""
    target: str | None = None
    """What that kind needs: a folder, a function as ``module:name``, a topic, or nothing. The
    callback without a function is what a Python program gives with `penstock.Engine.on`."""
    options: Options = ()
    """How it is reached; only a topic has any."""

    @property
    def folder(self) -> str:
        """The folder that its files go to; empty where a sink names none."""
        return self._named("folder")

    @property
    def function(self) -> str:
        """The function that is called, as ``module:name``; empty where a sink names none."""
        return self._named("function")

    def __str__(self) -> str:
        """The sink as a query writes it."""
        return self.kind if self.target is None else f"{self.kind} '{self.target}'"

    def _named(self, target: str) -> str:
        kind = SINKS.get(self.kind)
        return self.target or "" if kind is not None and kind.target == target else ""


@dataclass(frozen=True, slots=True)
class Input:
    """A stream that a branch reads, with its window if it has one."""

    stream: str
    window: Window | None = None


Part: TypeAlias = OneOf["position", "ordinal", "key", "element"]
"""What is told of an element of an array or map: its place from 0 or from 1, its key, itself."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A join with a stored relation, or with the elements of an array or map of the row."""

    relation: str
    """The relation; of elements the name that the query gives them."""
    on: Expression
    """The condition; of elements the array or map."""
    kind: OneOf["inner", "left"] = "inner"
    columns: tuple[Field, ...] = ()
    """The columns that an element becomes; none for a relation."""
    parts: tuple[Part, ...] = ()
    """What each of these columns is."""

    @property
    def unnests(self) -> bool:
        """Whether it takes an array or map of the row apart."""
        return bool(self.columns)


APART = Column("@apart", BIGINT, OURS)
"""Of a pair of rows: the time of the right one minus that of the left one, in microseconds. In a
join over windows of rows: how many rows lie between them."""


SHORTEST_PANE = 1_000
"""Microseconds of which the panes of an aggregate over a window join are multiples."""
MOST_PAIR_PANES = 1 << 20
"""The most panes of its window."""


@dataclass(frozen=True, slots=True)
class WindowJoin:
    """What makes a branch of two streams a window join: which rows are a pair.

    The left row is that of the first input. Both bounds are inclusive.

    >>> WindowJoin((), -5_000_000, 60_000_000).reach
    60000001
    """

    on: tuple[Expression, ...]
    """The join predicate: what must hold of both rows, beside their times."""
    lower: int
    """The least time of the right row minus that of the left one, in microseconds."""
    upper: int
    """The largest."""
    rows: bool = False
    """Whether the window is one of rows. Then what is told of times holds of `APART` as a number of
    rows: how many rows of the earlier one's stream lie between the two, which is 0 for the latest.
    """

    @property
    def reach(self) -> int:
        """The times of all pairs are less than this many microseconds apart."""
        return max(abs(self.lower), abs(self.upper)) + 1

    @property
    def within(self) -> tuple[Expression, ...]:
        """The bounds as conditions over pairs."""
        return (Call("ge", (APART, Literal(self.lower, BIGINT)), BOOLEAN),
                Call("le", (APART, Literal(self.upper, BIGINT)), BOOLEAN))


@dataclass(frozen=True, slots=True)
class Output:
    """A column of an answer."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Branch:
    """One SELECT: what it reads and looks up, filter, and project or aggregate."""

    inputs: tuple[Input, ...]
    """One, or the two streams of a window join."""
    select: tuple[Output, ...]
    where: tuple[Expression, ...] = ()
    """Conjuncts, in the order written."""
    lookups: tuple[Lookup, ...] = ()
    grouping: Grouping | None = None
    join: WindowJoin | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The stream of each input; one that two inputs read stands twice."""
        return tuple(input.stream for input in self.inputs)

    @property
    def window(self) -> Window | None:
        """The window for which it answers, if it is a window aggregate: that of all inputs."""
        return self.inputs[0].window if self.grouping is not None else None

    @property
    def selected(self) -> tuple[Expression, ...]:
        """What selects the rows of a window aggregate, or its pairs.

        Two rows in its window are less than its length apart. Narrower bounds are a selection.
        """
        if self.join is None or self.window is None:
            return self.where
        length = self.window.length
        implied = (self.join.lower, self.join.upper) == (1 - length, length - 1)
        return self.where if implied else (*self.join.within, *self.where)

    @property
    def over_pairs(self) -> Branch:
        """A window join over pairs that may be too far apart for it: its window is a selection."""
        assert self.join is not None
        return replace(self, where=(*self.join.within, *self.where))

    @property
    def outputs(self) -> tuple[tuple[str, Type], ...]:
        """The columns of its answers."""
        return tuple((output.name, output.expression.type) for output in self.select)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression over rows: what a window aggregate makes of its groups is not."""
        if self.grouping is None:
            computed = tuple(output.expression for output in self.select)
        else:
            computed = self.grouping.expressions
        on = () if self.join is None else self.join.on
        return (*on, *(lookup.on for lookup in self.lookups), *self.where, *computed)


@dataclass(frozen=True, slots=True)
class Query:
    """A standing query: the union of its branches, delivered to its sinks."""

    name: str
    branches: tuple[Branch, ...]
    sink: Sink = Sink()
    """Where its answers go, or the first of several such places."""
    latency: float | None = None
    """Seconds from arrival to delivery that the user can bear."""
    priority: int = 1
    lifetime: float | None = None
    """Seconds after which the query ends by itself."""
    start: OneOf["now", "earliest"] = "now"
    """``earliest`` is from the oldest block in the spool."""
    rejects: OneOf["keep", "fail"] = "keep"
    """What comes of a Python function that rejects every row: ``keep`` warns, ``fail`` stops."""
    views: tuple[str, ...] = ()
    """The views that it reads, directly or not; its branches hold what they stand for."""
    also: tuple[Sink, ...] = ()
    """The other sinks to which the same answers go."""

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """All sinks, in the order written."""
        return self.sink, *self.also

    @property
    def by_sink(self) -> tuple[Query, ...]:
        """The query once for each of its sinks, as if it had only this one."""
        return tuple(replace(self, sink=sink, also=()) for sink in self.sinks) if self.also else (
            self,)

    @property
    def into(self) -> str:
        """Its sinks as it writes them."""
        return ", ".join(map(str, self.sinks))

    @property
    def derives(self) -> bool:
        """Whether its answers are the rows of the stream of its name."""
        return self.sink.kind == "stream"

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads, each once, in order."""
        return tuple(dict.fromkeys(name for branch in self.branches for name in branch.streams))


@dataclass(frozen=True, slots=True)
class SqlView:
    """A SELECT with a name; queries that read it are bound as if its text stood in theirs."""

    name: str
    branches: tuple[Branch, ...]
    """None of them aggregates or joins streams."""
    views: tuple[str, ...] = ()
    """The views that it reads itself, directly or not."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """A column by which the answer to a question is ordered."""

    output: int
    """Its number in the SELECT list."""
    descending: bool = False
    nulls_first: bool = True


ANSWERS = "answers"
"""The format of a stream that stands for the answers of a query, where a question reads them."""
HELD = Window(1, 1, exactly=True)
"""The window of a question without one: every row is held at the same time."""


@dataclass(frozen=True, slots=True)
class OneTimeQuery:
    """A question: a query that is answered once, and what is done with its rows."""

    query: Query
    shown: int
    """How many of its columns the answer has; the others are only ordered by."""
    order: tuple[OrderKey, ...] = ()
    distinct: bool = False
    limit: int | None = None
    offset: int = 0
    is_held: bool = False
    """Whether it aggregates or joins everything that is held, without a window."""
    answers: tuple[Stream, ...] = ()
    """The queries whose answers it reads, as streams."""


@dataclass(frozen=True)
class Application:
    """Everything declared so far; binding more text gives a new one."""

    streams: Mapping[str, Stream] = field(default_factory=dict)
    relations: Mapping[str, Relation] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    queries: Mapping[str, Query] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, SqlView] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    """The text of every statement in force, from which the application can be bound again."""

    def query(self, name: str) -> Query | None:
        """The query of a name, however its letters are cased."""
        return next((query for key, query in self.queries.items()
                     if name_key(key) == name_key(name)), None)


StatementKind: TypeAlias = OneOf["stream", "relation", "function", "view", "query", "setting"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement's own text, what it declared, and the folder its relative paths start at."""

    kind: StatementKind
    name: str
    text: str
    folder: str
    returns: str = ""
    """The type of a function's values, so that a checkpoint is read without the function."""
    arity: int | None = None
    """How many arguments a function takes; None for any number."""
    deterministic: bool = True
    """Whether a function's value depends on its arguments alone."""


# --- running -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """A bounded run of rows of one stream, in order: the unit of scheduling."""

    stream: str
    number: int
    rows: int
    """Rows that queries see: all but the rejected ones."""
    bytes: int
    """Size of those rows in decoded form."""
    arrived: float
    """When its rows were there to be read, in seconds."""
    cutoff: int | None = None
    """Rows with an earlier time, in microseconds, are late: no window takes them. None if that is
    not known; then no row is late."""
    watermark: int | None = None
    """No row of a later block has an earlier time, in microseconds."""
    newest: int | None = None
    """The largest time on the stream up to and with it, in microseconds."""
    late: int = 0
    """How many of its rows are late."""
    stored: int = 0
    """Bytes that the spool holds for it; none where the stream's own files serve."""
