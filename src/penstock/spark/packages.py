"""What Spark does not bring by itself: packages, and what to say where one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyspark
from py4j.protocol import Py4JJavaError

SCALA = "2.13"
"""The version of Scala for which Spark 4 is built."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package that belongs to Spark's own release."""

    name: str
    what: str
    """What it is good for, in a few words."""
    sign: str
    """A class that is there if it is."""

    @property
    def coordinates(self) -> str:
        """As `--packages` takes them: of Spark's own version."""
        version = pyspark.__version__.partition(".dev")[0]
        return f"org.apache.spark:{self.name}_{SCALA}:{version}"


KAFKA = Package("spark-sql-kafka-0-10", "its connector for Kafka",
                "org.apache.spark.sql.kafka010.KafkaSourceProvider")
PRODUCER = Package("spark-sql-kafka-0-10", "Kafka's producer",
                   "org.apache.kafka.clients.producer.KafkaProducer")
"""The connector brings it."""
AVRO = Package("spark-avro", "its functions for Avro",
               "org.apache.spark.sql.avro.AvroDataToCatalyst")


def lacking(jvm: Any, *packages: Package) -> str:
    """Why Spark cannot do something, and what to add; empty if all packages are there."""
    missing = [package for package in packages if not _has_class(jvm, package.sign)]
    if not missing:
        return ""
    what = " and ".join(package.what for package in missing)
    coordinates = ",".join(package.coordinates for package in missing)
    return (f"Spark lacks {what}; start with --packages {coordinates}, or name its jars with "
            "--jars")


def _has_class(jvm: Any, name: str) -> bool:
    """Whether the driver's JVM finds a class."""
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True
