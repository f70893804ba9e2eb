"""Calls a function after a module was imported for the first time, so that nothing is imported before it is used."""

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import Callable


def after_import(name: str, then: Callable) -> None:
    """`then` gets the module. An error in it must not break the user's import: it is dropped."""
    if name in sys.modules:
        _call(then, sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, then))


def _call(then: Callable, module) -> None:
    try:
        then(module)
    except Exception:  # noqa: BLE001
        pass


class _Finder(MetaPathFinder):
    def __init__(self, name: str, then: Callable) -> None:
        self.name = name
        self.then = then

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        # The other finders are asked as if this one did not exist.
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return None
        spec.loader = _Loader(spec.loader, self.then)
        return spec


class _Loader(Loader):
    def __init__(self, real, then: Callable) -> None:
        self.real = real
        self.then = then

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module) -> None:
        # Tools that ask a module for its loader get the real one.
        module.__loader__ = module.__spec__.loader = self.real
        self.real.exec_module(module)
        _call(self.then, module)
