"""Texts with halves of characters (`"\\ud83d\\ude80"`, as models write emojis): ipykernel drops each message that has one."""

from typing import Callable


def pass_halves(session) -> None:
    """Changes how the session of a kernel writes messages: two halves become their character, a single one `\ufffd`."""
    session.pack = packing(session.pack)


def packing(pack: Callable) -> Callable:
    def pack_whole(message):
        try:
            return pack(message)
        except UnicodeEncodeError:
            return pack(whole(message))

    return pack_whole


def whole(value):
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {whole(key): whole(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [whole(item) for item in value]
    return value
