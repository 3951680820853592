"""Records of a real Kafka broker: each once, and in a replay the very same.

The jars of Spark's Kafka reader are not those of other tests, so that this one has a process and a Spark of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.engine.session import opened
from firnline.runtime.certificate import certify
from firnline.runtime.prerequisites import check_jars, mend_jars
from firnline.runtime.project import Project
from firnline.settings import Settings
from tests.kafka import broker
from tests.project import ROOT, make_project
from tests.spark.running import rows, run_epoch

PIPELINE = """
    import firnline as fl

    tap = fl.Pipeline("tap", schedule=1, start=0)

    @tap.source(keys=["partition", "offset"])
    def records(epoch):
        found = epoch.kafka("events", servers="SERVERS", partitions=2)
        return found.selectExpr("partition", "offset", "CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
"""


def send(session: SparkSession, servers: str, records: Sequence[tuple[str | None, str | None, int]]) -> None:
    frame = session.createDataFrame(records, "key string, value string, partition int")
    frame.coalesce(1).write.format("kafka").options(**{"kafka.bootstrap.servers": servers, "topic": "events"}).save()


def follow(root: Path, servers: str) -> None:
    """Epochs of a pipeline while records come."""
    project = Project.load(root)
    with opened(project.settings, "kafka") as session:
        send(session, servers, [("a", "1", 0), ("b", "雪", 0), (None, None, 1)])
        run_epoch(project, session, "tap", "0")
        run_epoch(project, session, "tap", "1")
        send(session, servers, [("c", "3", 1)])
        run_epoch(project, session, "tap", "2")
        send(session, servers, [("d", "4", 0)])
        found = rows(project, project.graph("tap"), "records")
        assert found == [(0, 0, "a", "1"), (0, 1, "b", "雪"), (1, 0, None, None), (1, 1, "c", "3")]
        log = project.log("tap", "records")
        reached = [log.sidecar(entry).determinants["kafka events"]["upto"] for entry in log.entries()]
        assert reached == [{"0": 2, "1": 2}, {"0": 2, "1": 1}, {"0": 2, "1": 1}]
        assert [each.difference for each in certify(project, session, "tap.records")] == [None, None]


@pytest.mark.nightly
def test_records_come_once_and_a_replay_reads_the_same(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    jars = tmp_path / ".firnline" / "jars"
    shared = jars.readlink()
    jars.unlink()
    jars.mkdir()
    for jar in shared.glob("*.jar"):
        (jars / jar.name).symlink_to(jar)
    assert not check_jars(project.settings, "kafka").ok
    mend_jars(project.settings, "kafka")
    assert check_jars(project.settings, "kafka").ok
    with broker(Settings.load(ROOT).work / "kafka", tmp_path) as servers:
        make_project(tmp_path, tap=PIPELINE.replace("SERVERS", servers))
        command = [sys.executable, "-m", "tests.spark.test_kafka", str(tmp_path), servers]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    follow(Path(sys.argv[1]), sys.argv[2])
