"""Lineage as a picture: an SVG of boxes in layers, from the sources on the left to what was computed from them on the right.

Every box stands one layer to the right of the last box it reads. An edge over several layers passes through a free place in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from firnline.cli.lineage import origin, reading, span, summary

if TYPE_CHECKING:
    from firnline.runtime.lineage import Edge, Lineage, Node

_CHARACTER, _LINE, _PADDING = 7.3, 18, 12
_ACROSS, _DOWN, _MARGIN = 190, 30, 24
_TITLE = 44
_LANE = 16
"""The height that an edge takes up where it passes a layer."""
_STYLE = """
  .sheet { fill: #ffffff; }
  .box { fill: #f4f7fb; stroke: #48617f; stroke-width: 1.2; }
  .box.asked { fill: #fff4d6; stroke: #b07d00; stroke-width: 2; }
  .line { fill: none; stroke: #8496ab; stroke-width: 1.4; marker-end: url(#arrow); }
  .line.all { stroke-dasharray: 5 4; }
  text { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; fill: #22303f; }
  .name { font-weight: bold; }
  .small { fill: #5d6d7e; font-size: 11px; }
"""


class _Place:
    """A box, or a point that an edge passes through, in its layer."""

    def __init__(self, layer: int, lines: Sequence[str] = ()) -> None:
        self.layer, self.lines = layer, lines
        self.width = max((len(line) for line in lines), default=0) * _CHARACTER + 2 * _PADDING if lines else 0.0
        self.height = len(lines) * _LINE + 2 * _PADDING if lines else float(_LANE)
        self.before: list[_Place] = []
        self.x = self.y = 0.0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def drawn(told: Lineage) -> str:
    """The picture of a lineage, as an SVG document."""
    layers = _layers(told)
    places = {node.id: _Place(layers[node.id], _words(node)) for node in told.nodes}
    ways = [_way(places[edge.input], places[edge.reader]) for edge in told.edges]
    columns = _arranged([*places.values(), *(place for way in ways for place in way[1:-1])])
    leaving, entering = _ports(ways, is_leaving=True), _ports(ways, is_leaving=False)
    width = max(place.x + place.width for column in columns for place in column) + _MARGIN
    height = max(place.y + place.height for column in columns for place in column) + _MARGIN
    title = f"{told.pipeline}.{told.collection} at {told.epoch}" + ("" if told.part is None else f", part {told.part}")
    subject = f"{title}: {'what it was computed from' if told.direction == 'upstream' else 'what was computed from it'}"
    width = max(width, len(subject) * _CHARACTER + 2 * _MARGIN)
    body = [
        *(line for at, edge in enumerate(told.edges) for line in _edge(edge, ways[at], leaving[at], entering[at])),
        *(line for node in told.nodes for line in _box(node, places[node.id], is_asked=node is told.nodes[0])),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            f"<title>{escape(subject)}</title>",
            f"<style>{_STYLE}</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M 0 0 L 8 4 L 0 8 z" fill="#8496ab"/></marker></defs>',
            f'<rect class="sheet" width="{width:.0f}" height="{height:.0f}"/>',
            f'<text class="name" x="{_MARGIN}" y="{_MARGIN + 4}">{escape(subject)}</text>',
            *body,
            "</svg>\n",
        ]
    )


def _layers(told: Lineage) -> Mapping[str, int]:
    """For each node the longest way to it from a node that reads nothing here."""
    layers = {node.id: 0 for node in told.nodes}
    for _ in told.nodes:
        for edge in told.edges:
            layers[edge.reader] = max(layers[edge.reader], layers[edge.input] + 1)
    return layers


def _way(begin: _Place, end: _Place) -> list[_Place]:
    """The places that an edge passes."""
    way = [begin, *(_Place(layer) for layer in range(begin.layer + 1, end.layer)), end]
    for here, there in pairwise(way):
        there.before.append(here)
    return way


def _arranged(places: Sequence[_Place]) -> list[list[_Place]]:
    """Give every place its position: in its layer, near to the middle of what leads to it."""
    columns: list[list[_Place]] = [[] for _ in range(max(place.layer for place in places) + 1)]
    for place in places:
        columns[place.layer].append(place)
    x = float(_MARGIN)
    tallest = max(sum(place.height + _DOWN for place in column) for column in columns)
    for column in columns:
        column.sort(key=lambda place: sum(each.middle for each in place.before) / len(place.before) if place.before else 0.0)
        y = _MARGIN + _TITLE + (tallest - sum(place.height + _DOWN for place in column)) / 2
        widest = max(place.width for place in column)
        for place in column:
            place.x, place.y = x, y
            place.width = place.width or widest
            y += place.height + _DOWN
        x += widest + _ACROSS
    return columns


def _words(node: Node) -> list[str]:
    taken = [f"determinants {', '.join(node.determinants)}"] if node.determinants else []
    return [f"{node.collection} {span(node)}", summary(node), f"snapshot {node.snapshot}", origin(node), *taken]


def _box(node: Node, place: _Place, *, is_asked: bool) -> list[str]:
    found = [
        f'<g><rect class="box{" asked" if is_asked else ""}" x="{place.x:.1f}" y="{place.y:.1f}" '
        f'width="{place.width:.1f}" height="{place.height:.1f}" rx="6"/>'
    ]
    for number, line in enumerate(place.lines):
        kind, y = "small" if number else "name", place.y + _PADDING + _LINE * (number + 1) - 5
        found.append(f'<text class="{kind}" x="{place.x + _PADDING:.1f}" y="{y:.1f}">{escape(line)}</text>')
    return [*found, f"<title>{escape(node.id)}: digest {node.digest}</title></g>"]


def _ports(ways: Sequence[Sequence[_Place]], *, is_leaving: bool) -> dict[int, float]:
    """The heights at which edges leave, or enter, their boxes: one below the other, in the order of where they go."""
    by_box: dict[_Place, list[tuple[float, int]]] = {}
    for number, way in enumerate(ways):
        box, other = (way[0], way[1]) if is_leaving else (way[-1], way[-2])
        by_box.setdefault(box, []).append((other.middle, number))
    return {
        number: box.y + box.height * (at + 1) / (len(edges) + 1)
        for box, edges in by_box.items()
        for at, (_, number) in enumerate(sorted(edges))
    }


def _edge(edge: Edge, way: Sequence[_Place], leaving: float, entering: float) -> list[str]:
    heights = [leaving, *(place.middle for place in way[1:-1]), entering]
    x = way[0].x + way[0].width
    points = [f"M {x:.1f} {leaving:.1f}"]
    for (here, y), (there, to) in pairwise(zip(way, heights, strict=True)):
        left, right = here.x + here.width, there.x
        bend = (left + right) / 2
        points.append(f"C {bend:.1f} {y:.1f}, {bend:.1f} {to:.1f}, {right:.1f} {to:.1f}")
        if there is not way[-1]:
            points.append(f"L {there.x + there.width:.1f} {to:.1f}")
    label = leaving + 14 if heights[1] < leaving else leaving - 5  # on the side that the line leaves free
    return [
        f'<path class="line {edge.parts}" d="{" ".join(points)}"/>',
        f'<text class="small" x="{x + 8:.1f}" y="{label:.1f}">{escape(reading(edge))}</text>',
    ]
