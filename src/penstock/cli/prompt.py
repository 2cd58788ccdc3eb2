"""The shell on a terminal: a prompt with history and completion, and the live view on a key."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from penstock.cli.shared import console
from penstock.cli.shell import HELP, LEAVING, Shell
from penstock.errors import PenstockError
from penstock.language import is_complete, statement_texts
from penstock.language.functions import ADMITTED
from penstock.language.settings import SETTINGS
from penstock.language.showing import LISTS
from penstock.model import Application, Relation, Stream
from penstock.policies import FAMILIES
from penstock.view.watching import News, progress_line, watch

PROMPT, MORE = "penstock> ", "      ... "
KEYWORDS = (
    "AND", "AS", "BETWEEN", "BY", "CASE", "CREATE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "END",
    "EXPLAIN", "FROM", "FUNCTION", "GROUP", "HAVING", "INNER", "INTERVAL", "INTO", "JOIN",
    "LATENESS", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "NULLS FIRST", "NULLS LAST", "ON",
    "OPTIONS", "OR", "ORDER BY", "QUERY", "REFRESH", "RELATION", "SELECT", "SET", "SHOW", "SLIDE",
    "STREAM", "TIME", "UNION ALL", "WHERE", "WINDOW", "WITH")
GLANCE = 0.25
"""Seconds between two updates of the live view."""
OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Watching:
    """What the prompt returns when the live view is wanted: the text typed so far."""

    typed: str


def converse(shell: Shell) -> int:
    """Prompt, carry out and print until the user leaves."""
    session: PromptSession[str | Watching] = PromptSession(
        history=_history(), completer=Names(shell), complete_while_typing=False, multiline=True,
        key_bindings=_keys(), prompt_continuation=MORE, refresh_interval=1.0,
        bottom_toolbar=lambda: _toolbar(shell))
    news, typed = News(), ""
    print("A statement ends with a semicolon; help tells which there are.", file=sys.stderr)
    while True:
        for line in news.since(shell.engine.status()):
            print(line)
        try:
            given = session.prompt(PROMPT, default=typed)
        except KeyboardInterrupt:  # what was typed is dropped
            typed = ""
            continue
        except EOFError:
            return 0
        typed = ""
        if isinstance(given, Watching):
            typed = given.typed
            look_on(shell)
        elif (words := given.strip().rstrip(";").strip().lower()) in LEAVING:
            return 0
        elif words == "help":
            print(HELP, end="")
        else:
            _carry_out(shell, given)


def _carry_out(shell: Shell, given: str) -> None:
    try:
        for text in statement_texts(given):
            shell.statement(text)
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
    except OSError as error:
        print(f"penstock: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("penstock: interrupted", file=sys.stderr)


def look_on(shell: Shell) -> None:
    """Show the run until a key is pressed or it ends."""
    if shell.engine.reading:
        print("this shell only looks: the process that runs shows the live view")
        return
    with closing(watch(console(), "penstock sql", "any key: back")) as view, _keys_at_once():
        while not select.select([sys.stdin], [], [], GLANCE)[0]:
            view.show(shell.engine.status())
        os.read(sys.stdin.fileno(), 64)  # the key


@contextmanager
def _keys_at_once() -> Iterator[None]:
    """Let a key arrive without Enter, and unseen; Ctrl-C still interrupts."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _toolbar(shell: Shell) -> str:
    if shell.engine.reading:
        return f" looking at {shell.engine.checkpoint}"
    summary = shell.engine.status()
    nothing = "starting" if shell.is_starting else "nothing runs: CREATE QUERY begins"
    told = progress_line(summary) if summary.queries else summary.waits_for() or nothing
    return f" {told} | F2: live view"


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _enter(event: KeyPressEvent) -> None:
        """Carry out what is complete; otherwise begin another line."""
        buffer = event.current_buffer
        words = buffer.text.strip().lower()
        if not words or words in (*LEAVING, "help") or is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("f2")
    def _watch(event: KeyPressEvent) -> None:
        event.app.exit(result=Watching(event.current_buffer.text))

    return keys


# --- history and completion ----------------------------------------------------------------------


def _history() -> History:
    """What was typed earlier, in a file that only its owner reads: statements may hold secrets."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "penstock" / "history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, OWNER_ONLY))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


class Names(Completer):
    """Completes keywords, and the names of all that is declared."""

    def __init__(self, shell: Shell) -> None:
        """Names are looked up when they are wanted."""
        self._shell = shell

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """The names that begin with the word before the cursor, declared ones first."""
        word = document.get_word_before_cursor()
        for name in completions(word, self._shell.engine.application):
            yield Completion(name, start_position=-len(word))


def completions(word: str, application: Application) -> list[str]:
    """What a word may become.

    >>> completions("se", Application())
    ['second', 'SELECT', 'SET', 'SETTINGS']
    """
    if not word.strip():
        return []
    sources: list[Stream | Relation] = [
        *application.streams.values(), *application.relations.values()]
    declared = [
        *application.streams, *application.relations, *application.views, *application.queries,
        *application.functions,
        *(column.name for source in sources for column in source.columns),
        *(name for view in application.views.values() for name, _ in view.branches[0].outputs),
        *(name for query in application.queries.values() for name, _ in query.branches[0].outputs)]
    known = [*SETTINGS, *(p for family in FAMILIES.values() for p in family.catalogue),
             *(name.lower() for name in ADMITTED)]
    found = [name for name in dict.fromkeys([*declared, *sorted({*known, *KEYWORDS, *LISTS})])
             if name.lower().startswith(word.lower()) and name != word]
    return sorted(found, key=lambda name: (name not in declared, name.lower()))
