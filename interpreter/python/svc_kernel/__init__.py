"""What the code interpreter adds to a Python kernel: formats of results, and the refresh before a run."""

from .refresh import refresh

__all__ = ["load_ipython_extension", "refresh"]


def load_ipython_extension(shell) -> None:
    """Called once by IPython, before the first cell."""
    from . import fonts, pictures
    from .formats import add_formats
    from .imports import after_import

    add_formats(shell.display_formatter)
    after_import("matplotlib", fonts.add_fallback)
    after_import("PIL.Image", pictures.display_saved)
