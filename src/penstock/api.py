"""The public engine: declare streams and queries in SQL, run them on Spark, read the answers."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from penstock import policies
from penstock.clock import SystemClock
from penstock.errors import CheckpointError, RunError
from penstock.events import Event, Recorder, StartupStep, Summary, Warned, new_record
from penstock.functions import PythonFunction, scalar
from penstock.html_tables import html_lines
from penstock.language import (
    Showing,
    bind_all,
    bind_question,
    bind_statements,
    program_parts,
    shows,
)
from penstock.model import Application, Statement
from penstock.spark import jvm, submit_options
from penstock.spark.delivery.answer_forms import Form, check_form, formed
from penstock.spark.delivery.following import Following
from penstock.spark.provided import Provided, StreamTiming
from penstock.spark.session import SessionStart, activate, forget, lost, tuned
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.submit_options import SubmitOptions

# Modules that run, ask and read are imported where they are used: by then `prepare` has started the
# JVM.
if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from penstock.explain.explanation import Explanation
    from penstock.spark.host import SparkHost
    from penstock.spark.session import Frame, Session


class Engine:
    """Standing queries over streams, answered by one Spark application.

    >>> with Engine() as engine:                                            # doctest: +SKIP
    ...     engine.execute('''
    ...         CREATE STREAM packets (ts TIMESTAMP, port INT) FROM onoff OPTIONS (rows = 1000);
    ...         CREATE QUERY web AS SELECT ts, port FROM packets WHERE port = 80;
    ...     ''')
    ...     engine.run()
    ...     engine.results("web")

    ``spark`` is the session to use. Without one the engine starts a local session, and stops it at
    the end. ``checkpoint`` is the folder from which a stopped or killed run resumes. Without one
    the engine uses a temporary folder and deletes it. ``packages`` (``group:name:version``),
    ``jars`` and ``conf`` are what a session of its own is started with. ``on_event`` is called with
    every event of a run. With ``reading`` the engine only reads a checkpoint, which another engine
    may be using: `results` and `ask` work, and calls that change anything are refused.
    """

    def __init__(
        self,
        spark: Session | None = None,
        checkpoint: str | Path | None = None,
        *,
        master: str | None = None,
        packages: Sequence[str] = (),
        jars: Sequence[str | Path] = (),
        conf: Mapping[str, str] | None = None,
        on_event: Callable[[Event], None] | None = None,
        reading: bool = False,
    ) -> None:
        """Open the checkpoint and bind the application it holds; Spark starts when it is needed."""
        self._given, self._master, self._on_event = spark, master, on_event
        self._more = SubmitOptions(
            submit_options.packages(",".join(packages)) if packages else (),
            submit_options.jars(",".join(map(str, jars))) if jars else (),
            dict(submit_options.setting(f"{name}={value}") for name, value in (conf or {}).items()))
        if spark is not None and self._more != submit_options.NONE:
            raise ValueError("packages, jars and conf are given when the session is started")
        self._spark: Session | None = None
        self._start: SessionStart | None = None
        self._reading = reading
        self._checkpoint = (Checkpoint.look(checkpoint) if reading
                            else Checkpoint.open(checkpoint))
        self._clock = SystemClock()
        self._summary = Summary()
        self._recorder: Recorder | None = None
        self._host: SparkHost | None = None
        self._provided = Provided()
        self._closed = False
        try:
            self._application = self._recovered()
        except BaseException:
            self._checkpoint.close()
            raise

    # --- the application ---------------------------------------------------------------------

    @property
    def application(self) -> Application:
        """Everything declared so far."""
        return self._application

    @property
    def reading(self) -> bool:
        """Whether it only reads its checkpoint."""
        return self._reading

    @property
    def checkpoint(self) -> Path:
        """The folder that outlives the engine."""
        return self._checkpoint.root

    def execute(self, sql: str, *, folder: str | Path = ".") -> tuple[pyarrow.Table, ...]:
        """Bind statements and put them into force, even while the engine runs.

        If any statement cannot be bound, nothing changes. Relative paths start at ``folder``.
        REFRESH RELATION has a run read a relation again; without one there is nothing to do.
        Returned is a table for each SHOW, DESCRIBE and EXPLAIN among the statements.
        """
        self._refuse_if_closed()
        bound = bind_all(sql, self._application, folder=folder, load=self._provided.load)
        if bound.application != self._application:
            self._put_into_force(bound.application)
        if bound.refreshed:
            self._refuse_if_reading()
            if self._host is not None and not self._host.wait(0):
                self._host.refresh(bound.refreshed)
        return tuple(map(_listing, bound.shown))

    def load(self, sql: str, *, folder: str | Path = ".") -> tuple[pyarrow.Table, ...]:
        """Make this text the whole application; queries that it lacks are dropped.

        Returned is a table for each SHOW, DESCRIBE and EXPLAIN in it.
        """
        self._refuse_if_closed()
        bound = bind_all(sql, folder=folder, load=self._provided.load)
        fresh = bound.application
        for name, stream in self._application.streams.items():
            if name in fresh.streams and (fresh.streams[name] != stream or stream.derived and (
                    fresh.queries[name] != self._application.queries[name])):
                raise CheckpointError(
                    f"stream {name} is not the one that {self.checkpoint} was begun with; "
                    "put its declaration back, or name another --checkpoint")
        self._put_into_force(fresh)
        return tuple(map(_listing, bound.shown))

    def _put_into_force(self, application: Application) -> None:
        self._refuse_if_reading()
        policies.read(application.settings)  # a wrong policy is refused at once
        if self._running is not None:
            self._provided.check(application)
            self._running.change(application)
        self._application = application
        self._checkpoint.write(self._checkpoint.application,
                               [asdict(s) for s in application.statements])

    def _refuse_if_reading(self) -> None:
        if self._reading:
            raise RunError("this engine was opened for reading: it answers, and changes nothing")

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise RunError(f"this engine is closed; Engine(checkpoint={str(self.checkpoint)!r}) "
                           "goes on from there" if not self._checkpoint.temporary else
                           "this engine is closed, and its temporary checkpoint is gone; make "
                           "another Engine")

    @property
    def _running(self) -> SparkHost | None:
        """The host of a run that has not ended."""
        return self._host if self._host is not None and not self._host.wait(0) else None

    def explain(self, query: str = "") -> Explanation:
        """The shared plan in words, or as one query sees it; and what a run would not find.

        It is what `penstock explain` prints, and a text of its own in a notebook.
        """
        from penstock.explain.explanation import Explanation
        from penstock.explain.foreseen import notes

        lacking = [] if self._reading else list(map(str, self._provided.missing(self._application)))
        known = set(map(str, program_parts(self._application)))
        told = [note for note in notes(self._application, imported=True) if note not in known]
        name = ""
        if query:
            found = self._application.query(query)
            if found is None:
                raise RunError(f"there is no query '{query}'")
            name = found.name
        return Explanation.of(self._application, name, (*told, *lacking))

    def _recovered(self) -> Application:
        place = self._checkpoint.application
        if not self._checkpoint.has(place):
            return Application()
        try:
            statements = [Statement(**fields) for fields in self._checkpoint.read(place)]
        except TypeError:
            raise CheckpointError(f"{place} was not written by this version of Penstock; name "
                                  "another --checkpoint") from None
        return bind_statements(statements, importing=not self._reading)

    # --- what the program gives --------------------------------------------------------------

    @overload
    def function(
        self, call: Callable[..., Any], /, *, name: str = "", returns: str = "BOOLEAN",
        columns: str = "arrow", deterministic: bool = True,
    ) -> PythonFunction: ...
    @overload
    def function(
        self, /, *, name: str = "", returns: str = "BOOLEAN", columns: str = "arrow",
        deterministic: bool = True,
    ) -> Callable[[Callable[..., Any]], PythonFunction]: ...
    def function(
        self, call: Callable[..., Any] | None = None, /, *, name: str = "",
        returns: str = "BOOLEAN", columns: str = "arrow", deterministic: bool = True,
    ) -> PythonFunction | Callable[[Callable[..., Any]], PythonFunction]:
        """Let SQL call a function of this program, such as one from a notebook cell.

        It is a predicate, unless ``returns`` names the SQL type of its values; `penstock.scalar`
        says the rest. It may be used as a decorator. A function declared by `penstock.predicate` or
        `penstock.scalar` says these things itself.

        Given again under its name it takes the place of the earlier one, also while the engine
        runs. The checkpoint keeps its name and types, but not the function: a program that resumes
        gives it again.
        """
        if call is None:
            return partial(self.function, name=name, returns=returns, columns=columns,
                           deterministic=deterministic)
        self._refuse_if_closed()
        self._refuse_if_reading()
        function = (call if isinstance(call, PythonFunction) else
                    scalar(returns, columns=columns, deterministic=deterministic)(call))
        name = name or getattr(function.call, "__name__", "")
        fresh = self._provided.with_function(self._application, name, function)
        if fresh != self._application or self._running is not None:
            self._put_into_force(fresh)
        return function

    @overload
    def on(self, query: str, call: Callable[..., Any], /) -> Callable[..., Any]: ...
    @overload
    def on(self, query: str, /) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
    def on(self, query: str, call: Callable[..., Any] | None = None, /) -> Callable[..., Any]:
        """Have a query ``INTO callback`` call a function of this program with its answers.

        It is called with the query's name and a `pyarrow.Table`, at least once for each job, in a
        thread of the engine. It may be used as a decorator. A program that resumes gives it again.
        """
        if call is None:
            return partial(self.on, query)
        self._refuse_if_closed()
        self._refuse_if_reading()
        self._provided.call_back(self._application, query, call)
        return call

    def stream(
        self, name: str, frame: Frame, *, time: str = "", unit: str = "", lateness: str = "",
        max_ahead: str = "",
    ) -> None:
        """Declare a stream whose rows come from a streaming DataFrame of Spark.

        ``time`` names the column with the event time, ``unit`` what it counts if it is a number,
        and ``lateness`` how far a row may lag behind, such as ``"5 seconds"``. The rows are durable
        in the checkpoint before any query sees them. A program that resumes gives the DataFrame
        again; its source then delivers what was not durable.
        """
        self._refuse_if_closed()
        self._refuse_if_reading()
        fresh = self._provided.with_stream(
            self._application, name, frame, StreamTiming(time, unit, lateness, max_ahead),
            replacing=self._running is None)
        if fresh != self._application:
            self._put_into_force(fresh)

    def relation(self, name: str, rows: Any) -> None:
        """Declare a relation of the rows that are there: of Spark, pandas, Polars or Arrow.

        The checkpoint keeps a copy of them, so that a run needs nothing more of the program. Given
        again, they are replaced from the next run on.
        """
        self._refuse_if_closed()
        self._refuse_if_reading()
        from penstock.spark.ingest.dataframes import StoredRows

        given = StoredRows.of(rows, name)
        fresh = bind_all(given.statement, self._application)[0]
        if self._running is not None and fresh == self._application:
            raise RunError(f"the engine is reading relation {name}; stop it first")
        given.keep(self._checkpoint, lambda: self.session)
        if fresh != self._application:
            self._put_into_force(fresh)

    # --- running -----------------------------------------------------------------------------

    def start(self, until_drained: bool = False) -> None:
        """Begin to read the streams and to answer the queries; return at once."""
        self._refuse_if_closed()
        self._refuse_if_reading()
        if self._host is not None:
            raise RunError("the engine is running already")
        if not self._application.queries:
            raise RunError("there is no query to run; declare one with CREATE QUERY")
        self._provided.check(self._application)
        self.prepare()
        self._summary = Summary()
        self._recorder = Recorder(new_record(self._checkpoint.root, self._clock.now()))
        self._record(StartupStep(at=self._clock.now(), step="starting Spark"))
        from penstock.spark.host import SparkHost

        host = SparkHost(self.session, self._checkpoint, self._application, self._clock,
                         self._record, until_drained, self._provided)
        self._host = host
        try:
            host.start()
        except BaseException as error:
            gone = lost(self._spark) if self._spark is not None else ""
            if not gone:
                self.stop()
                raise
            with contextlib.suppress(Exception):
                self.stop(0.0)
            raise RunError(gone) from error
        finally:
            if self._given is not None and not lost(self._given):
                activate(self._given)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run ends by itself; return True if it has ended."""
        return self._host is None or self._host.wait(timeout)

    def stop(self, within: float | None = None) -> None:
        """Finish the active jobs and stop; a run on the same checkpoint resumes from here.

        A job that takes longer than ``within`` seconds is cancelled, and the next run repeats it.
        """
        if self._host is not None:
            self._host.stop(within)
            self._host = None
        if self._recorder is not None:
            recorder, self._recorder = self._recorder, None
            recorder.close()
            if recorder.lost:
                text = f"it lacks {recorder.lost} events that could not be written: "
                self._record(Warned(at=self._clock.now(), subject="record",
                                    text=text + recorder.fault))

    def run(self, until_drained: bool = True) -> Summary:
        """Start, wait for the end, and stop; the summary says what happened to every query."""
        self.start(until_drained)
        try:
            while not self.wait(0.5):
                pass
        finally:
            self.stop()
        return self._summary

    def status(self) -> Summary:
        """A summary of the run so far: streams, queries, latency, memory."""
        return self._summary

    def _record(self, event: Event) -> None:
        self._summary.apply(event)
        if self._recorder is not None:
            self._recorder.record(event)
        if self._on_event is not None:
            self._on_event(event)

    # --- answers -----------------------------------------------------------------------------

    @overload
    def results(
        self, query: str, *, last: int | None = None, to: Literal["arrow"] = "arrow"
    ) -> pyarrow.Table: ...
    @overload
    def results(
        self, query: str, *, last: int | None = None, to: Literal["pandas"]
    ) -> pandas.DataFrame: ...
    @overload
    def results(
        self, query: str, *, last: int | None = None, to: Literal["polars"]
    ) -> polars.DataFrame: ...
    @overload
    def results(
        self, query: str, *, last: int | None = None, to: Literal["spark"]
    ) -> Frame: ...
    def results(self, query: str, *, last: int | None = None, to: Form = "arrow") -> Any:
        """The committed answers of a query with a memory or file sink, in order of delivery.

        With ``last`` it is only the last rows of them. ``to`` says in which library's table.
        """
        self._refuse_if_closed()
        check_form(to)
        from penstock.spark.delivery.stored_answers import Results

        return self._formed(Results(self._checkpoint).table(self._application, query, last), to)

    @overload
    def follow(
        self, query: str, *, last: int | None = None, to: Literal["arrow"] = "arrow"
    ) -> Following[pyarrow.Table]: ...
    @overload
    def follow(
        self, query: str, *, last: int | None = None, to: Literal["pandas"]
    ) -> Following[pandas.DataFrame]: ...
    @overload
    def follow(
        self, query: str, *, last: int | None = None, to: Literal["polars"]
    ) -> Following[polars.DataFrame]: ...
    @overload
    def follow(
        self, query: str, *, last: int | None = None, to: Literal["spark"]
    ) -> Following[Frame]: ...
    def follow(
        self, query: str, *, last: int | None = None, to: Form = "arrow"
    ) -> Following[Any]:
        """The answers of `results`, and then more as they are committed, until the run ends.

        It is for ``for`` and for ``async for``. With ``last``, the first table holds only the last
        rows of those that are there.
        """
        self._refuse_if_closed()
        check_form(to)
        from penstock.spark.delivery.stored_answers import Results

        looks = Results(self._checkpoint).looks(
            self._application, query, self._is_running, last)
        return Following(looks, partial(self._formed, to=to))

    def _formed(self, table: pyarrow.Table, to: Form) -> Any:
        return formed(table, to, lambda: self._given or self.session)

    def _is_running(self) -> bool:
        """Whether answers may still come, from this engine or from another."""
        if self._reading:
            return not self._closed and self._checkpoint.is_taken
        return self._running is not None

    @overload
    def ask(
        self, sql: str, *, to: Literal["arrow"] = "arrow"
    ) -> pyarrow.Table: ...
    @overload
    def ask(
        self, sql: str, *, to: Literal["pandas"]
    ) -> pandas.DataFrame: ...
    @overload
    def ask(
        self, sql: str, *, to: Literal["polars"]
    ) -> polars.DataFrame: ...
    @overload
    def ask(
        self, sql: str, *, to: Literal["spark"]
    ) -> Frame: ...
    def ask(self, sql: str, *, to: Form = "arrow") -> Any:
        """Answer a SELECT once from what is held now; no standing query changes.

        It reads streams, of which the spool holds the rows, and the answers of queries by their
        names. A window aggregate answers for its last window, every other question for all that is
        held. SHOW, DESCRIBE and EXPLAIN are answered too, without Spark.
        """
        self._refuse_if_closed()
        check_form(to)
        return self._formed(self._answer(sql), to)

    def _answer(self, sql: str) -> pyarrow.Table:
        if shows(sql):
            return _one_listing(sql, self._application)
        query = bind_question(sql, self._application)
        self.prepare()
        from penstock.spark.questions import Questions

        try:
            asked = (self._running.questions if self._running is not None else
                     Questions(self.session, self._checkpoint, provided=self._provided))
            return asked.answer(self._application, query)
        finally:
            if self._given is not None:
                activate(self._given)

    # --- Spark -------------------------------------------------------------------------------

    def prepare(self, *, brief: bool = False) -> None:
        """Start Spark in the background; `start` and `ask` wait for it.

        If it is called before `execute` or `load`, Spark starts while the application is read and
        bound. ``brief`` is for a run of a minute or two: its JVM does without the second compiler,
        which takes a core of two for half a minute and pays off only later.
        """
        if self._spark is not None or self._given is not None or self._start is not None:
            return
        log = None if self._reading else self.checkpoint / "spark.log"
        self._start = SessionStart(self._master, log, brief=brief or self._reading,
                                   more=self._more).in_background()

    @property
    def session(self) -> Session:
        """The Spark session that the engine uses."""
        if self._spark is None:
            self._refuse_if_closed()
            self.prepare()
            found = self._start.session() if self._start is not None else self._given
            assert found is not None  # `prepare` starts a session if none is given
            self._spark, self._start = tuned(found), None
        return self._spark

    def close(self) -> None:
        """Stop, release the checkpoint, and stop Spark if the engine started it."""
        self.stop()
        self._closed = True
        self._checkpoint.close()
        if self._spark is not None and lost(self._spark):
            forget(self._spark)
        elif self._spark is not None and self._given is None:
            self._spark.stop()
            if archive := jvm.archive():  # for the next start
                archive.make_in_background()
        elif self._start is not None:
            self._start.abandon()
        self._spark = self._start = None
        if self._checkpoint.temporary:
            shutil.rmtree(self._checkpoint.root, ignore_errors=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Show the number of queries and the checkpoint."""
        return f"Engine({len(self._application.queries)} queries, checkpoint={self.checkpoint})"

    def _repr_html_(self) -> str:
        """Show what is declared, and what became of it."""
        from penstock.explain.listings import overview_html

        state = "closed" if self._closed else "running" if self._running is not None else "stopped"
        ran = self._summary._repr_html_() if self._summary.run.begun is not None else ""
        return (html_lines([f"Engine, {state}, checkpoint {self.checkpoint}"])
                + overview_html(self._application) + ran)


def _one_listing(sql: str, application: Application) -> pyarrow.Table:
    bound = bind_all(sql, application)
    if len(bound.shown) != 1 or bound.application != application or bound.refreshed:
        raise RunError("a question is one statement")
    return _listing(bound.shown[0])


def _listing(shown: Showing) -> pyarrow.Table:
    """What a SHOW, DESCRIBE or EXPLAIN tells, as a table of texts."""
    import pyarrow as pa

    from penstock.explain.listings import listed
    from penstock.spark.defaults import DEFAULTS

    listing = listed(shown, DEFAULTS)
    columns = zip(*listing.rows, strict=True) if listing.rows else [()] * len(listing.columns)
    return pa.table([pa.array(values, pa.string()) for values in columns],
                    names=list(listing.columns))
