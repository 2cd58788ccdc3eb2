"""Packages, jars and settings of the user's reach Spark in a checked shape only."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.api import Engine
from penstock.errors import SetupError
from penstock.spark.session import configured
from penstock.spark.submit_options import SubmitOptions, jars, packages, setting


@pytest.mark.parametrize("text", [
    "", "kafka", "a:b", "a:b:c:d", "a:b:1,", "a:b:1 --conf x", "a:b:1;rm", "-a:b:1", "a:b:\n1",
])
def test_what_is_no_package_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        packages(text)


@pytest.mark.parametrize("text", ["nowhere.jar", "a\0b", "s3a://lake/one two.jar", "", "one.jar,"])
def test_what_is_no_jar_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        jars(text)


@pytest.mark.parametrize("text", [
    "spark.x", "x=1", "spark. =1", "spark.x=a\nb", "spark.master=local", "--conf=1",
    "spark.jars.packages=a:b:1", "spark.jars=x.jar", "spark.x y=1",
])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        setting(text)


def test_they_become_settings_of_the_session(tmp_path: Path) -> None:
    jar = tmp_path / "one.jar"
    jar.touch()
    more = SubmitOptions(packages("a.b:c_2.13:1.0, d:e:2"), jars(f"{jar},s3a://lake/x.jar"),
                         dict([setting("spark.driver.memory=3g")]))
    conf = configured("local[1]", more)
    assert conf.get("spark.jars.packages") == "a.b:c_2.13:1.0,d:e:2"
    assert conf.get("spark.jars") == f"{jar},s3a://lake/x.jar"
    assert conf.get("spark.driver.memory") == "3g"
    assert list(more.words())[::2] == ["--packages", "--jars", "--conf"]


@pytest.mark.parametrize("name", [
    "spark.authenticate", "spark.sql.session.timeZone", "spark.driver.bindAddress"])
def test_settings_that_a_run_depends_on_stay(name: str) -> None:
    with pytest.raises(SetupError, match="is set by Penstock"):
        configured("local[1]", SubmitOptions(conf={name: "x"}))


def test_a_session_that_is_given_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="when the session is started"):
        Engine(spark=object(), checkpoint=tmp_path / "c", conf={"spark.x": "1"})  # type: ignore[arg-type]
    assert not (tmp_path / "c").exists()
