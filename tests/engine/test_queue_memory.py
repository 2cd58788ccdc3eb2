"""The account of what waits, beside one that is made anew from everything that waits."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine import Core, SegmentJob
from penstock.engine.instructions import Instruction, Note
from penstock.engine.paths.queue_entries import QueueEntry
from penstock.engine.queue_memory import queue_name
from penstock.engine.settings import Settings
from penstock.events import Summary
from penstock.events import kinds as ev
from penstock.model import Block
from penstock.testing import FakeHost

APPLICATION = """
    CREATE STREAM s (a INT, b INT) FROM rate;
    CREATE STREAM t (a INT) FROM rate;
    CREATE RELATION r (a INT) FROM csv 'r';
    CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';
    CREATE QUERY plain AS SELECT a FROM s WHERE a = 1;
    CREATE QUERY joined AS SELECT s.a FROM s JOIN r ON s.a = r.a;
    CREATE QUERY one AS SELECT a FROM s WHERE b > 1 AND f(a, a);
    CREATE QUERY two AS SELECT b FROM s WHERE b > 2 AND f(b, b);
    CREATE QUERY both AS SELECT a FROM s WHERE f(b, b) UNION ALL SELECT a FROM t WHERE f(a, a);
"""
QUERIES = ("plain", "joined", "one", "two", "both")


def counted_anew(core: Core) -> tuple[int, int]:
    """Blocks and kept parts that wait or are under way, and their bytes; a block counts once."""
    entries = [entry for queue in core.paths.queues.queues.values() for entry in queue.entries]
    entries += [entry for run in core.paths.active.values() for entry in run.entries]
    sizes: dict[tuple[str, int], int] = {}
    for entry in entries:
        if entry.job:
            sizes["", entry.job] = entry.bytes
        else:
            sizes.update({(b.stream, b.number): b.bytes for b in entry.blocks})
    return len(sizes), sum(sizes.values())


def queues_anew(core: Core) -> dict[str, ev.QueueLevel]:
    def hot(entry: QueueEntry) -> int:
        if entry.job:
            return 0 if entry.kept.on_disk else entry.bytes
        held = [core.state.blocks._held[block.stream, block.number] for block in entry.blocks]
        return sum(one.block.bytes for one in held if one.hot)

    return {queue_name(place): ev.QueueLevel(
                entries=len(queue), bytes=sum(e.bytes for e in queue.entries),
                hot=sum(hot(e) for e in queue.entries))
            for place, queue in core.paths.queues.queues.items() if queue.entries}


class Audited(FakeHost):
    """A host that checks the account after every event."""

    def handle(self, event: ev.Event) -> list[Instruction]:
        """Take the event; the account must be what counting everything gives."""
        instructions = FakeHost.handle(self, event)  # no super(): slots make the class anew
        seen = [e for e in self.record if isinstance(e, ev.Queued)]
        told = (seen[-1].blocks, seen[-1].bytes) if seen else (0, 0)
        assert told == counted_anew(self.core)
        queues: dict[str, ev.QueueLevel] = {}
        for account in seen:
            queues.update(account.queues)
        filled = {name: q for name, q in queues.items() if q != ev.QueueLevel()}
        assert filled == queues_anew(self.core)
        assert self.core.paths.room >= 0 or not self.core.state.blocks.hot_bytes, "blocks go first"
        return instructions


@given(
    st.lists(st.tuples(st.sampled_from("sst"), st.floats(0, 20), st.integers(1, 400)), max_size=25),
    st.sets(st.integers(1, 60), max_size=6),
    st.lists(st.tuples(st.floats(0, 30), st.sampled_from(QUERIES)), max_size=3),
    st.sampled_from(["fifo", "greedy", "chain", "preemptive_rate_based"]),
    st.sampled_from([3_000, 20_000, 10**9]),
    st.integers(1, 2),
)
def test_the_account_is_what_counting_everything_anew_gives(
    arrivals: list[tuple[str, float, int]], unlucky: set[int], drops: list[tuple[float, str]],
    policy: str, memory: int, slots: int,
) -> None:
    settings = Settings(until_drained=True, memory=memory, slots=slots)
    host = Audited.of(APPLICATION, policy, settings=settings,
                      fails=lambda run: "a fault" if run.number in unlucky else "")
    for stream, at, rows in sorted(arrivals, key=lambda arrival: arrival[1]):
        host.arrive(stream, at=at, rows=rows)
    for at, query in drops:
        host.plan_event(ev.QueryDropped(at=at, query=query))
    host.run()
    host.add("CREATE QUERY more AS SELECT b FROM s WHERE f(a, a)")
    host.arrive("s", at=host.clock.now() + 1.0)
    host.run()
    summary = Summary.of(host.record)
    assert summary.accounting() == []
    assert (summary.run.waiting_bytes, summary.run.hot_bytes) == (0, 0)
    assert not any(queue.entries for queue in summary.queues.values())


def test_another_plan_leaves_the_account_as_it_was() -> None:
    host = Audited.of(APPLICATION, "greedy")
    for n in range(5):
        host.arrive("s", at=0.1 * n)
    host.run(until=2.5)
    host.add("CREATE QUERY more AS SELECT b FROM s WHERE b = 7")
    assert counted_anew(host.core)[1] > 0
    host.run()
    assert counted_anew(host.core) == (0, 0)


def looked_at(waiting: int) -> Counter[str]:
    """How many entries an arrival and a decision look at while so many wait."""
    sql = "CREATE STREAM s (a INT) FROM rate; CREATE QUERY q AS SELECT a FROM s;"
    host = FakeHost.of(sql, settings=Settings(slots=0))
    for n in range(waiting):
        host.core.handle(ev.BlockArrived(at=float(n), block=Block("s", n, 10, 160, float(n)),
                                         read=10))
    looks: Counter[str] = Counter()

    class Counted(list[QueueEntry]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for entry in list.__iter__(self):
                looks["entries"] += 1
                yield entry

    (queue,) = host.core.paths.queues.queues.values()
    queue.entries = Counted(queue.entries)
    at = float(waiting)
    host.core.handle(ev.BlockArrived(at=at, block=Block("s", waiting, 10, 160, at), read=10))
    host.core.settings = Settings(quantum=1e-9)
    ordered = host.core.handle(ev.Tick(at=at + 1))
    (run,) = [order for order in ordered if isinstance(order, SegmentJob)]
    notes = [order.event for order in ordered if isinstance(order, Note)]
    (account,) = [event for event in notes if isinstance(event, ev.Queued)]
    assert account.blocks == waiting + 1
    assert account.queues[queue_name((run.path, 0))].entries == waiting + 1 - len(run.blocks)
    return looks


def test_an_event_does_not_look_at_everything_that_waits() -> None:
    assert looked_at(10_000) == looked_at(100)


THREE = """
    CREATE STREAM s (a INT, b INT) FROM rate;
    CREATE FUNCTION f FROM 'penstock.demo.detectors:looks_like_a_scan';
    CREATE QUERY x AS SELECT a, b FROM s WHERE f(a, b);
    CREATE QUERY y AS SELECT a, b FROM s WHERE f(b, a);
    CREATE QUERY z AS SELECT a, b FROM s WHERE f(a, a);
