"""Lazy imports: a package loads its modules when they are first used.

    __getattr__ = submodules(__name__)     # merge.rebase.rebase(...) loads merge/rebase.py

    __getattr__ = names(__name__, HOMES)     # from trace_store.llm import Prompt loads llm/contract.py

A command's start costs as much as the modules that it loads. A caller that needs a module on a rare path imports the
package and goes through it; everybody else imports names from the module that defines them. A public package offers
names, in `__all__`, which users import from it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType


def submodules(package: str) -> Callable[[str], ModuleType]:
    """Return a package's `__getattr__`, which imports the requested submodule.

    The returned function raises AttributeError if the package has no such module.
    """

    def load(name: str) -> ModuleType:
        full = f"{package}.{name}"
        try:
            __import__(full)
        except ModuleNotFoundError as error:
            if error.name != full:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        return sys.modules[full]

    return load


def names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which imports a name from its module, or else the requested submodule.

    Args:
        package: the package's `__name__`.
        homes: for each name that the package offers, the module in it that defines it.
    """
    submodule = submodules(package)

    def load(name: str) -> object:
        home = homes.get(name)
        if home is None:
            return submodule(name)
        module = f"{package}.{home}"
        __import__(module)
        value: object = getattr(sys.modules[module], name)
        setattr(sys.modules[package], name, value)
        return value

    return load
