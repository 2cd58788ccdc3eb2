"""Reads a table of a description strictly: unknown keys and senseless values are refused.

Every refusal is one sentence that names the file, the table and the key.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NoReturn

from penstock.errors import WorkloadError

KEYS: dict[str, tuple[str, ...]] = {
    "the file": ("name", "unit", "model", "bytes", "seed", "window", "policies", "overhead",
                 "operators", "arrivals", "queries"),
    "overhead": ("invoke", "preempt", "schedule"),
    "an operator": ("name", "cost", "selectivity", "believed_cost", "believed_selectivity"),
    "a query": ("operators", "chart", "join", "tree", "latency", "priority", "arrivals"),
    "a join": ("left", "right"),
    "a side": ("operators", "cost", "matches", "rate", "arrivals"),
    "a tree": ("depth", "fan_out", "cost", "selectivity", "expensive"),
    "a spread": ("low", "high", "skew"),
    "expensive": ("depth", "count", "cost"),
    "arrivals": ("kind", "start", "speed", "rows", "gather"),
    "even": ("gap", "count"),
    "poisson": ("gap", "utilisation", "count", "seed"),
    "bursts": ("rate", "on", "off", "repeat"),
    "onoff": ("rate", "burst", "length", "seconds", "count", "seed"),
    "times": ("times",),
    "trace": ("file", "column", "count"),
}
"""Every key of every kind of table. Arrivals have the keys of their kind besides their own."""

KINDS = tuple(KEYS)[tuple(KEYS).index("arrivals") + 1 :]
"""The kinds of arrivals."""

LARGEST = 1e12
"""No number of a description is larger: sums and products must stay numbers."""

_REQUIRED: Any = object()


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the file, of a kind that says which keys it may have."""

    place: str
    """The file and the table, for messages."""
    raw: Mapping[str, Any]
    keys: tuple[str, ...]

    @classmethod
    def of(cls, place: str, raw: Any, *kinds: str) -> Table:
        """A table whose keys are those of these kinds.

        >>> Table.of("web.toml: [overhead]", {"invok": 1}, "overhead")
        Traceback (most recent call last):
        ...
        penstock.errors.WorkloadError: web.toml: [overhead] has no key 'invok'; did you mean 'invoke'?
        """  # noqa: E501
        if not isinstance(raw, dict):
            raise WorkloadError(f"{place} must be a table, not {_shown(raw)}")
        keys = tuple(key for kind in kinds for key in KEYS[kind])
        for key in raw:
            if key not in keys:
                raise WorkloadError(f"{place} has no key '{key}'{_hint(key, keys)}")
        return cls(place, raw, keys)

    def __contains__(self, key: str) -> bool:
        assert key in self.keys, f"{key} is not declared"
        return key in self.raw

    def fail(self, message: str) -> NoReturn:
        """Refuse the table."""
        raise WorkloadError(f"{self.place} {message}")

    def wrong(self, key: str, must: str) -> NoReturn:
        """Refuse the value of a key."""
        self.fail(f"{key} must be {must}, not {_shown(self.raw[key])}")

    def value(self, key: str, default: Any = _REQUIRED) -> Any:
        """Whatever stands there."""
        if key in self:
            return self.raw[key]
        if default is _REQUIRED:
            self.fail(f"needs {key}")
        return default

    def number(
        self,
        key: str,
        default: Any = _REQUIRED,
        *,
        above: float = -inf,
        least: float = -inf,
        most: float = LARGEST,
    ) -> Any:
        """A finite number within bounds, or the default.

        >>> Table.of("web.toml: [overhead]", {"invoke": -1}, "overhead").number("invoke", least=0)
        Traceback (most recent call last):
        ...
        penstock.errors.WorkloadError: web.toml: [overhead] invoke must be at least 0, not -1
        """
        if key not in self and default is not _REQUIRED:
            return default
        found = self.value(key)
        if isinstance(found, bool) or not isinstance(found, int | float) or not isfinite(found):
            self.wrong(key, "a number")
        if not found > above:
            self.wrong(key, f"above {above:g}")
        if not least <= found:
            self.wrong(key, f"at least {least:g}")
        if not found <= most:
            self.wrong(key, f"at most {most:,.0f}")
        return float(found)

    def whole(
        self, key: str, default: Any = _REQUIRED, *, least: int = 1, most: int = 10_000_000
    ) -> Any:
        """A whole number within bounds, or the default."""
        if key not in self and default is not _REQUIRED:
            return default
        if isinstance(self.value(key), bool) or not isinstance(self.raw[key], int):
            self.wrong(key, "a whole number")
        self.number(key, least=least, most=most)
        return self.raw[key]

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        """Text that is not empty, or the default."""
        if key not in self and default is not _REQUIRED:
            return default
        if not isinstance(self.value(key), str) or not self.raw[key].strip():
            self.wrong(key, "text")
        return self.raw[key]

    def choice(self, key: str, choices: Sequence[str], default: Any = _REQUIRED) -> Any:
        """One of several words, or the default."""
        found = self.text(key, default)
        if found not in choices:
            self.fail(f"{key} cannot be '{found}'{_hint(found, choices)}")
        return found

    def items(self, key: str) -> list[Any]:
        """A list with something in it."""
        if not isinstance(self.value(key), list) or not self.raw[key]:
            self.wrong(key, "a list with something in it")
        found: list[Any] = self.raw[key]
        return found

    def table(self, key: str, *kinds: str) -> Table:
        """A table within this one."""
        return Table.of(self.below(key), self.value(key), *kinds)

    def below(self, key: str) -> str:
        """The place of a table within this one.

        >>> Table.of("web.toml", {}, "the file").below("queries")
        'web.toml: [queries]'
        """
        file, _, inner = self.place.partition(": [")
        return f"{file}: [{inner.removesuffix(']')}.{key}]" if inner else f"{file}: [{key}]"

    def only_one_of(self, *keys: str) -> str:
        """The one of these keys that is there."""
        there = [key for key in keys if key in self]
        if not there:
            self.fail(f"needs {', '.join(keys[:-1])} or {keys[-1]}")
        if len(there) > 1:
            self.fail(f"takes only one of {' and '.join(there)}")
        return there[0]


def _hint(wrong: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(wrong, known, 1)
    return f"; did you mean '{close[0]}'?" if close else f"; there is {', '.join(known)}"


def _shown(value: Any) -> str:
    """A value as it may stand in a message.

    >>> _shown("a" * 99), _shown({"x": 1}), _shown(True)
    ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...", 'a table', 'true')
    """
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:38]}..."
