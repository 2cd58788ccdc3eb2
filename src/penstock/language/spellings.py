"""Spellings of Spark, Flink SQL, ksqlDB and Postgres, read as what they are called here.

Each entry rewrites tokens before the query is parsed, and keeps their places, so that errors point
at what the user wrote.

| written | read as |
|---|---|
| ``window(ts, '10 minutes', '5 minutes')``, ``window.start`` | ``HOP(ts, ...)``, ``window_start`` |
| ``TUMBLE_START(ts, ...)``, ``HOP_END(ts, ...)`` | ``window_start``, ``window_end`` |
| ``TUMBLE(DATA => TABLE s, TIMECOL => ..., SIZE => ...)`` | the arguments by their order |
| ``SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), ...)`` | ``SESSION(TABLE s, ..., k)`` |
| ``WINDOWSTART``, ``WINDOWEND`` | ``window_start``, ``window_end`` |
| ``PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)`` | ``PERCENTILE(x, p)`` |
| ``FIRST(x) IGNORE NULLS`` | ``FIRST(x)`` |
| ``EMIT CHANGES``, ``EMIT FINAL`` | nothing: answers come as they are ready, and are final |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import Refused, TypeFault
from penstock.language.places import Source
from penstock.language.tokens import place_of

_ENDS = {
    f"{window}_{end}": f"window_{end.lower()}"
    for window in ("TUMBLE", "HOP", "SESSION")
    for end in ("START", "END")
}
_KSQL = ("TUMBLING", "HOPPING", "SESSION")
_ARGUMENTS = ("DATA", "TIMECOL", "KEY", "GAP", "SLIDE", "SIZE")
"""The names of the arguments of Flink's window functions, in our order."""
_FIELDS = {"START": "window_start", "END": "window_end"}


def understood(tokens: Sequence[Token], source: Source) -> list[Token]:
    """The tokens as they are called here."""
    found = list(tokens)
    for rewrite in _REWRITES:
        found = rewrite(found, source)
    return found


def _like(kind: TokenType, text: str, first: Token, last: Token) -> Token:
    return Token(kind, text, first.line, first.col, first.start, last.end)


