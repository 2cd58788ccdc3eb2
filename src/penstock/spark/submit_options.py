"""What Spark is started with besides our own settings: packages, jars and the user's settings.

Texts become values of a checked shape here. What has not this shape never reaches the command line
of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

_PACKAGE = re.compile(r"[A-Za-z0-9_][\w.-]*:[A-Za-z0-9_][\w.-]*:[A-Za-z0-9_][\w.+-]*", re.ASCII)
_JAR_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s,;]+")
_SETTING = re.compile(r"spark\.[A-Za-z0-9_][A-Za-z0-9_.-]*")
_OTHERWISE = {
    "spark.master": "--master",
    "spark.jars": "--jars",
    "spark.jars.packages": "--packages",
}
"""Settings that have an option of their own."""


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """What a session of our own is started with."""

    packages: tuple[str, ...] = ()
    """``group:name:version`` of each package that Spark downloads with what it depends on."""
    jars: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Settings of Spark."""

    @property
    def settings(self) -> dict[str, str]:
        """All of it as settings of Spark."""
        given = dict(self.conf)
        if self.packages:
            given["spark.jars.packages"] = ",".join(self.packages)
        if self.jars:
            given["spark.jars"] = ",".join(self.jars)
        return given

    def words(self) -> Iterator[str]:
        """The options of the command line that say the same."""
        if self.packages:
            yield from ("--packages", ",".join(self.packages))
        if self.jars:
            yield from ("--jars", ",".join(self.jars))
        for name, value in self.conf.items():
            yield from ("--conf", f"{name}={value}")


NONE = SubmitOptions()


def packages(text: str) -> tuple[str, ...]:
    """The packages that a list names; ValueError if one has another shape.

    >>> packages("org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0")
    ('org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0',)
    >>> packages("kafka")
    Traceback (most recent call last):
    ValueError: 'kafka' is no package; write GROUP:NAME:VERSION
    """
    found = _parts(text)
    for one in found:
        if not _PACKAGE.fullmatch(one):
            raise ValueError(f"'{one}' is no package; write GROUP:NAME:VERSION")
    return found


def jars(text: str) -> tuple[str, ...]:
    """The jars that a list names, which are files that exist or have a scheme.

    >>> jars("s3a://lake/one.jar")
    ('s3a://lake/one.jar',)
    """
    return tuple(map(_jar, _parts(text)))


def _jar(text: str) -> str:
    if _JAR_URI.fullmatch(text):
        return text
    path = Path(text).expanduser()
    if "\0" in text or not path.is_file():
        raise ValueError(f"there is no file {text}")
    whole = str(path.resolve())
    if "," in whole:
        raise ValueError(f"Spark takes no comma in the path of a jar: {whole}")
    return whole


def setting(text: str) -> tuple[str, str]:
    """A setting of Spark from ``name=value``.

    >>> setting("spark.driver.memory=8g")
    ('spark.driver.memory', '8g')
    >>> setting("spark.jars.packages=a:b:1")
    Traceback (most recent call last):
    ValueError: write --packages instead of spark.jars.packages
    """
    name, equals, value = text.partition("=")
    if not equals or not _SETTING.fullmatch(name):
        raise ValueError(f"'{text}' is no setting; write spark.NAME=VALUE")
    if not value.isprintable():
        raise ValueError(f"the value of {name} holds characters that cannot be printed")
    if name in _OTHERWISE:
        raise ValueError(f"write {_OTHERWISE[name]} instead of {name}")
    return name, value


def _parts(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(","))
    if not all(found):
        raise ValueError("a name is missing between two commas")
    return found
