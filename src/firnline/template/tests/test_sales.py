"""Every epoch of the pipeline, run on real Spark, against a plain Python computation that shares no code with it."""

import csv
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from firnline.testing import run

ROOT = Path(__file__).parent.parent
LANDING = ROOT / "include" / "landing" / "sales"
DAYS = sorted(folder.name for folder in LANDING.iterdir())


@pytest.fixture(scope="module")
def sales(tmp_path_factory):
    """The pipeline after all its epochs, with its tables in a folder of their own."""
    return run("sales", tmp_path_factory.mktemp("work"), root=ROOT)


def orders(day):
    """The orders that stand after a day."""
    found = {}
    for each in DAYS[: DAYS.index(day) + 1]:
        with (LANDING / each / "orders.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row.pop("change") == "-":
                    del found[row["order_id"]]
                else:
                    found[row["order_id"]] = {**row, "amount": Decimal(row["amount"])}
    return list(found.values())


def spend_by_customer(day):
    """What each customer ordered and spent."""
    amounts = defaultdict(list)
    for order in orders(day):
        amounts[order["customer"]].append(order["amount"])
    return [{"customer": customer, "orders": len(spent), "spent": sum(spent)} for customer, spent in amounts.items()]


def customers_by_level(day):
    """How many customers are on which level, and what they spent."""
    spent = defaultdict(list)
    for line in spend_by_customer(day):
        level = "gold" if line["spent"] >= 500 else "silver" if line["spent"] >= 100 else "bronze"
        spent[level].append(line["spent"])
    return [{"level": level, "customers": len(each), "spent": sum(each)} for level, each in spent.items()]


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("expected", [orders, spend_by_customer, customers_by_level], ids=lambda function: function.__name__)
def test_every_epoch_is_as_if_computed_from_scratch(sales, day, expected):
    found = sales.rows(expected.__name__, as_of=day)
    assert sorted(found, key=repr) == sorted(expected(day), key=repr)


def test_an_epoch_changes_only_what_it_must(sales):
    changed = {row["customer"] for row in sales.changes("spend_by_customer", as_of="2026-01-03")}
    assert changed == {"Ada", "Chloé", "Emi", "Farid"}
