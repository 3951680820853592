"""Every refusal has a stable code, a sentence on what happened, and one on what to do.

``CODES`` is the whole list; ``docs/errors.md`` explains each, and a test keeps the two equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's code."""

    file: str
    line: int

    @classmethod
    def of(cls, text: str | None) -> Location | None:
        """The line that a text says, file:line; None if it says none."""
        file, _, line = (text or "").rpartition(":")
        return cls(file, int(line)) if line.isdigit() else None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Code:
    """What to do about a kind of error, and whether trying again may help by itself."""

    todo: str
    retryable: bool = False


CODES: MappingProxyType[str, Code] = MappingProxyType(
    {
        # declaring a pipeline
        "BAD_NAME": Code("Use lower-case letters, digits and single underscores, beginning with a letter."),
        "BAD_OPTION": Code("Correct the option; docs/reference.md lists what each one takes."),
        "BAD_SCHEDULE": Code("Use a cron expression, a preset such as @daily, a timedelta, or an integer step."),
        "CYCLE": Code("Remove one of the inputs that close the circle."),
        "DUPLICATE_COLLECTION": Code("Give one of the two functions another name: a collection has one writer."),
        "MISSING_KEY": Code("Name the columns that identify a row: keys=[...]."),
        "RESERVED_COLUMN": Code("Rename the column: _epoch, _diff, _part and names starting with '_firnline' are ours."),
        "UNKNOWN_INPUT": Code("Name the parameter after a source or stage of this pipeline."),
        "UNKNOWN_SUITE": Code("Put the suite into include/expectations/NAME.json or NAME.py, or name one that is there."),
        # making, finding and loading a project
        "FOLDER_EXISTS": Code("Choose another name, or empty the folder first."),
        "BAD_SETTING": Code("Correct firnline.toml or the environment variable; docs/reference.md lists all settings."),
        "NO_PROJECT": Code("Run inside a Firnline project (a folder with firnline.toml), or make one: firnline init NAME."),
        "NO_SUCH_COLLECTION": Code("Use one of the names that 'firnline status' lists."),
        "NO_SUCH_PIPELINE": Code("Put the pipeline into include/pipelines/NAME.py, with a Pipeline of the same name."),
        "PIPELINE_UNLOADABLE": Code("Correct the error in the pipeline's module."),
        # naming an epoch
        "BAD_EPOCH": Code("Write an ISO date or time in UTC (2026-01-01T06:00), or an integer for an integer schedule."),
        "BEFORE_START": Code("Choose an epoch at or after the pipeline's start."),
        "AFTER_END": Code("Choose an epoch before the pipeline's end."),
        "EPOCH_NOT_OVER": Code("Wait until it ends, or name an earlier one; a retry computes it then.", retryable=True),
        "EPOCH_NOT_COMPLETE": Code("Ask for an epoch below the frontier; 'firnline status' shows it."),
        "EPOCH_COMPACTED": Code(
            "Name an epoch at or after 'since'; a longer keep= of the pipeline keeps more of them from now on."
        ),
        # branches
        "NO_SUCH_BRANCH": Code("Use one of the names that 'firnline branch list' shows, or create the branch."),
        "BRANCH_EXISTS": Code("Choose another name, or drop the branch: firnline branch drop NAME."),
        "BRANCH_INCOMPLETE": Code(
            "Run the command that was interrupted again: 'firnline branch create', or 'firnline branch drop'."
        ),
        "BRANCH_HOLDS": Code("Drop the branch: firnline branch drop NAME."),
        "PROMOTE_BEHIND": Code("Run the branch first, or promote with --rebase."),
        "PROMOTE_CONFLICT": Code("Look at both with 'firnline diff'; with --rebase the branch begins anew where main is."),
        "PROMOTE_CODE_DIFFERS": Code("Bring the branch's code into the project first: main's next epochs are computed by that."),
        "PROMOTE_TOO_EARLY": Code("Promote when that epoch is over: it takes the change in."),
        "PROMOTE_COLUMNS": Code(
            "Give the column, or the stage, another name in the branch: nothing leads from one type to the other."
        ),
        # reading rows
        "BAD_FILTER": Code(
            "Write it as docs/guides/reading.md shows: names, comparisons, in (...), like 'x%', is null, and, or, not."
        ),
        "NO_SUCH_COLUMN": Code("Use one of the names listed."),
        "MISSING_PACKAGE": Code("Install it into the environment that Firnline runs in."),
        # holding on to epochs
        "NO_SUCH_HOLD": Code("Use one of the names that 'firnline safepoint' lists, or register the reader again."),
        "HOLD_TAKEN": Code("Choose another name, or release the hold that has it: 'firnline safepoint --release NAME'."),
        "LEASE_EXPIRED": Code(
            "Release the reader and register it anew: it begins at the frontier, with the whole state. Choose a longer lease."
        ),
        # rewinding
        "REWIND_NOT_UNDOABLE": Code("Replay instead: 'firnline run PIPELINE' computes the epochs again, with today's code."),
        "REWIND_BLOCKED": Code("Do what the message says, then rewind again; nothing is rewound until then."),
        "READER_REWOUND": Code(
            "Say positions as changes.upto gives them, or release the reader and register it anew, with the whole state."
        ),
        # changing code
        "CHANGE_NOT_APPROVED": Code("Look at it with 'firnline plan PIPELINE', then approve it: firnline approve PIPELINE."),
        "CHANGE_REJECTED": Code("Put the code back, change it in a branch and promote that, or choose another on_change."),
        # erasing rows
        "NOT_A_SOURCE": Code("Erase from the sources that it comes from; what is computed follows."),
        "BAD_CONDITION": Code("Write a condition on the collection's own columns in Spark's SQL, such as: user_id = 'u17'."),
        "ERASURE_BLOCKED": Code("Do what the message says, then erase again; nothing is erased until then."),
        "NOT_CONFIRMED": Code("Look at what would be erased with --dry-run, then say --yes."),
        # running a source or stage
        "STAGE_FAILED": Code("Correct the function at the line shown, then run the epoch again."),
        "BAD_SUITE": Code("Correct the suite's file in include/expectations; docs/guides/quality.md shows how one looks."),
        "CHECK_FAILED": Code(
            "Correct the data or the code, or let the check only warn: blocking=False; then run the epoch again."
        ),
        "NOT_A_DATAFRAME": Code("Return a DataFrame made from the function's own arguments."),
        "WRONG_COLUMNS": Code(
            "Return its columns, keys among them, in types that the stored ones lead to; or give the column another name."
        ),
        "PLACEMENT_CHANGED": Code("Put partition_by back to what it was; for another number of parts, run 'firnline rescale'."),
        "UNSUPPORTED_TYPE": Code("Cast the column to a type that Iceberg v2 can keep."),
        "NOT_CONVERGED": Code("Make the step reach a fixpoint (bound what it adds), or raise most=... of iterate()."),
        "KEY_NOT_UNIQUE": Code("Make the keys identify each row, or choose other keys."),
        "NULL_SEQUENCE": Code("Give every event a value of sequence_by, or leave out the events that have none."),
        "INTAKE_CHANGED": Code("Give the feed a name of its own, or let the source be what it was."),
        "DUMP_SHRANK": Code(
            "Deliver the dump whole; if the rows are gone for good, raise shrink=... of the source, and run the epoch again."
        ),
        "NEGATIVE_WEIGHT": Code("Remove only rows that are there: a removed row must equal the stored one in every column."),
        "ENGINE_LOST": Code("Nothing: Spark's driver died; a retry goes on from the log.", retryable=True),
        "SPARK_NOT_STARTED": Code(
            "Correct spark_memory, spark_master or spark_conf; 'firnline doctor' asks Java, the jars and the master.",
            retryable=True,
        ),
        "ENGINE_UNAVAILABLE": Code(
            "Start it with 'firnline engine start'; 'firnline engine status' says where it is. A retry goes on.", retryable=True
        ),
        "ENGINE_REFUSED": Code("Give the connection the engine's token as its password."),
        "INPUT_NOT_READY": Code("Run the input for this epoch first; a retry will go on from there.", retryable=True),
        "GENERATION_CHANGED": Code(
            "Nothing: the collection was rewound or rescaled meanwhile; a retry starts from there.", retryable=True
        ),
        "NO_EPOCH": Code("Call it inside a stage; in a test, inside 'with firnline.testing.at(...)'."),
        "BAD_HISTORY": Code("Correct what the test gives; docs/guides/testing.md says what a history is made of."),
        # computing a change from changes
        "NONDETERMINISTIC_FUNCTION": Code(
            "Use epoch.now, epoch.random(...) or epoch.logged(...) in a source, epoch_time() or an explicit order in a stage."
        ),
        "DEDUP_WITHOUT_ORDER": Code("Say which row stays: orderBy(...).dropDuplicates([...]), or use distinct()."),
        "LIMIT_WITHOUT_ORDER": Code("Say which rows stay: orderBy(...).limit(n)."),
        "PIVOT_WITHOUT_VALUES": Code("Name the values: pivot(column, [...])."),
        "OPAQUE_SQL": Code("Write this part with DataFrame operations, or in SQL that docs/reference.md lists."),
        "UNSUPPORTED_OPERATOR": Code("Use operators of docs/reference.md, or let it be computed in full: refresh='auto'."),
        "UNSUPPORTED_EXPRESSION": Code("Use expressions of docs/reference.md, or let it be computed in full: refresh='auto'."),
        "AMBIGUOUS_COLUMN": Code("Give the columns different names, or name the relation: alias('a') and 'a.column'."),
        "UNRESOLVED_COLUMN": Code("Refer to columns of the DataFrame at hand."),
        # delivering changes
        "SINK_FAILED": Code("Correct the function, or what it talks to; the epoch is delivered again.", retryable=True),
        "SINK_UNAVAILABLE": Code("Check that it can be reached and has room; a retry goes on where it stopped.", retryable=True),
        "SINK_REFUSED": Code("Do what the message says; the sink then goes on where it stopped."),
        # reading files
        "MISSING_FILE": Code("Deliver the file, or pass optional=True if an epoch may have none.", retryable=True),
        "FILE_CHANGED": Code("Put the file back as it was: the epoch is made from the files that its first attempt listed."),
        "UNREADABLE_FILE": Code("Check that the file exists, is readable and is of the declared format."),
        "SCHEMA_MISMATCH": Code("Make the file's columns and the declared schema agree."),
        "TABLE_REPLACED": Code("Deliver its rows by epoch.files or a snapshot source once, or bring the table's snapshot back."),
        "SOURCE_UNAVAILABLE": Code("Check that the database can be reached; a retry goes on from the log.", retryable=True),
        "TOO_MANY_MALFORMED": Code("Correct the file, or raise quarantine_fraction in firnline.toml."),
        "PATH_OUTSIDE_ROOT": Code("Keep paths inside the project, or add the folder to 'roots' in firnline.toml."),
        # the log, and what it stands on
        "COMMIT_CONTENDED": Code("Nothing: other writers kept winning; a retry goes on from the log.", retryable=True),
        "CATALOG_UNAVAILABLE": Code(
            "Check that the catalog can be reached and, if it is a database, is not locked.", retryable=True
        ),
        "CATALOG_REFUSED": Code("Correct the token or credential in FIRNLINE_CATALOG_OPTIONS, or let the catalog grant more."),
        "STORAGE_UNAVAILABLE": Code("Make room, or make it writable; a retry goes on from the log.", retryable=True),
        "REPLICA_UNAVAILABLE": Code(
            "Mount it, make room or allow writing; epochs go on, and copying goes on from where it was.", retryable=True
        ),
        "CLOCK_BEHIND": Code(
            "Set this machine's clock right. If another machine's was ahead, a retry goes on once that moment is past.",
            retryable=True,
        ),
        "LOG_UNREADABLE": Code("Check that the warehouse can be reached; 'firnline repair' makes a missing file again."),
        "REPLAY_DIFFERS": Code("Put the code, or what it reads from outside, back to what it was then; or bring the files back."),
        "MERGE_DIFFERS": Code("Run 'firnline verify --deep' to see which rows are not what they were, then 'firnline repair'."),
        "RESCALE_DIFFERS": Code("Run 'firnline verify --deep' to see which rows are not what they were, then 'firnline repair'."),
        "LOG_DAMAGED": Code("Run 'firnline verify' to see what is wrong, and 'firnline repair' to mend it; then try again."),
        "NEEDS_REWIND": Code(
            "Bring the lost files back from a copy of the warehouse, or choose on_loss='gap'; nothing is mixed until then."
        ),
        "REPAIR_STOPPED": Code("See to what the pipeline's function with @on_loss says, then repair again."),
        "NOT_REPAIRABLE": Code("Bring the lost files back from a copy of the warehouse."),
        "FOREIGN_SNAPSHOT": Code(
            "Only Firnline writes to a log: roll the table back to its last snapshot that has firnline.upper in its summary."
        ),
        "LEDGER_UNAVAILABLE": Code("Check that the ledger database can be reached, written and is not locked.", retryable=True),
        "NO_CHECKOUT": Code("Clone Firnline's repository, set it up with 'make', and run the command there."),
        "PREREQUISITE": Code("Run 'firnline doctor': it says how to mend each prerequisite."),
    }
)


