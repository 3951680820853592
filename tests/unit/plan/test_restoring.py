"""Lost files come back from replicas: what is not rows first, and rows only where all that is lost of them does."""

from __future__ import annotations

from dataclasses import replace

from firnline.model.replica import Copy, Kept
from firnline.plan.repairing import Plan, steps_for
from firnline.plan.restoring import not_as_published
from firnline.plan.verification import File, Holding, Problem, problems_of
from tests.unit.plan.test_repairing import graph, log, lose_manifest, revision

PLACE = "file:///mnt/b"


def held(*paths: str) -> dict[str, Copy]:
    return {path: Copy(PLACE, Kept(path, 9, "00")) for path in paths}


def steps(of: Holding, copies: dict[str, Copy], *, more: tuple[Problem, ...] = (), **options: object) -> Plan:
    return steps_for(of, [*problems_of(of), *more], graph(**options), copies=copies)


def test_a_lost_data_file_comes_back_where_a_replica_holds_it_whatever_its_contract() -> None:
    damaged = log("seen", revision("seen", 0), revision("seen", 1, lost=(1,)))
    for options in ({}, {"on_loss": "fail"}, {"nondeterministic": True}):
        (step,) = steps(damaged, held("seen/1-1.parquet"), **options).steps
        assert (step.how, step.what, step.cells, step.rows) == ("restore", "files", ((1, 1),), 5)
        assert (step.source, step.seconds) == (f"from replica {PLACE}", 0.0)
        assert "the file is not there" in step.why


def test_what_no_replica_holds_is_computed_again_after_that() -> None:
    damaged = log("seen", revision("seen", 0, lost=(0, 1)))
    first, second = steps(damaged, held("seen/0-0.parquet")).steps
    assert (first.how, first.cells) == ("restore", ((0, 0),))
    assert (second.how, second.cells) == ("recompute", ((0, 1),))


def test_a_file_does_not_come_back_alone_where_others_of_its_rows_stay_lost() -> None:
    whole = revision("seen", 0, lost=(0,))
    (manifest,) = whole.manifests or ()
    second = replace(manifest.data[0], file=File("seen/0-0-second.parquet", None, 9))
    damaged = log("seen", replace(whole, manifests=(replace(manifest, data=(*manifest.data, second)),)))
    (step,) = steps(damaged, held("seen/0-0.parquet")).steps
    assert step.how == "recompute"
    (step,) = steps(damaged, held("seen/0-0.parquet", "seen/0-0-second.parquet")).steps
    assert (step.how, len(step.copies)) == ("restore", 2)


def test_manifests_come_back_before_rows_and_the_rest_is_seen_then() -> None:
    damaged = log("seen", lose_manifest(revision("seen", 0)), revision("seen", 1, lost=(0,)))
    (step,) = steps(damaged, held("seen/manifest-0", "seen/1-0.parquet")).steps
    assert ([path for path, _ in step.copies], step.cells) == (["seen/manifest-0"], ())


def test_a_lost_sidecar_and_lost_metadata_come_back() -> None:
    whole = revision("seen", 0)
    damaged = log("seen", replace(whole, sidecar=File("seen/sidecar-0", None), told=None))
    (step,) = steps(damaged, held("seen/sidecar-0")).steps
    assert [path for path, _ in step.copies] == ["seen/sidecar-0"]
    gone = Holding("web", "seen", File("seen/metadata", None))
    (step,) = steps(gone, held("seen/metadata")).steps
    assert (step.what, step.why.partition(":")[0]) == ("files", "missing")


def test_altered_rows_come_back_where_a_file_is_not_what_was_copied() -> None:
    whole = log("seen", revision("seen", 0))
    altered = Problem("web", "seen", "altered", "other rows", None, (0,), (1,), about="data")
    (step,) = steps(whole, held("seen/0-1.parquet"), more=(altered,)).steps
    assert (step.how, step.cells) == ("restore", ((0, 1),))
    (step,) = steps(whole, {}, more=(altered,)).steps
    assert step.how == "recompute"


def test_a_copy_is_bad_only_where_no_file_that_stayed_holds_rows_of_the_same_epoch_and_part() -> None:
    whole = revision("seen", 0, lost=(0, 1))
    (manifest,) = whole.manifests or ()
    beside = replace(manifest.data[0], file=File("seen/0-0-second.parquet", 9, 9))
    damaged = log("seen", replace(whole, manifests=(replace(manifest, data=(*manifest.data, beside)),)))
    coming = {"seen/0-0.parquet", "seen/0-1.parquet"}
    assert not_as_published(damaged, {(0, 0), (0, 1)}, coming) == ({"seen/0-1.parquet"}, {"seen/0-0.parquet"})
    assert not_as_published(damaged, {(0, 1)}, coming) == ({"seen/0-1.parquet"}, set())
    assert not_as_published(damaged, (), coming) == (set(), set())
    together = {*coming, beside.file.path}
    assert not_as_published(damaged, {(0, 0)}, together) == ({"seen/0-0.parquet", beside.file.path}, set())