"""


def in_memory(host: FakeHost) -> list[int]:
    return [e.hot for e in host.record if isinstance(e, ev.Queued)]


def test_kept_rows_push_hot_blocks_out_of_memory() -> None:
    """A block of 1600 bytes is hot when a run has kept 800 of it, and expected to keep 160."""
    host = Audited.of(THREE, "greedy", settings=Settings(memory=2000))
    host.core.paths.costs.statistics.record("x#0:python1", 0.0, 100, 10, 1.0)
    host.core.adopt(host.core.plan)
    host.arrive("s", at=0.0)
    host.run()
    assert [e.number for e in host.record if isinstance(e, ev.BlockHot)] == [0]
    cold = [e.at for e in host.record if isinstance(e, ev.BlockCold)]
    assert cold[:1] == [1.0], "with the end of the first run"
    assert max(in_memory(host)) <= 2000


def test_a_query_that_asks_for_a_hot_block_has_it_hot() -> None:
    host = Audited.of(THREE, "fifo")
    host.arrive("s", at=0.0)
    host.run(until=1.5)  # one of three has read it
    host.add("CREATE QUERY w WITH (start = 'earliest') AS SELECT b FROM s WHERE f(b, b)",
             backlog=((0, 0, 0),))
    seen: dict[str, ev.QueueLevel] = {}
    for event in host.record:
        seen.update(event.queues if isinstance(event, ev.Queued) else {})
    assert seen["w#0"] == ev.QueueLevel(entries=1, bytes=1600, hot=1600)


def test_rows_for_which_there_is_no_room_are_not_kept_in_memory() -> None:
    host = Audited.of(THREE, "greedy", settings=Settings(memory=2000))
    for n in range(8):
        host.arrive("s", at=0.9 * n)
    host.run()
    kept = [e for e in host.record if isinstance(e, ev.JobFinished) and e.kept]
    assert 0 < sum(e.kept.on_disk for e in kept) < len(kept)
    assert 0 < max(in_memory(host)) <= 2000
