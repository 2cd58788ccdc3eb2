"""Values as text: how csv and json files hold them, so that reading gives what was written.

By itself Spark cuts timestamps to milliseconds, trims blanks and control characters, and puts a
backslash before a quote, which only Spark reads.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from penstock.model import quoted

JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""Options for everything that is written as JSON: answers, late rows, rejects."""
_CSV = {
    **JSON,
    "header": "true",
    "escape": '"',  # RFC 4180: a quote within quotes is doubled
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}


def options(format_: str, columns: int) -> dict[str, str]:
    """The options with which a sink writes files of this many columns.

    Most readers take an empty line for no row, so the only column of a file is always quoted.
    """
    if format_ == "csv":
        return _CSV | ({"quoteAll": "true"} if columns == 1 else {})
    return JSON if format_ == "json" else {}


def csv_columns(frame: DataFrame) -> list[Column]:
    """The columns as csv files hold them: binary as base64, in one line as in JSON."""
    return [F.replace(F.base64(F.col(quoted(field.name))), F.lit("\r\n"), F.lit("")).alias(
                field.name)
            if isinstance(field.dataType, BinaryType) else F.col(quoted(field.name))
            for field in frame.schema.fields]
