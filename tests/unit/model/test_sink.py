"""What a sink may be called and take."""

from typing import Any

import pytest

from firnline import FirnlineError, Pipeline
from firnline.model.graph import Graph, check


def declared(*sinks: Any) -> Graph:
    web = Pipeline("web", schedule=1, start=0)

    @web.source(keys=["k"])
    def visits(epoch: Any) -> Any: ...

    for sink in sinks:
        web.sink()(sink)
    return check(web, {"visits": "f"})


def test_a_sink_takes_the_epoch_and_collections_by_name():
    def report(epoch, visits):
        """Tell others."""

    (sink,) = declared(report).sinks
    assert (sink.name, sink.inputs, sink.doc) == ("report", ("visits",), "Tell others.")
    assert Graph.of_json(declared(report).as_json()).sinks == (sink,)


def test_what_cannot_be_a_sink_is_refused():
    def report(epoch, pages): ...
    def nothing(epoch): ...
    def no_epoch(visits): ...
    def visits(epoch, visits): ...
    def loud__(epoch, visits): ...

    for sink, complaint in (
        (report, "UNKNOWN_INPUT: the sink 'report' asks for 'pages'"),
        (nothing, "UNKNOWN_INPUT: the sink 'nothing' names no collection"),
        (no_epoch, "BAD_OPTION: the first parameter of the sink 'no_epoch'"),
        (visits, "BAD_OPTION: the sink 'visits' has the name of a collection"),
        (loud__, "BAD_NAME"),
    ):
        with pytest.raises(FirnlineError, match=complaint):
            declared(sink)
    with pytest.raises(FirnlineError, match="the sink 'tell' has the name of another sink"):
        declared(*(_named("tell"), _named("tell")))


def _named(name: str) -> Any:
    def sink(epoch, visits): ...

    sink.__name__ = name
    return sink
