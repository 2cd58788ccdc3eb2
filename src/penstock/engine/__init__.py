"""The pure core: events in, instructions out. No Spark, no clock, no file, no thread."""

from penstock.engine.core import Core
from penstock.engine.instructions import (
    Asked,
    Cool,
    Finish,
    Forget,
    Instruction,
    Note,
    Refresh,
    Release,
    Run,
    Wake,
)

__all__ = ["Asked", "Cool", "Core", "Finish", "Forget", "Instruction", "Note", "Refresh", "Release",
           "Run", "Wake"]
