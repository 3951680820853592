"""Many epochs of a whole pipeline in one process: collections advance beside one another, as far as their inputs have come.

Threads compute, each in a session of its own; the caller's thread completes epochs. When a collection fails, the others go on
through the last epoch that it holds, so that all before the one that failed is complete; then the failure is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from threading import Event
from typing import TYPE_CHECKING

from firnline.model.epoch import Epoch
from firnline.plan.overlapping import ready
from firnline.runtime.advance import Outcome, advance, complete
from firnline.runtime.project import Declared, Project

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

AT_ONCE = 2
"""Collections under way: more share the same cores, and each holds its rows."""


def overlapped(
    project: Project,
    declared: Declared,
    session: SparkSession,
    last: Epoch,
    completed: Callable[[], None] = lambda: None,
) -> Iterator[Outcome]:
    """Bring all collections through an epoch, complete what they all hold on the way, and call ``completed`` each time."""
    from firnline.engine.session import take_up

    graph, upto = declared.graph, last.upper
    heads = {each.name: project.log(graph.name, each.name).head() for each in graph.collections}
    reached = {name: graph.schedule.start if head is None else head.description.upper for name, head in heads.items()}
    seen = frontier.upper if (frontier := project.control(graph.name).frontier()) else graph.schedule.start
    under_way: set[str] = set()
    said: SimpleQueue[list[Outcome] | tuple[str, BaseException | None]] = SimpleQueue()
    failure: BaseException | None = None

    with _working(session, min(AT_ONCE, len(graph.collections))) as (threads, sessions, is_over):

        def work(name: str, point: int) -> None:
            own, ended = sessions.get(), None
            done: list[Outcome] = []
            take_up(own)
            try:
                for outcome in advance(project, declared, own, name, graph.schedule.epoch_at(point - 1)):
                    done.append(outcome)
                    if len(done) >= outcome.at_once:  # whoever reads a stretch shall have all of it
                        said.put(done)
                        done = []
                    if is_over.is_set():
                        break
            except BaseException as error:
                ended = error
            finally:
                sessions.put(own)
                said.put(done)
                said.put((name, ended))

        while True:
            for name, point in ready(graph, reached, under_way, upto).items():
                if len(under_way) < AT_ONCE:
                    under_way.add(name)
                    threads.submit(work, name, point)
            if not under_way:
                break
            word = said.get()
            if isinstance(word, list):
                reached.update({each.collection: each.epoch.upper for each in word})
                yield from word
            else:
                name, error = word
                under_way.discard(name)
                if error is not None:
                    failure, upto = failure or error, min(upto, reached[name])
            whole = min(reached.values())
            if whole > seen:
                complete(project, graph, graph.schedule.epoch_at(whole - 1))
                seen = whole
                completed()
    if failure is not None:
        raise failure


@contextmanager
def _working(session: SparkSession, count: int) -> Iterator[tuple[ThreadPoolExecutor, SimpleQueue[SparkSession], Event]]:
    """Threads, and a session for each, which share neither settings nor views; an end from outside ends what they run.

    Who does not wait for Spark then is told by the event.
    """
    from firnline.engine.session import cloned

    is_over = Event()

    sessions: SimpleQueue[SparkSession] = SimpleQueue()
    with ExitStack() as clones:
        several = [session, *(clones.enter_context(cloned(session)) for _ in range(count - 1))]
        for each in several:
            sessions.put(each)
        with ThreadPoolExecutor(count) as threads:
            try:
                yield threads, sessions, is_over
            except BaseException:
                is_over.set()
                for each in several:
                    each.interruptAll()
                raise
