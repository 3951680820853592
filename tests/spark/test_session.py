"""The Connect endpoint of a driver is open to nobody else, and nothing secret is on a command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from pyspark.sql.connect.proto import AnalyzePlanRequest, SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession

from firnline.airflow.warden import family
from firnline.engine.classes import archive_of
from firnline.engine.pinned import PINNED
from firnline.settings import Settings
from tests.project import ROOT


def version_request() -> AnalyzePlanRequest:
    request = AnalyzePlanRequest(session_id="00000000-0000-0000-0000-000000000001")
    request.user_context.user_id = "somebody"
    request.spark_version.SetInParent()
    return request


def endpoint(spark: SparkSession) -> str:
    return str(spark.client._builder.endpoint)


@pytest.mark.parametrize("header", [(), (("authorization", "Bearer wrong"),)])
def test_a_client_without_the_token_is_refused(spark: SparkSession, header: tuple[tuple[str, str], ...]) -> None:
    with grpc.insecure_channel(endpoint(spark)) as channel, pytest.raises(grpc.RpcError) as caught:
        SparkConnectServiceStub(channel).AnalyzePlan(version_request(), metadata=header, timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_the_endpoint_listens_on_the_loopback_only(spark: SparkSession) -> None:
    port = int(endpoint(spark).rpartition(":")[2])
    lines = [line for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
    listening = [line.split()[1] for line in lines]
    addresses = {entry.partition(":")[0] for entry in listening if entry.endswith(f":{port:04X}")}
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_the_token_is_on_no_command_line(spark: SparkSession) -> None:
    token = spark.client._builder.token
    assert token
    assert token not in subprocess.run(["ps", "-eo", "args", "ww"], capture_output=True, text=True, check=True).stdout


def test_sessions_are_pinned(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in PINNED} == PINNED


@pytest.mark.nightly
def test_a_driver_and_its_workers_are_in_utc_wherever_the_machine_is() -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from pyspark.sql.connect.functions import expr, udf
        from firnline.engine.session import opened
        from firnline.settings import Settings
        with opened(Settings.load(Path(sys.argv[1])), "zone") as session:
            noon = session.sql("SELECT timestamp'2026-01-01 12:00:00' AS at")
            seen = udf(lambda at: at.isoformat(), "string")
            found = noon.select(expr("java_method('java.time.ZoneId', 'systemDefault')"), seen("at")).collect()[0]
            print(*found)
    """
    environment = {**os.environ, "TZ": "America/New_York"}
    found = subprocess.run([sys.executable, "-c", code, str(ROOT)], env=environment, capture_output=True, text=True, timeout=120)
    assert found.stdout.split() == ["UTC", "2026-01-01T12:00:00"], found.stderr


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("FIRNLINE_SPARK_MEMORY", "100m", "[INVALID_DRIVER_MEMORY] System memory "),
        ("FIRNLINE_SPARK_MEMORY", "2x", "Invalid maximum heap size: -Xmx2x"),
        ("JAVA_HOME", "/nowhere", "/nowhere/bin/java: No such file or directory"),
    ],
)
def test_a_driver_that_does_not_start_is_told_without_a_trace(variable: str, value: str, reason: str) -> None:
    words = [sys.executable, "-c", "from firnline.cli import main; main()", "explain", "amplab.top_sources"]
    inherited = {name: kept for name, kept in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    environment = {**inherited, variable: value}
    found = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith("SPARK_NOT_STARTED: Spark does not start: ")
    assert reason in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.usefixtures("spark")
def test_a_driver_maps_the_archive_of_classes() -> None:
    maps = [file.read_text() for file in (Path("/proc", str(pid), "maps") for pid in family(os.getpid())) if file.exists()]
    assert any(str(archive_of(Settings.load(ROOT))) in each for each in maps)
