"""Numbers as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite

from penstock.rendering import visible


def short(count: float) -> str:
    """A count in at most five characters.

    >>> [short(n) for n in (0, 987, 12_345, 999_999, 1_234_567, 98_700_000_000)]
    ['0', '987', '12.3k', '1.00M', '1.23M', '98.7G']
    """
    if abs(count) < 1000:
        return f"{count:.0f}"
    for unit in ("k", "M", "G", "T"):
        count /= 1000
        if abs(count) < 999.5 or unit == "T":
            break
    return f"{_digits(count)}{unit}"


def exact(count: int) -> str:
    """A count in full.

    >>> exact(1234567)
    '1,234,567'
    """
    return f"{count:,}"


def size(count: float) -> str:
    """Bytes, in units of 1024.

    >>> [size(n) for n in (0, 900, 2048, 5_000_000, 3 * 2**30)]
    ['0 B', '900 B', '2.00 KB', '4.77 MB', '3.00 GB']
    """
    if abs(count) < 1000:
        return f"{count:.0f} B"
    for unit in ("KB", "MB", "GB", "TB"):
        count /= 1024
        if abs(count) < 999.5 or unit == "TB":
            break
    return f"{_digits(count)} {unit}"


def seconds(duration: float | None) -> str:
    """A duration with its significant digits.

    >>> [seconds(s) for s in (None, 0.0004, 0.0123, 0.234, 0.9999, 5.04, 75, 7300)]
    ['-', '0.4 ms', '12 ms', '234 ms', '1.0 s', '5.0 s', '1:15', '2:01:40']
    """
    if duration is None or not isfinite(duration):
        return "-"
    if duration < 0.01:
        return f"{duration * 1000:.1f} ms"
    if duration < 0.9995:
        return f"{duration * 1000:.0f} ms"
    return f"{duration:.1f} s" if duration < 60 else clock(duration)


def clock(duration: float) -> str:
    """A duration as a clock shows it.

    >>> clock(5.7), clock(75), clock(7300)
    ('0:05', '1:15', '2:01:40')
    """
    minutes, rest = divmod(int(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(micros: int | None, date: bool = True) -> str:
    """A time in UTC, with the fraction of a second only if there is one.

    >>> moment(1_735_689_607_000_000), moment(1_735_689_607_500_000, date=False), moment(None)
    ('2025-01-01 00:00:07', '00:00:07.5', '-')
    """
    if micros is None:
        return "-"
    whole, fraction = divmod(micros, 1_000_000)
    told = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")
    return told + (f".{fraction:06}".rstrip("0") if fraction else "")


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "block"), counted(3, "block"), counted(2, "query"), counted(2, "refresh")
    ('1 block', '3 blocks', '2 queries', '2 refreshes')
    """
    many = (f"{thing[:-1]}ies" if thing.endswith("y")
            else f"{thing}es" if thing.endswith("sh") else f"{thing}s")
    return f"{number:,} {thing if number == 1 else many}"


def one_line(text: str, width: int = 200) -> str:
    """The first line of a reason, cut to the width.

    >>> one_line("no room\\nat java.io.File", 20), one_line("a" * 30, 10)
    ('no room', 'aaaaaaaaa…')
    """
    line = visible((text.strip().splitlines() or [""])[0])
    return line if len(line) <= width else line[: width - 1] + "…"


def harmless(text: str) -> str:
    r"""A reason in full, made safe for the terminal: it may contain data.

    >>> harmless("no file \x1b[2Ja.csv\nin the folder")
    'no file \\x1b[2Ja.csv\nin the folder'
    """
    return "\n".join(map(visible, text.strip().splitlines()))


def _digits(number: float) -> str:
    """Three digits."""
    places = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:.{places}f}"
