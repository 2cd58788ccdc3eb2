"""`penstock run`: the standing queries of an application, until they end or are stopped."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from penstock.cli.shared import (
    add_account_json,
    add_checkpoint,
    add_spark,
    read,
    spark_arguments,
    teller,
)
from penstock.policies import FAMILIES

HELP = "run an application"
ABOUT = "Run the standing queries of an application."
EXAMPLES = """\
examples:
  penstock run app.sql                              until Ctrl-C
  penstock run app.sql --until-drained              bounded inputs to their end, then stop
  penstock run app.sql --checkpoint state           go on where an earlier run stopped
  penstock run app.sql --master spark://host:7077   on a cluster
"""


def add(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("application", type=Path, metavar="app.sql", help="a file of statements")
    parser.add_argument("--until-drained", action="store_true",
                        help="read bounded inputs to their end, answer, and stop")
    add_account_json(parser)
    add_checkpoint(parser, "a new folder in .penstock")
    add_spark(parser)
    for family in FAMILIES.values():
        parser.add_argument(f"--{family.name}", metavar="POLICY",
                            help=f"the policy that decides {family.decides}; overrides SET "
                                 f"{family.name} (default: {family.default})")


def run(arguments: Namespace) -> int:
    """Run the application, show it, and account for it."""
    from penstock.cli.running import RunRequest, run_and_tell

    file: Path = arguments.application
    job = RunRequest(
        text=read(file),
        folder=file.resolve().parent,
        title=file.name,
        checkpoint=arguments.checkpoint or fresh_checkpoint(file, time.time()),
        file=file,
        until_drained=arguments.until_drained,
        spark=spark_arguments(arguments),
        policies={name: text for name in FAMILIES if (text := getattr(arguments, name))},
    )
    return run_and_tell(job, teller(arguments.json), arguments.json)


def fresh_checkpoint(file: Path, now: float) -> Path:
    """A folder that no run has used, named after the application and the time.

    >>> fresh_checkpoint(Path("apps/web.sql"), 0).as_posix()
    '.penstock/web-19700101-000000'
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return Path(".penstock") / f"{file.stem}-{stamp}"
