"""The time of binding grows with the length of the text, and not with its square."""

from __future__ import annotations

import gc
import time

import pytest

from penstock.errors import LanguageError
from penstock.language import bind

STREAM = "CREATE STREAM s (ts TIMESTAMP, a INT, v STRING) FROM rate TIME ts;"


def listed(form: str, count: int) -> str:
    return ", ".join(form.format(k=k) for k in range(count))


def selected(items: str, rest: str = "") -> str:
    return f"{STREAM} SELECT {items} FROM s {rest}"


TEXTS = {
    "options": (2000, lambda n: (
        f"CREATE STREAM t (a INT) FROM rate OPTIONS ({listed('o{k}=1', n)})")),
    "aggregates": (250, lambda n: selected(listed("SUM(a + {k})", n), "[WINDOW 1 MIN]")),
    "keys": (150, lambda n: selected(
        listed("a + {k} AS k{k}", n), f"[WINDOW 1 MIN] GROUP BY {listed('a + {k}', n)}")),
    "names in GROUP BY": (200, lambda n: selected(
        listed("a + {k} AS k{k}", n), f"[WINDOW 1 MIN] GROUP BY {listed('k{k}', n)}")),
    "blanks in a policy": (20_000, lambda n: "SET operators = 'fifo" + " " * n + "x'"),
    "policies": (5000, lambda n: "SET operators = 'fifo" + "+fifo" * n + "'"),
    "blanks in a duration": (20_000, lambda n: "SET quantum = '1" + " " * n + "'"),
    "digits of an interval": (5000, lambda n: selected(
        "a", f"WHERE ts > ts - INTERVAL '{'1' * n}' MINUTE")),
    "digits of a window": (5000, lambda n: selected("COUNT(*)", f"[WINDOW {'1' * n} MIN]")),
    "digits of ROWS": (5000, lambda n: selected("COUNT(*)", f"[WINDOW {'0' * n}19 ROWS]")),
    "casts": (1000, lambda n: selected(listed("a::BIGINT AS c{k}", n))),
    "casts of casts": (3000, lambda n: selected("a" + "::INT" * n + " AS c")),
    "columns": (2500, lambda n: (
        f"CREATE STREAM t ({listed('c{k} INT', n)}) FROM rate; SELECT {listed('c{k}', n)} FROM t")),
    "fields": (1000, lambda n: (
        f"CREATE STREAM t (x STRUCT<{listed('c{k}: INT', n)}>) FROM rate;"
        f"SELECT {listed('x.c{k}', n)} FROM t")),
    "intervals": (600, lambda n: selected(listed("ts + INTERVAL '{k}' DAY AS c{k}", n))),
    "adjacent strings": (10_000, lambda n: selected("'aaaaaaaaaaaaaaaaaaaa' " * n + " AS c")),
    "queries": (800, lambda n: STREAM + "SELECT a FROM s;" * n),
    "joins": (12, lambda n: selected("a", "JOIN s " * n)),
}  # fmt: skip


def seconds(text: str) -> float:
    gc.freeze()  # what earlier tests have left is not searched for garbage meanwhile
    begin = time.process_time()
    try:
        bind(text)
    except LanguageError:
        pass
    took = time.process_time() - begin
    gc.unfreeze()
    return took


@pytest.mark.parametrize("kind", TEXTS)
def test_four_times_the_text_takes_far_less_than_sixteen_times_as_long(kind):
    count, text = TEXTS[kind]
    long, short = text(4 * count), text(count)
    took: dict[str, float] = {}  # the least of several tries: other work of the machine only adds
    for _ in range(6):
        for one in (long, short):
            took[one] = min(seconds(one), took.get(one, 60.0))
        ratio = took[long] / max(took[short], 0.005)
        if ratio < 9:
            return
    pytest.fail(f"4 times the text took {ratio:.0f} times as long")
