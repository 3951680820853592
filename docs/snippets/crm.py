"""Customers as a database's change feed tells of them: the present ones, and every version of each."""

import firnline as fl

crm = fl.Pipeline("crm", schedule="@daily", start="2026-01-01", end="2026-01-03")
columns = "user_id int, name string, city string, operation string, sequence_num int"


@crm.source(
    keys=["user_id"],
    sequence_by="sequence_num",
    apply_as_deletes="operation = 'DELETE'",
    apply_as_truncates="operation = 'TRUNCATE'",
    except_column_list=["operation", "sequence_num"],
)
def customers(epoch):
    """Customers as they are now."""
    return epoch.files("include/landing/crm/{epoch:%Y-%m-%d}.csv", format="csv", schema=columns)


@crm.source(
    keys=["user_id"],
    sequence_by="sequence_num",
    apply_as_deletes="operation = 'DELETE'",
    except_column_list=["operation", "sequence_num"],
    stored_as_scd_type=2,
)
def customer_history(epoch):
    """Customers as they were at any time."""
    feed = epoch.files("include/landing/crm/{epoch:%Y-%m-%d}.csv", format="csv", schema=columns)
    return feed.where("operation != 'TRUNCATE'")
