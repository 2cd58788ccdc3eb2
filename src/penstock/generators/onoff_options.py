"""The options of the source ``onoff``, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.generators.packets import NEW_YEAR_2025, OnOff, check_options


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the source, read and checked. Their names are case-insensitive.

    >>> options = Options.parse({"rate": "500", "rows": "5000", "maxRowsPerTrigger": "1000"})
    >>> options.traffic.rate, options.block, options.paced
    (500.0, 1000, False)
    >>> Options.parse({"raet": "500"})
    Traceback (most recent call last):
    ValueError: onoff has no option 'raet'; did you mean 'rate'?
    """

    traffic: OnOff
    """rate (1000 rows/s), burst (5), length (1 s), seed (0), rows (none: endless), start."""
    paced: bool
    """pace: `clock` gives a packet when its time has come, `none` as soon as it is asked for.

    By default `clock` for an endless stream and `none` for a bounded one.
    """
    dated: bool
    """Whether start was given (ISO 8601, in UTC unless it says otherwise).

    If not, event time begins at 2025-01-01, or now if the stream follows the clock.
    """
    block: int
    """maxRowsPerTrigger: a block has at most so many rows (250,000)."""
    tick: int
    """slice: the clock moves in steps of so many milliseconds (50); here in microseconds.

    A fast trigger then does not make many tiny blocks.
    """
    partitions: int
    """partitions: a block has so many files, if it has 10,000 rows for each of them (2)."""

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Read what was declared, or given to a DataFrameReader."""
        options = {name.lower(): value for name, value in given.items()}
        check_options(options)
        numbers = {name: _number(options, name, kind) for name, kind in TRAFFIC.items()}
        start = _instant(options["start"]) if "start" in options else NEW_YEAR_2025
        stream = OnOff(**{k: v for k, v in numbers.items() if v is not None}, start=start)
        return cls(
            traffic=stream,
            paced=_paced(options),
            dated="start" in options,
            block=_positive(options, "maxRowsPerTrigger", 250_000),
            tick=_positive(options, "slice", 50) * 1000,
            partitions=_positive(options, "partitions", 2),
        )


TRAFFIC: dict[str, type] = {
    "rate": float,
    "burst": float,
    "length": float,
    "seed": int,
    "rows": int,
}
"""The options that say which packets come, with their types."""


def _number(options: Mapping[str, str], name: str, kind: type) -> Any:
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise ValueError(f"option {name!r} of onoff must be {what}, not {text!r}") from None


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    value = _number(options, name, int)
    if value is not None and value < 1:
        raise ValueError(f"option {name!r} of onoff must be at least 1, not {value}")
    return default if value is None else int(value)


def _paced(options: Mapping[str, str]) -> bool:
    bounded = "rows" in options
    pace = options.get("pace", "none" if bounded else "clock").lower()
    if pace not in ("clock", "none"):
        raise ValueError(f"option 'pace' of onoff must be 'clock' or 'none', not {pace!r}")
    if pace == "none" and not bounded:
        raise ValueError("onoff with pace 'none' needs 'rows', or it would never end")
    return pace == "clock"


def _instant(text: str) -> int:
    """Microseconds since 1970.

    >>> _instant("1970-01-01T00:00:01")
    1000000
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "a time such as 2025-01-01T00:00:00"
        raise ValueError(f"option 'start' of onoff must be {hint}, not {text!r}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
