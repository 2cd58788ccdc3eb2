"""Text into tokens, with sqlglot's tokenizer, and a cursor to read statement heads by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TypeVar

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import LanguageError, SyntaxFault
from penstock.language import durations
from penstock.language.dialect import Penstock
from penstock.language.places import Place, Source

Length = TypeVar("Length", int, float)
_WORD = re.compile(r"\w+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_OPENERS = re.compile(
    r"""--[^\n]*|/\*
      |(?<!\w)[rR](?:'[^']*'|"[^"]*")
      |'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|`[^`]*`
      |(?:(?<!\w)[rR])?['"`]""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def statements(text: str) -> Iterator[list[Token]]:
    """The tokens of each statement; their offsets count characters of the whole text."""
    statement: list[Token] = []
    for token in tokenise(text):
        if token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def statement_texts(text: str) -> list[str]:
    """The text of each statement, without comments before it and without its semicolon.

    >>> statement_texts("SHOW STREAMS; -- both\\nSELECT ';' FROM s;")
    ['SHOW STREAMS', "SELECT ';' FROM s"]
    """
    return [text[found[0].start : found[-1].end + 1] for found in statements(text)]


def is_complete(text: str) -> bool:
    """Whether a text that somebody types ends with a semicolon that is in no string or comment.

    >>> is_complete("SELECT a FROM s"), is_complete("SELECT ';"), is_complete("SHOW STREAMS;")
    (False, False, True)
    """
    try:
        tokens = tokenise(text)
    except SyntaxFault as error:
        return "is not closed" not in error.message  # what is wrong otherwise does not heal
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON


def tokenise(text: str) -> list[Token]:
    """All tokens of the text, strings as Spark reads them."""
    _check_encodable(text)
    _check_terminated(text)
    try:
        raw = Penstock().tokenize(text)
    except SqlglotError:
        raise _untokenisable(text) from None
    return _joined(raw, text)


def _check_encodable(text: str) -> None:
    """Raise for half a surrogate pair, which no file can hold; Python's strings can."""
    half = _SURROGATE.search(text)
    if half is not None:
        place = Place(half.start(), half.end())
        message = "this is half a character (a lone surrogate)"
        whole = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)  # the error is printed
        raise Source(whole, _ordinal(text, place)).syntax(message, place)


def _check_terminated(text: str) -> None:
    """Raise for a string or comment that never ends: the tokenizer does not say where it began."""
    position = 0
    while match := _OPENERS.search(text, position):
        opener, position = match[0], match.end()
        if opener == "/*":
            position = _end_of_comment(text, match.start())
        elif opener in ("'", '"', "`") or (len(opener) == 2 and opener[0] in "rR"):
            what = "quoted name" if opener == "`" else "string"
            place = Place(match.start(), match.end())
            raise Source(text, _ordinal(text, place)).syntax(f"this {what} is not closed", place)


