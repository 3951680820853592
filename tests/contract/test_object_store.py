"""A log in a real object store, where listings are not those of a disk: what was written since is seen, by whoever wrote it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from s3fs import S3FileSystem

from firnline.errors import FirnlineError
from firnline.plan.verification import data_of
from firnline.replicas import Place
from firnline.replicas.place import copied
from firnline.runtime.project import Project
from firnline.runtime.repair import repair
from firnline.runtime.verify import taken
from tests.project import ROOT, compiled, make_project
from tests.web_logs import PIPELINE, publish

GAPS = PIPELINE.replace(
    '@web.stage(keys=["k"], parts=2)', '@web.stage(keys=["k"], parts=2, on_loss="gap", nondeterministic=True)'
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    (tmp_path / "objects" / "firnline").mkdir(parents=True)
    keys = {"AWS_ACCESS_KEY_ID": "firnline", "AWS_SECRET_ACCESS_KEY": "of a test", "AWS_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_ENDPOINT_URL": f"http://{address}"}.items():
        monkeypatch.setenv(name, value)
    command = [str(ROOT / ".firnline" / "bin" / "versitygw"), "--quiet", "--port", address, "posix", str(tmp_path / "objects")]
    root = {f"ROOT_{name.removeprefix('AWS_')}": value for name, value in keys.items()}
    S3FileSystem.clear_instance_cache()  # one that is kept speaks to another server
    with subprocess.Popen(command, env={**os.environ, **root}, stdout=subprocess.DEVNULL) as server:
        try:
            _await(address)
            settings = 'warehouse = "s3://firnline/warehouse"\n'
            yield compiled(make_project(tmp_path / "project", settings, web=GAPS), "web")
        finally:
            S3FileSystem.clear_instance_cache()
            server.terminate()


def _await(address: str) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    pytest.fail("the object store does not listen")


def test_a_repair_sees_what_it_wrote_itself(project: Project) -> None:
    for collection in ("visits", "seen"):
        publish(project, collection, 0)
    lost = next(data.file.path for _, data in data_of(taken(project, "web", "seen")))
    assert project.catalog.remove(lost) > 0
    done = repair(project, lambda: pytest.fail("no Spark"), "web.seen")
    assert done.is_whole
    assert [each.rows_left_out for each in done.done] == [1]
    publish(project, "visits", 1)
    assert taken(project, "web", "visits").metadata.is_sound()


def test_small_files_that_others_wrote_since_are_listed(project: Project) -> None:
    catalog, folder = project.catalog, f"{project.catalog.warehouse}/web/_notes"
    catalog.write(f"{folder}/one", b"1")
    assert len(catalog.read_all(folder)) == 1
    S3FileSystem(anon=False, use_listings_cache=True).pipe_file(f"{folder.removeprefix('s3://')}/two", b"2")
    assert sorted(catalog.read_all(folder).values()) == [b"1", b"2"]
    assert len(catalog.paths(folder)) == 2


def test_what_was_there_stays_if_a_copy_fails(project: Project, tmp_path: Path) -> None:
    place = Place("s3://firnline/copies")
    place.write("web/one", b"before")
    (tmp_path / "one").write_bytes(b"after" * 2_000_000)
    with pytest.raises(FirnlineError, match="changed while it was read"):
        copied(f"file://{tmp_path}/one", f"{place.url}/web/one", "web/one", "another checksum")
    assert place.read("web/one") == b"before"
    assert place.paths("web") == ["web/one"]
