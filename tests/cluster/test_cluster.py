"""The services of docker/compose.yaml, started without Docker: the same pipeline, unchanged, with the same digests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from firnline.model.digest import Digest
from firnline.runtime.project import Project
from tests.oracle.amplab import EPOCHS, expected
from tests.project import ROOT, copy_amplab
from tests.spark.running import rows, run_epoch

COLLECTIONS = ("rankings", "user_visits", "revenue_by_ip", "revenue_by_prefix", "top_sources")
SECRET = ("FIRNLINE_CATALOG_URI", "AWS_SECRET_ACCESS_KEY")


class Cluster:
    """The running services."""

    def __init__(self, state: Path) -> None:
        self.state = state
        lines = (state / "env").read_text().splitlines()
        self.environment = dict(line.split("=", 1) for line in lines)

    def command(self, root: Path, *words: str) -> subprocess.Popen[str]:
        """A command of a project that uses the cluster."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("FIRNLINE", "SPARK", "AWS"))}
        return subprocess.Popen(
            [sys.executable, "-c", "from firnline.cli import main; main()", *words],
            cwd=root,
            env={**environment, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ran(self, root: Path, *words: str) -> str:
        """What a command says that must succeed."""
        with self.command(root, *words) as process:
            said = process.communicate(timeout=500)[0]
        assert process.returncode == 0, said
        return said


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Not below pytest's own folder: PostgreSQL refuses to run as root, and another user could not look into it.
    with tempfile.TemporaryDirectory(prefix="firnline-cluster-") as folder:
        os.chmod(folder, 0o755)
        command = [sys.executable, str(ROOT / "docker" / "without_docker.py"), "--state", folder]
        small = {"WORKER_CORES": "1", "WORKER_MEMORY": "1g"}
        with subprocess.Popen(command, env={**os.environ, **small}, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                said = []
                for line in process.stdout:
                    said.append(line)
                    if line.startswith("ready"):
                        break
                assert (Path(folder) / "env").is_file(), "".join(said)
                yield Cluster(Path(folder))
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)


@pytest.mark.timeout(1200)  # four JVMs start here, on a machine that may be busy
def test_the_same_pipeline_has_the_same_digests_on_a_cluster_that_loses_a_worker(
    cluster: Cluster, amplab: Project, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("beyond")
    copy_amplab(root)
    found = cluster.ran(root, "doctor")
    assert "WRONG" not in found
    assert "PostgreSQL" in found
    with cluster.command(root, "run", "amplab", "--to", EPOCHS[1]) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]  # the first collection's first epoch is there
        for pid in _executors(cluster):
            os.kill(pid, signal.SIGKILL)
        shown = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        lines += process.stdout.readlines()
    assert process.returncode == 0, "".join(lines)
    assert not [name for name in SECRET if cluster.environment[name] in shown]

    for epoch in EPOCHS[:2]:
        run_epoch(amplab, spark, "amplab", epoch)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        beyond = Project.load(root)
        graph = beyond.graph("amplab")
        for collection in COLLECTIONS:
            assert rows(beyond, graph, collection, EPOCHS[1]) == expected(collection, EPOCHS[1])
            assert _digests(beyond, collection) == _digests(amplab, collection)
    assert "all well" in cluster.ran(root, "verify")


def _digests(project: Project, collection: str) -> dict[Any, Digest]:
    log = project.log("amplab", collection)
    return {cell: digest for entry in log.entries() for cell, digest in log.sidecar(entry).digests.items()}


def _executors(cluster: Cluster) -> list[int]:
    """A worker's executors and the worker, the executors first."""
    worker = cluster.state / "spark-worker-2"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        inside = [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _folder(pid).is_relative_to(worker / "work")
        ]
        if inside:
            named = subprocess.run(["pgrep", "-f", "--", f"--work-dir {worker}/work"], capture_output=True, text=True, check=True)
            return [*inside, *map(int, named.stdout.split())]
        time.sleep(0.2)
    pytest.fail("no executor was started")


def _folder(pid: int) -> Path:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:  # it has ended
        return Path("/")
