"""Wedges of a pie."""

import math

from matplotlib.patches import Wedge


def wedges(axes) -> list:
    return [
        {
            "label": str(wedge.get_label()),
            "angle": rounded(abs(wedge.theta2 - wedge.theta1)),
            "radius": float(wedge.r),
        }
        for wedge in axes.patches
        if isinstance(wedge, Wedge)
    ]


def rounded(degrees: float) -> float:
    """Takes away what adding the parts of a circle left: 323.9999914 is 324."""
    if degrees == 0 or not math.isfinite(degrees):
        return float(degrees)
    digits = max(1, 8 - math.floor(math.log10(abs(degrees))))
    return float(f"{degrees:.{digits}g}")
