"""An application over Kafka whose driver dies at a chosen moment.

    python kafka_driver.py FOLDER MOMENT JAR...

Without a moment (an empty text) it runs until it is drained.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.spark.crash_driver import Moment, install

MOMENTS = {
    "staged": Moment("delivery.delivery_log:Deliveries.commit"),
    "half a commit": Moment("storage.local_store:write_all", "torn", about='"job"'),
    "committed": Moment("storage.guarded:Log.append", "after", about="'job'"),
    "in the outbox": Moment("delivery.sinks.kafka:KafkaSink._wake"),
    "noted": Moment("delivery.kafka_producer:KafkaProducer.send"),
    "sending": Moment("delivery.kafka_producer:KafkaProducer.send", "12"),
    "sent": Moment("delivery.kafka_producer:KafkaProducer.send", "after"),
    "a file is removed": Moment("delivery.outbox:Sender._remove", "after"),
}


def main(folder: Path, moment: str, jars: list[str]) -> None:
    if moment:
        install(MOMENTS[moment])
    from penstock.api import Engine

    with Engine(checkpoint=folder / "checkpoint", master="local[2]", jars=jars) as engine:
        engine.load((folder / "app.sql").read_text(), folder=folder)
        if moment:
            engine.start()
            engine.wait(90)
            return
        summary = engine.run()
        print(json.dumps({"state": summary.run.state, "failures": summary.failures(),
                          "accounting": summary.accounting()}))
        assert not summary.failures() and not summary.accounting()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
