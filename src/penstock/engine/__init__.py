"""The pure core: events in, instructions out. No Spark, no clock, no file, no thread."""

from penstock.engine.core import Core
from penstock.engine.instructions import (
    Cancel,
    Cool,
    Drain,
    Finish,
    Forget,
    Instruction,
    Job,
    Note,
    Pause,
    ProbeJob,
    ProbeScan,
    ReadRelation,
    RefreshJob,
    Release,
    Resume,
    Scan,
    SegmentJob,
    StoreVersions,
    Trim,
    Wake,
)

__all__ = ["Cancel", "Cool", "Core", "Drain", "Finish", "Forget", "Instruction", "Job", "Note",
           "Pause", "ProbeJob", "ProbeScan", "ReadRelation", "RefreshJob", "Release", "Resume",
           "Scan", "SegmentJob", "StoreVersions", "Trim", "Wake"]
