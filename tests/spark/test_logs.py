"""What Py4J would print of its own accord when the JVM is gone, nobody sees."""

from __future__ import annotations

import logging
import socket
from threading import Thread

import pytest
from py4j.java_gateway import GatewayClient

import penstock.spark.session


def hang_up(server: socket.socket) -> None:
    """Take calls and leave them unanswered, as a JVM that was killed does."""
    for _ in range(2):
        caller, _ = server.accept()
        caller.recv(1024)
        caller.close()
    server.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # Py4J leaves its sockets to the collector
def test_a_jvm_that_hangs_up_prints_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert penstock.spark.session
    server = socket.create_server(("127.0.0.1", 0))
    Thread(target=hang_up, args=(server,), daemon=True).start()
    answer = GatewayClient(port=server.getsockname()[1]).send_command("c\n")
    assert answer == "x"
    assert caplog.records == []
    logging.getLogger().error("others are heard")
    assert [record.message for record in caplog.records] == ["others are heard"]
