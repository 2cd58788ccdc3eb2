r"""Patterns of LIKE and of regular expressions, checked before anything runs.

A bad pattern would throw in the middle of a run. And Java's matcher runs out of stack when it
repeats a group without bound over a long string, which ends the whole process. So the pattern must
be a constant, and is read here with a grammar that lies within Java's. What is not in it is refused
by name. Admitted: literals, ``. ^ $ |``, classes ``[a-z0-9_]``, escapes ``\d \w \s \b`` and
so on, groups ``(...) (?:...) (?<name>...) (?=...) (?!...) (?i)``, repetitions ``* + ? {n,m}``.
"""

from __future__ import annotations

import re
import string

from penstock.errors import TypeFault
from penstock.language.ambiguity import ALL, MOST_DIGITS, Choice, Node, Nothing, One, Repeat, digits
from penstock.language.places import Misfit

_CLASS_ESCAPES = "dDwWsShHvV"
_OTHER_ESCAPES = "tnrfae"
_ANCHORS = "bBAzZG"
_FLAGS = re.compile(r"\(\?([imsux]*)(?:-([imsux]+))?(\)|:)")
_NAMED = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_GROUP = re.compile(r"(\d)|\{([A-Za-z][A-Za-z0-9]*)\}", re.ASCII)
_COUNTS = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")
_LONGEST = 2000
_MOST_PARTS = 500
_MOST_STEPS = 1000
_FEWER_WAYS = "begin it with ^, bound a repetition, or write *+ for one that never gives back"
_BOUNDLESS = (
    "the regular expression repeats a group that can match in several ways more than a thousand "
    "times, which runs out of stack on a long string"
)


def check_like(pattern: str, escape: str) -> None:
    """Complain about an escape with nothing to escape: Spark throws for it when it runs."""
    if len(escape) != 1:
        raise Misfit(TypeFault, "the ESCAPE of LIKE is one character")
    position = 0
    while (position := pattern.find(escape, position)) >= 0:
        following = pattern[position + 1 : position + 2]
        if following not in ("%", "_", escape) or not following:
            message = f"{escape} in a LIKE pattern must stand before %, _ or {escape}"
            raise Misfit(TypeFault, message, f"write {escape}{escape} for {escape} itself")
        position += 2
    if len(like_parts(pattern, escape)) > _MOST_PARTS:
        raise Misfit(TypeFault, f"a LIKE pattern has less than {_MOST_PARTS} times %")


def like_parts(pattern: str, escape: str) -> list[str]:
    r"""What stands between the ``%`` of a LIKE pattern, each as a regular expression.

    >>> like_parts("a_c%.%", "\\")
    ['a.c', '\\.', '']
    """
    parts: list[list[str]] = [[]]
    position = 0
    while position < len(pattern):
        char = pattern[position]
        escaped = char == escape and position + 1 < len(pattern)
        if escaped:
            char = pattern[position + 1]
        if char == "%" and not escaped:
            parts.append([])
        else:
            parts[-1].append("." if char == "_" and not escaped else re.escape(char))
        position += 2 if escaped else 1
    return ["".join(part) for part in parts]


def like_regex(pattern: str, escape: str) -> str:
    """A regular expression that finds what LIKE matches, without going back on what it found.

    Between two ``%`` the first place where a part fits is as good as any later one. So each part is
    looked for once, from left to right, in a group that keeps its place (``(?>...)``). Spark's own
    translation tries all combinations: its time grows with a power of the text's length.

    >>> like_regex("a%b_%c", "!")
    '(?s)\\\\Aa(?>.*?b.).*c\\\\z'
    """
    first, *rest = like_parts(pattern, escape)
    if not rest:
        return rf"(?s)\A{first}\z"
    found = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return rf"(?s)\A{first}{found}.*{rest[-1]}\z"


def check_regex(pattern: str) -> Regex:
    """Read a regular expression; complain about what Java might not take."""
    if len(pattern) > _LONGEST:
        raise Misfit(TypeFault, f"a regular expression has at most {_LONGEST} characters")
    regex = Regex(pattern)
    regex.read()
    _check_ways(regex)
    return regex


def _check_ways(regex: Regex) -> None:
    """Complain about what takes ages on a text that nearly matches."""
    try:
        ways = digits(regex.tree)
    except OverflowError as error:
        raise Misfit(TypeFault, str(error), _FEWER_WAYS) from None
    if ways > MOST_DIGITS + 1e-9:
        message = (
            "too many repetitions of the regular expression may take the same characters: on a "
            "text that nearly matches there would be more than a billion ways to try"
        )
        raise Misfit(TypeFault, message, _FEWER_WAYS)