def _word(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text.upper() if 0 <= index < len(tokens) else ""


def _opens(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].token_type is TokenType.L_PAREN


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the parenthesis that closes another, or that of the last token."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].token_type is TokenType.L_PAREN:
            depth += 1
        elif tokens[index].token_type is TokenType.R_PAREN:
            depth -= 1
            if not depth:
                return index
    return len(tokens) - 1


def _arguments(tokens: Sequence[Token], opening: int, closing: int) -> list[list[Token]]:
    """What stands between commas, one level deep."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[opening + 1 : closing]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.COMMA and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _between_commas(parts: Sequence[Sequence[Token]], comma: Token) -> Iterator[Token]:
    for number, part in enumerate(parts):
        if number:
            yield _like(TokenType.COMMA, ",", comma, comma)
        yield from part


def _without_emit(tokens: list[Token], source: Source) -> list[Token]:
    for index, token in enumerate(tokens):
        if (token.text.upper() == "EMIT" and _word(tokens, index + 1) in ("CHANGES", "FINAL")
                and _word(tokens, index + 2) in ("", "LIMIT")):
            return [*tokens[:index], *tokens[index + 2 :]]
    return tokens


def _spark_windows(tokens: list[Token], source: Source) -> list[Token]:
    """``window(ts, size, slide)``, whose size comes first, and the two ends by its name."""
    called = any(t.token_type is TokenType.WINDOW and _opens(tokens, k + 1)
                 for k, t in enumerate(tokens))
    sessions = any(t.text.upper() == "SESSION_WINDOW" and _opens(tokens, k + 1)
                   for k, t in enumerate(tokens))
    if not (called or sessions):
        return tokens
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        word = token.text.upper()
        if word not in ("WINDOW", "SESSION_WINDOW") or token.token_type is TokenType.STRING:
            found.append(token)
        elif _opens(tokens, index + 1):
            closing = _closing(tokens, index + 1)
            found += _spark_window(tokens, index, closing, source)
            index = closing
        elif _word(tokens, index + 1) == "." and _word(tokens, index + 2) in _FIELDS:
            last = tokens[index + 2]
            found.append(_like(TokenType.VAR, _FIELDS[last.text.upper()], token, last))
            index += 2
        else:
            hint = "write window.start and window.end, or window_start and window_end"
            message = f"{token.text} alone is not admitted"
            raise source.fault(Refused, message, place_of(token), hint)
        index += 1
    return found


def _spark_window(
    tokens: Sequence[Token], index: int, closing: int, source: Source
) -> Iterator[Token]:
    name, opening = tokens[index], tokens[index + 1]
    parts = _arguments(tokens, index + 1, closing)
    session = name.text.upper() == "SESSION_WINDOW"
    if len(parts) > (2 if session else 3) or len(parts) < 2:
        hint = "windows begin at multiples of the slide since 1970"
        message = f"{name.text} takes the time, and a duration" + ("" if session else " or two")
        raise source.fault(TypeFault, message, place_of(name), hint)
    read = "SESSION" if session else "TUMBLE" if len(parts) == 2 else "HOP"
    if len(parts) == 3:
        parts = [parts[0], parts[2], parts[1]]
    yield _like(TokenType.VAR, read, name, name)
    yield opening
    yield from _between_commas(parts, opening)
    yield tokens[closing]


def _ends_of_windows(tokens: list[Token], source: Source) -> list[Token]:
    """``TUMBLE_START(ts, INTERVAL '1' MINUTE)`` and its like."""
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text.upper() in _ENDS and _opens(tokens, index + 1):
            index = _closing(tokens, index + 1)
            token = _like(TokenType.VAR, _ENDS[token.text.upper()], token, tokens[index])
        found.append(token)
        index += 1
    return found


def _ksql_ends(tokens: list[Token], source: Source) -> list[Token]:
    """``WINDOWSTART`` beside ``WINDOW TUMBLING (...)``."""
    if not any(t.token_type is TokenType.WINDOW and _word(tokens, k + 1) in _KSQL
               for k, t in enumerate(tokens)):
        return tokens
    names = {"WINDOWSTART": "window_start", "WINDOWEND": "window_end"}
    return [_like(TokenType.VAR, names[t.text.upper()], t, t)
            if t.text.upper() in names and t.token_type is TokenType.VAR else t for t in tokens]


def _by_order(tokens: list[Token], source: Source) -> list[Token]:
    """The named arguments of TUMBLE, HOP and SESSION by their order."""
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        found.append(token)
        index += 1
        if token.text.upper() not in ("TUMBLE", "HOP", "SESSION") or not _opens(tokens, index):
            continue
        opening, closing = index, _closing(tokens, index)
        parts = _arguments(tokens, opening, closing)
        if not all(len(p) > 2 and p[1].token_type is TokenType.FARROW for p in parts):
            continue
        unknown = [p[0] for p in parts if p[0].text.upper() not in _ARGUMENTS]
        if unknown:
            message = f"{token.text} has no argument {unknown[0].text}"
            hint = f"it has {', '.join(_ARGUMENTS)}"
            raise source.fault(TypeFault, message, place_of(unknown[0]), hint)
        parts.sort(key=lambda p: _ARGUMENTS.index(p[0].text.upper()))
        found.append(tokens[opening])
        found += _between_commas([p[2:] for p in parts], tokens[opening])
        index = closing
    return found


def _partitioned(tokens: list[Token], source: Source) -> list[Token]:
    """``SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), gap)``: the keys come after the gap."""
    for index, token in enumerate(tokens):
        if token.token_type is not TokenType.PARTITION_BY or _word(tokens, index - 4) != "SESSION":
            continue
        closing = _closing(tokens, index - 3)
        after = next((n for n in range(index, closing) if _word(tokens, n + 1) == "DESCRIPTOR"),
                     closing)
        keys = tokens[index + 1 : after]
        if keys and keys[0].token_type is TokenType.L_PAREN:
            keys = keys[1:-1]
        moved = [*tokens[:index], *tokens[after:closing], *tokens[after : after + 1], *keys]
        return [*moved, *tokens[closing:]]
    return tokens


def _percentiles(tokens: list[Token], source: Source) -> list[Token]:
    """``PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)``."""
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text.upper() == "PERCENTILE_CONT" and _opens(tokens, index + 1):
            first = _closing(tokens, index + 1)
            within = _word(tokens, first + 1) == "WITHIN" and _word(tokens, first + 2) == "GROUP"
            if within and _word(tokens, first + 4) == "ORDER BY" and _opens(tokens, first + 3):
                last = _closing(tokens, first + 3)
                value = tokens[first + 5 : last]
                if value and value[-1].token_type is TokenType.DESC:
                    hint = "order it upwards, and take 1 - p"
                    message = "PERCENTILE_CONT goes upwards"
                    raise source.fault(Refused, message, place_of(value[-1]), hint)
                if value and value[-1].token_type is TokenType.ASC:
                    value = value[:-1]
                shares = tokens[index + 2 : first]
                found += [_like(TokenType.VAR, "PERCENTILE", token, token), tokens[index + 1]]
                found += _between_commas([value, shares], tokens[index + 1])
                token, index = tokens[last], last
        found.append(token)
        index += 1
    return found


def _without_nulls(tokens: list[Token], source: Source) -> list[Token]:
    """IGNORE NULLS, which every aggregate does; RESPECT NULLS, which none does."""
    found: list[Token] = []
    skip = False
    for index, token in enumerate(tokens):
        word = token.text.upper()
        if skip:
            skip = False
        elif word in ("IGNORE", "RESPECT") and _word(tokens, index + 1) == "NULLS":
            if word == "RESPECT":
                hint = "COALESCE(x, 'none') gives NULL a value"
                message = "aggregates leave NULL out"
                place = place_of(token).until(place_of(tokens[index + 1]))
                raise source.fault(Refused, message, place, hint)
            skip = True
        else:
            found.append(token)
    return found


_REWRITES: tuple[Callable[[list[Token], Source], list[Token]], ...] = (
    _without_emit,
    _ksql_ends,
    _spark_windows,
    _ends_of_windows,
    _by_order,
    _partitioned,
    _percentiles,
    _without_nulls,
)
