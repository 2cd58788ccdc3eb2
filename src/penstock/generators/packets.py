"""Bursty packet traffic: the ON/OFF model of Willinger et al., as the chain paper uses it.

Flows begin as a Poisson process, last a Pareto time and send packets at a constant pace while they
last. Long flows and overlapping flows make bursts, the gaps between them make silence.

    flow 1      ||||||||||||
    flow 2           |||||||||||||||||||||||                      (durations: Pareto, alpha = 2.3)
    flow 3                                                 ||||||
    stream      |||||XXXXXXX||||||||||||||||               ||||||

Any part of the stream can be made by itself, which is what lets a crashed batch be made again and
several machines make parts of one batch. Stream time is divided into *epochs*, each as long as the
longest flow. The flows that begin in epoch e are drawn from `(seed, e)` alone. So the packets of an
epoch are those of its own flows and of its predecessor's, and no state is carried. Packet number r
of epoch e takes its columns from word r of a counter-based generator keyed by `(seed, e)`.

Reference: B. Babcock, S. Babu, M. Datar, R. Motwani, D. Thomas, "Operator scheduling in data stream
systems", VLDB Journal 13 (2004), section 6, and W. Willinger et al., "Self-similarity through
high-variability", IEEE/ACM Trans. Networking 5 (1997). Where we deviate: the Pareto time is at most
1000 times the shortest one, as it is for all but 1.3 flows in ten million. The mean rate accounts
for that exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from math import isfinite

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Times = npt.NDArray[np.int64]
Table = npt.NDArray[np.int32]

ALPHA = 2.3
"""Shape of the Pareto duration: finite variance (ALPHA > 2), but a heavy tail."""
LONGEST = 1000
"""No flow lasts more than this many times the shortest one; it is also the length of an epoch."""
MEAN_DURATION = ALPHA / (ALPHA - 1) * (1 - LONGEST ** (1 - ALPHA)) / (1 - LONGEST**-ALPHA)
"""Mean of the truncated Pareto duration with k = 1: about 1.77."""
NEW_YEAR_2025 = 1_735_689_600_000_000
"""Where event time begins by default: a constant, so that runs can be compared."""
BATCH_ROWS = 65_536
"""Rows per record batch: large enough to amortise NumPy calls, small enough for the cache."""

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("src", pa.int32()),
        ("dst", pa.int32()),
        ("port", pa.int32()),
        ("length", pa.int32()),
        ("protocol", pa.string()),
    ]
)
"""The columns of a packet. `OnOff` says how their values are distributed."""

_NO_PACKETS = pa.RecordBatch.from_pylist([], schema=SCHEMA)

# A packet's time within its flow is n * period, with the period in 2**-20 microseconds. With
# integers, counting the packets before a time and making them can never differ by a rounding.
_SHIFT = 20
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place between two packets of a stream; the first packet after it is `row` of `epoch`."""

    epoch: int = 0
    """The epoch of the next packet, or of the one before if no packet was looked for since."""
    row: int = 0
    """Packets of that epoch before this place."""
    rows: int = 0
    """Packets of the whole stream before this place."""


ORIGIN = Position()
"""Before the first packet."""
EVERYTHING = 1 << 62
"""More rows than any stream has."""