def check_replacement(text: str, regex: Regex) -> None:
    r"""Complain about a replacement whose ``$1`` or ``\`` Java would not take."""
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 == len(text):
            raise Misfit(TypeFault, "a replacement cannot end in \\", "write \\\\\\\\ for one")
        if char == "$":
            group = _GROUP.match(text, position + 1)
            if group is None or not regex.has(group):
                message = "$ in a replacement must name a group of the pattern"
                raise Misfit(TypeFault, message, "write \\\\$ for a dollar")
        position += 2 if char == "\\" else 1


def characters(written: str, folds: bool = False) -> int:
    """The characters that ``a``, ``.``, an escape or ``[a-z]`` takes, a bit for each of ASCII.

    >>> characters("[a-c]") == characters("a") | characters("b") | characters("c")
    True
    """
    if written == ".":
        return ALL
    if written[0] == "\\":
        return _escaped(written[1], folds)
    if written[0] != "[":
        return _bit(written, folds)
    inside = written[2:-1] if written[1] == "^" else written[1:-1]
    found = 0
    for match in _CLASS_PARTS.finditer(inside):
        if match[1]:
            last = match[2]
            for code in range(ord(match[1]), min(ord(last), 128) + 1):
                found |= _bit(chr(code), folds)
            found |= _bit(last, folds)
        else:
            found |= characters(match[3], folds) if match[3][0] == "\\" else _bit(match[3], folds)
    return ALL & ~(found & ~_OTHERS) if written[1] == "^" else found


def _bit(char: str, folds: bool) -> int:
    if not folds:
        return 1 << min(ord(char), 128)
    return _OTHERS | 1 << min(ord(char.lower()[0]), 128) | 1 << min(ord(char.upper()[0]), 128)


def _escaped(char: str, folds: bool) -> int:
    known = _SETS.get(char.lower()) if char in _CLASS_ESCAPES else None
    if known is None:
        return _bit(_CONTROLS.get(char, char), folds)
    taken = sum(1 << ord(c) for c in known)
    others = _OTHERS if char.lower() in "hv" else 0
    return taken | others if char.islower() else ALL & ~taken


_OTHERS = 1 << 128
_SETS = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_",
    "s": " \t\n\x0b\f\r",
    "h": " \t",
    "v": "\n\x0b\f\r",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASS_PARTS = re.compile(r"([^\\])-([^\\])|(\\.|.)", re.DOTALL)


