"""Problems in, steps out: in which order, for which parts, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firnline import Pipeline
from firnline.errors import FirnlineError
from firnline.model.description import Description
from firnline.model.digest import Digest
from firnline.model.epoch import Epoch, Schedule
from firnline.model.fingerprint import Fingerprint
from firnline.model.gap import Gap, Span
from firnline.model.graph import Graph, check
from firnline.model.stored_file import StoredFile
from firnline.plan.repairing import Plan, epoch_of, plan, steps_for, taken_out
from firnline.plan.verification import Account, DataFile, File, Holding, Manifest, Revision, problems_of


def graph(**options: Any) -> Graph:
    web = Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"], parts=2)
    def visits(epoch: Any) -> Any: ...

    @web.stage(keys=["k"], parts=2, **options)
    def seen(visits: Any) -> Any: ...

    return check(web, {"visits": "f", "seen": "f"})


def revision(name: str, epoch: int, *, lost: tuple[int, ...] = (), at: int = 0, files: bool = True) -> Revision:
    """An epoch of two parts with a file each, of which some are lost."""
    data, stored = [], []
    for part in (0, 1):
        path = f"{name}/{epoch}-{part}.parquet"
        data.append(DataFile(File(path, None if part in lost else 9, 9), epoch, epoch, part, 5, None if part in lost else 5))
        stored.append(StoredFile(path, part, 5, 9, epoch, epoch))
    account = Account("a", epoch, epoch + 1, Fingerprint("f"), 10, 10, 4.0)
    return Revision(
        epoch + 1,
        File(f"{name}/list-{epoch}", 9),
        (Manifest(File(f"{name}/manifest-{epoch}", 9, 9), tuple(data)),),
        description=Description(0, 0, epoch + 1),
        summary=account,
        sidecar=File(f"{name}/sidecar-{epoch}", 9),
        told=account,
        digests={(epoch, part): Digest(5, 5, 1, 1) for part in (0, 1)},
        files=tuple(stored) if files else None,
        at=at,
    )


def log(name: str, *revisions: Revision) -> Holding:
    return Holding("web", name, File(f"{name}/metadata", 9), start=0, revisions=revisions)


def planned(*logs: Holding, **options: Any) -> Plan:
    return plan(logs, {each.collection: problems_of(each) for each in logs}, graph(**options))


def test_sound_logs_need_nothing() -> None:
    assert planned(log("visits", revision("visits", 0))) == Plan((), ())


def test_upstream_comes_first_and_what_a_stage_keeps_before_the_stage() -> None:
    found = planned(
        log("seen", revision("seen", 0, lost=(1,))),
        log("seen__b", revision("seen__b", 0, lost=(0,), at=1)),
        log("seen__a", revision("seen__a", 0, lost=(0,), at=2)),
        log("visits", revision("visits", 0, lost=(0, 1))),
    )
    assert [step.collection for step in found.steps] == ["visits", "seen__b", "seen__a", "seen"]


def test_only_what_is_lost_is_computed_again_and_its_cost_is_known() -> None:
    (step,) = planned(log("seen", revision("seen", 0), revision("seen", 1, lost=(1,)))).steps
    assert (step.what, step.how, step.cells, step.out) == ("rows", "recompute", ((1, 1),), {"seen/1-1.parquet"})
    assert (step.rows, step.seconds) == (5, 2.0)


def test_what_shares_a_file_with_lost_rows_is_computed_with_them() -> None:
    whole = revision("seen", 0)
    (manifest,) = whole.manifests or ()
    second = replace(manifest.data[0], file=File("seen/0-0-second.parquet", None, 9))
    damaged = replace(whole, manifests=(replace(manifest, data=(*manifest.data, second)),))
    (step,) = planned(log("seen", damaged)).steps
    assert (step.cells, step.out) == (((0, 0),), {"seen/0-0.parquet", "seen/0-0-second.parquet"})


@pytest.mark.parametrize(("options", "words"), [({"on_loss": "fail"}, "'fail'"), ({"nondeterministic": True}, "nondeterm")])
def test_a_contract_that_excludes_a_replay_is_named(options: dict[str, Any], words: str) -> None:
    found = planned(log("seen", revision("seen", 0, lost=(0,))), log("seen__a", revision("seen__a", 0, lost=(0,))), **options)
    assert found.steps == ()
    assert [words in refusal.what for refusal in found.refusals] == [True, True]


def test_what_no_function_makes_any_more_is_refused() -> None:
    found = planned(log("gone", revision("gone", 0, lost=(0,))))
    assert found.steps == ()
    assert "no function" in found.refusals[0].what


def lose_manifest(of: Revision) -> Revision:
    (manifest,) = of.manifests or ()
    return replace(of, manifests=(Manifest(replace(manifest.file, size=None)),))


def test_a_lost_manifest_is_rebuilt_where_sidecars_name_its_files() -> None:
    (step,) = planned(log("seen", lose_manifest(revision("seen", 0)), revision("seen", 1))).steps
    assert (step.what, step.manifests) == ("manifests", {"seen/manifest-0"})
    assert [file.path for file in step.named] == ["seen/0-0.parquet", "seen/0-1.parquet"]


def test_otherwise_its_rows_are_computed_again() -> None:
    (step,) = planned(log("seen", lose_manifest(revision("seen", 0, files=False)), revision("seen", 1))).steps
    assert (step.what, step.cells, step.manifests) == ("rows", ((0, 0), (0, 1)), {"seen/manifest-0"})


def test_a_lost_list_of_the_head_is_made_from_an_older_one() -> None:
    head = revision("seen", 1)
    lost = replace(head, manifest_list=File("seen/list-1", None), manifests=None)
    (step,) = planned(log("seen", revision("seen", 0), lost)).steps
    assert (step.what, step.instead_of_head) == ("manifests", 1)
    assert [file.path for file in step.named] == ["seen/1-0.parquet", "seen/1-1.parquet"]


def test_a_lost_list_of_which_nothing_is_known_is_refused() -> None:
    head = revision("seen", 1, files=False)
    found = planned(log("seen", revision("seen", 0), replace(head, manifest_list=File("x", None), manifests=None)))
    assert found.steps == ()
    assert "not every sidecar says" in found.refusals[-1].what


def test_metadata_comes_before_everything_else() -> None:
    found = planned(replace(log("seen", revision("seen", 0, lost=(0,))), metadata=File("seen/metadata", None)))
    assert [step.what for step in found.steps] == ["metadata"]


def test_rows_that_only_superseded_snapshots_name_are_no_loss_and_their_lists_are_written_anew() -> None:
    old = replace(revision("seen", 0), manifest_list=File("seen/list-0", None), manifests=())
    mended = revision("seen", 0)
    repair = Revision(
        9, File("seen/list-9", 9), mended.manifests, description=old.description, is_repair=True, files=mended.files
    )
    found = planned(log("seen", old, repair))
    assert [(step.what, step.lists) for step in found.steps] == [("lists", (old.snapshot,))]
    assert found.refusals == ()
    named = replace(old, manifest_list=File("seen/list-0", 9), lost=(File("seen/old", None),))
    assert [problem.file for problem in problems_of(log("seen", named, named, repair)) if problem.file] == ["seen/old"], (
        "told once"
    )
    assert planned(log("seen", replace(named, lost=()), repair)) == Plan((), ())


def test_a_hole_between_epochs_stays_and_is_told() -> None:
    found = planned(log("seen", revision("seen", 0), revision("seen", 2)))
    assert found.steps == ()
    assert "hole" in found.refusals[0].what


GAP = Gap("g", "seen", (Span(1, 1, (1,)),), 5, "2026-01-01", "web.seen", "gone", {"seen": 2}, {}, "open")


def gapped(*, before: int = 2) -> Holding:
    """A log whose (1, 1) was left out."""
    whole = revision("seen", 1)
    (manifest,) = whole.manifests or ()
    left = Manifest(manifest.file, manifest.data[:1])
    note = Revision(
        9, File("list", 9), (), description=Description(0, 0, 2), is_repair=True, files=(), out=("seen/1-1.parquet",), gap="g"
    )
    found = log("seen", revision("seen", 0), replace(whole, manifests=(left,)), note)
    return replace(found, gaps=(replace(GAP, before={"seen": before}),))


def test_a_recorded_gap_is_no_problem_and_is_tried_again() -> None:
    found = gapped()
    assert problems_of(found) == []
    assert problems_of(replace(found, gaps=())) != []
    (step,) = planned(found).steps
    assert (step.how, step.cells, step.rows) == ("retry", ((1, 1),), 5)
    assert [file.path for file in taken_out(found, step.cells)] == ["seen/1-1.parquet"]


def test_a_stage_that_went_on_since_does_not_get_its_old_rows_back() -> None:
    assert planned(gapped(before=1)) == Plan((), ())


def test_rows_that_are_lost_while_a_gap_is_opening_are_still_lost() -> None:
    opening = replace(log("seen", revision("seen", 0), revision("seen", 1, lost=(1,))), gaps=(replace(GAP, phase="opening"),))
    (step,) = planned(opening, on_loss="gap").steps
    assert (step.how, step.contract, step.cells) == ("recompute", "gap", ((1, 1),))


def test_a_nondeterministic_stage_leaves_out_or_needs_a_rewind_with_all_that_came_of_it() -> None:
    lost = log("seen", revision("seen", 0, lost=(1,)))
    (step,) = planned(lost, nondeterministic=True, on_loss="gap").steps
    assert step.how == "leave out"
    (refusal,) = planned(lost, nondeterministic=True).refusals
    assert refusal.code == "NEEDS_REWIND"
    assert "'seen' would have to be rewound" in refusal.what


def test_another_contract_stands_for_the_declared_one() -> None:
    lost = log("seen", revision("seen", 0, lost=(1,)))
    found = steps_for(lost, problems_of(lost), graph(), {"seen": "fail"})
    assert "by the pipeline's handler" in found.refusals[0].what
    found = steps_for(lost, problems_of(lost), graph(on_loss="fail"), {"seen": "gap"})
    assert found.steps[0].contract == "gap"


def test_an_epoch_ends_where_its_layer_does_whatever_the_schedule_is_by_now() -> None:
    few, many = Schedule.parse(4, 0, None), Schedule.parse(1, 0, None)
    told = Account("a", 2, 6, Fingerprint("f"), 5, 5)
    wide = replace(revision("seen", 5), summary=told, told=told)
    found = log("seen", revision("seen", 0), revision("seen", 1), wide)
    assert [epoch_of(found, few, epoch) for epoch in (0, 1, 5)] == [Epoch(0, 1), Epoch(1, 2), Epoch(5, 6)]
    several = replace(wide, digests={(epoch, 0): Digest(5, 5, 1, 1) for epoch in (2, 4, 5)})
    assert epoch_of(log("seen", several), many, 4) == Epoch(4, 5)
    for epoch in (2, 4, 9):
        with pytest.raises(FirnlineError, match="NOT_REPAIRABLE"):
            epoch_of(log("seen", several), few, epoch)
