"""The services of docker/compose.yaml, started without Docker: the same pipeline, unchanged, with the same digests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from bench.failures.cluster import Cluster, started
from firnline.model.digest import Digest
from firnline.runtime.project import Project
from tests.oracle.amplab import EPOCHS, expected
from tests.project import ROOT, copy_amplab
from tests.spark.running import rows, run_epoch

COLLECTIONS = ("rankings", "user_visits", "revenue_by_ip", "revenue_by_prefix", "top_sources")
SECRET = ("FIRNLINE_CATALOG_URI", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started(ROOT) as found:
        yield found


def begun(cluster: Cluster, root: Path, *words: str) -> subprocess.Popen[str]:
    """A command of a project that uses the cluster."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FIRNLINE", "SPARK", "AWS"))}
    return subprocess.Popen(
        [sys.executable, "-c", "from firnline.cli import main; main()", *words],
        cwd=root,
        env={**environment, **cluster.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ran(cluster: Cluster, root: Path, *words: str) -> str:
    """What a command says that must succeed."""
    with begun(cluster, root, *words) as process:
        said = process.communicate(timeout=500)[0]
    assert process.returncode == 0, said
    return said


@pytest.mark.timeout(1200)  # four JVMs start here, on a machine that may be busy
def test_the_same_pipeline_has_the_same_digests_on_a_cluster_that_loses_a_worker(
    cluster: Cluster, amplab: Project, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("beyond")
    copy_amplab(root)
    found = ran(cluster, root, "doctor")
    assert "WRONG" not in found
    assert "PostgreSQL" in found
    with begun(cluster, root, "run", "amplab", "--to", EPOCHS[1]) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]  # the first collection's first epoch is there
        cluster.await_executors()
        cluster.kill_workers(1)
        shown = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        lines += process.stdout.readlines()
    assert process.returncode == 0, "".join(lines)
    assert not [name for name in SECRET if cluster.environment[name] in shown]

    for epoch in EPOCHS[:2]:
        run_epoch(amplab, spark, "amplab", epoch)
    with cluster.used():
        beyond = Project.load(root)
        graph = beyond.graph("amplab")
        for collection in COLLECTIONS:
            assert rows(beyond, graph, collection, EPOCHS[1]) == expected(collection, EPOCHS[1])
            assert _digests(beyond, collection) == _digests(amplab, collection)
    assert "all well" in ran(cluster, root, "verify")


def _digests(project: Project, collection: str) -> dict[Any, Digest]:
    log = project.log("amplab", collection)
    return {cell: digest for entry in log.entries() for cell, digest in log.sidecar(entry).digests.items()}