class Regex:
    """Reads one regular expression from left to right."""

    def __init__(self, pattern: str) -> None:
        """``groups`` counts the groups that capture; ``names`` are the named ones."""
        self.pattern, self.position = pattern, 0
        self.groups = 0
        self.names: set[str] = set()
        self.tree = Choice(((),))
        self._node: Node = Nothing()
        """The item that was read last."""
        self._folds = re.search(r"\(\?[a-z]*i", pattern) is not None

    def read(self) -> None:
        """Read it all."""
        self._alternatives(0)
        if self.position < len(self.pattern):
            raise self._refused("a ) without its (")
        assert isinstance(self._node, Choice)
        self.tree = self._node

    def has(self, group: re.Match[str]) -> bool:
        """Whether a replacement's ``$1`` or ``${name}`` is one of its groups."""
        return int(group[1]) <= self.groups if group[1] else group[2] in self.names

    def _rest(self, start: str) -> bool:
        return self.pattern.startswith(start, self.position)

    def _refused(self, what: str) -> Misfit:
        message = f"the regular expression has {what} at character {self.position + 1}"
        return Misfit(TypeFault, message)

    def _alternatives(self, depth: int) -> tuple[bool, int]:
        """Read up to the closing bracket; answer as `_item` does."""
        if depth > 50:
            raise self._refused("too many nested groups")
        single, steps = True, 1
        ways: list[list[Node]] = [[]]
        while self.position < len(self.pattern) and not self._rest(")"):
            if self._rest("|"):
                self.position += 1
                single = False
                ways.append([])
            else:
                fixed, more = self._repeated(depth)
                single, steps = single and fixed, max(steps, more)
                ways[-1].append(self._node)
        self._node = Choice(tuple(map(tuple, ways)))
        return single, steps

    def _repeated(self, depth: int) -> tuple[bool, int]:
        is_group = self._rest("(")
        fixed, steps, repeatable = self._item(depth)
        if not self._at_repetition():
            return fixed, steps
        if not repeatable:
            raise self._refused("a repetition of nothing")
        least, most = self._counts()
        keeps = self._rest("+")
        if keeps or self._rest("?"):
            self.position += 1
        self._node = Repeat(self._node, least, most, keeps)
        if self._at_repetition():
            raise self._refused("a repetition of a repetition")
        if is_group and not fixed:
            steps = _MOST_STEPS + 1 if most is None else steps * max(most, 1)
        if steps > _MOST_STEPS:
            raise Misfit(TypeFault, _BOUNDLESS, "bound it: {0,100} instead of * or +")
        return fixed and least == most, steps

    def _at_repetition(self) -> bool:
        return self.position < len(self.pattern) and self.pattern[self.position] in "*+?{"

    def _counts(self) -> tuple[int, int | None]:
        char = self.pattern[self.position]
        if char != "{":
            self.position += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        match = _COUNTS.match(self.pattern, self.position)
        if match is None:
            raise self._refused("a { that counts nothing (write \\\\{ for the character)")
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if most is not None and most < least:
            raise self._refused("a count that ends before it begins")
        self.position = match.end()
        return least, most

    def _item(self, depth: int) -> tuple[bool, int, bool]:
        """Read one item.

        Answers whether it matches in one way only, how deep the matcher goes at most for it, and
        whether it may be repeated.
        """
        start, char = self.position, self.pattern[self.position]
        if char == "(":
            return self._group(depth)
        if char == "[":
            self._class()
        elif char == "\\":
            repeatable = self._escape(in_class=False)
            self._node = self._one(start) if repeatable else Nothing()
            return True, 1, repeatable
        elif char in "*+?{":
            raise self._refused("a repetition of nothing")
        elif char in "]}":
            raise self._refused(f"a {char} without its opening")
        else:
            self.position += 1
        self._node = Nothing() if char in "^$" else self._one(start)
        return True, 1, char not in "^$"

    def _one(self, start: int) -> One:
        return One(characters(self.pattern[start : self.position], self._folds))

    def _group(self, depth: int) -> tuple[bool, int, bool]:
        repeatable = True
        flags, named = (r.match(self.pattern, self.position) for r in (_FLAGS, _NAMED))
        if flags is not None:
            if "x" in flags[1] or flags[0] == "(?)":
                raise self._refused("a flag that is not admitted")
            self.position = flags.end()
            if flags[3] == ")":
                self._node = Choice(((),))
                return True, 1, False
        elif named is not None:
            if named[1] in self.names:
                raise self._refused("a group name twice")
            self.names.add(named[1])
            self.groups += 1
            self.position = named.end()
        elif self._rest("(?=") or self._rest("(?!"):
            self.position += 3
            repeatable = False
        elif self._rest("(?"):
            raise self._refused("a group of a kind that is not admitted")
        else:
            self.groups += 1
            self.position += 1
        fixed, steps = self._alternatives(depth + 1)
        if not self._rest(")"):
            raise self._refused("a ( that is not closed")
        self.position += 1
        if not repeatable:
            self._node = Repeat(self._node, 0, 1)  # what is looked at need not be taken
        return fixed, steps, repeatable

    def _class(self) -> None:
        start = self.position
        self.position += 1
        if self._rest("^"):
            self.position += 1
        first, last = self.position, None
        while not self._rest("]"):
            if self.position >= len(self.pattern):
                self.position = start
                raise self._refused("a [ that is not closed")
            last = self._class_item(last)
        if self.position == first:
            raise self._refused("an empty class")
        self.position += 1

    def _class_item(self, before: str | None) -> str | None:
        """Read a character or range of a class; answer the character if it may begin a range."""
        char = self.pattern[self.position]
        if char == "[" or self._rest("&&"):
            raise self._refused("a class within a class")
        if char == "-" and before is not None and not self._rest("-]"):
            self.position += 1
            upper = self._class_char()
            if upper is None or upper < before:
                raise self._refused("a range that ends before it begins")
            return None
        return self._class_char()

    def _class_char(self) -> str | None:
        if self.position >= len(self.pattern) or self.pattern[self.position] == "[":
            raise self._refused("a class that is not closed")
        if self.pattern[self.position] != "\\":
            self.position += 1
            return self.pattern[self.position - 1]
        escaped = self.pattern[self.position + 1 : self.position + 2]
        self._escape(in_class=True)
        return None if escaped.isalnum() else escaped

    def _escape(self, in_class: bool) -> bool:
        """Read an escape; answer whether it may be repeated."""
        char = self.pattern[self.position + 1 : self.position + 2]
        admitted = _CLASS_ESCAPES + _OTHER_ESCAPES + ("" if in_class else _ANCHORS)
        if not char:
            raise self._refused("a \\ with nothing after it")
        if char.isascii() and char.isalnum() and char not in admitted:
            raise self._refused(f"the escape \\{char}, which is not admitted,")
        if not char.isascii():
            raise self._refused("an escape of a letter")
        self.position += 2
        return char not in _ANCHORS
