"""What can be said of a source without opening it: options that it does not take or does not know.

`penstock explain` tells it before a run; a run refuses the same options by the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.language.places import suggestion
from penstock.model import Options, Variable

FILES = ("parquet", "csv", "json", "orc", "text", "avro", "xml")
"""Sources that read files and get the schema from us; the others have their own."""
REFUSED = {
    "latestfirst": "files are read in the order of their modification times",
    "maxfileage": "files are read however old they are",
    "filenameonly": "files are told apart by their whole paths",
    "cleansource": "no file of a source is moved or deleted",
    "sourcearchivedir": "no file of a source is moved or deleted",
    "modifiedbefore": "a stream reads all files",
    "modifiedafter": "a stream reads all files",
    "ignoremissingfiles": "no row goes missing unseen",
    "ignorecorruptfiles": "a file that cannot be read is set aside and named",
}
"""Options that a stream over files does not take, in lower case, and why."""
LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger")
"""Options of a stream over files that are whole numbers: the most that a batch holds."""
_TEXT = ("encoding", "charset", "lineSep", "locale", "mode", "columnNameOfCorruptRecord",
         "multiLine", "dateFormat", "timestampFormat", "timestampNTZFormat", "timeZone",
         "samplingRatio", "compression", "enableDateTimeParsingFallback")
_FOLDER = (*LIMITS, "pathGlobFilter", "recursiveFileLookup", "basePath")
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "parquet": (*_FOLDER, "mergeSchema", "datetimeRebaseMode", "int96RebaseMode"),
    "orc": (*_FOLDER, "mergeSchema"),
    "text": (*_FOLDER, "wholetext", "lineSep", "encoding"),
    "csv": (*_FOLDER, *_TEXT, "sep", "delimiter", "quote", "escape", "comment", "header",
            "inferSchema", "preferDate", "enforceSchema", "ignoreLeadingWhiteSpace",
            "ignoreTrailingWhiteSpace", "nullValue", "nanValue", "positiveInf", "negativeInf",
            "maxColumns", "maxCharsPerColumn", "charToEscapeQuoteEscaping", "emptyValue",
            "unescapedQuoteHandling"),
    "json": (*_FOLDER, *_TEXT, "primitivesAsString", "prefersDecimal", "allowComments",
             "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros",
             "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
             "dropFieldIfAllNull", "allowNonNumericNumbers"),
    "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
    "rate-micro-batch": ("rowsPerBatch", "numPartitions", "startTimestamp",
                         "advanceMillisPerBatch"),
    "socket": ("host", "port", "includeTimestamp"),
    "kafka": ("kafka.bootstrap.servers", "subscribe", "subscribePattern", "assign", "valueFormat",
              "avroSchema", "startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp",
              "endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "failOnDataLoss",
              "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions",
              "maxRecordsPerPartition", "groupIdPrefix", "includeHeaders"),
}
"""The options of Spark's own sources, as far as a name that looks like one is taken for it."""
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "kafka": (("kafka.bootstrap.servers",), ("subscribe", "subscribePattern", "assign")),
    "socket": (("host",), ("port",)),
}
"""Of each set of options a source needs one."""


def refused(options: Options) -> Iterator[str]:
    """Why a stream over files does not take some of these options."""
    for name, value in options:
        if name.lower() in REFUSED:
            yield f"the option {name} is not taken: {REFUSED[name.lower()]}"
        elif name.lower() == "pathglobfilter" and "{" in str(value):
            yield f"the option {name} takes *, ? and [...], but no braces"


def whole_number(name: str, text: str) -> int:
    """The value of an option that is a number from 1 on; ValueError if it is none.

    >>> whole_number("maxFilesPerTrigger", "0")
    Traceback (most recent call last):
    ValueError: the option maxFilesPerTrigger is a whole number from 1 on, not '0'
    """
    if not (text.isascii() and text.isdigit() and int(text[:20])):
        raise ValueError(f"the option {name} is a whole number from 1 on, not '{text}'")
    return int(text)


def doubts(format_: str, options: Options, *, stream: bool) -> Iterator[str]:
    """What is wrong, or looks wrong, with the options of a source."""
    given = {name.lower(): value for name, value in options}
    if stream and format_ in FILES:
        yield from refused(options)
        for name in LIMITS:
            value = given.get(name.lower())
            if value is not None and not isinstance(value, Variable):
                try:
                    whole_number(name, value)
                except ValueError as error:
                    yield str(error)
    known = {name.lower() for name in _KNOWN.get(format_, ())}
    for name, _ in options:
        if known and name.lower() not in known | REFUSED.keys():
            if hint := suggestion(name, _KNOWN[format_]):
                yield f"Spark's source {format_} may not know the option {name}; {hint}"
    for names in _NEEDED.get(format_, ()):
        if not any(name.lower() in given for name in names):
            yield f"the source {format_} needs the option {' or '.join(names)}"
