"""Decides which chart a pair of axes is, by its artists, and describes it."""

from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Rectangle, Wedge
from matplotlib.text import Text

from .bars import bars
from .boxes import boxes
from .labels import label, plane, scale, ticks
from .lines import is_grid_line, lines, scattered
from .wedges import wedges


def axes_chart(axes) -> dict:
    kind = kind_of(axes)
    title = {"title": axes.get_title() or None}
    if kind == "pie":
        return {"type": kind, **title, "elements": wedges(axes)}
    if kind == "bar":
        elements, across = bars(axes)
        return {"type": kind, **title, **plane(axes, swapped=across), "elements": elements}
    if kind == "box_and_whisker":
        return {"type": kind, **title, **plane(axes), "elements": boxes(axes)}
    if kind in ("line", "scatter"):
        elements = lines(axes) if kind == "line" else scattered(axes)
        return {"type": kind, **title, **plane(axes), **_ticks(axes), "elements": elements}
    return {"type": "unknown", **title, "elements": []}


def kind_of(axes) -> str:
    artists = [artist for artist in axes._children if not isinstance(artist, Text)]
    if all(isinstance(artist, Line2D) for artist in artists):
        return "line"
    if all(isinstance(artist, (PathPatch, Line2D)) for artist in artists):
        return "box_and_whisker"
    drawn = [artist for artist in artists if not is_grid_line(artist)]
    for kind, name in ((PathCollection, "scatter"), (Wedge, "pie"), (Rectangle, "bar")):
        if all(isinstance(artist, kind) for artist in drawn):
            return name
    return "unknown"


def _ticks(axes) -> dict:
    return {
        f"{name}_{field}": value
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis))
        for field, value in (("ticks", ticks(axis)), ("tick_labels", label(axis)), ("scale", scale(axis)))
    }