class FirnlineError(Exception):
    """A refusal with a code.

    >>> str(FirnlineError("MISSING_KEY", "'visits' has no keys", Location("web.py", 7)))
    "MISSING_KEY: 'visits' has no keys (web.py:7). Name the columns that identify a row: keys=[...]."
    """

    def __init__(self, code: str, what: str, where: Location | None = None, *, todo: str | None = None) -> None:
        super().__init__(code, what, where)
        self.code = code
        self.what = what
        self.where = where
        self.todo = todo or CODES[code].todo
        self.retryable = CODES[code].retryable

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.code}: {self.what}{place}. {self.todo}"

    def __reduce__(self) -> tuple[object, ...]:
        return FirnlineError, (self.code, self.what, self.where), {"todo": self.todo}

    def as_json(self) -> dict[str, object]:
        """The error as ``--json`` prints it."""
        where = str(self.where) if self.where else None
        return {"code": self.code, "what": self.what, "where": where, "todo": self.todo, "retryable": self.retryable}


class GraphError(FirnlineError):
    """All that is wrong with a pipeline's declarations, reported at once."""

    def __init__(self, problems: Sequence[FirnlineError]) -> None:
        first = problems[0]
        super().__init__(first.code, first.what, first.where)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def as_json(self) -> dict[str, object]:
        """The errors as ``--json`` prints them."""
        return {**super().as_json(), "problems": [problem.as_json() for problem in self.problems]}


_CODED = re.compile(r"\b(" + "|".join(CODES) + r"): ")


def code_in(text: str) -> str | None:
    """The first code that a message tells.

    >>> code_in("visits at 2026-01-01: MISSING_FILE: no file is there")
    'MISSING_FILE'
    """
    found = _CODED.search(text)
    return found.group(1) if found else None
