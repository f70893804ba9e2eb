"""Describes a matplotlib figure as data, so that a client can draw it itself."""

from .axes import axes_chart

__all__ = ["chart_of"]


def chart_of(figure) -> dict:
    """A chart; of several axes a `superchart`, of none with data an empty dict."""
    filled = [axes for axes in figure.axes if axes.has_data()]
    if not filled:
        return {}
    charts = [axes_chart(axes) for axes in filled]
    if len(charts) == 1:
        return charts[0]
    # `get_suptitle` came with matplotlib 3.8.
    title = figure._suptitle
    return {"type": "superchart", "title": (title.get_text() if title else None) or None, "elements": charts}
