"""Starts ipykernel for the code interpreter: `launch.py -f CONNECTION_FILE`.

The server gives directory, environment and connection file; this file owns the settings that results depend on.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_server() -> None:
    """A kernel whose server was killed would wait for ever, and hold its memory."""
    server = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != server:
        sys.exit(1)


def settings():
    from traitlets.config import Config

    config = Config()
    # Copies of a sandbox would write to one open history file, and tracebacks go to programs, not to terminals.
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    # Without its limit of 1000 items, so that the text of a sequence is whole.
    config.PlainTextFormatter.max_seq_length = 0
    config.InteractiveShellApp.extensions = ["svc_kernel"]
    config.IPKernelApp.log_level = "ERROR"
    return config


def main() -> None:
    end_with_server()
    os.umask(0o022)
    # Behind everything of the user, so that no name of ours hides a module.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here] + [here]
    # The debugger costs 11 MB and needs connections of its own. A program can still import it.
    sys.modules["debugpy"] = None
    from ipykernel.kernelapp import IPKernelApp

    del sys.modules["debugpy"]
    class Kernel(IPKernelApp):
        def log_connection_info(self) -> None:
            """Says nothing: the text is for a person who starts a kernel in a terminal."""

    app = Kernel.instance(config=settings())
    app.initialize(sys.argv[1:])
    from svc_kernel.halves import pass_halves

    pass_halves(app.session)
    app.start()


if __name__ == "__main__":
    main()
