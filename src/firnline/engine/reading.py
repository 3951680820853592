"""What a source's function gets: its epoch, a session, logged values, and a reader of files that sets malformed records aside.

A record of a CSV or JSON file that does not fit the declared schema goes to the source's quarantine with the reason, the file and
the raw text. Nothing outside the configured roots is read.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from firnline.engine.database import Database
from firnline.engine.footers import check_columns
from firnline.engine.frames import is_settled, relation_of
from firnline.engine.kafka import Topic
from firnline.engine.lines import check_lines
from firnline.engine.outside import Determinants, Outside, nothing_earlier
from firnline.engine.outside_table import OutsideTable
from firnline.errors import FirnlineError
from firnline.model.epoch import Epoch, Schedule, to_datetime
from firnline.model.names import quoted
from firnline.settings import Settings

FORMATS = ("csv", "json", "text", "parquet", "avro")
_TYPED = ("parquet", "avro")
"""Formats whose files say what types their columns are of."""
_RECORD = "_firnline_record"
_FILE = "_firnline_file"
_NO_TEXT = "\ufffd"
"""What stands for bytes that are no text."""
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
    _kept: list[DataFrame] = field(default_factory=list)
    _paths: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        session: SparkSession,
        settings: Settings,
        schedule: Schedule,
        epoch: Epoch,
        determinants: Determinants,
        earlier: Callable[[str], Iterator[Any]] = nothing_earlier,
    ) -> SourceEpoch:
        """The user's view of an epoch, with what was logged for it, and for those before it."""
        lower, upper = (to_datetime(point) if schedule.timed else point for point in (epoch.lower, epoch.upper))
        outside = Outside(determinants, settings.root, earlier)
        return cls(session, schedule.label(epoch.lower), lower, upper, settings, outside)

    def __format__(self, spec: str) -> str:
        """Its beginning, as in the pattern of files: ``f"{epoch:%Y-%m-%d}"``; its label without a format."""
        return format(self.lower, spec) if spec else self.label

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
            format: ``csv`` (with a header line unless ``header=False``), ``json`` (one object a line), ``text`` (one column,
                the line), ``parquet`` or ``avro``.
            schema: The expected columns, as DDL text or a StructType.
            optional: Return no rows when no file matches, instead of failing.
            options: Further options of Spark's reader.
        """
        named = pattern.format(epoch=self.lower)
        _check(format)
        found = self._outside.files(named, lambda: self._matching(named), is_optional=optional)
        return self._records(found, format, schema, options)

    def new_files(self, pattern: str, *, format: str, schema: str | StructType, **options: Any) -> DataFrame:
        """The records of the files that match a pattern and that no earlier epoch of this source has taken under it.

        A file is known by its path: one that is written anew under an old name is not taken again. Files have to appear whole,
        by a rename for instance.

        Args:
            pattern: As for ``files``; without the epoch in it, as a rule.
            format: As for ``files``.
            schema: As for ``files``.
            options: As for ``files``.
        """
        _check(format)
        found = self._outside.new_files(pattern, lambda: self._matching(pattern))
        return self._records(found, format, schema, options)

    def jdbc(self, url: str, table: str, *, watermark: str, **options: Any) -> DataFrame:
        """The rows of a database's table whose watermark has passed since the last epoch that asked.

        How far it has come is logged before rows are read. A row that is committed later with an earlier watermark is missed:
        take a column that grows in the order of commits, or a view that leaves the newest rows to the next epoch.

        Args:
            url: The JDBC URL.
            table: The table, or a query in parentheses with an alias.
            watermark: A column that grows: a number, a time or a text.
            options: Further options of Spark's reader, ``user`` and ``password`` among them.
        """
        database = Database(self.spark, url, options)
        after, upto = self._outside.since_last(
            f"jdbc {table} {watermark}", lambda before: database.reached(table, watermark) or before, url
        )
        return database.rows(table, watermark, after, upto)

    def table(self, name: str) -> DataFrame:
        """What changed in an Iceberg table that is not ours since the last epoch that asked: appends, overwrites and deletes.

        Which of its snapshots is reached is logged before rows are read.

        Args:
            name: ``catalog.namespace.table``, in a catalog that the session knows.
        """
        table = OutsideTable(self.spark, name)
        after, upto = self._outside.since_last(f"table {name}", table.reached)
        return table.changes(after, upto)

    def kafka(self, topic: str, *, servers: str, partitions: int, **options: Any) -> DataFrame:
        """The records that came to a Kafka topic since the last epoch that asked, with the columns of Spark's Kafka reader.

        Up to which offset each partition is read is logged before a record is used. The first epoch begins with what Kafka
        still has. ``topic``, ``partition`` and ``offset`` identify a record.

        Args:
            topic: The topic.
            servers: Where its brokers are: ``host:port``, several separated by commas.
            partitions: How many partitions it has. Those beyond are not read until the number is raised.
            options: Further options of Spark's reader, such as ``**{"kafka.security.protocol": "SSL"}``.
        """
        source = Topic(self.spark, servers, topic, partitions, options)
        after, upto = self._outside.since_last(f"kafka {topic}", source.reached, servers)
        return source.rows(after, upto)

    def is_settled(self, frame: DataFrame) -> bool:
        """Whether a frame's rows are the same whenever they are computed: they are in its plan, or in files that were listed."""
        return is_settled(relation_of(frame), self._paths)

    def check_unchanged(self) -> None:
        """Refuse what was read from a file that somebody wrote to meanwhile."""
        changed = self._outside.changed()
        if changed:
            raise FirnlineError("FILE_CHANGED", f"{changed[0]} changed while it was read")

    def _records(self, found: list[Path], format: str, schema: str | StructType, options: dict[str, Any]) -> DataFrame:
        wanted = _schema(schema)
        if not found:
            return self.spark.createDataFrame([], wanted)
        paths = [_GLOB.sub(r"\\\g<0>", str(path)) for path in found]  # Spark is told each file by its very name
        self._paths.update(paths)
        if format == "parquet":
            check_columns(found, wanted.names)
        if format in _TYPED:
            return self._typed(paths, format, wanted, options)
        check_lines(found)
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

    def kept(self, frame: DataFrame) -> DataFrame:
        """The frame's rows, computed once for all that read them, without the plan that made them."""
        self._kept.append(frame.localCheckpoint())  # Spark lets go of rows when nobody holds their DataFrame
        return self._kept[-1]

    def close(self) -> None:
        """Let go of what was kept while the epoch was read."""
        self._kept.clear()
        for read in self._read:
            read.unpersist()

    def _matching(self, pattern: str) -> list[Path]:
        """The files that match, those below matching folders included."""
        if "://" in pattern:
            todo = "Name a path on a disk that all machines share; a mounted bucket is one."
            raise FirnlineError("BAD_OPTION", f"epoch.files reads folders, and {pattern!r} is an address", todo=todo)
        root = self._settings.root
        matching = glob.glob(pattern if Path(pattern).is_absolute() else f"{glob.escape(str(root))}/{pattern}", recursive=True)
        files = [file for path in matching for file in _files(Path(path))]
        for path in files or [root / pattern]:
            if not any(path.resolve().is_relative_to(allowed) for allowed in self._settings.roots):
                raise FirnlineError("PATH_OUTSIDE_ROOT", f"{path} is outside the configured roots")
        return files

    def _typed(self, paths: list[str], format: str, wanted: StructType, options: dict[str, Any]) -> DataFrame:
        found = self.spark.read.format(format).options(**options).load(paths)
        there = {column.name: column.dataType.simpleString() for column in found.schema.fields}
        wrong = [column for column in wanted.fields if there.get(column.name) != column.dataType.simpleString()]
        if wrong:
            expected = ", ".join(f"{column.name} {column.dataType.simpleString()}" for column in wrong)
            raise FirnlineError(
                "SCHEMA_MISMATCH", f"expected {expected}, found {', '.join(f'{n} {t}' for n, t in there.items())}"
            )
        return found.select(*(F.col(quoted(column.name)) for column in wanted.fields))

    def _text(self, paths: list[str], format: str, wanted: StructType, options: dict[str, Any]) -> DataFrame:
        read = self._lines(paths, wanted, options) if format == "text" else self._parsed(paths, format, wanted, options)
        # Kept, so that Spark parses every column of every record once: pruned columns would hide malformed values.
        read = read.persist()
        reason = F.lit(None) if format == "text" else _reason(format, wanted, options)
        malformed = read.where(F.col(_RECORD).isNotNull()).select(
            F.when(F.col(_RECORD).contains(_NO_TEXT), "holds bytes that are no UTF-8").otherwise(reason).alias("reason"),
            F.col(_FILE).alias("file"),
            F.col(_RECORD).alias("record"),
        )
        self._read.append(read)
        self._malformed.append(malformed)
        return read.where(F.col(_RECORD).isNull()).drop(_RECORD, _FILE)

    def _parsed(self, paths: list[str], format: str, wanted: StructType, options: dict[str, Any]) -> DataFrame:
        """Records with their columns; of malformed ones, the whole text too."""
        with_record = StructType([*wanted.fields, StructField(_RECORD, StringType())])
        defaults = {"header": True, "enforceSchema": False} if format == "csv" else {}
        reader = self.spark.read.format(format).schema(with_record).options(**{**defaults, **options})
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=_RECORD)
        read = reader.load(paths).select("*", F.col("_metadata.file_path").alias(_FILE))
        texts = [F.col(quoted(column.name)) for column in wanted.fields if isinstance(column.dataType, StringType)]
        is_garbled = reduce(Column.__or__, (F.coalesce(text.contains(_NO_TEXT), F.lit(False)) for text in texts), F.lit(False))
        columns = F.struct(*(F.col(quoted(column.name)) for column in wanted.fields))
        record = F.coalesce(F.col(_RECORD), F.when(is_garbled, F.to_json(columns)))
        return read.withColumn(_RECORD, F.make_valid_utf8(record))

    def _lines(self, paths: list[str], wanted: StructType, options: dict[str, Any]) -> DataFrame:
        """Lines as they are; of those that are no text, what can be told of it."""
        if [column.dataType.typeName() for column in wanted.fields] != ["string"]:
            raise FirnlineError("BAD_OPTION", "format='text' has one column, a string")
        line = F.col("value")
        record = F.when(~F.is_valid_utf8(line), F.make_valid_utf8(line))
        file = F.col("_metadata.file_path").alias(_FILE)
        read = self.spark.read.options(**options).text(paths)
        return read.select(line.alias(wanted.fields[0].name), record.alias(_RECORD), file)


def count_malformed(epochs: Iterable[SourceEpoch]) -> int:
    """How many malformed records the text files have that several epochs read, told by one job."""
    counts = [read.agg(F.count(_RECORD).alias("bad")) for epoch in epochs for read in epoch._read]
    return reduce(DataFrame.unionAll, counts).agg(F.sum("bad")).collect()[0][0] if counts else 0


def _files(path: Path) -> Iterator[Path]:
    """A file, or the files below a folder, but for hidden ones and the marks that writers leave, as Spark has it."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for folder, inner, names in os.walk(path, followlinks=True):
            inner[:] = [name for name in inner if not name.startswith((".", "_"))]
            yield from (Path(folder, name) for name in names if not name.startswith((".", "_")))


def _check(format: str) -> None:
    if format not in FORMATS:
        raise FirnlineError("BAD_OPTION", f"format={format!r} is none of {', '.join(FORMATS)}")


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
