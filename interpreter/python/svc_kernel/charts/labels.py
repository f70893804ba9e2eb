"""Names, units, ticks and scales of axes."""

import datetime
import math
import re

from matplotlib import dates

UNIT = re.compile(r"\s\(([^()]*)\)|\[([^\[\]]*)\]")
DATES = (dates.DateConverter, dates._SwitchableDateConverter)


def plane(axes, swapped: bool = False) -> dict:
    """Names and units of both axes; `swapped` exchanges the two, for bars that lie."""
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    if swapped:
        x, y = y, x
    return {"x_label": x, "y_label": y, "x_unit": unit(x), "y_unit": unit(y)}


def unit(name):
    """What stands in `(…)` after a blank, or in `[…]`; None if there is none."""
    found = UNIT.search(name or "")
    return (found.group(1) or found.group(2) or None) if found else None


def label(axis) -> list:
    """The texts at the ticks."""
    return [text.get_text() for text in axis.get_ticklabels()]


def ticks(axis) -> list:
    return [position(axis, tick) for tick in axis.get_ticklocs()]


def is_dated(axis) -> bool:
    # `converter` is going away; `get_converter` came with matplotlib 3.10, which users install.
    return isinstance(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter, DATES)


def scale(axis) -> str:
    if is_dated(axis):
        return "datetime"
    if axis.get_scale() != "linear":
        return axis.get_scale()
    places, names = list(axis.get_ticklocs()), label(axis)
    if places and all(place == at and name != str(at) for at, (place, name) in enumerate(zip(places, names))):
        return "categorical"
    return "linear"


def position(axis, value):
    """A number of the axis as a float, or as an ISO text where the axis has dates."""
    if not is_dated(axis):
        return float(value)
    # pandas counts periods in their own unit, which the axis names.
    frequency = getattr(axis, "freq", None)
    if frequency is not None:
        from pandas import Period

        return Period(ordinal=int(value), freq=frequency).to_timestamp().isoformat()
    return dates.num2date(value).isoformat() if math.isfinite(value) else None


def given(value):
    """A value as the program gave it: dates as ISO texts, names as they are, numbers as floats."""
    if hasattr(value, "to_timestamp"):
        value = value.to_timestamp()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if type(value).__name__ == "datetime64":
        from numpy import datetime_as_string

        return str(datetime_as_string(value, unit="s"))
    return value if isinstance(value, str) else float(value)
