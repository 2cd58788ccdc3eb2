"""The pure core: events in, instructions out. No Spark, no clock, no file, no thread."""

from penstock.engine.core import Core
from penstock.engine.instructions import (
    Cool,
    Finish,
    Forget,
    Instruction,
    Note,
    Refresh,
    Release,
    Run,
    Scan,
    Trim,
    Wake,
)

__all__ = ["Cool", "Core", "Finish", "Forget", "Instruction", "Note", "Refresh", "Release",
           "Run", "Scan", "Trim", "Wake"]
