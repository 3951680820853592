"""What a source's function gets: its epoch, a session, logged values, and a reader of files that sets malformed records aside.

A record of a CSV or JSON file that does not fit the declared schema goes to the source's quarantine with the reason, the file and
the raw text. Nothing outside the configured roots is read.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from firnline.engine.outside import Determinants, Outside
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch, Schedule, to_datetime
from firnline.model.names import quoted
from firnline.settings import Settings

FORMATS = ("csv", "json", "parquet")
_RECORD = "_firnline_record"
_FILE = "_firnline_file"
_GLOB = re.compile(r"[\[\]{}*?\\]")


@dataclass(frozen=True, slots=True)
class Malformed:
    """Records set aside, as (reason, file, record), and how many of how many they are."""

    records: DataFrame
    count: int
    of: int


@dataclass(slots=True)
class SourceEpoch:
    """The epoch that a source is asked for.

    Attributes:
        spark: The session to make DataFrames with.
        label: The epoch's name, as the command line writes it.
        lower: Its beginning, a UTC datetime, or an integer where the schedule is one of integers.
        upper: Its end, which is not part of it.
    """

    spark: SparkSession
    label: str
    lower: datetime | int
    upper: datetime | int
    _settings: Settings
    _outside: Outside
    _read: list[DataFrame] = field(default_factory=list)
    _malformed: list[DataFrame] = field(default_factory=list)

    @classmethod
    def of(
        cls, session: SparkSession, settings: Settings, schedule: Schedule, epoch: Epoch, determinants: Determinants
    ) -> SourceEpoch:
        """The user's view of an epoch, with what was logged for it."""
        lower, upper = (to_datetime(point) if schedule.timed else point for point in (epoch.lower, epoch.upper))
        return cls(session, schedule.label(epoch.lower), lower, upper, settings, Outside(determinants, settings.root))

    @property
    def now(self) -> datetime | int:
        """The time to use instead of the clock's: the epoch's end, the same whenever the epoch is computed."""
        return self.upper

    def random(self, name: str, *columns: str) -> Column:
        """Numbers in [0, 1) to use instead of ``rand()``: the same for the same name, epoch and values of the columns."""
        hashed = F.xxhash64(F.lit(name), F.lit(self.label), *(F.col(column) for column in columns))
        return F.shiftrightunsigned(hashed, 11) / F.lit(2.0**53)

    def logged(self, name: str, fn: Callable[[], Any]) -> Any:
        """The value of ``fn()``, as it was when the epoch was first tried.

        It is logged before it is returned. Every later attempt, and every replay, is given the logged value; the function is not
        called again.

        Args:
            name: What tells the value from others of the same epoch.
            fn: Asks the outside (a service, a clock) and returns a JSON value.
        """
        return self._outside.value(name, fn)

    def files(self, pattern: str, *, format: str, schema: str | StructType, optional: bool = False, **options: Any) -> DataFrame:
        """The records of the files that match a pattern.

        Which files these are, with their sizes and checksums, is logged before they are read. The retry of an attempt that died
        reads the same files, and refuses one that changed.

        Args:
            pattern: A path below the project's root, with wildcards; ``{epoch:%Y-%m-%d}`` stands for the epoch's beginning.
            format: ``csv`` (with a header line unless ``header=False``), ``json`` (one object a line) or ``parquet``.
            schema: The expected columns, as DDL text or a StructType.
            optional: Return no rows when no file matches, instead of failing.
            options: Further options of Spark's reader.
        """
        if format not in FORMATS:
            raise FirnlineError("BAD_OPTION", f"format={format!r} is none of {', '.join(FORMATS)}")
        wanted = _schema(schema)
        named = pattern.format(epoch=self.lower)
        found = self._outside.files(named, lambda: self._matching(named), is_optional=optional)
        if not found:
            return self.spark.createDataFrame([], wanted)
        paths = [_GLOB.sub(r"\\\g<0>", str(path)) for path in found]  # Spark is told each file by its very name
        if format == "parquet":
            return self._parquet(paths, wanted, options)
        return self._text(paths, format, wanted, options)

    def malformed(self) -> Malformed | None:
        """The malformed records of the text files read so far; None if there are none."""
        counts = [read.agg(F.count(_RECORD), F.count(F.lit(1))).collect()[0] for read in self._read]
        bad, total = (sum(row[position] for row in counts) for position in (0, 1))
        return Malformed(reduce(DataFrame.unionAll, self._malformed), bad, total) if bad else None

    @property
    def determinants(self) -> dict[str, Any]:
        """What was taken from the outside so far, by name."""
        return self._outside.used

    def failed(self, error: BaseException) -> None:
        """Forget what the next attempt shall look for anew."""
        self._outside.failed(error)

    def close(self) -> None:
        """Let go of what was kept while the epoch was read."""
        for read in self._read:
            read.unpersist()

    def _matching(self, pattern: str) -> list[Path]:
        """The files that match, those below matching folders included."""
        root = self._settings.root
        matching = glob.glob(pattern if Path(pattern).is_absolute() else f"{glob.escape(str(root))}/{pattern}", recursive=True)
        files = [file for path in matching for file in _files(Path(path))]
        for path in files or [root / pattern]:
            if not any(path.resolve().is_relative_to(allowed) for allowed in self._settings.roots):
                raise FirnlineError("PATH_OUTSIDE_ROOT", f"{path} is outside the configured roots")
        return files

    def _parquet(self, paths: list[str], wanted: StructType, options: dict[str, Any]) -> DataFrame:
        found = self.spark.read.options(**options).parquet(*paths)
        there = {column.name: column.dataType.simpleString() for column in found.schema.fields}
        wrong = [column for column in wanted.fields if there.get(column.name) != column.dataType.simpleString()]
        if wrong:
            expected = ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in wrong)
            raise FirnlineError(
                "SCHEMA_MISMATCH", f"expected {expected}, found {', '.join(f'{n} {t}' for n, t in there.items())}"
            )
        return found.select(*(F.col(quoted(column.name)) for column in wanted.fields))

    def _text(self, paths: list[str], format: str, wanted: StructType, options: dict[str, Any]) -> DataFrame:
        with_record = StructType([*wanted.fields, StructField(_RECORD, StringType())])
        defaults = {"header": True, "enforceSchema": False} if format == "csv" else {}
        reader = self.spark.read.format(format).schema(with_record).options(**{**defaults, **options})
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=_RECORD)
        # Kept, so that Spark parses every column of every record once: pruned columns would hide malformed values.
        read = reader.load(paths).select("*", F.col("_metadata.file_path").alias(_FILE)).persist()
        malformed = read.where(F.col(_RECORD).isNotNull()).select(
            _reason(format, wanted, options).alias("reason"),
            F.col(_FILE).alias("file"),
            F.col(_RECORD).alias("record"),
        )
        self._read.append(read)
        self._malformed.append(malformed)
        return read.where(F.col(_RECORD).isNull()).drop(_RECORD, _FILE)


