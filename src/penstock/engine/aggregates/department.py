"""The department of window aggregates: panes close, and refreshes answer from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from penstock.engine.aggregates.pane_backfill import PaneBackfill
from penstock.engine.aggregates.refresher import Refresher
from penstock.engine.aggregates.windows import WindowAggregates
from penstock.engine.instructions import Instruction, Note, RefreshJob
from penstock.engine.joins.department import JoinsDepartment
from penstock.engine.joins.outers import LATEST, frontier
from penstock.engine.paths.active_job import ActiveJob
from penstock.engine.paths.department import PathsDepartment
from penstock.engine.retries import Retries
from penstock.engine.state import EngineState
from penstock.engine.work import Begun, Ended
from penstock.events import kinds as ev
from penstock.policies.refresh import Policy


@dataclass(slots=True)
class AggregatesDepartment:
    """Refreshes of answers. Jobs of paths that end in panes make the panes that they read."""

    state: EngineState
    policy: Policy
    paths: PathsDepartment
    joins: JoinsDepartment
    retries: Retries
    _windows: WindowAggregates = field(init=False)
    _backfill: PaneBackfill = field(init=False)

    def __post_init__(self) -> None:
        """Begin without a plan."""
        drained = self.state.settings.until_drained
        self._windows = WindowAggregates(Refresher(self.policy, drained))
        self._backfill = PaneBackfill(self.paths.queues, self.paths.active)

    def adopt(self) -> None:
        """Answer the queries of the plan from now on."""
        self._windows.adopt(self.state.plan)

    def use(self, policy: Policy, at: float, name: str) -> None:
        """Let another policy decide from now on."""
        self.policy = policy
        self._windows.use(policy, at)

    # --- what is asked of it -----------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The slots that its refreshes take from jobs over blocks."""
        return self._windows.slots

    @property
    def preempts(self) -> bool:
        """A refresh waits for a free slot."""
        return False

    @property
    def goes_first(self) -> bool:
        """Refreshes go first if nobody waits for a first answer: then few panes are kept."""
        return self.state.settings.only_the_end_counts

    @property
    def idle(self) -> bool:
        """Whether no answer is due and no refresh is active."""
        return self._windows.idle

    @property
    def wake_at(self) -> float | None:
        """Answers fall due as rows arrive, not by the clock."""
        return None

    def owes(self, query: str) -> bool:
        """Whether answers of the query's group are due, or in an active refresh."""
        group = self.state.plan.group_of(query)
        return group is not None and not self._windows.is_done_with(group.id)

    def needed(self) -> Mapping[str, int]:
        """A synopsis that is lost, or has to grow, is rebuilt from the rows of its windows."""
        needed: dict[str, int] = {}
        plan = self.state.plan
        for reads, since in self._windows.needed().items():
            join = next((join for join in plan.joins if join.id == reads), None)
            for stream in (reads,) if join is None else join.streams:
                needed[stream] = min(since, needed.get(stream, since))
        return needed

    def tidy(self, at: float) -> Iterable[Instruction]:
        """Drop panes that no coming answer reads."""
        return self._windows.trims(at)

    def notes(self) -> Iterable[Instruction]:
        """How often groups are answered, if that has changed."""
        return [Note(event=event) for event in self._windows.noted()]

    # --- events ------------------------------------------------------------------------------

    def take(self, event: ev.Event, job: ActiveJob | None = None) -> None:
        """Blocks arrive, queries join, and jobs fill panes, so that some panes may close."""
        match event:
            case ev.QueryAdded(query=query, since=since):
                if self.state.plan.group_of(query):
                    self._windows.add(query, since)
            case ev.BlockArrived(block=block):
                self._close_panes(event.at, block.stream)
            case ev.StreamEnded(stream=stream):
                self._close_panes(event.at, stream)
            case ev.SynopsisBegun():
                self._begin_synopsis(event)
            case ev.JobFinished(result=ev.PanesResult() as result) if job:
                self._windows.fill({id: panes for id, panes in result.panes.items()
                                    if id not in job.stale})
                self._backfill.finish(self.state.plan, job)
                self._close_panes(event.at, job.path.reads)
            case ev.JobFinished(result=ev.SegmentResult(kept=ev.KeptRows())) if job:
                if not job.staying:  # nobody takes up its rows, but panes may need its blocks
                    self._backfill.finish(self.state.plan, job, failed=True)
            case ev.JobFinished(result=ev.ProbeResult() as result) if result.panes:
                self._windows.fill(result.panes)
                self._close_pairs(event.at)
            case ev.JobFinished(result=ev.ProbeResult()):
                self._close_pairs(event.at)
            case ev.JobFailed() if job:
                self._backfill.finish(self.state.plan, job, failed=True)

    def leave(self, query: str, at_once: bool) -> None:
        """Stop answering a query; blocks that waited for it alone stay for the others."""
        self._windows.remove(query)
        group = self.state.plan.group_of(query)
        if at_once and group and not group.paired:
            self._backfill.leave(group, query, self.state.readers.get(group.reads, ()))

    def _begin_synopsis(self, event: ev.SynopsisBegun) -> None:
        """Back-fill a group's panes from blocks that its queries have had, or that came before."""
        group = self.state.plan.group(event.group)
        self._windows.begin(group.id)
        if not group.paired:  # the department of joins finds its pairs again
            self._backfill.begin(group, event.blocks)
            self._close_panes(event.at, group.reads)

    def _close_panes(self, at: float, stream: str) -> None:
        """Close the panes to which no further row can come."""
        blocks = self.state.blocks
        newest = blocks.find(stream, blocks.newest(stream))
        for group in self.state.plan.groups:
            if group.reads == stream:
                waiting = self._backfill.unfinished(group)
                self._windows.close(at, group.id, waiting, newest,
                                    self.state.is_at_its_end(stream))
        self._close_pairs(at)

    def _close_pairs(self, at: float) -> None:
        """Close the panes of groups over pairs."""
        for group in self.state.plan.groups:
            if group.paired:
                ends = frontier(self.state, self.state.plan.join(group.reads).streams)
                self._windows.close_pairs(at, group.id, None if ends == LATEST else ends,
                                          self.joins.reached(group.reads))

    # --- refreshes ---------------------------------------------------------------------------

    def offer(self, at: float, preempting: bool) -> RefreshJob | None:
        """The answers that are due."""
        return self._windows.next(at)

    def begin(self, at: float, job: int, offer: RefreshJob) -> Begun:
        """Order the refresh."""
        refresh = replace(offer, number=job)
        notes = self._windows.begin_refresh(at, refresh)
        return Begun(instructions=[*(Note(event=event) for event in notes), refresh],
                     riders=tuple(refresh.answers), fixed=inf)

    def end(self, event: ev.JobFinished | ev.JobFailed) -> Ended:
        """Its answers are delivered, or the refresh is retried."""
        if isinstance(event, ev.JobFailed):
            return Ended(stops=self._windows.fail(event, self.retries))
        result = event.result
        assert isinstance(result, ev.RefreshResult)
        self._windows.finish(event, result)
        answers = [(query, [(result.arrived, rows)]) for query, rows in event.rows_out.items()
                   if rows]
        return Ended(stops=event.failed, oldest=result.arrived, deliveries=answers)
