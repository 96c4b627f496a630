"""Packages that import what they offer when it is first asked for.

    __getattr__ = door(__name__, {"Packs": "packs"})

Rule: a door changes when a module is imported, and nothing else: what it offers is the module's own. It is for what few
commands come to, since a start costs as much as the modules that it loads.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType


def door(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package, given the module in it that each name comes from."""

    def enter(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"{package}.{home}"
        __import__(module)
        value: object = getattr(sys.modules[module], name)
        setattr(sys.modules[package], name, value)
        return value

    return enter


def modules(package: str) -> Callable[[str], ModuleType]:
    """Return what imports a module of a package, given its name below it, for a table whose rows are modules."""

    def enter(home: str) -> ModuleType:
        name = f"{package}.{home}"
        __import__(name)
        return sys.modules[name]

    return enter