def _files(path: Path) -> Iterator[Path]:
    """A file, or the files below a folder, but for hidden ones and the marks that writers leave, as Spark has it."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for folder, inner, names in os.walk(path, followlinks=True):
            inner[:] = [name for name in inner if not name.startswith((".", "_"))]
            yield from (Path(folder, name) for name in names if not name.startswith((".", "_")))


def _schema(given: str | StructType) -> StructType:
    parsed = StructType.fromDDL(given) if isinstance(given, str) else given
    assert isinstance(parsed, StructType)
    return parsed


def _reason(format: str, wanted: StructType, options: dict[str, Any]) -> Column:
    """Why a record does not fit: the fields that are no value of their type, or the shape of the whole."""
    names = [f"c{position}" for position in range(len(wanted.fields))]
    if format == "csv":
        texts = ", ".join(f"{name} string" for name in names)
        separator: dict[str, str] = {key: str(options[key]) for key in ("sep", "quote", "escape") if key in options}
        parsed = F.from_csv(F.col(_RECORD), texts, separator or None)
        fields = [parsed[name] for name in names]
        otherwise = F.lit(f"is not a record of {len(names)} fields")
    else:
        fields = [F.get_json_object(F.col(_RECORD), f"$['{column.name}']") for column in wanted.fields]
        otherwise = F.lit("is not a JSON object of the declared shape")
    complaints = [
        F.when(
            text.isNotNull() & text.try_cast(column.dataType).isNull(),
            F.concat(F.lit(f"{column.name}: '"), text, F.lit(f"' is not {column.dataType.simpleString()}")),
        )
        for text, column in zip(fields, wanted.fields, strict=True)
        if not isinstance(column.dataType, StringType) and column.dataType.typeName() not in ("array", "map", "struct")
    ]
    if not complaints:
        return otherwise
    found = F.array_join(F.filter(F.array(*complaints), lambda complaint: complaint.isNotNull()), "; ")
    return F.when(found != "", found).otherwise(otherwise)
