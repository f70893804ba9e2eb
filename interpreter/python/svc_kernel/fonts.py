"""Gives matplotlib a second font, for characters that its own font lacks: Chinese, Japanese, Korean."""

import os

# Files of Debian's font packages and the names of their families; the first that is there counts.
CANDIDATES = (
    ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", "Noto Sans CJK JP"),
    ("/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc", "WenQuanYi Zen Hei"),
    ("/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf", "Droid Sans Fallback"),
)


def add_fallback(matplotlib) -> None:
    family = next((name for path, name in CANDIDATES if os.path.exists(path)), None)
    chosen = list(matplotlib.rcParams["font.family"])
    # A font that is not there would be a warning for each text.
    if family is not None and family not in chosen:
        matplotlib.rcParams["font.family"] = [*chosen, family]
