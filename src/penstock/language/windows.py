"""Windows of time: WINDOW clauses, and the standard forms HOP and TUMBLE.

sqlglot does not know WINDOW clauses as we write them, so they are read and taken out of the tokens.
HOP and TUMBLE are calls in its tree, in GROUP BY or in FROM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import LanguageError, Refused, SyntaxFault, TypeFault
from penstock.language import durations
from penstock.language.dialect import STANDARD, place_of_node
from penstock.language.places import Misfit, Place, Source
from penstock.language.tokens import Cursor
from penstock.model import Window
from penstock.rendering import span

MOST_ANSWERS = 1_000
"""The most answers that a query may give for one second of its data."""
_BEGINS = (TokenType.NUMBER, TokenType.INTERVAL, TokenType.STRING)
_TABLES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN)
"""What a bracketed window may follow: a stream's name, its alias, or ``TABLE(...)``."""
_KSQL = ("TUMBLING", "HOPPING", "SESSION")
_TABLE = ("a stream", "DESCRIPTOR(ts)")
_AFTER = (TokenType.R_PAREN, TokenType.GROUP_BY, TokenType.HAVING, TokenType.UNION)
"""What may follow a window without brackets, if anything does."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A window as written, of time or of rows."""

    place: Place
    window: Window | None = None
    rows: int | None = None
    bracketed: bool = False
    slides: bool = False
    """Whether a SLIDE is written."""


# --- WINDOW clauses ------------------------------------------------------------------------------


def take_windows(tokens: Sequence[Token], source: Source) -> tuple[list[Token], list[Clause]]:
    """The tokens without WINDOW clauses, in brackets or trailing, and the clauses."""
    rest: list[Token] = []
    clauses: list[Clause] = []
    cursor = Cursor(tokens, source)
    while cursor.current is not None:
        bracketed = _at_window(tokens, cursor.index + 1) and cursor.word() == "["
        if bracketed or (_at_window(tokens, cursor.index) and _begins_window(tokens, cursor.index)):
            clauses.append(_clause(cursor, bracketed))
        else:
            rest.append(cursor.advance())
    return rest, clauses


def _at_window(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].token_type is TokenType.WINDOW


def _begins_window(tokens: Sequence[Token], index: int) -> bool:
    """Whether a length follows: otherwise it is a column of that name, or another clause."""
    if index + 1 >= len(tokens):
        return False
    following = tokens[index + 1]
    if following.text.upper() in _KSQL:
        return index + 2 < len(tokens) and tokens[index + 2].token_type is TokenType.L_PAREN
    return following.token_type in _BEGINS or following.text[:1].isdigit()


def _clause(cursor: Cursor, bracketed: bool) -> Clause:
    first, begin = cursor.place, cursor.index
    if bracketed:
        cursor.expect("[")
    cursor.expect("WINDOW")
    if cursor.word() in _KSQL:
        return _ksql(cursor, first, begin)
    rows = _rows(cursor)
    measured = cursor.place
    length = None if rows else _length(cursor, "a window")
    slide, exactly = length, False
    slides = cursor.take("SLIDE")
    if slides:
        exactly = cursor.take("EXACTLY")
        measured = cursor.place
        slide = _length(cursor, "a slide")
    if slide is not None and not rows:
        _check_pace(slide, measured, cursor)
    if bracketed:
        cursor.expect("]")
    last = cursor.tokens[cursor.index - 1]
    place = first.until(Place(last.start, last.end + 1))
    _check_position(cursor, begin, bracketed, place)
    window = Window(length, slide, exactly) if length and slide else None
    return Clause(place, window, rows, bracketed, slides)


def _ksql(cursor: Cursor, first: Place, begin: int) -> Clause:
    """``WINDOW HOPPING (SIZE 10 MINUTES, ADVANCE BY 2 MINUTES)``, as ksqlDB writes it."""
    kind = cursor.advance().text.upper()
    cursor.expect("(")
    if kind != "SESSION":
        cursor.expect("SIZE")
    length = _length(cursor, "a window")
    slide = length
    if kind == "HOPPING":
        cursor.expect(",")
        cursor.expect("ADVANCE")
        cursor.expect("BY")
        slide = _length(cursor, "a slide")
    if cursor.take(","):
        hint = "LATENESS in CREATE STREAM says how late a row may be, SET retention what is kept"
        raise cursor.expected(")", hint)
    cursor.expect(")")
    _check_pace(slide, first, cursor)
    last = cursor.tokens[cursor.index - 1]
    place = first.until(Place(last.start, last.end + 1))
    _check_position(cursor, begin, False, place, also=(TokenType.WHERE,))
    window = Window.of_sessions(length) if kind == "SESSION" else None
    return Clause(place, window or Window(length, slide, exactly=True), slides=True)


def _rows(cursor: Cursor) -> int | None:
    following = cursor.tokens[cursor.index + 1 : cursor.index + 2]
    if not following or following[0].text.upper() not in ("ROW", "ROWS"):
        return None
    place, digits = cursor.place, cursor.advance().text
    number = digits.lstrip("0")
    if not (digits.isascii() and digits.isdigit() and 0 < len(number) < 11):
        raise cursor.source.syntax("expected a number of ROWS", place)
    if int(number) >= 2**31:
        raise cursor.source.syntax("expected a number of ROWS", place)
    cursor.advance()
    return int(number)


def _length(cursor: Cursor, what: str) -> int:
    micros, place = cursor.microseconds()
    if micros == 0:
        raise cursor.source.syntax(f"{what} is longer than nothing", place)
    return micros


