"""The pipeline's own word on lost rows: its function with ``@pipeline.on_loss``, asked before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from firnline.errors import FirnlineError, Location
from firnline.model.declaration import OnLoss
from firnline.model.loss import Loss, RepairStep
from firnline.plan.repairing import Plan, Step, owner
from firnline.runtime.project import Declared, user_line


def contract_for(declared: Declared, step: Step, plan: Plan) -> OnLoss:
    """The contract for lost rows, by the handler or as it is declared."""
    made_by = owner(declared.graph, step.collection)
    assert made_by is not None, "the plan refuses what nobody makes"
    handler, label = declared.loss_handler, declared.graph.schedule.label
    if handler is None:
        return made_by.on_loss
    steps = tuple(_told(each, label) for each in plan.steps)
    epochs = tuple(map(label, step.epochs()))
    loss = Loss(step.pipeline, step.collection, epochs, step.parts(), step.rows, step.why, made_by.on_loss, steps)
    here = Location(handler.__code__.co_filename, handler.__code__.co_firstlineno)
    try:
        answer: object = handler(loss)
    except Exception as error:
        where = user_line(error, declared.root) or here
        what = f"{handler.__name__!r} stopped the repair of {step.pipeline}.{step.collection}: {type(error).__name__}: {error}"
        raise FirnlineError("REPAIR_STOPPED", what, where) from error
    if answer is None:
        return made_by.on_loss
    for contract in get_args(OnLoss):
        if answer == contract:
            chosen: OnLoss = contract
            return chosen
    raise FirnlineError("BAD_OPTION", f"{handler.__name__!r} returned {answer!r}, which is no contract", here)


def _told(step: Step, label: Callable[[int], str]) -> RepairStep:
    epochs = tuple(map(label, step.epochs()))
    return RepairStep(step.collection, step.how, step.what, epochs, step.parts(), step.rows, step.seconds, step.why)
