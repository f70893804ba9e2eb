"""Bars, standing and lying."""

import re

from matplotlib.container import BarContainer

from .labels import label

UNNAMED = re.compile(r"^_container(\d+)$")


def bars(axes):
    """The bars of all groups, and whether they lie."""
    groups = [container for container in axes.containers if isinstance(container, BarContainer)]
    elements, across = [], False
    for container in groups:
        group = UNNAMED.sub(r"Group \1", str(container.get_label()))
        lying = is_lying(container)
        across = across or lying
        for at, bar in enumerate(container.patches):
            value = bar.get_width() if lying else bar.get_height()
            name = _name(axes.yaxis if lying else axes.xaxis, bar, at, len(container.patches), lying)
            elements.append({"label": name, "group": group, "value": float(value)})
    return elements, across


def is_lying(container) -> bool:
    """matplotlib notes it; a container without the note lies when all its bars are equally high."""
    if container.orientation is not None:
        return container.orientation == "horizontal"
    heights = {bar.get_height() for bar in container.patches}
    return len(heights) == 1


def _name(axis, bar, at: int, count: int, lying: bool) -> str:
    """The text of the tick of this bar, else of the number where the bar stands."""
    names = label(axis)
    if len(names) == count:
        return names[at]
    centre = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
    places = list(axis.get_ticklocs())
    for place, name in zip(places, names):
        if abs(place - centre) < 1e-9 and name:
            return name
    return f"{centre:g}"
