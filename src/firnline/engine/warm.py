"""Sessions on an engine that runs already: one for each task, set like a session of a driver of its own.

Neither temporary views nor settings are shared between sessions; functions travel by value. So nothing of one task is seen by
another, and an engine may serve several pipelines and several projects.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import grpc
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession

from firnline.engine.conf import driver_hash, session_conf
from firnline.engine.connect_mode import connect_mode
from firnline.engine.server import Endpoint, Engine
from firnline.engine.session import ON_LOOPBACK, opened
from firnline.errors import FirnlineError
from firnline.settings import Settings

_REFUSALS = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


@contextmanager
def at_hand(settings: Settings, name: str) -> Iterator[tuple[SparkSession, str]]:
    """A session on the project's engine, if one runs that was started with these settings, else on a driver of our own.

    With it, where Spark runs, and why not on the engine.
    """
    with ExitStack() as stack:
        try:
            session, place = stack.enter_context(_warm(settings))
        except FirnlineError as error:
            if error.code != "ENGINE_UNAVAILABLE":
                raise
            session, place = stack.enter_context(opened(settings, name)), f"{settings.spark_master}, since {error.what}"
        yield session, place


@contextmanager
def _warm(settings: Settings) -> Iterator[tuple[SparkSession, str]]:
    engine = Engine(settings)
    with engine.used() as endpoint:
        if (state := engine.state()) is None or state.driver != driver_hash(settings):
            raise FirnlineError("ENGINE_UNAVAILABLE", f"the engine at {endpoint} was started with other settings")
        with connected(settings, endpoint) as session:
            yield session, f"the engine at {endpoint}"


@contextmanager
def connected(settings: Settings, endpoint: Endpoint) -> Iterator[SparkSession]:
    """A session of one's own, which ends with its queries.

    Raises:
        FirnlineError: ENGINE_UNAVAILABLE or ENGINE_REFUSED, before anything is done.
    """
    session = SparkSession.builder.remote(endpoint.url).create()
    session.client.set_retry_policies([ON_LOOPBACK])
    try:
        session.release_session_on_close = False  # there is none yet
        _set(session, settings, endpoint)
        session.release_session_on_close = True
        with connect_mode():
            yield session
    finally:
        session.stop()


def _set(session: SparkSession, settings: Settings, endpoint: Endpoint) -> None:
    own = session_conf(settings)
    try:
        if users := {key: own.pop(key) for key in settings.spark_conf}:
            with warnings.catch_warnings():  # those of a driver cannot be set any more
                warnings.simplefilter("ignore")
                session.conf._set_all(dict(users), silent=True)
        session.conf._set_all(dict(own), silent=False)
    except PySparkException as error:
        raise _refusal(error, endpoint) from error


def _refusal(error: PySparkException, endpoint: Endpoint) -> FirnlineError:
    status = _status(error)
    if status in _REFUSALS:
        what = (
            f"the engine at {endpoint} does not take the token" if endpoint.token else f"the engine at {endpoint} wants a token"
        )
        return FirnlineError("ENGINE_REFUSED", what)
    if status is grpc.StatusCode.UNAVAILABLE:
        return FirnlineError("ENGINE_UNAVAILABLE", f"the engine at {endpoint} does not answer")
    return FirnlineError("ENGINE_UNAVAILABLE", f"the engine at {endpoint} refuses a session: {str(error).strip()[:600]}")


def _status(error: BaseException | None) -> grpc.StatusCode | None:
    while error is not None:
        if isinstance(error, grpc.RpcError):
            found: grpc.StatusCode = error.code()
            return found
        error = error.__cause__ or error.__context__
    return None
