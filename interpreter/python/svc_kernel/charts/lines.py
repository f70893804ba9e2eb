"""Points of lines and of scattered marks."""

import re

import numpy
from matplotlib.lines import Line2D

from .labels import given, position

UNNAMED = re.compile(r"^_child(\d+)$")


def is_grid_line(artist) -> bool:
    """Two points, one beside or above the other, as `axhline` and `axvline` draw."""
    if not isinstance(artist, Line2D):
        return False
    x, y = artist.get_xdata(orig=True), artist.get_ydata(orig=True)
    return len(x) == len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


def lines(axes) -> list:
    return [
        {"label": UNNAMED.sub(r"Line \1", str(line.get_label())), "points": _points(line)}
        for line in axes.get_lines()
        if not is_grid_line(line)
    ]


def _points(line) -> list:
    x, y = line.get_xdata(orig=True), line.get_ydata(orig=True)
    return [[_value(a), _value(b)] for a, b in zip(_each(x), _each(y))]


def _each(values):
    """Masked numbers are no points of a line, yet keep their place."""
    masked = numpy.ma.getmaskarray(values) if isinstance(values, numpy.ma.MaskedArray) else None
    return [None if masked is not None and masked[at] else value for at, value in enumerate(values)]


def _value(value):
    return None if value is None else given(value)


def scattered(axes) -> list:
    return [
        {
            "label": str(marks.get_label()),
            "points": [
                [position(axes.xaxis, x), position(axes.yaxis, y)]
                for x, y in numpy.ma.filled(marks.get_offsets(), numpy.nan).tolist()
            ],
        }
        for marks in axes.collections
    ]
