"""Applications grow statement by statement, and can be bound again from their statements."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from penstock.errors import LanguageError, UnknownName
from penstock.language import bind, bind_statements
from penstock.language.loading import load
from penstock.model import Application, Function, Statement, Type
from tests.language import kit

APPLICATION = (
    (kit.GOLDEN / "declarations.sql").read_text()
    + """
SELECT src FROM packets; SELECT dst FROM packets;
CREATE QUERY Big INTO parquet 'out' WITH (latency = 2 SECONDS) AS
  SELECT src FROM packets WHERE length > 1000 -- a comment; with a semicolon
    AND is_botnet(src, dst);
DROP QUERY q1;
SET memory = '1 GB'; SET operators = 'fifo'; SET memory = '2 GB';
"""
)


def bound(text: str, onto: Application | None = None) -> Application:
    return bind(text, onto or Application(), folder="/app", load=kit.detectors)


def test_statements_bind_again_to_an_equal_application():
    application = bound(APPLICATION)
    again = bind_statements(application.statements, load=kit.detectors)
    assert again == application
    assert list(again.queries) == ["q2", "Big"]


def test_statements_one_by_one_give_the_same():
    application = bound(APPLICATION)
    grown = Application()
    for statement in application.statements:
        grown = bind(statement.text, grown, folder=statement.folder, load=kit.detectors)
    assert grown == application


def test_dropped_and_replaced_statements_leave_no_text():
    texts = [statement.text for statement in bound(APPLICATION).statements]
    assert not any("q1" in text for text in texts)
    assert "SET memory = '1 GB'" not in texts
    assert "SET memory = '2 GB'" in texts


def test_a_statement_keeps_its_own_text_and_folder():
    application = bound("CREATE STREAM s (a INT) /* here */ FROM rate ; ")
    text = "CREATE STREAM s (a INT) /* here */ FROM rate"
    assert application.statements == (Statement("stream", "s", text, "/app"),)


def test_a_generated_name_survives_the_loss_of_its_neighbours():
    application = bound(
        "CREATE STREAM s (a INT) FROM rate; SELECT a FROM s; SELECT a + 1 AS b FROM s;"
    )
    smaller = bound("DROP QUERY q1; SELECT a AS c FROM s", application)
    assert sorted(smaller.queries) == ["q1", "q2"]
    assert bind_statements(smaller.statements) == smaller


def test_binding_changes_nothing_that_was_bound_before():
    before = bound(APPLICATION)
    copy = bound(APPLICATION)
    bound("DROP QUERY q2; SET memory = '3 GB'", before)
    assert before == copy


def test_an_error_adds_nothing_and_names_its_statement():
    with pytest.raises(UnknownName) as caught:
        bound(
            "CREATE STREAM s (a INT) FROM rate;\n\nCREATE QUERY one AS SELECT a FROM s;\n"
            "CREATE QUERY two AS\n  SELECT b FROM s;"
        )
    assert (caught.value.statement, caught.value.line, caught.value.column) == ("query two", 5, 10)


def test_relative_paths_start_at_the_folder_of_their_own_statement(tmp_path):
    first = bind("CREATE STREAM s (a INT) FROM csv 'in'", folder=tmp_path / "one")
    second = bind(
        "CREATE QUERY q INTO csv 'out' AS SELECT a FROM s", first, folder=tmp_path / "two"
    )
    assert second.streams["s"].path == str(tmp_path / "one" / "in")
    assert second.queries["q"].sink.target == str(tmp_path / "two" / "out")
    assert bind_statements(second.statements) == second


def test_a_function_is_loaded_from_the_applications_folder(tmp_path: Path):
    (tmp_path / "penstock_sample_detectors.py").write_text(
        "import penstock\n\n@penstock.scalar('decimal(10, 2)')\ndef cost(a, b):\n    return a\n"
    )
    path = list(sys.path)
    application = bind(
        "CREATE FUNCTION cost FROM 'penstock_sample_detectors:cost'", folder=tmp_path
    )
    expected = Function(
        "cost",
        "penstock_sample_detectors",
        "cost",
        Type("DECIMAL", precision=10, scale=2),
        2,
        str(tmp_path),
    )
    assert application.functions["cost"] == expected
    assert sys.path == path


def test_a_folder_of_data_hides_no_module(tmp_path: Path):
    import pyarrow

    for name in ("pyarrow", "rich"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").touch()
    (tmp_path / "beside_data.py").write_text(
        "import penstock, pyarrow\n@penstock.predicate\ndef f(n): return n\nused = pyarrow\n")
    load("beside_data", "f", str(tmp_path))
    assert sys.modules["beside_data"].used is pyarrow is sys.modules["pyarrow"]
    del sys.modules["beside_data"]


def test_two_folders_have_modules_of_the_same_name(tmp_path: Path):
    """Each application calls its own, and what its own imports; the first stays importable."""
    names = [f"penstock_twin_{tmp_path.name}", f"penstock_twin_help_{tmp_path.name}"]
    for number, folder in enumerate(("one", "two", "three")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{names[0]}.py").write_text(
            f"import penstock, {names[1]}\n@penstock.predicate\n"
            f"def f(a): return ({number}, {names[1]}.g())\n")
        (tmp_path / folder / f"{names[1]}.py").write_text(f"def g(): return {number}\n")
    found = {folder: load(names[0], "f", str(tmp_path / folder))
             for folder in ("one", "two", "three", "one", "two")}
    assert {name: f(0) for name, f in found.items()} == {
        "one": (0, 0), "two": (1, 1), "three": (2, 2)}
    assert sys.modules[names[0]].f is found["one"]
    assert load(names[0], "f", str(tmp_path / "two")) is found["two"], "imported once"


@pytest.mark.parametrize(
    "source, reason",
    [
        ("raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("import sys; sys.exit(3)", "leaves the program"),
        ("def f(a): return a", "penstock.predicate or penstock.scalar"),
        ("g = 1", "has no f"),
        ("import penstock\n@penstock.scalar('INTT')\ndef f(a): return a", "expected a type"),
        ("syntax error", "SyntaxError"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_an_error_at_its_place(tmp_path, source, reason):
    module = f"penstock_broken_{abs(hash(source))}"
    (tmp_path / f"{module}.py").write_text(source)
    with pytest.raises(LanguageError, match=reason) as caught:
        bind(f"CREATE FUNCTION f\nFROM '{module}:f'", folder=tmp_path)
    assert (caught.value.line, caught.value.column) == (2, 6)


def test_no_message_of_the_language_speaks_of_forms_or_of_inner_words():
    golden = "".join(path.read_text() for path in kit.GOLDEN.glob("*.sql"))
    messages = [line for line in golden.splitlines() if line.startswith("-- ")]
    assert not [m for m in messages if re.search(r"\bform \d|\bstanding\b|\bmembers?\b|segment", m)]


@pytest.mark.parametrize(("text", "fault"), [
    ("CREATE QUERY q AS SELECT a AS `b\0` FROM s", "must not hold characters that cannot be seen"),
    ("CREATE QUERY `q\0` AS SELECT a FROM s", "must not hold characters that cannot be seen"),
    ("CREATE QUERY q AS SELECT a AS ` ` FROM s", "must not be blank"),
    ("CREATE QUERY q INTO csv 'a\0b' AS SELECT a FROM s", "holds the character NUL"),
    ("CREATE STREAM t (a INT) FROM csv 'a\0b'", "holds the character NUL"),
    ("CREATE STREAM t (a INT) FROM csv ' '", "this path is blank"),
])
def test_names_and_paths_of_which_something_cannot_be_seen_are_told_from_blank_ones(text, fault):
    with pytest.raises(LanguageError, match=fault):
        bind(text, bind("CREATE STREAM s (a INT) FROM csv 'in'"))


def test_a_stream_has_options_of_its_own_and_a_time_that_is_a_number():
    application = bind("""
        CREATE STREAM s (t BIGINT) FROM json 'in'
            OPTIONS (maxAhead = '10 minutes', multiLine = true, fileTimeout = '2 s')
            TIME t UNIT MILLISECONDS LATENESS 1 SECOND;
        CREATE QUERY q AS SELECT COUNT(*) AS n FROM s GROUP BY TUMBLE(t, INTERVAL '1' MINUTE);
    """)
    stream = application.streams["s"]
    assert (stream.time, stream.unit, stream.lateness) == ("t", "MILLISECONDS", 1.0)
    assert (stream.max_ahead, stream.file_timeout) == (600.0, 2.0)
    assert stream.options == (("multiLine", "true"),)
    assert bind_statements(application.statements).streams == application.streams


def test_half_a_character_is_refused_at_its_place():
    text = "CREATE STREAM s (a INT) FROM rate;\nCREATE QUERY q AS SELECT 'x\ud800' AS t FROM s"
    with pytest.raises(LanguageError, match="statement 2, line 2, column 28: this") as told:
        bind(text)
    str(told.value).encode()
