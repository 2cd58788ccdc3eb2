"""console: answers are printed, the first few of each job."""

from __future__ import annotations

from penstock.rendering import visible
from penstock.spark.delivery.answers import Answers
from penstock.spark.delivery.sinks.base import AnswerSink, Staged, WriteTask, collect

CONSOLE_ROWS = 20
"""The most rows of a query that the console shows for one job."""


class ConsoleSink(AnswerSink):
    """Prints before the commit, so a crash in between prints the same rows again."""

    def stage(self, task: WriteTask, answers: Answers) -> Staged:
        """Print the first rows, each as ``query: column=value, ...``."""
        collected, query = collect(task, answers), task.write.members[0].query
        table, say = collected.table, self.tools.say
        for row in table.slice(0, CONSOLE_ROWS).to_pylist():
            told = ", ".join(f"{name}={value}" for name, value in row.items())
            say(visible(f"{query}: {told}"))
        if table.num_rows > CONSOLE_ROWS:
            say(f"{visible(query)}: ... and {table.num_rows - CONSOLE_ROWS} more rows")
        return collected.staged
