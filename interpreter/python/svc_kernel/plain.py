"""Turns Python values into JSON text. Floats stay floats, and what JSON cannot express is null or refused."""

import datetime
import enum
import json
import math
import sys
import uuid


def dumps(value, other=None) -> str:
    """`other` turns a value of an unknown type into a known one. Raises TypeError without it, RecursionError in a loop.

    NaN and infinity become null: clients cannot read them.
    """
    return json.dumps(plain(value, other), allow_nan=False, separators=(",", ":"))


def plain(value, other=None):
    """The value as JSON's own types."""
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return plain(value.value, other)
    if isinstance(value, dict):
        return {_key(key, other): plain(item, other) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, other) for item in value]
    return _scalar(value, other)


def _scalar(value, other):
    if _is_missing(value):
        return None
    for kind in (str, int, float):
        if isinstance(value, kind):
            return plain(kind(value))
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.datetime64):
            return numpy.datetime_as_string(value)
        if isinstance(value, numpy.ndarray):
            return plain(value.tolist(), other)
        if isinstance(value, (numpy.bool_, numpy.integer, numpy.floating)):
            return plain(value.item(), other)
    if other is None:
        raise TypeError(f"{type(value).__name__} is not serialisable")
    return other(value)


def _is_missing(value) -> bool:
    pandas = sys.modules.get("pandas")
    # A pandas that is being imported has none of these names yet.
    if any(value is not None and value is getattr(pandas, name, None) for name in ("NaT", "NA")):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.datetime64) and bool(numpy.isnat(value))


def _key(key, other=None) -> str:
    if type(key) is str:
        return key
    value = plain(key, other)
    if isinstance(value, str):
        return value
    if isinstance(value, (list, dict)):
        if other is None:
            raise TypeError("a key of a dict is not serialisable")
        return str(other(key))
    return json.dumps(value)
