"""Other users of the machine: they can neither call into a run nor read what it keeps."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from penstock.errors import LanguageError
from penstock.language import bind
from penstock.model import Variable
from penstock.spark.session import is_alone
from tests.spark.kit import eventually


def put_csv(folder: Path, rows: int) -> None:
    folder.mkdir()
    (folder / "a.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(rows)))


ENDLESS = """
    SET trigger = '50 ms';
    CREATE STREAM s (timestamp TIMESTAMP, value BIGINT) FROM rate OPTIONS (rowsPerSecond = 50);
    CREATE QUERY q AS SELECT value FROM s;
"""


def test_nobody_but_the_jvm_can_call_what_a_stream_has_registered(engine):
    with engine() as e:
        e.execute(ENDLESS)
        e.start()
        eventually(lambda: e.status().streams["s"].blocks >= 2, "blocks have come")
        server = e.session.sparkContext._gateway._callback_server
        address = server.server_socket.getsockname()
        assert address[0] == "127.0.0.1"
        for said in (b"c\np1\n__delattr__\nsfunc\ne\n", b"A\nguessed\ne\n"):
            with socket.create_connection(address, timeout=30) as stranger:
                stranger.sendall(said)
                try:
                    answer = stranger.recv(100)
                except ConnectionResetError:
                    answer = b""
            assert not answer.startswith(b"!y"), answer
        before = e.status().streams["s"].blocks
        eventually(lambda: e.status().streams["s"].blocks >= before + 2, "more blocks come")
        assert e.status().failures() == []


def test_sparks_own_ports_ask_for_a_secret_and_listen_on_this_machine_alone(spark):
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.authenticate") == "true"
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"


@pytest.mark.parametrize(("master", "own"), [
    (None, True), ("local", True), ("local[4]", True), ("local[2,3]", True),
    ("local-cluster[2,1,1024]", False), ("spark://host:7077", False), ("yarn", False)])
def test_only_where_the_driver_is_alone_spark_makes_the_secret(master, own):
    assert is_alone(master) == own


def test_what_a_checkpoint_holds_is_its_owners_alone(engine, tmp_path):
    put_csv(tmp_path / "in", 10)
    with engine() as e:
        e.execute("CREATE STREAM s (n BIGINT) FROM csv 'in' OPTIONS (header = true);"
                  "CREATE QUERY kept AS SELECT n FROM s;"
                  "CREATE QUERY given INTO parquet 'out' AS SELECT n FROM s;", folder=tmp_path)
        e.run()
        root = e.checkpoint
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        for path in root.iterdir():
            allowed = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == allowed, path
    (answer,) = (tmp_path / "out").glob("*.parquet")
    assert stat.S_IMODE(answer.stat().st_mode) & 0o444, "who reads the sink is the user's affair"


# --- secrets ---------------------------------------------------------------------------------


SECRET = """
    CREATE STREAM s (n BIGINT) FROM csv 'in' OPTIONS (header = ENV 'FIRST_LINE', sep = ',');
    CREATE QUERY q AS SELECT n FROM s;
"""


def test_an_option_may_name_an_environment_variable():
    application = bind(SECRET)
    assert application.streams["s"].options == (("header", Variable("FIRST_LINE")), ("sep", ","))


@pytest.mark.parametrize("value", ["ENV", "ENV ''", "ENV 5", "ENV 'A=B'"])
def test_a_variable_without_a_name_is_refused(value):
    with pytest.raises(LanguageError, match="environment variable"):
        bind(f"CREATE STREAM s (n INT) FROM csv 'in' OPTIONS (header = {value});")


def test_a_secret_is_read_when_the_source_is_opened_and_kept_nowhere(
    engine, tmp_path, monkeypatch
):
    put_csv(tmp_path / "in", 10)
    with engine() as e:
        e.execute(SECRET, folder=tmp_path)
        failed = e.run()
        assert "the environment variable FIRST_LINE, which option header names, is not set" in (
            dict(failed.failures())["stream s"])
        monkeypatch.setenv("FIRST_LINE", "tRuE")
        assert e.run().failures() == []
        assert e.results("q").num_rows == 10
        files = [path for path in Path(e.checkpoint).rglob("*") if path.is_file()]
        assert not [path for path in files if b"tRuE" in path.read_bytes()]
