"""New random numbers for a process whose memory may be a copy: copies share the state of every generator.

As after a fork of the process, generators that belong to a module start again, and those that a program made itself do not.
"""

import ctypes
import os
import random
import re
import sys
import tempfile
from typing import Any, Callable

LIBCRYPTO = re.compile(r"/libcrypto[.-][^/]*$")
ENTROPY_BYTES = 48


def reseed() -> None:
    # Its names after a fork are others too.
    tempfile._name_sequence = None
    random.seed()
    for name, seed in (("numpy.random", "seed"), ("torch", "seed")):
        function = getattr(sys.modules.get(name), seed, None)
        if function is not None:
            function()
    for path in loaded_libcryptos():
        add_entropy(lambda: ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW))
    # The package `cryptography` has OpenSSL inside.
    add_entropy(lambda: sys.modules["cryptography.hazmat.bindings._rust"]._openssl.lib)


class LoadedLibrary(ctypes.Structure):
    """The first fields of what the C library tells of each library that is loaded."""

    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(LoadedLibrary), ctypes.c_size_t, ctypes.c_void_p)


def loaded_libcryptos() -> list[str]:
    """OpenSSL of `ssl` and `hashlib`, and what packages brought with them: each has a generator of its own.

    Under the names by which they were loaded: under another path of the same file the loader compares devices and inodes,
    and those of a copy's files are others than it remembers.
    """
    names = set()

    def visit(library: Any, _size: int, _data: Any) -> int:
        names.add(os.fsdecode(library.contents.name or b""))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(VISIT(visit), None)
    return sorted(name for name in names if LIBCRYPTO.search(name))


def add_entropy(library: Callable[[], Any]) -> None:
    try:
        add = library().RAND_add
        if isinstance(add, ctypes._CFuncPtr):
            add.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_double)
        add(os.urandom(ENTROPY_BYTES), ENTROPY_BYTES, float(ENTROPY_BYTES))
    except (AttributeError, KeyError, OSError):
        # It is not loaded, its file was replaced since, or a library of another maker has this name.
        pass
