"""Boxes with whiskers, read from where their lines are: matplotlib keeps no list of what belongs to which box."""

from dataclasses import dataclass

import numpy
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch

from .labels import label


@dataclass(frozen=True)
class Span:
    """The extent of something along and across the axis of values."""

    along: tuple
    across: tuple

    @property
    def centre(self) -> float:
        return (self.across[0] + self.across[1]) / 2

    @property
    def width(self) -> float:
        return self.across[1] - self.across[0]


def boxes(axes) -> list:
    found = [patch for patch in axes.patches if isinstance(patch, PathPatch)]
    lines = [line for line in axes.lines if len(line.get_xdata()) > 0]
    standing = all(_stands(patch.get_path().vertices, lines) for patch in found)
    names = label(axes.xaxis if standing else axes.yaxis)
    places = list((axes.xaxis if standing else axes.yaxis).get_ticklocs())
    elements = []
    for at, patch in enumerate(found):
        box = _box(patch.get_path().vertices, standing)
        elements.append({"label": _name(box, at, len(found), names, places), **_numbers(box, lines, standing)})
    return elements


def _span(vertices, standing: bool) -> Span:
    x, y = numpy.asarray(vertices, dtype=float).T
    values, places = (y, x) if standing else (x, y)
    return Span((float(values.min()), float(values.max())), (float(places.min()), float(places.max())))


def _box(vertices, standing: bool) -> Span:
    """From quartile to quartile: where edges as wide as the box are. A notch may reach further than these."""
    whole = _span(vertices, standing)
    edges = [
        edge.along[0]
        for edge in (_span(pair, standing) for pair in zip(vertices, vertices[1:]))
        if edge.along[0] == edge.along[1] and edge.width == whole.width
    ]
    return Span((min(edges), max(edges)), whole.across) if len(edges) > 1 else whole


def _stands(vertices, lines) -> bool:
    """Whether the median lies across the box: it is the widest line within the box."""
    widest = {}
    for standing in (True, False):
        box = _box(vertices, standing)
        widths = [median.width / (box.width or 1) for median in _medians(box, lines, standing)]
        widest[standing] = max(widths, default=0.0)
    return widest[True] >= widest[False]


def _is_marks(line: Line2D) -> bool:
    return str(line.get_linestyle()).lower() in ("none", " ", "")


def _medians(box: Span, lines, standing: bool) -> list:
    """Lines across the box, within it; caps are among them where a whisker has no length."""
    spans = (_span(line.get_xydata(), standing) for line in lines if not _is_marks(line))
    return [
        span
        for span in spans
        if _close(span.along[0], span.along[1], box)
        and _within(span.along[0], box.along)
        and span.width > 0
        and _near(span.centre, box)
    ]


def _near(place: float, box: Span) -> bool:
    return abs(place - box.centre) <= max(box.width, 1e-12) * 1e-6


def _close(a: float, b: float, box: Span) -> bool:
    return abs(a - b) <= max(abs(box.along[1] - box.along[0]), 1e-12) * 1e-9


def _within(value: float, extent: tuple) -> bool:
    slack = max(abs(extent[1] - extent[0]), 1e-12) * 1e-9
    return extent[0] - slack <= value <= extent[1] + slack


def _numbers(box: Span, lines, standing: bool) -> dict:
    first, third = box.along
    lowest, highest, marks = first, third, []
    for line in lines:
        span = _span(line.get_xydata(), standing)
        if not (_near(span.across[0], box) and _near(span.across[1], box)):
            continue
        if _is_marks(line):
            marks.append(line.get_ydata() if standing else line.get_xdata())
        elif len(line.get_xdata()) == 2:
            lowest, highest = min(lowest, span.along[0]), max(highest, span.along[1])
    median = max(_medians(box, lines, standing), key=lambda span: span.width, default=None)
    return {
        "min": lowest,
        "first_quartile": first,
        "median": None if median is None else median.along[0],
        "third_quartile": third,
        "max": highest,
        # The mark of a mean is drawn before those of the outliers.
        "outliers": [float(value) for value in (marks or [[]])[-1] if not lowest <= value <= highest],
    }


def _name(box: Span, at: int, count: int, names: list, places: list) -> str:
    if len(names) == count:
        return names[at]
    nearest = min(range(len(places)), key=lambda index: abs(places[index] - box.centre), default=None)
    return "" if nearest is None else names[nearest]
