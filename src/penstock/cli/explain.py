"""`penstock explain`: the shared plan of an application, before anything runs."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from penstock.cli.shared import read

HELP = "show the shared plan"
ABOUT = "Show streams, paths and what is shared by whom."
EXAMPLES = """\
Needs neither Spark nor Java.

examples:
  penstock explain app.sql
  penstock explain app.sql --json | python3 -m json.tool
  penstock explain app.sql --after state
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("application", type=Path, metavar="app.sql", help="a file of statements")
    parser.add_argument("--json", action="store_true", help="the same as JSON, with every name")
    parser.add_argument("--after", type=Path, metavar="RUN",
                        help="show the orders of predicates and probes that a run has learnt, too: "
                             "a checkpoint, a run, or a file")
    parser.add_argument("--import", action="store_true", dest="imports",
                        help="import the modules of Python functions to know them for certain, "
                             "as run does; without it none of your code runs")


def run(arguments: Namespace) -> int:
    """Bind, plan, ask the policies, and print."""
    from penstock.events import Summary, digest, read_events
    from penstock.explain.explanation import Foreseen, noted
    from penstock.explain.foreseen import notes
    from penstock.explain.learnt_orders import explain_orders
    from penstock.explain.plans import explain, explain_json
    from penstock.language import bind, load_function, read_signature

    load = load_function if arguments.imports else read_signature
    application = bind(read(arguments.application), folder=arguments.application.parent, load=load)
    doubts = notes(application, imported=arguments.imports)
    seen = Foreseen.of(application)
    learnt = Summary.of(read_events(arguments.after)) if arguments.after else Summary()
    if arguments.json:
        told = explain_json(application, seen.plan, seen.segments, seen.renewals)
        orders = {key: digest(learnt)[key] for key in ("conjunctions", "probes")}
        print(json.dumps({**told, **(orders if arguments.after else {}), "notes": doubts},
                         indent=2))
    else:
        print(explain(application, seen.plan, seen.segments, seen.renewals))
        if changed := explain_orders(learnt, seen.plan):
            print(changed)
        print(noted(doubts), end="")
    return 0