def _end_of_comment(text: str, start: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    place = Place(start, start + 2)
    raise Source(text, _ordinal(text, place)).syntax("this comment is not closed", place)


def _ordinal(text: str, place: Place) -> str:
    return f"statement {text.count(';', 0, place.start) + 1}"


def _untokenisable(text: str) -> LanguageError:
    """The error for text that the tokenizer refuses: at the end of the longest part it takes."""
    good, bad = 0, len(text)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            Penstock().tokenize(text[:middle])
        except SqlglotError:
            bad = middle
        else:
            good = middle
    place = Place(good, bad)
    return Source(text, _ordinal(text, place)).syntax("this is not a token of SQL", place)


def _joined(raw: Sequence[Token], text: str) -> list[Token]:
    """Strings unescaped and adjacent ones joined; number suffixes such as ``BD`` understood."""
    tokens: list[Token] = []
    for is_string, group in groupby(raw, lambda token: token.token_type in _STRINGS):
        if is_string:
            tokens.append(_one_string(list(group), text))
        else:
            _add_numbers(group, tokens)
    return tokens


def _one_string(parts: Sequence[Token], text: str) -> Token:
    """Adjacent strings as one; where two touch, their quotes stand for one quote."""
    values = [_string_value(text[parts[0].start : parts[0].end + 1])]
    for last, part in pairwise(parts):
        if last.end + 1 == part.start and text[last.end] == text[part.start]:
            values.append(text[last.end])
        values.append(_string_value(text[part.start : part.end + 1]))
    return _token(TokenType.STRING, "".join(values), parts[0], parts[-1].end)


def _add_numbers(raw: Iterable[Token], tokens: list[Token]) -> None:
    """Add tokens that are no strings, with ``.5`` and ``1BD`` as one number each."""
    for token in raw:
        if _is_fraction(tokens, token):
            point = tokens.pop()
            token = _token(TokenType.NUMBER, "." + token.text, point, token.end)
        elif token.text == "BD" and len(tokens) > 1 and tokens[-2].end == token.end:
            tokens.pop()  # the `::` of a suffix: a number with a point is a DECIMAL already
            number = tokens.pop()
            decimal = number.text if "." in number.text else number.text + "."
            token = _token(TokenType.NUMBER, decimal, number, number.end)
        tokens.append(token)


def _is_fraction(before: Sequence[Token], token: Token) -> bool:
    """Whether a number follows a point that follows nothing: ``.5``."""
    if token.token_type is not TokenType.NUMBER or not before or not token.text.isdigit():
        return False
    point = before[-1]
    if point.token_type is not TokenType.DOT or point.end + 1 != token.start:
        return False
    return len(before) < 2 or before[-2].end + 1 < point.start or before[-2].text in "(,+-*/%=<>"


def _token(kind: TokenType, value: str, like: Token, end: int) -> Token:
    return Token(kind, value, like.line, like.col, like.start, end)


def _string_value(written: str) -> str:
    r"""What a quoted string means, by Spark's rules.

    >>> _string_value(r"'a\tb\%\d'") == "a\tb\\%d"
    True
    """
    if written[0] in "rR":
        return written[2:-1]
    body = written[1:-1]
    return _ESCAPE.sub(_unescaped, body) if "\\" in body else body


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        number = int(code[1:], 16) if code[0] in "uU" else int(code, 8)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "?"
    if code in "%_":
        return "\\" + code  # kept for LIKE
    return _ESCAPED.get(code, code)


def place_of(token: Token) -> Place:
    """Where a token stands."""
    return Place(token.start, token.end + 1)


def unseen(name: str) -> str:
    """What is wrong with a name of which nothing, or not all, can be seen."""
    blank = not name.strip()
    return "must not be blank" if blank else "must not hold characters that cannot be seen"


class Cursor:
    """Reads tokens from left to right; every complaint says what was expected."""

    def __init__(self, tokens: Sequence[Token], source: Source) -> None:
        """``source`` names the text and the statement for errors."""
        self.tokens, self.source, self.index = tokens, source, 0

    @property
    def current(self) -> Token | None:
        """The token to read next; None at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def place(self) -> Place:
        """Where the next token stands, or the last one at the end."""
        if self.tokens:
            return place_of(self.tokens[min(self.index, len(self.tokens) - 1)])
        return Place(0, 1)

    def word(self) -> str:
        """The next token in upper case when it is a word, else nothing."""
        token = self.current
        if token is None or token.token_type in (*_STRINGS, TokenType.IDENTIFIER):
            return ""
        return token.text.upper()

    def advance(self) -> Token:
        """Take the next token."""
        token = self.current
        if token is None:
            raise self.expected("more")
        self.index += 1
        return token

    def take(self, *words: str) -> bool:
        """Take these words when they come next."""
        start = self.index
        for word in words:
            if self.word() != word:
                self.index = start
                return False
            self.index += 1
        return True

    def expect(self, word: str) -> Token:
        """Take this word or symbol; complain when another comes."""
        if self.word() != word:
            raise self.expected(word)
        return self.advance()

    def name(self, what: str) -> tuple[str, Place]:
        """Take a name, quoted or not."""
        token = self.current
        if token is None or not _is_name(token):
            raise self.expected(what)
        if not token.text.strip() or not token.text.isprintable():
            raise self.source.syntax(f"{what} {unseen(token.text)}", self.place)
        return self.advance().text, place_of(token)

    def string(self, what: str) -> tuple[str, Place]:
        """Take a quoted string."""
        token = self.current
        if token is None or token.token_type is not TokenType.STRING:
            raise self.expected(what)
        return self.advance().text, place_of(token)

    def at_string(self) -> bool:
        """Whether a quoted string comes next."""
        return self.current is not None and self.current.token_type is TokenType.STRING

    def duration(self) -> tuple[float, Place]:
        """Take a duration in seconds: ``10 MIN``, ``INTERVAL '10' MINUTE`` or ``'10 minutes'``."""
        return self._duration(durations.seconds)

    def microseconds(self) -> tuple[int, Place]:
        """Take a duration, in whole microseconds."""
        return self._duration(durations.microseconds)

    def _duration(self, read: Callable[[str], Length]) -> tuple[Length, Place]:
        first = self.place
        begin = self.index
        quoted_only = self.at_string()
        self.take("INTERVAL")
        parts = [self._duration_part()]
        if not quoted_only and self.word()[:1].isalpha():
            parts.append(self.advance().text)
        place = first.until(place_of(self.tokens[self.index - 1]))
        try:
            return read(" ".join(parts)), place
        except ValueError as error:
            self.index = begin
            raise self.source.syntax(str(error), place) from None

    def _duration_part(self) -> str:
        token = self.current
        if token is None or not (token.token_type is TokenType.STRING or token.text[:1].isdigit()):
            raise self.expected("a duration such as 10 MIN")
        return self.advance().text

    def end(self, expectation: str = "the end of the statement") -> None:
        """Complain when anything is left."""
        if self.current is not None:
            raise self.expected(expectation)

    def expected(self, what: str, hint: str = "") -> LanguageError:
        """The error that this was expected here."""
        if self.current is None:
            return self.source.syntax(f"expected {what} after this", self.place, hint)
        shown = self.source.text[self.place.start : self.place.end]
        return self.source.syntax(f"expected {what}, not {shown}", self.place, hint)


def _is_name(token: Token) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return True
    if token.token_type in (*_STRINGS, TokenType.NUMBER):
        return False
    return _WORD.fullmatch(token.text) is not None
