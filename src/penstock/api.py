"""The public engine: declare streams and queries in SQL, run them on Spark, read the answers."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from penstock import policies
from penstock.clock import SystemClock
from penstock.errors import CheckpointError, RunError
from penstock.events import Event, Recorder, StartupStep, Summary, Warned, new_record
from penstock.language import Showing, bind_all, bind_question, bind_statements, shows
from penstock.model import Application, Statement
from penstock.spark import jvm, submit_options
from penstock.spark.session import SessionStart, activate, forget, lost, tuned
from penstock.spark.storage.checkpoint import Checkpoint
from penstock.spark.submit_options import SubmitOptions

# Modules that run, ask and read are imported where they are used: by then `prepare` has started the
# JVM.
if TYPE_CHECKING:
    import pandas
    import pyarrow

    from penstock.spark.host import SparkHost
    from penstock.spark.session import Session


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
        Returned is a table for each SHOW, DESCRIBE and EXPLAIN among the statements.
        """
        fresh, shown = bind_all(sql, self._application, folder=folder)
        if fresh != self._application:
            self._put_into_force(fresh)
        return tuple(map(_listing, shown))

    def load(self, sql: str, *, folder: str | Path = ".") -> tuple[pyarrow.Table, ...]:
        """Make this text the whole application; queries that it lacks are dropped.

        Returned is a table for each SHOW, DESCRIBE and EXPLAIN in it.
        """
        fresh, shown = bind_all(sql, folder=folder)
        for name, stream in self._application.streams.items():
            if name in fresh.streams and (fresh.streams[name] != stream or stream.derived and (
                    fresh.queries[name] != self._application.queries[name])):
                raise CheckpointError(
                    f"stream {name} is not the one that {self.checkpoint} was begun with; "
                    "put its declaration back, or name another --checkpoint")
        self._put_into_force(fresh)
        return tuple(map(_listing, shown))

    def _put_into_force(self, application: Application) -> None:
        self._refuse_if_reading()
        policies.read(application.settings)  # a wrong policy is refused at once
        if self._host is not None and not self._host.wait(0):
            self._host.change(application)
        self._application = application
        self._checkpoint.write(self._checkpoint.application,
                               [asdict(s) for s in application.statements])

    def _refuse_if_reading(self) -> None:
        if self._reading:
            raise RunError("this engine was opened for reading: it answers, and changes nothing")

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

    # --- running -----------------------------------------------------------------------------

    def start(self, until_drained: bool = False) -> None:
        """Begin to read the streams and to answer the queries; return at once."""
        self._refuse_if_reading()
        if self._host is not None:
            raise RunError("the engine is running already")
        if not self._application.queries:
            raise RunError("there is no query to run; declare one with CREATE QUERY")
        self.prepare()
        self._summary = Summary()
        self._recorder = Recorder(new_record(self._checkpoint.root, self._clock.now()))
        self._record(StartupStep(at=self._clock.now(), step="starting Spark"))
        from penstock.spark.host import SparkHost

        host = SparkHost(self.session, self._checkpoint, self._application, self._clock,
                         self._record, until_drained)
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

    def results(
        self, query: str, *, last: int | None = None, as_pandas: bool = False
    ) -> pyarrow.Table | pandas.DataFrame:
        """The committed answers of a query with a memory or file sink, in order of delivery.

        With ``last`` it is only the last rows of them.
        """
        from penstock.spark.delivery.stored_answers import Results

        table = Results(self._checkpoint).table(self._application, query, last)
        return table.to_pandas() if as_pandas else table

    def follow(self, query: str, *, last: int | None = None) -> Iterator[pyarrow.Table]:
        """The answers of `results`, and then more as they are committed, until the run ends.

        With ``last``, the first table holds only the last rows of those that are there.
        """
        from penstock.spark.delivery.stored_answers import Results

        yield from Results(self._checkpoint).follow(
            self._application, query, self._is_running, last)

    def _is_running(self) -> bool:
        """Whether answers may still come, from this engine or from another."""
        if self._reading:
            return self._checkpoint.is_taken
        return self._host is not None and not self._host.wait(0)

    def ask(self, sql: str, *, as_pandas: bool = False) -> pyarrow.Table | pandas.DataFrame:
        """Answer a SELECT once from what is held now; no standing query changes.

        It reads streams, of which the spool holds the rows, and the answers of queries by their
        names. A window aggregate answers for its last window, every other question for all that is
        held. SHOW, DESCRIBE and EXPLAIN are answered too, without Spark.
        """
        if shows(sql):
            table = _one_listing(sql, self._application)
            return table.to_pandas() if as_pandas else table
        query = bind_question(sql, self._application)
        self.prepare()
        from penstock.spark.questions import Questions

        running = self._host if self._host is not None and not self._host.wait(0) else None
        try:
            asked = running.questions if running else Questions(self.session, self._checkpoint)
            table = asked.answer(self._application, query)
        finally:
            if self._given is not None:
                activate(self._given)
        return table.to_pandas() if as_pandas else table

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
            self.prepare()
            found = self._start.session() if self._start is not None else self._given
            assert found is not None  # `prepare` starts a session if none is given
            self._spark, self._start = tuned(found), None
        return self._spark

    def close(self) -> None:
        """Stop, release the checkpoint, and stop Spark if the engine started it."""
        self.stop()
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


def _one_listing(sql: str, application: Application) -> pyarrow.Table:
    after, shown = bind_all(sql, application)
    if len(shown) != 1 or after != application:
        raise RunError("a question is one statement")
    return _listing(shown[0])


def _listing(shown: Showing) -> pyarrow.Table:
    """What a SHOW, DESCRIBE or EXPLAIN tells, as a table of texts."""
    import pyarrow as pa

    from penstock.explain.listings import listed
    from penstock.spark.defaults import DEFAULTS

    listing = listed(shown, DEFAULTS)
    columns = zip(*listing.rows, strict=True) if listing.rows else [()] * len(listing.columns)
    return pa.table([pa.array(values, pa.string()) for values in columns],
                    names=list(listing.columns))