def _check_pace(slide: int, begin: Place, cursor: Cursor) -> None:
    try:
        check_pace(slide)
    except Misfit as misfit:
        last = cursor.tokens[cursor.index - 1]
        place = begin.until(Place(last.start, last.end + 1))
        raise cursor.source.fault(misfit.kind, misfit.message, place, misfit.hint) from None


def check_pace(slide: int) -> None:
    """Complain about a slide that gives more answers than any machine can."""
    if slide * MOST_ANSWERS < 1_000_000:
        message = f"a slide of {span(slide)} gives more than {MOST_ANSWERS:,} answers per second"
        hint = f"the shortest slide is {span(1_000_000 // MOST_ANSWERS)}"
        raise Misfit(Refused, f"{message} of data", hint)


def _check_position(
    cursor: Cursor, begin: int, bracketed: bool, place: Place, also: Sequence[TokenType] = ()
) -> None:
    before = cursor.tokens[begin - 1].token_type if begin else None
    ends = cursor.current is None or cursor.current.token_type in (*_AFTER, *also)
    if not (before in _TABLES if bracketed else begin > 0 and ends):
        raise misplaced(place, cursor.source)


def misplaced(place: Place, source: Source) -> LanguageError:
    """The error for a window elsewhere than where it belongs."""
    hint = "in brackets it follows its stream, without them it ends the query"
    return source.syntax("a window does not stand here", place, hint)


# --- HOP and TUMBLE ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hop:
    """HOP, TUMBLE or SESSION as written: the column it looks at, and the window."""

    name: str
    time: exp.Expr
    clause: Clause
    partition: tuple[exp.Expr, ...] | None = None
    """What sessions in FROM are partitioned by."""


def is_standard(node: exp.Expr | None) -> bool:
    """Whether it is a call of HOP or TUMBLE."""
    return isinstance(node, exp.Anonymous) and node.name.upper() in STANDARD


def grouped_hop(node: exp.Expr, around: Place) -> Hop:
    """``HOP(ts, slide, size)`` or ``TUMBLE(ts, size)`` in GROUP BY."""
    return _hop(node, node.expressions, ["the TIME of the stream"], around)


def hopping_table(table: exp.Expr, around: Place) -> tuple[exp.Expr, Hop] | None:
    """The stream and the window of ``TABLE(HOP(TABLE s, DESCRIPTOR(ts), slide, size))``."""
    call = table.this if isinstance(table, exp.Table) else None
    if isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE":
        call = call.expressions[0] if len(call.expressions) == 1 else None
    if not isinstance(call, exp.Anonymous) or not is_standard(call):
        return None
    name = call.name.upper()
    if len(call.expressions) < 2:
        raise Misfit(TypeFault, f"{name} takes {', '.join(_TABLE)} and durations")
    stream, descriptor, *lengths = call.expressions
    if not isinstance(stream, exp.Column) or not isinstance(stream.this, exp.Identifier):
        raise Misfit(Refused, f"{name} takes a stream by its name")
    if not _is_descriptor(descriptor):
        raise Misfit(TypeFault, f"{name} takes the time as DESCRIPTOR(ts)")
    named = table.copy()
    named.set("this", stream.this.copy())
    named.set("db", stream.args.get("table"))
    if name != "SESSION":
        return named, _hop(call, [descriptor.expressions[0], *lengths], _TABLE, around)
    hop = _hop(call, [descriptor.expressions[0], *lengths[:1]], _TABLE, around)
    return named, replace(hop, partition=tuple(lengths[1:]))


def _is_descriptor(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.upper() == "DESCRIPTOR"
    return named and len(node.expressions) == 1


def _hop(node: exp.Expr, given: Sequence[exp.Expr], first: Sequence[str], around: Place) -> Hop:
    """From the time and the durations; ``first`` is what stands before the durations."""
    name = node.name.upper()
    words = {"HOP": ("a slide", "a size"), "TUMBLE": ("a size",), "SESSION": ("a gap",)}[name]
    if len(given) != 1 + len(words):
        *others, last = (*first, *words)
        raise Misfit(TypeFault, f"{name} takes {', '.join(others)} and {last}")
    lengths = [_duration(part, name) for part in given[1:]]
    if lengths[0] > lengths[-1]:
        message = f"{name}: the slide of {span(lengths[0])} is longer than the window of "
        message += f"{span(lengths[-1])}, so rows between two windows would be in none"
        slide, size = (span(length) for length in sorted(lengths))
        hint = f"the slide comes first: write HOP(..., '{slide}', '{size}')"
        raise Misfit(TypeFault, message, hint)
    check_pace(lengths[0])
    place = place_of_node(node) or around
    window = Window(length=lengths[-1], slide=lengths[0], exactly=True)
    if name == "SESSION":
        window = Window.of_sessions(lengths[0])
    return Hop(name, given[0], Clause(place, window))


def _duration(node: exp.Expr, name: str) -> int:
    """``INTERVAL '10' MINUTE`` or ``'10 minutes'`` in microseconds."""
    unit = node.args.get("unit")
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal):
        text = f"{node.this.name} {unit.name}" if isinstance(unit, exp.Var) else ""
    else:
        text = node.name if isinstance(node, exp.Literal) and node.is_string else ""
    if not text:
        raise Misfit(SyntaxFault, f"{name}: expected a duration such as INTERVAL '10' MINUTE")
    try:
        micros = durations.microseconds(text)
    except ValueError as error:
        raise Misfit(SyntaxFault, f"{name}: {error}") from None
    if micros == 0:
        raise Misfit(SyntaxFault, f"{name}: a window and its slide are longer than nothing")
    return micros
