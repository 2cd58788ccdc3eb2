"""The language: text into an Application, bound against what was declared before.

>>> app = bind("CREATE STREAM s (a INT) FROM rate; CREATE QUERY q AS SELECT a FROM s WHERE a > 5")
>>> app.queries["q"].branches[0].where[0].function
'gt'
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from penstock.functions import PythonFunction
from penstock.language import durations, sizes
from penstock.language.catalogue import Catalogue
from penstock.language.loading import load as load_function
from penstock.language.loading import load_attribute, modules_in
from penstock.language.program_parts import ProgramPart, program_parts
from penstock.language.showing import HEADS as SHOWING
from penstock.language.showing import Showing
from penstock.language.signatures import Signature, doubt_of, read_signature
from penstock.language.statements import Load, StatementBinder, declared_name, one_select
from penstock.language.tokens import is_complete, statement_texts
from penstock.language.tokens import statements as split
from penstock.model import PROGRAM, Application, OneTimeQuery, Statement

__all__ = [
    "Bound",
    "ProgramPart",
    "Showing",
    "bind",
    "bind_all",
    "bind_question",
    "bind_statements",
    "doubt_of",
    "durations",
    "is_complete",
    "load_attribute",
    "load_function",
    "read_signature",
    "modules_in",
    "program_parts",
    "shows",
    "sizes",
    "statement_texts",
]

_NOTHING = Application()


def bind(
    text: str,
    onto: Application = _NOTHING,
    *,
    folder: str | Path = ".",
    load: Load = load_function,
) -> Application:
    """The application that results when these statements are added to ``onto``.

    ``folder`` is where relative paths and Python modules start. Nothing is touched but the module
    of a CREATE FUNCTION, through ``load(module, attribute, folder)``. Any text gives an Application
    or a `penstock.errors.LanguageError` with the place of the fault.
    """
    return bind_all(text, onto, folder=folder, load=load).application


class Bound(NamedTuple):
    """What a text means."""

    application: Application
    shown: tuple[Showing, ...] = ()
    """What it asks to be shown."""
    refreshed: tuple[str, ...] = ()
    """The relations that it wants to be read again."""


def bind_all(
    text: str,
    onto: Application = _NOTHING,
    *,
    folder: str | Path = ".",
    load: Load = load_function,
) -> Bound:
    """What `bind` returns, and what else the text asks for.

    >>> bind_all("CREATE STREAM s (a INT) FROM rate; SHOW STREAMS").shown[0].what
    'STREAMS'
    """
    catalogue = Catalogue.of(onto)
    binder = _add(text, catalogue, str(folder), load)
    return Bound(catalogue.application(), tuple(binder.shown), tuple(binder.refreshed))


def bind_statements(
    statements: Iterable[Statement], *, load: Load = load_function, importing: bool = True
) -> Application:
    """The application that was declared by these statements, such as those of a checkpoint.

    Without ``importing`` no module is: what was known of a function is in its statement. That holds
    of a function of a Python program in any case, since the program may give it later.
    """
    catalogue = Catalogue()
    for statement in statements:
        found = _found(statement, load if importing else _remembered(statement))
        _add(statement.text, catalogue, statement.folder, found)
    return catalogue.application()


def _remembered(statement: Statement) -> Load:
    if not statement.returns:
        return read_signature
    signature = Signature(statement.returns, statement.arity, statement.deterministic)
    return lambda module, attribute, folder: signature


def _found(statement: Statement, load: Load) -> Load:
    remembered = _remembered(statement)

    def look(module: str, attribute: str, folder: str) -> PythonFunction | Signature:
        return (remembered if module == PROGRAM else load)(module, attribute, folder)

    return look


def bind_question(
    text: str, application: Application, *, name: str = "question"
) -> OneTimeQuery:
    """The question that a bare ``SELECT ...`` asks; the application does not come to hold it.

    >>> app = bind("CREATE STREAM s (a INT) FROM rate")
    >>> asked = bind_question("SELECT a, a % 2 FROM s ORDER BY 2 DESC, a LIMIT 3", app)
    >>> asked.order[0], asked.limit
    (OrderKey(output=1, descending=True, nulls_first=False), 3)
    """
    return one_select(list(split(text)), text, name, Catalogue.of(application))


def shows(text: str) -> bool:
    """Whether a text begins with SHOW, DESCRIBE or EXPLAIN.

    >>> shows("-- all\\nshow streams"), shows("SELECT a FROM shows")
    (True, False)
    """
    first = next((token for statement in split(text) for token in statement), None)
    return first is not None and first.text.upper() in SHOWING


def _add(text: str, catalogue: Catalogue, folder: str, load: Load) -> StatementBinder:
    binder = StatementBinder(catalogue, folder, load)
    statements = list(split(text))
    catalogue.later = {declared_name(tokens) for tokens in statements}
    for ordinal, tokens in enumerate(statements, 1):
        catalogue.later.discard(declared_name(tokens))
        binder.bind(tokens, text, ordinal)
    return binder
