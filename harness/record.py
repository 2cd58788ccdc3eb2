"""`python -m harness.record PAGE NAME.json ...`: put what was measured into a page of reports.

The page has a place for it, between `<!-- measured: NAME -->` and `<!-- end of measured -->`. A
program with several reports has a mark `<!-- tables of PROGRAM -->`, before which the place of a
new `PROGRAM-PART` is made. What stands in a place is made of the JSON alone, which is kept beside
the page in `data/`. What there is to say about the figures belongs after the place.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.tables import chosen
from penstock.report.numbers import shown

DATA = "data"
"""The folder beside a page that keeps the JSON of its tables."""
WIDTH = 100
END = "<!-- end of measured -->"


def main(argv: Sequence[str] | None = None) -> int:
    """Record each file; 2 if one cannot be."""
    parser = argparse.ArgumentParser(prog="python -m harness.record", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="NAME.json")
    arguments = parser.parse_args(argv)
    for file in arguments.files:
        try:
            record(arguments.page, file)
        except ValueError as error:
            print(f"{file}: {error}", file=sys.stderr)
            return 2
    return 0


def record(page: Path, file: Path) -> None:
    """Keep a file beside the page, and write its tables into the page."""
    text = file.read_text(encoding="utf-8")
    found = json.loads(text)
    if found["changed"] or not found["commit"]:
        raise ValueError("it was measured with code that no commit has; commit, and measure again")
    told = replaced(page.read_text(encoding="utf-8"), found)
    (page.parent / DATA).mkdir(exist_ok=True)
    (page.parent / DATA / f"{found['name']}.json").write_text(text, encoding="utf-8")
    page.write_text(told, encoding="utf-8")


def replaced(page: str, found: Mapping[str, Any]) -> str:
    """The page with these figures in their place."""
    begin = f"<!-- measured: {found['name']} -->\n"
    told = f"{begin}{measured(found)}{END}"
    place = re.compile(f"{re.escape(begin)}.*?{re.escape(END)}", re.DOTALL)
    if place.search(page):
        return place.sub(lambda _: told, page, count=1)
    mark = f"<!-- tables of {found['name'].partition('-')[0]} -->"
    if mark not in page:
        raise ValueError(f"the page has no place for it: neither {begin.strip()} nor {mark}")
    return page.replace(mark, f"### {found['name']}\n\n{told}\n\n{mark}", 1)


def measured(found: Mapping[str, Any]) -> str:
    """The origin of some figures, their rows and their checks, as Markdown."""
    shown_rows = [chosen(found["columns"], row) for row in found["rows"]]
    parts = [_origin(found), *([_table(shown_rows)] if shown_rows else [])]
    if found["checks"]:
        parts.append(_table([_verdict(check) for check in found["checks"]]))
    return "".join(f"{part}\n\n" for part in parts)[:-1]


def _origin(found: Mapping[str, Any]) -> str:
    machine, name = found["machine"], found["name"]
    minutes = max(1, round(found["seconds"] / 60))
    size = "quick form" if found["quick"] else "full size"
    return textwrap.fill(
        f"Recorded in commit {found['commit']}, {found['date']}, on {machine['cores']} cores "
        f"({machine['system']}, {machine['memory_gb']:g} GB, Python {machine['python']}, PySpark "
        f"{machine['pyspark']}), {size}, in {minutes} minutes; load average at the end "
        f"{machine['load']:g}. All figures: [{name}.json]({DATA}/{name}.json).", WIDTH,
        break_long_words=False, break_on_hyphens=False)


def _verdict(check: Mapping[str, Any]) -> dict[str, str]:
    return {"check": check["text"], "target": check["target"], "measured": check["measured"],
            "holds": "yes" if check["holds"] else "**no**"}


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table, without the columns that are empty throughout.

    >>> print(_table([{"policy": "fifo", "peak": 1234.0, "x": None}, {"policy": "chain"}]))
    | policy | peak |
    |---|---:|
    | fifo | 1,234 |
    | chain |  |
    """
    columns = [name for name in dict.fromkeys(name for row in rows for name in row)
               if any(row.get(name) is not None for row in rows)]
    return "\n".join(_lines(columns, rows))


def _lines(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield _line(columns)
    yield "|" + "|".join("---:" if _is_number(rows, name) else "---" for name in columns) + "|"
    for row in rows:
        yield _line([shown(row.get(name)).replace("|", "\\|") for name in columns])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _is_number(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return all(isinstance(row.get(name), int | float | None) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
