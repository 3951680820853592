"""The pointers of a catalog that is a service: Iceberg's REST protocol, which Spark and PyIceberg both speak.

A commit carries what must still be true of the table, and the service checks it. Three things it cannot do in one step, because
the protocol has no compare-and-swap for them: a table is looked at before it is taken out, a view is gone for a moment while it
is made anew, and which metadata file a table had that cannot be read any more is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from firnline.errors import FirnlineError
from firnline.tables.pointers import NAME, PYTHON_IO, Read, Write

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_SECONDS = 30.0


class RestPointers:
    """What a REST catalog keeps; ``options`` are Iceberg's (``warehouse``, ``token``, ``credential``, ``scope``, ...)."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri, self._options = uri, options

    @cached_property
    def opened(self) -> Catalog:
        """PyIceberg's catalog; what the service says it can do is asked once."""
        from pyiceberg.catalog.rest import RestCatalog

        with self.reachable():
            found = RestCatalog(NAME, **{"uri": self._uri, **self._options, **PYTHON_IO})
            _bounded(found)
            return found

    def reachable(self) -> AbstractContextManager[None]:
        """Turns silence and refusals of PyIceberg's catalog into coded errors."""
        return _reachable()

    def table(self, space: str, name: str) -> str | None:
        """The path of a table's metadata file."""
        from pyiceberg.exceptions import NoSuchTableError

        with self.reachable():
            try:
                return self.opened.load_table((space, name)).metadata_location
            except NoSuchTableError as error:
                if name not in self.names(space):
                    return None
                raise FirnlineError("LOG_UNREADABLE", f"{space}.{name}: the catalog cannot load it: {error}") from error

    def previous(self, space: str, name: str) -> str | None:
        """Nothing: a service tells only of the present one."""
        return None

    def names(self, space: str) -> set[str]:
        """The tables of a namespace; none where there is no such namespace."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self.reachable():
            try:
                return {name for *_, name in self.opened.list_tables(space)}
            except NoSuchNamespaceError:
                return set()

    def spaces(self) -> set[str]:
        """All namespaces."""
        with self.reachable():
            return {space for (space, *_) in self.opened.list_namespaces()}

    def forget(self, space: str, name: str, version: str) -> bool:
        """Take a table out, files untouched, if it is still this version; whether it was."""
        if self.table(space, name) != version:
            return False
        with self.reachable():
            self.opened.drop_table((space, name))
        return True

    def point(self, space: str, name: str, lost: str, version: str) -> bool:
        """Let a table's metadata be another file, if it is still the one that was lost; whether it was."""
        if self.table(space, name) != lost:
            return False
        with self.reachable():
            self.opened.drop_table((space, name))
            self.opened.register_table((space, name), version)
        return True

    def view(self, space: str, name: str, read: Read) -> tuple[str, dict[str, Any]] | None:
        """What tells this version of a view from others, and what it says."""
        from pyiceberg.exceptions import NoSuchViewError

        with self.reachable():
            try:
                found = self.opened.load_view((space, name)).metadata
            except NoSuchViewError:
                return None
            said: dict[str, Any] = found.model_dump(mode="json", by_alias=True, exclude_none=True)
            return f"{found.view_uuid} {found.current_version_id}", said

    def forget_view(self, space: str, name: str) -> None:
        """Take a view out, if it is there."""
        from pyiceberg.exceptions import NoSuchViewError

        with self.reachable(), suppress(NoSuchViewError):
            self.opened.drop_view((space, name))

    def put_view(self, space: str, name: str, before: str | None, made: dict[str, Any], write: Write) -> bool:
        """Let a view say something else, if it is still the version that was looked at, or is not there; whether it was."""
        from pyiceberg.exceptions import NoSuchViewError, ViewAlreadyExistsError
        from pyiceberg.schema import Schema
        from pyiceberg.view.metadata import ViewVersion

        there = self.view(space, name, read=lambda path: b"")
        if (None if there is None else there[0]) != before:
            return False
        schema, version = Schema.model_validate(made["schemas"][-1]), ViewVersion.model_validate(made["versions"][-1])
        with self.reachable():
            try:
                if there is not None:
                    self.opened.drop_view((space, name))
                self.opened.create_view((space, name), schema, version, made["location"], made["properties"])
            except (NoSuchViewError, ViewAlreadyExistsError):
                return False
        return True


def _bounded(catalog: Any) -> None:
    """Let no request wait for ever."""
    ask = catalog._session.request

    def bounded(method: str, url: str, **options: Any) -> Any:
        return ask(method, url, **{"timeout": _SECONDS, **options})

    catalog._session.request = bounded


@contextmanager
def _reachable() -> Iterator[None]:
    """Turn a service's silence or refusal into a coded error; what a commit was answered is left to whoever looks again."""
    from pyiceberg.exceptions import ForbiddenError, OAuthError, ServerError, ServiceUnavailableError, UnauthorizedError
    from requests.exceptions import RequestException

    try:
        yield
    except (RequestException, ServerError, ServiceUnavailableError) as error:
        raise FirnlineError("CATALOG_UNAVAILABLE", f"the catalog did not answer: {error}") from error
    except (UnauthorizedError, ForbiddenError, OAuthError) as error:
        raise FirnlineError("CATALOG_REFUSED", f"the catalog refused: {error}") from error