@dataclass(frozen=True, slots=True)
class OnOff:
    """A stream of packets whose flows are ON for a Pareto time; the stream is a function of this.

    >>> traffic = OnOff(rate=1000, burst=5, length=0.1, seed=7, rows=250)
    >>> traffic.packets(0, 60).num_rows
    250
    >>> traffic.arrivals(0, 60)[:4]
    array([0.    , 0.0002, 0.0004, 0.0006])

    Parts of the stream are the same packets as the whole, however it is cut:

    >>> early, late = traffic.packets(0, 0.003), traffic.packets(0.003, 60)
    >>> early.num_rows, late.num_rows
    (15, 235)
    >>> pa.concat_batches([early, late]).equals(traffic.packets(0, 60))
    True

    Columns are drawn independently for every packet, so selectivities multiply. `src` (1 to 4096)
    and `dst` (1 to 1024) follow Zipf's law, smaller is busier. (`port`, `protocol`) is a well-known
    service nine times in ten, else an ephemeral TCP port. `length` is 40 or 1500 most often.

    While one flow is ON the rate is `burst` times the mean, so on average 1 / `burst` flows are ON.
    Flows may overlap. With `burst = 5` nothing is sent 82 % of the time, one flow sends 16 %, and
    several flows (10 times the mean or more) 2 %. The chain paper's setting is `burst = 0.565`.
    """

    rate: float = 1000.0
    """Mean packets per second in the long run, 0.001 to 100 million."""
    burst: float = 5.0
    """Rate within a flow as a multiple of the mean rate, 0.1 to 1000."""
    length: float = 1.0
    """Shortest duration of a flow in seconds (k of the Pareto law); the mean is 1.77 times that."""
    seed: int = 0
    """Another seed, another stream."""
    rows: int | None = None
    """The stream ends after this many packets; None: it has no end."""
    start: int = NEW_YEAR_2025
    """Event time of the first packet, in microseconds since 1970 (UTC)."""

    def __post_init__(self) -> None:
        """Refuse what would give no stream, or one that overflows a 64-bit time."""
        _check("rate", self.rate, 0.001, 1e8)
        _check("burst", self.burst, 0.1, 1000)
        _check("length", self.length, 0.0001, 3600)
        _check("seed", self.seed, 0, 2**63 - 1)
        _check("start", self.start, 0, 2**62)
        if self.rows is not None:
            _check("rows", self.rows, 0, 2**62)

    @property
    def epoch(self) -> int:
        """Length of an epoch in microseconds.

        >>> OnOff(length=0.5).epoch
        500000000
        """
        return round(LONGEST * self.length * _SECOND)

    @property
    def period(self) -> int:
        """Time between two packets of a flow, in 2**-20 microseconds."""
        return round(_SECOND / (self.rate * self.burst) * (1 << _SHIFT))

    # -- by seconds since the start of the stream ------------------------------------------------

    def arrivals(self, begin: float, end: float) -> npt.NDArray[np.float64]:
        """Arrival times of the packets in [begin, end), ascending, in seconds of stream time.

        >>> OnOff(rate=2, burst=2, rows=3).arrivals(0, 10)
        array([0.  , 0.25, 0.5 ])
        """
        parts = [
            _epoch(self, epoch).times(first, last)
            for epoch, first, last in self._spans(self.at(begin), self.at(end))
        ]
        return np.concatenate([*parts, np.empty(0, np.int64)]) / _SECOND

    def packets(self, begin: float, end: float) -> pa.RecordBatch:
        """Return the packets in [begin, end) of stream time, ascending, with the columns of SCHEMA.

        >>> print(OnOff(rate=10, rows=2).packets(0, 1).to_pylist()[0]["ts"])
        2025-01-01 00:00:00+00:00
        """
        batches = self.batches(self.at(begin), self.at(end))
        return pa.concat_batches([_NO_PACKETS, *batches])

    def count(self, begin: float, end: float) -> int:
        """How many packets arrive in [begin, end), without making them.

        >>> OnOff(rate=100_000, burst=2, length=0.01).count(0, 0.001)
        200
        """
        return max(0, self.at(end).rows - self.at(begin).rows)

    def at(self, seconds: float) -> Position:
        """Return the place before the first packet at or after this stream time."""
        return self.reach(ORIGIN, round(seconds * _SECOND))

    # -- by position: what a source needs to go on from where it was -----------------------------

    def advance(self, position: Position, rows: int) -> Position:
        """Return the place `rows` packets further on, or the end of the stream if that is nearer.

        >>> OnOff(rows=100).advance(Position(row=90, rows=90), 25)
        Position(epoch=0, row=100, rows=100)
        """
        left = rows if self.rows is None else min(rows, self.rows - position.rows)
        epoch, row, total = position.epoch, position.row, position.rows
        while left > 0:
            step = min(left, _count(self, epoch) - row)
            row, total, left = row + step, total + step, left - step
            if left:
                epoch, row = epoch + 1, 0
        return Position(epoch, row, total)

    def cut(
        self, first: Position, last: Position, parts: int
    ) -> list[tuple[Position, Position]]:
        """Share the packets between two places evenly; a share without packets is left out.

        >>> traffic = OnOff(rows=100)
        >>> [b.rows - a.rows for a, b in traffic.cut(ORIGIN, traffic.advance(ORIGIN, 100), 3)]
        [33, 33, 34]
        """
        rows, places = last.rows - first.rows, [first]
        for part in range(parts):
            share = rows * (part + 1) // parts - rows * part // parts
            places.append(self.advance(places[-1], share))
        return [(a, b) for a, b in pairwise(places) if a.rows < b.rows]

    def reach(self, position: Position, time: int) -> Position:
        """Return the place before the first packet at or after `time` (microseconds), never back.

        >>> OnOff(rate=1000, burst=1).reach(ORIGIN, 5_000)
        Position(epoch=0, row=5, rows=5)
        """
        target = time // self.epoch
        rows = -position.row
        for epoch in range(position.epoch, target + 1):
            rows += _count(self, epoch) if epoch < target else _epoch(self, epoch).rank(time)
            if self.rows is not None and position.rows + rows >= self.rows:
                break  # no need to count epochs past the end
        return self.advance(position, rows)

    def last_time(self, position: Position) -> int:
        """When the last packet of its epoch before a place comes (microseconds), or it begins.

        >>> traffic = OnOff(rate=1000, burst=1)
        >>> traffic.last_time(ORIGIN), traffic.last_time(traffic.advance(ORIGIN, 6))
        (0, 5000)
        """
        if position.row == 0:
            return position.epoch * self.epoch
        return _time(_epoch(self, position.epoch), position.row - 1)

    def batches(
        self, first: Position, last: Position, size: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the packets between two places, at most `size` to a batch.

        >>> traffic = OnOff(rows=100)
        >>> [b.num_rows for b in traffic.batches(ORIGIN, traffic.advance(ORIGIN, 100), size=64)]
        [64, 36]
        """
        for epoch, begin, end in self._spans(first, last):
            for row in range(begin, end, size):
                yield self._batch(epoch, row, min(row + size, end))

    def _spans(self, first: Position, last: Position) -> Iterator[tuple[int, int, int]]:
        """Cut a range of positions into (epoch, first row, last row)."""
        for epoch in range(first.epoch, last.epoch + 1):
            begin = first.row if epoch == first.epoch else 0
            end = last.row if epoch == last.epoch else _count(self, epoch)
            if begin < end:
                yield epoch, begin, end

    def _batch(self, epoch: int, first: int, last: int) -> pa.RecordBatch:
        times = pa.array(_epoch(self, epoch).times(first, last) + self.start)
        ts = times.cast(SCHEMA.field("ts").type)
        columns = _columns(_words(self.seed, epoch, first, last))
        return pa.RecordBatch.from_arrays([ts, *columns], schema=SCHEMA)


def _check(name: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, not {value!r}")


# -- when packets come ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Epoch:
    """The flows that send in one epoch. Flow f sends `count[f]` packets, from `first[f]` on."""

    begin: int
    end: int
    period: int
    first: Times
    count: Times
    before: int
    """Packets that these flows sent in the epoch before."""
    last: Times
    """When each flow sends its last packet."""
    ends: Times
    """The same, ascending."""
    ended: Times
    """Packets of the flows that have ended: before the first of `ends`, the second, and so on."""

    def rank(self, time: int) -> int:
        """Packets of this epoch before a time: only flows that are ON have to be looked at."""
        on = np.flatnonzero((self.first < time) & (self.last >= time))
        sent = _sent(self.first[on], self.count[on], self.period, time).sum()
        return int(self.ended[np.searchsorted(self.ends, time)] + sent) - self.before

    def times(self, first: int, last: int) -> Times:
        """Return when the packets numbered first to last - 1 come, ascending."""
        begin, end = _time(self, first), _time(self, last - 1) + 1
        times = self._between(begin, end)
        # Equal times may straddle the cut; which of them is which does not show in the times.
        skip = first - self.rank(begin)
        return times[skip : skip + last - first]

    def _between(self, begin: int, end: int) -> Times:
        low = _sent(self.first, self.count, self.period, begin)
        high = _sent(self.first, self.count, self.period, end)
        on = np.flatnonzero(high > low)
        if len(on) == 1:
            flow = on[0]
            number: Times = np.arange(low[flow], high[flow])
            alone: Times = self.first[flow] + (number * self.period >> _SHIFT)
            return alone
        low, sends = low[on], (high - low)[on]
        number = np.arange(sends.sum()) + np.repeat(low - (sends.cumsum() - sends), sends)
        times: Times = np.repeat(self.first[on], sends) + (number * self.period >> _SHIFT)
        times.sort(kind="stable")  # a merge of the flows' ascending runs
        return times


@lru_cache(maxsize=16)  # the caller has asked where the range ends, and goes on there
def _time(flows: _Epoch, row: int) -> int:
    """When packet number `row` of an epoch comes."""
    instants = range(flows.begin, flows.end)
    return instants[bisect_right(instants, row, key=lambda time: flows.rank(time + 1))]


def _sent(first: Times, count: Times, period: int, time: int) -> Times:
    """Packets each flow sends before a time: the n with `n * period >> _SHIFT < time - first`."""
    sent: Times = np.clip(-(((first - time) << _SHIFT) // period), 0, count)
    return sent


@lru_cache(maxsize=16)
def _epoch(traffic: OnOff, epoch: int) -> _Epoch:
    begin, end = epoch * traffic.epoch, (epoch + 1) * traffic.epoch
    period = traffic.period
    first, count = (
        np.concatenate(pair)
        for pair in zip(_flows(traffic, epoch - 1), _flows(traffic, epoch), strict=True)
    )
    before = _sent(first, count, period, begin)
    sends = _sent(first, count, period, end) > before
    first, count, before = first[sends], count[sends], before[sends]
    last = first + ((count - 1) * period >> _SHIFT)
    order = np.argsort(last, kind="stable")
    ended = np.concatenate([np.zeros(1, np.int64), np.cumsum(count[order])])
    return _Epoch(begin, end, period, first, count, int(before.sum()), last, last[order], ended)


@lru_cache(maxsize=65_536)
def _count(traffic: OnOff, epoch: int) -> int:
    flows = _epoch(traffic, epoch)
    return flows.rank(flows.end)


def _flows(traffic: OnOff, epoch: int) -> tuple[Times, Times]:
    """First packet and number of packets of the flows that begin in an epoch."""
    if epoch < 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    random = np.random.default_rng(np.random.SeedSequence([traffic.seed, epoch]))
    flows = random.poisson(LONGEST / (traffic.burst * MEAN_DURATION))
    start, shape, phase = random.random((3, flows + 1))
    if epoch == 0:
        start[-1] = phase[-1] = 0  # one more flow than chance gives, so that packets begin at once
    else:
        start, shape, phase = start[:-1], shape[:-1], phase[:-1]
    # Without the random phase, a flow would send half a packet more than its duration holds.
    period = traffic.period / (1 << _SHIFT)
    duration = (1 - shape * (1 - LONGEST**-ALPHA)) ** (-1 / ALPHA) * traffic.length * _SECOND
    count = np.ceil(duration / period - phase).clip(0).astype(np.int64)
    first = (epoch + start) * traffic.epoch + phase * period
    return first.astype(np.int64), count


# -- what packets hold ---------------------------------------------------------------------------

_SERVICES = (
    ("tcp", 443, 0.36), ("tcp", 80, 0.20), ("udp", 53, 0.12), ("udp", 443, 0.06), ("tcp", 22, 0.04),
    ("tcp", 25, 0.03), ("udp", 123, 0.02), ("icmp", 0, 0.02), ("tcp", 3306, 0.02),
    ("tcp", 8080, 0.02), ("tcp", 21, 0.005), ("tcp", 23, 0.005),
)  # fmt: skip
_EPHEMERAL = range(1024, 65_536)
_PROTOCOLS = pa.array(["tcp", "udp", "icmp"])
_SIZES = ((40, 0.34), (52, 0.10), (576, 0.10), (1500, 0.26))


def _table(values: Sequence[int], weights: Sequence[float]) -> Table:
    """65,536 entries in which each value stands as often as its weight says.

    A 16-bit random number then draws a value with one look-up.
    """
    share = np.cumsum(weights) / np.sum(weights)
    stop = np.rint(share * 65_536).astype(np.int64)
    return np.repeat(np.asarray(values, np.int32), np.diff(stop, prepend=0))


def _zipf(hosts: int) -> Table:
    ranks = range(1, hosts + 1)
    return _table(ranks, [1 / rank for rank in ranks])


def _services() -> tuple[Table, Table]:
    """Tables of ports and of protocols (as an index), drawn with the same random number."""
    rare = 1 - sum(weight for _, _, weight in _SERVICES)
    weights = [weight for _, _, weight in _SERVICES] + [rare / len(_EPHEMERAL)] * len(_EPHEMERAL)
    ports = [port for _, port, _ in _SERVICES] + list(_EPHEMERAL)
    names = _PROTOCOLS.to_pylist()
    protocols = [names.index(name) for name, _, _ in _SERVICES] + [0] * len(_EPHEMERAL)
    return _table(ports, weights), _table(protocols, weights)


def _sizes() -> Table:
    rest = range(53, 1500)
    weights = [weight for _, weight in _SIZES]
    spread = [(1 - sum(weights)) / len(rest)] * len(rest)
    return _table([size for size, _ in _SIZES] + list(rest), weights + spread)


_SRC, _DST, (_PORT, _PROTOCOL), _LENGTH = _zipf(4096), _zipf(1024), _services(), _sizes()


def _words(seed: int, epoch: int, first: int, last: int) -> npt.NDArray[np.uint16]:
    """Four random 16-bit numbers for each of the packets first to last - 1 of an epoch.

    Philox makes four 64-bit words per step of its counter, so any word can be reached at once.
    """
    step, skip = divmod(first, 4)
    counter = np.array([step, epoch, 0, 0], np.uint64)
    words = np.random.Philox(key=seed, counter=counter).random_raw(skip + last - first)
    # Little-endian on every machine, so that every machine draws the same packets.
    return words[skip:].astype("<u8", copy=False).view("<u2").reshape(-1, 4)


def _columns(words: npt.NDArray[np.uint16]) -> list[pa.Array]:
    src, dst, service, length = words.T
    return [
        pa.array(_SRC[src]),
        pa.array(_DST[dst]),
        pa.array(_PORT[service]),
        pa.array(_LENGTH[length]),
        _PROTOCOLS.take(pa.array(_PROTOCOL[service])),
    ]


OPTIONS = (
    "rate", "burst", "length", "seed", "rows", "start", "pace", "maxRowsPerTrigger", "slice",
    "partitions",
)  # fmt: skip
"""The options of the source ``onoff``."""


def check_options(given: Iterable[str]) -> None:
    """Raise ValueError for an option that the source ``onoff`` does not have."""
    known = {name.lower(): name for name in OPTIONS}
    for option in given:
        if option.lower() not in known:
            close = get_close_matches(option.lower(), known, n=1)
            hint = f"did you mean {known[close[0]]!r}?" if close else f"it has {', '.join(OPTIONS)}"
            raise ValueError(f"onoff has no option {option!r}; {hint}")
