"""The pipeline on real Spark: its files against plain Python, its stages against histories that its files do not have."""

import csv
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from firnline.testing import Crash, assert_incremental, assert_repeatable, run_pipeline

ROOT = Path(__file__).parent.parent
LANDING = ROOT / "include" / "landing" / "sales"
DAYS = sorted(folder.name for folder in LANDING.iterdir())

ORDERS = {"orders": "order_id string, customer string, item string, amount decimal(10,2)"}
TENT = {"order_id": "1", "customer": "Ada", "item": "tent", "amount": 420}
HISTORY = [
    {"orders": [TENT, {"order_id": "2", "customer": "Björn", "item": "socks", "amount": 9.5}]},
    {"orders": [{**TENT, "_diff": -1}, {**TENT, "amount": 640}]},
    Crash("publish.committed"),
    {"orders": [{**TENT, "amount": 640, "_diff": -1}]},
    {},
]


@pytest.fixture(scope="module")
def sales():
    """The pipeline after all its epochs, in tables of its own."""
    return run_pipeline("sales", root=ROOT)


def spend_by_customer(day):
    """What each customer ordered and spent, from the files up to a day."""
    found = {}
    for each in DAYS[: DAYS.index(day) + 1]:
        with (LANDING / each / "orders.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["change"] == "-":
                    del found[row["order_id"]]
                else:
                    found[row["order_id"]] = row
    amounts = defaultdict(list)
    for row in found.values():
        amounts[row["customer"]].append(Decimal(row["amount"]))
    return [{"customer": name, "orders": len(spent), "spent": sum(spent)} for name, spent in sorted(amounts.items())]


@pytest.mark.parametrize("day", DAYS)
def test_every_day_is_as_if_computed_from_its_files(sales, day):
    assert sales.rows("spend_by_customer", after=day) == spend_by_customer(day)


def test_an_epoch_changes_only_what_it_must(sales):
    changed = {row["customer"] for row in sales.changes("spend_by_customer", epoch="2026-01-03")}
    assert changed == {"Ada", "Chloé", "Emi", "Farid"}


def test_changes_add_up(sales):
    assert_incremental("sales.customers_by_level", HISTORY, schemas=ORDERS, root=ROOT)


def test_a_crash_changes_nothing(sales):
    assert_repeatable("sales.spend_by_customer", HISTORY, schemas=ORDERS, root=ROOT)
