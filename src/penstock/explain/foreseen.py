"""What `explain` can say about a run in advance: what is missing, and what had to be guessed.

Nothing here starts Spark or imports a module of the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from penstock.generators import onoff_options
from penstock.generators.packets import check_options
from penstock.language import doubt_of, kafka, program_parts, read_signature
from penstock.language.places import suggestion
from penstock.language.source_checks import FILES, doubts
from penstock.model import (
    DATAFRAME,
    PROGRAM,
    Application,
    Options,
    Relation,
    Stream,
    Variable,
)

_SOURCES = (*FILES, "kafka", "onoff", "rate", "rate-micro-batch", "socket")
"""The sources that Spark and Penstock bring; others come with packages."""


def notes(application: Application, imported: bool = False) -> list[str]:
    """A sentence for everything that would make a run fail, or that is not known for certain."""
    found: list[str] = []
    for kind, sources in (("stream", application.streams), ("relation", application.relations)):
        for name, source in sources.items():
            found += [f"{kind} {name}: {doubt}" for doubt in _of_source(source)]
    if not imported:
        found += _of_functions(application)
    for query in application.queries.values():
        for sink in query.sinks:
            found += [f"query {query.name}: {doubt}" for doubt in _of_variables(sink.options)]
    return [*found, *_of_callbacks(application), *map(str, program_parts(application))]


def _of_source(source: Stream | Relation) -> Iterator[str]:
    if source.format == DATAFRAME or isinstance(source, Stream) and source.derived:
        return
    if source.format == "onoff":
        yield from _of_onoff(source)
    elif source.format not in _SOURCES and "." not in source.format:
        hint = suggestion(source.format, _SOURCES) or "it must come with a package"
        yield f"Spark brings no source '{source.format}'; {hint}"
    yield from _of_variables(source.options)
    yield from doubts(source.format, source.options, stream=isinstance(source, Stream))
    read = source.read if isinstance(source, Stream) else source.columns
    if fault := kafka.misfit(source, read):
        yield fault
    if source.format in FILES:
        yield from _of_path(source)


def _of_variables(options: Options) -> Iterator[str]:
    for name, value in options:
        if isinstance(value, Variable) and value.name not in os.environ:
            yield (f"the environment variable {value.name}, which option {name} names, is not set "
                   "here")


def _of_path(source: Stream | Relation) -> Iterator[str]:
    if source.path is None:
        yield f"the source {source.format} needs a path: FROM {source.format} 'folder'"
        return
    path = source.path.removeprefix("file://")
    if any(c in path for c in "{:"):
        return
    if any(c in path for c in "*?["):
        if isinstance(source, Relation) and not glob(path):  # of a stream, files may come later
            yield f"no file or folder matches {path}"
    elif not Path(path).exists():
        yield f"there is no file or folder {path}"
    elif isinstance(source, Stream) and Path(path).is_file():
        yield f"{path} is a file, and a stream is read from a folder of files"


def _of_onoff(source: Stream | Relation) -> Iterator[str]:
    try:
        check_options(name for name, _ in source.options)
        known = {name: value for name, value in source.options if isinstance(value, str)}
        if len(known) == len(source.options):
            onoff_options.Options.parse(known)
    except ValueError as error:
        yield str(error)


def _of_functions(application: Application) -> Iterator[str]:
    for function in application.functions.values():
        if function.module == PROGRAM:
            continue
        folder = function.folder or "."
        doubt = read_signature(function.module, function.attribute, folder).doubt
        if doubt:
            yield (f"function {function.name}: {doubt}; it is taken for a predicate, "
                   "--import makes sure")


def _of_callbacks(application: Application) -> Iterator[str]:
    folders = {s.name: s.folder for s in application.statements if s.kind == "query"}
    for query in application.queries.values():
        for called in (sink.function for sink in query.sinks if sink.function):
            module, _, attribute = called.partition(":")
            doubt = doubt_of(module, attribute, folders.get(query.name, "."))
            if doubt:
                yield f"query {query.name}: its callback may not be found: {doubt}"
