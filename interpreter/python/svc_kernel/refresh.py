"""Brings a kernel up to date before a run: the sandbox's variables, its directory, and other random numbers."""

import json
import os
import time

from .randomness import reseed


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
