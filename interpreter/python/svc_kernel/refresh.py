"""Brings a kernel up to date before a run: the sandbox's variables, its directory, and other random numbers."""

import json
import os
import random
import sys
import time


def refresh(text: str) -> None:
    """Takes JSON: `{"set": {name: value}, "remove": [name], "cwd": path or null, "reseed": bool}`; all are optional.

    A directory that does not exist is no error and changes nothing, as with `%cd`.
    """
    asked = json.loads(text)
    for name in asked.get("remove") or []:
        os.environ.pop(name, None)
    values = asked.get("set") or {}
    os.environ.update(values)
    if "TZ" in values or "TZ" in (asked.get("remove") or []):
        time.tzset()
    if asked.get("cwd") is not None:
        try:
            os.chdir(asked["cwd"])
        except OSError:
            pass
    if asked.get("reseed"):
        reseed()


def reseed() -> None:
    """Copies of a sandbox share the state of every generator, so they would draw the same numbers."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed()
