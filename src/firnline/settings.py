"""Settings: read once, at the edge, from ``firnline.toml`` in the project's root and from ``FIRNLINE_*`` in the environment.

The file's own settings are those of every profile. A table ``[profile.NAME]`` in it is a profile: its settings win over these
where ``FIRNLINE_PROFILE`` names it. The environment wins over both. Secrets (a password inside ``catalog_uri`` or ``ledger_uri``)
belong into the environment.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from firnline.errors import FirnlineError
from firnline.model.duration import time_of
from firnline.model.names import instead

FILE = "firnline.toml"
_PREFIX = "FIRNLINE_"
PROFILE = "FIRNLINE_PROFILE"
"""Names the profile, in the environment."""
LOCAL = "local"
"""The profile of one machine, which needs no table in the file."""
_NO_SETTINGS = ("failpoints", "failpoint_gate", "seeds")
"""What else the environment may say: to drills, and to tests."""
_OF_A_SERVICE = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$")


class Settings(BaseSettings):
    """Where things are and how much of the machine to use. Relative paths start at ``root``."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="forbid")

    root: Path
    profile: str = LOCAL
    work: Path = Path(".firnline")
    """Everything Firnline writes by default: warehouse, catalog, ledger, jars, Airflow's home."""
    warehouse: str = ""
    catalog_uri: str = ""
    """The catalog's database, or the address of a REST catalog."""
    catalog_options: dict[str, str] = {}
    """Iceberg's options of a REST catalog, such as ``warehouse``, ``credential`` and ``scope``."""
    ledger_uri: str = ""
    airflow_uri: str = ""
    """Airflow's own database; SQLite in its home where there is none."""
    roots: tuple[Path, ...] = (Path("."),)
    """Folders that sources may read files from."""
    quarantine_fraction: float = Field(0.01, ge=0, le=1)
    """An epoch fails when more than this fraction of a source's records is malformed."""
    trash: str = "1d"
    """How long what maintenance let go of stays there, first as a merge that can be undone, then in the trash."""
    concordance: bool = False
    """Whether rows that few changes concern are looked up in data files on a local disk, which takes disk, instead of scanned."""
    replicas: tuple[str, ...] = ()
    """The URLs of places that batches of pipelines without ``replicas`` of their own are copied to."""
    spark_master: str = "local[*]"
    spark_memory: str = "2g"
    spark_java_options: str = ""
    """Options of the driver's JVM."""
    spark_shuffle_partitions: int = Field(4, ge=1)
    spark_conf: dict[str, str] = {}

    @field_validator("trash")
    @classmethod
    def _is_a_time(cls, value: str) -> str:
        time_of(value)
        return value

    @classmethod
    def load(cls, start: Path | None = None, profile: str | None = None) -> Settings:
        """The settings of the project that holds the folder ``start`` (the current one by default), of a profile of it."""
        here = (start or Path(os.environ.get("FIRNLINE_ROOT", "."))).resolve()
        for root in (here, *here.parents):
            if (root / FILE).is_file():
                return cls._of(root, profile or os.environ.get(PROFILE) or LOCAL)
        raise FirnlineError("NO_PROJECT", f"no {FILE} in {here} or above it")

    @classmethod
    def _of(cls, root: Path, profile: str) -> Settings:
        known = cls.model_fields.keys() - {"root", "profile"}
        try:
            given = _given(root / FILE, profile, known)
        except (OSError, ValueError) as error:
            raise FirnlineError("BAD_SETTING", f"{root / FILE}: {getattr(error, 'strerror', None) or error}") from None
        for name in _unknown_variables({*cls.model_fields, *_NO_SETTINGS}):
            raise FirnlineError("BAD_SETTING", f"{name} in the environment is no setting{instead(name, map(_variable, known))}")

        class Here(cls):  # type: ignore[valid-type, misc]
            @classmethod
            def settings_customise_sources(
                kind,  # noqa: N804
                settings_cls: type[BaseSettings],
                init_settings: PydanticBaseSettingsSource,
                env_settings: PydanticBaseSettingsSource,
                dotenv_settings: PydanticBaseSettingsSource,
                file_secret_settings: PydanticBaseSettingsSource,
            ) -> tuple[PydanticBaseSettingsSource, ...]:
                return init_settings, env_settings, InitSettingsSource(settings_cls, given)

        try:
            draft: Any = Here(root=root, profile=profile)
        except (ValidationError, ValueError) as error:
            raise FirnlineError("BAD_SETTING", f"{root / FILE} or FIRNLINE_*: {_told(error)}") from None
        work = (root / draft.work.expanduser()).resolve()
        return cls.model_construct(
            **{
                **draft.model_dump(),
                "root": root,
                "work": work,
                "warehouse": draft.warehouse or f"file://{work / 'warehouse'}",
                "catalog_uri": draft.catalog_uri or _sqlite(work / "catalog.db"),
                "ledger_uri": draft.ledger_uri or _sqlite(work / "ledger.db"),
                "roots": tuple((root / folder.expanduser()).resolve() for folder in draft.roots),
            }
        )

    @property
    def jars(self) -> Path:
        """The folder with the jars that Spark needs beside its own."""
        return self.work / "jars"

    @property
    def airflow_home(self) -> Path:
        """Airflow's home of this project."""
        return self.work / "airflow"


def is_rest(catalog_uri: str) -> bool:
    """Whether a catalog is a REST service, and no database."""
    return urlsplit(catalog_uri).scheme in {"http", "https"}


def _given(file: Path, name: str, known: Collection[str]) -> dict[str, Any]:
    """What the file says of a profile; what it says of others may be wrong in no way that shows here either."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    profiles = document.pop("profile", {})
    if not isinstance(profiles, dict) or not all(isinstance(each, dict) for each in profiles.values()):
        raise ValueError("a profile is a table: [profile.cluster]")
    if name not in {*profiles, LOCAL}:
        raise ValueError(f"there is no [profile.{name}]; there are: {', '.join(sorted({*profiles, LOCAL}))}")
    for table, keys in (("", document), *((f" in [profile.{each}]", profiles[each]) for each in profiles)):
        for key in keys:
            if key not in known:
                raise ValueError(f"there is no setting {key!r}{table}{instead(key, known)}")
    return {**document, **profiles.get(name, {})}


def _variable(setting: str) -> str:
    return f"{_PREFIX}{setting.upper()}"


def _unknown_variables(known: Collection[str]) -> list[str]:
    """Variables that look like settings and are none; Kubernetes names its own after services, which may begin like ours."""
    names = {_variable(each) for each in known}
    ours = (name for name in os.environ if name.upper().startswith(_PREFIX) and name.upper() not in names)
    return sorted(name for name in ours if not _OF_A_SERVICE.search(name))


def _sqlite(path: Path) -> str:
    """SQLAlchemy reads %XX in a path as one character."""
    return f"sqlite:///{quote(str(path))}"


def _told(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
    return str(error)
