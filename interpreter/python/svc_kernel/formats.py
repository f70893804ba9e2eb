"""Formats of results beside those of IPython. All are JSON texts, because the server passes them on unread: a number
that another program reads and writes again may come out as another one.

Each format looks for its library among the loaded modules, so that showing a number does not import pandas.
"""

import sys

from IPython.core.formatters import BaseFormatter, catch_format_error
from IPython.utils.dir2 import get_real_method
from traitlets import ObjectName, Unicode

from .plain import dumps


class DataFormatter(BaseFormatter):
    """Data frames, and objects with `_repr_e2b_data_`."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = str

    @catch_format_error
    def __call__(self, obj):
        method = get_real_method(obj, self.print_method)
        if method is not None:
            data = method()
            return None if data is None else dumps(data, str)
        if not _is_a(obj, "pandas", "DataFrame"):
            return None
        # By position, because two columns may have one name. Values of other types are shown as text.
        columns = {str(name): obj.iloc[:, at].tolist() for at, name in enumerate(obj.columns)}
        try:
            return dumps(columns, str)
        except Exception:  # noqa: BLE001 - a frame whose values hold themselves must still be shown
            return None


class ChartFormatter(BaseFormatter):
    """Figures of matplotlib, and objects with `_repr_e2b_chart_`. A figure that is no known chart gives `{}`."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = str

    @catch_format_error
    def __call__(self, obj):
        method = get_real_method(obj, self.print_method)
        if method is not None:
            chart = method()
            return None if chart is None else dumps(chart, str)
        if not _is_a(obj, "matplotlib.figure", "Figure"):
            return None
        from .charts import chart_of

        try:
            return dumps(chart_of(obj), str)
        except Exception:  # noqa: BLE001 - any figure must still be shown as a picture
            return "{}"


class TextJsonFormatter(BaseFormatter):
    """Lists and dicts that are serialisable; others have no JSON, as the list of lines that `plot` returns."""

    format_type = Unicode("application/json")
    print_method = ObjectName("_repr_json_")
    _return_type = str

    @catch_format_error
    def __call__(self, obj):
        if isinstance(obj, (list, dict)):
            try:
                return dumps(obj)
            except (TypeError, ValueError, RecursionError):
                return None
        method = get_real_method(obj, self.print_method)
        if method is None:
            return None
        made = method()
        if isinstance(made, tuple) and len(made) == 2:
            return dumps(made[0]), made[1]
        return None if made is None else dumps(made)


def _is_a(obj, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(obj, kind)


def add_formats(display) -> None:
    """`display`: the shell's DisplayFormatter."""
    for kind in (DataFormatter, ChartFormatter, TextJsonFormatter):
        formatter = kind(parent=display)
        display.formatters[formatter.format_type] = formatter
