"""Window aggregates as the model holds them; the golden files show how they are written."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import LanguageError, PlanError, Refused, SyntaxFault, TypeFault, UnknownName
from penstock.language import bind, bind_question, durations
from penstock.language.aggregates import AGGREGATES, LARGEST_K, SYNONYMS
from penstock.model import (
    ANSWER,
    BIGINT,
    DOUBLE,
    INT,
    TIMESTAMP,
    Aggregate,
    Branch,
    Column,
    Literal,
    OneTimeQuery,
    Output,
    Window,
    is_expensive,
    walk,
)
from penstock.planning.check import check_names
from tests.language import kit
from tests.language.query_text import render_window

ONTO = kit.declared()
MINUTE = 60_000_000


def branch(text: str) -> Branch:
    (found,) = bind(text, ONTO, load=kit.detectors).queries["q1"].branches
    return found


def aggregate(text: str) -> Aggregate:
    (found,) = branch(f"SELECT {text} AS x FROM readings [WINDOW 1 MIN]").grouping.aggregates
    return found


# --- what is bound -------------------------------------------------------------------------------


def test_a_branch_holds_its_keys_aggregates_and_conditions():
    found = branch(
        "SELECT src, MEDIAN(length) FROM packets [WINDOW 10 MIN SLIDE 2 MIN] "
        "WHERE port = 80 GROUP BY src HAVING COUNT(*) > 3"
    )
    grouping = found.grouping
    assert found.window == Window(10 * MINUTE, 2 * MINUTE)
    assert grouping.keys == (Column("src", INT),)
    assert grouping.aggregates == (
        Aggregate("PERCENTILE", (Column("length", INT),), DOUBLE, (0.5,)),
        Aggregate("COUNT", (), BIGINT),
    )
    assert grouping.having[0].args[0] == Column("agg1", BIGINT, ANSWER)
    assert found.select == (
        Output("window_start", Column("window_start", TIMESTAMP, ANSWER)),
        Output("window_end", Column("window_end", TIMESTAMP, ANSWER)),
        Output("src", Column("key0", INT, ANSWER)),
        Output("median", Column("agg0", DOUBLE, ANSWER)),
    )


def test_the_expressions_of_a_branch_are_those_over_rows():
    found = branch(
        "SELECT score(src) AS s, SUM(length) / COUNT(*) AS m, MAX(h.site) "
        "FROM packets p [WINDOW 1 MIN] JOIN hosts h ON p.src = h.id "
        "WHERE port = 80 GROUP BY score(src) HAVING MAX(dst) > 1"
    )
    names = [c.name for e in found.expressions for c in walk(e) if isinstance(c, Column)]
    assert names == ["src", "id", "port", "src", "length", "site", "dst"]
    assert [is_expensive(e) for e in found.expressions] == [False, False, True, *[False] * 3]


def test_the_expressions_of_other_branches_are_joins_conditions_and_outputs():
    found = branch("SELECT port, site FROM packets JOIN hosts ON src = id WHERE length > 5")
    names = [c.name for e in found.expressions for c in walk(e) if isinstance(c, Column)]
    assert names == ["src", "id", "length", "port", "site"]


@pytest.mark.parametrize("name", sorted(SYNONYMS))
def test_a_synonym_is_the_aggregate(name):
    arguments = {
        "BOOL_AND": "port > 1", "BOOL_OR": "port > 1", "COUNT_IF": "port > 1",
        "MAX_BY": "port, length", "MIN_BY": "port, length", "APPROX_TOPK": "port, 3",
        "APPROX_PERCENTILE": "port, 0.5", "PERCENTILE": "port, 0.5",
    }.get(SYNONYMS[name], "port")
    found = [branch(f"SELECT {call}({arguments}) AS x FROM packets [WINDOW 1 MIN]").grouping
             for call in (name, SYNONYMS[name])]
    assert found[0].aggregates == found[1].aggregates


@pytest.mark.parametrize("name", sorted([*AGGREGATES, *SYNONYMS, "HOP", "TUMBLE"]))
def test_an_aggregate_is_not_a_name_for_a_function_of_ones_own(name):
    with pytest.raises(TypeFault, match="has a function"):
        bind(f"CREATE FUNCTION {name} FROM 'detectors:score'", load=kit.detectors)


@pytest.mark.parametrize(
    "text, type_",
    [
        ("SUM(tiny)", "BIGINT"),
        ("SUM(big)", "BIGINT"),
        ("SUM(single)", "DOUBLE"),
        ("SUM(price)", "DECIMAL(20,2)"),
        ("SUM(price * price)", "DECIMAL(31,4)"),
        ("SUM(CAST(n AS DECIMAL(30,5)))", "DECIMAL(38,5)"),
        ("SUM(NULL)", "DOUBLE"),
        ("AVG(big)", "DOUBLE"),
        ("AVG(price)", "DECIMAL(14,6)"),
        ("AVG(CAST(n AS DECIMAL(36,2)))", "DECIMAL(38,6)"),
        ("COUNT(path)", "BIGINT"),
        ("MIN(price)", "DECIMAL(10,2)"),
        ("MAX(NULL)", "STRING"),
        ("MEDIAN(price)", "DOUBLE"),
        ("TOPK(price, 2, price)", "ARRAY<STRUCT<`value`: DECIMAL(10,2), `sum`: DECIMAL(20,2)>>"),
        ("TOPK(name, 2, single)", "ARRAY<STRUCT<`value`: STRING, `sum`: DOUBLE>>"),
    ],
)
def test_an_aggregate_has_the_type_of_spark(text, type_):
    assert str(aggregate(text).type) == type_


@pytest.mark.parametrize("k", [1, LARGEST_K])
def test_a_top_k_keeps_its_k(k):
    found = aggregate(f"TOPK(name, {k}, n)")
    assert found.parameters == (k,)
    assert [arg.name for arg in found.args] == ["name", "n"]


@pytest.mark.parametrize("p", ["0", "1", "0.25", "25e-2", "1.0"])
def test_a_percentile_keeps_its_share_as_a_float(p):
    (kept,) = aggregate(f"PERCENTILE(n, {p})").parameters
    assert isinstance(kept, float)
    assert kept == float(p)


def test_filter_leaves_the_other_arguments_alone():
    found = aggregate("TOPK(name, 2, n) FILTER (WHERE ok)")
    assert found.args[0].function == "case"
    assert found.args[0].args == (aggregate("MAX(ok)").args[0], aggregate("MAX(name)").args[0])
    assert found.args[1] == aggregate("MAX(n)").args[0]


def test_a_constant_key_does_not_stand_for_constants():
    found = branch("SELECT ROUND(AVG(length), 2) AS r FROM packets [WINDOW 1 MIN] GROUP BY 1 + 1")
    assert found.select[-1].expression.args[1] == Literal(2, INT)


def test_settings_of_refreshing_are_taken():
    bound = bind("SET refresh = 'hybrid + late_pending'")
    assert bound.settings["refresh"] == "hybrid+late_pending"


# --- windows -------------------------------------------------------------------------------------

LENGTHS = st.one_of(
    st.integers(1000, 10**13),  # the shortest slide is a millisecond
    st.builds(int.__mul__, st.integers(1, 500), st.sampled_from([1000, 10**6, MINUTE])),
)
UNITS = sorted(durations.SECONDS)


@given(LENGTHS, LENGTHS, st.booleans())
def test_a_window_is_read_as_it_is_shown(length, slide, exactly):
    window = Window(length, slide, exactly)
    text = f"SELECT COUNT(*) FROM packets {render_window(window)}"
    assert branch(text).window == window


@given(LENGTHS, LENGTHS)
def test_the_forms_of_a_window_agree(one, other):
    slide, length = sorted((one, other))  # HOP takes no slide that is longer than its window
    window = Window(length, slide, exactly=True)
    size, step = f"{length} us", f"{slide} us"
    quoted_size, quoted_step = f"INTERVAL '{length}' MICROSECOND", f"'{slide} microseconds'"
    table = f"TABLE packets, DESCRIPTOR(ts), {quoted_step}, {quoted_size}"
    for rest in (
        f"packets [WINDOW {size} SLIDE EXACTLY {step}]",
        f"packets p [WINDOW {quoted_size} SLIDE EXACTLY {quoted_step}]",
        f"packets WHERE port = 80 WINDOW {size} SLIDE EXACTLY {step}",
        f"packets GROUP BY HOP(ts, {step}, {size})",
        f"TABLE(HOP({table}))",
    ):
        assert branch(f"SELECT COUNT(*) FROM {rest}").window == window
    tumbling = branch(f"SELECT COUNT(*) FROM packets GROUP BY TUMBLE(ts, {size})").window
    assert tumbling == Window(length, length, exactly=True)


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(1, 6), st.sampled_from(UNITS))
def test_durations_are_exact_or_refused(whole, fraction, digits, unit):
    text = f"{whole}.{fraction % 10**digits:0{digits}} {unit}"
    micros = (whole * 10**digits + fraction % 10**digits) * round(durations.SECONDS[unit] * 10**6)
    if micros % 10**digits:
        with pytest.raises(ValueError, match="whole number of microseconds"):
            durations.microseconds(text)
    elif micros <= 10 ** (17 + digits):
        assert durations.microseconds(text) == micros // 10**digits


# --- any SELECT list -----------------------------------------------------------------------------

KEYS = ("src", "dst % 4", "port", "UPPER(CAST(dst AS STRING))")
CALLS = ("COUNT(*)", "SUM(length)", "AVG(length)", "avg( length )", "TOPK(src, 3)[0].count",
         "COUNT(*) FILTER (WHERE port = 80)")  # fmt: skip


@given(
    st.lists(st.sampled_from(KEYS), max_size=3, unique=True),
    st.lists(st.sampled_from(CALLS), min_size=1, max_size=5),
    st.lists(st.sampled_from(CALLS), max_size=2),
)
def test_what_stands_over_groups_sees_the_answer_alone(keys, calls, conditions):
    items = [*keys, *calls, *(f"COALESCE({key}, {key})" for key in keys)]
    text = f"SELECT {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} "
    text += "FROM packets [WINDOW 1 MIN]"
    text += f" GROUP BY {', '.join(keys)}" if keys else ""
    text += f" HAVING {' AND '.join(f'{call} > 0' for call in conditions)}" if conditions else ""
    found = branch(text)
    grouping = found.grouping
    known = {Column(f"key{n}", key.type, ANSWER) for n, key in enumerate(grouping.keys)}
    known |= {Column(f"agg{n}", a.type, ANSWER) for n, a in enumerate(grouping.aggregates)}
    over = [*(output.expression for output in found.select[2:]), *grouping.having]
    seen = {part for e in over for part in walk(e) if isinstance(part, Column)}
    assert seen == known
    assert len(set(grouping.aggregates)) == len(grouping.aggregates)
    assert not any(c.source == ANSWER for e in found.expressions for c in walk(e)
                   if isinstance(c, Column))  # fmt: skip


# --- planning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["src", "dst", "port"])
def test_the_check_of_a_plan_looks_at_keys_arguments_and_conditions(missing):
    text = "SELECT MAX(src) FROM packets [WINDOW 1 MIN] WHERE port = 80 GROUP BY dst"
    bound = bind(text, ONTO)
    check_names(bound)
    stream = bound.streams["packets"]
    fewer = replace(stream, columns=tuple(c for c in stream.columns if c.name != missing))
    with pytest.raises(PlanError, match=f"no column '{missing}'"):
        check_names(replace(bound, streams={"packets": fewer}))


# --- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEDIAN(length) FROM packets [WINDOW 14 min SLIDE 3 min]",
        "SELECT src FROM packets WHERE port = 80 ; ",
        "(SELECT src FROM packets) UNION ALL SELECT n FROM readings;",
    ],
)
def test_a_question_is_the_query_that_a_select_makes(text):
    asked = bind_question(text, ONTO, name="q1")
    assert asked.query == bind(text, ONTO).queries["q1"]
    assert asked == OneTimeQuery(asked.query, len(asked.query.branches[0].select))
    assert not ONTO.queries


@pytest.mark.parametrize(
    "text, order, hidden",
    [
        ("SELECT src, dst FROM packets ORDER BY 2 DESC, SRC", ((1, True, False), (0, False, True)),
         0),
        ("SELECT * FROM packets ORDER BY src NULLS LAST", ((1, False, False),), 0),
        ("SELECT src AS dst FROM packets ORDER BY packets.dst, dst",
         ((1, False, True), (0, False, True)), 1),
        ("SELECT src FROM packets GROUP BY src ORDER BY COUNT(*) DESC NULLS FIRST, src + 1",
         ((1, True, True), (2, False, True)), 2),
        ("SELECT DISTINCT src, dst + 1 FROM packets ORDER BY dst + 1", ((1, False, True),), 0),
        ("SELECT src FROM packets UNION ALL SELECT n FROM readings ORDER BY src",
         ((0, False, True),), 0),
    ],
)
def test_a_question_is_ordered_by_what_it_shows_or_by_more(text, order, hidden):
    asked = bind_question(text, ONTO)
    assert tuple((k.output, k.descending, k.nulls_first) for k in asked.order) == order
    assert len(asked.query.branches[0].select) == asked.shown + hidden


@pytest.mark.parametrize(
    "text, message",
    [
        ("SELECT src FROM packets ORDER BY 2", "the SELECT list has no item 2, it has 1"),
        ("SELECT DISTINCT src FROM packets ORDER BY dst", "ordered by its own columns"),
        ("SELECT src FROM packets UNION ALL SELECT n FROM readings ORDER BY src + 1",
         "a UNION ALL is ordered by its columns"),
        ("SELECT src FROM packets LIMIT -1", "expected a number of rows after LIMIT"),
        ("SELECT src FROM packets LIMIT 1 ORDER BY src", "in this order"),
        ("SELECT src FROM packets ORDER BY src ASCENDING", "expected"),
        ("SELECT src FROM packets ORDER BY", "expected what to order by"),
        ("SELECT src FROM packets ORDER BY *", "expected an expression to order by"),
        ("ORDER BY src", "expected SELECT"),
        ("SELECT src, COUNT(*) FROM packets", "neither grouped by nor inside an aggregate"),
        ("SELECT window_end FROM packets GROUP BY src", "no column 'window_end'"),
    ],
)
def test_an_order_that_cannot_be_is_refused(text, message):
    with pytest.raises(LanguageError, match=re.escape(message)):
        bind_question(text, ONTO)


def test_a_question_reads_the_answers_of_a_query_which_a_query_does_not():
    onto = bind("CREATE QUERY per AS SELECT src, COUNT(*) AS n FROM packets [WINDOW 1 MIN] "
                "GROUP BY src", ONTO)
    asked = bind_question("SELECT window_end, SUM(n) FROM per GROUP BY window_end", onto)
    assert [stream.name for stream in asked.answers] == ["per"] and asked.is_held
    assert [name for name, _ in asked.query.branches[0].outputs] == ["window_end", "sum"]
    with pytest.raises(Refused, match="is a query"):
        bind("CREATE QUERY q AS SELECT n FROM per", onto)
    with pytest.raises(TypeFault, match="not a stream with a time"):
        bind_question("SELECT COUNT(*) FROM per [WINDOW 1 MIN]", onto)


@pytest.mark.parametrize(
    "text, kind, message",
    [
        ("", SyntaxFault, "expected one SELECT"),
        (";", SyntaxFault, "expected one SELECT"),
        ("SELECT src FROM packets; SELECT dst FROM packets", SyntaxFault, "expected one SELECT"),
        ("CREATE QUERY q AS SELECT src FROM packets", SyntaxFault, "without CREATE QUERY"),
        ("SELECT lenght FROM packets", UnknownName, "did you mean 'length'"),
    ],
)
def test_a_text_that_is_no_question_is_refused_with_its_place(text, kind, message):
    with pytest.raises(kind, match=message) as refused:
        bind_question(text, ONTO)
    assert refused.value.statement == "query question"
    assert refused.value.column <= len(text) + 1


@given(st.text(max_size=60))
def test_any_question_is_bound_or_refused(text):
    try:
        bind_question(text, ONTO)
    except LanguageError as error:
        assert error.statement
