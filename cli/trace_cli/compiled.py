"""Trace's own modules, taken straight from their compiled files: what a console script does first.

The interpreter's finder asks for each module which of its path entries and of five suffixes it may be, and looks at its
files a dozen times. A command loads some fifty modules, so that took a third of its time.

Rule: what this finder is not sure of it leaves to the interpreter: a module that is not compiled, or was changed since,
that comes out of an archive, or is none. What it loads is what the interpreter would have loaded.
"""

from __future__ import annotations

import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from importlib.util import MAGIC_NUMBER
    from types import ModuleType
else:
    # The same, from where these take them.
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader

PACKAGES = ("trace_cli.", "trace_store.")
MAXIMUM_BYTES = 1 << 16
"""Larger ones are left to the interpreter."""
_HEAD = MAGIC_NUMBER + bytes(4)
"""What a compiled file begins with that goes by the time and the size of its source, which follow."""
_HEAD_BYTES = 16
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)


class CompiledModule(SourceFileLoader):
    """Loads one module whose compiled file has been read."""

    def __init__(self, name: str, source: str, place: str, compiled: bytes) -> None:
        self.name = name
        self.path = source
        self.place = place
        self._compiled = compiled

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code in it."""
        code = loads(memoryview(self._compiled)[_HEAD_BYTES:])
        _fix_co_filename(code, self.path)
        exec(code, module.__dict__)


class CompiledModules:
    """Finds modules of Trace, but not its packages themselves; an entry of `sys.meta_path`.

    Attributes:
        ending: what comes after the name of a module in that of its compiled file.
    """

    __slots__ = ("ending",)

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what a module is loaded from, or None when the interpreter has to look."""
        if path is None or not name.startswith(PACKAGES):
            return None
        folder, stem = path[0], name[name.rindex(".") + 1 :]
        loader = self._module(name, folder, stem)
        inner = None
        if loader is None:
            inner = f"{folder}{os.sep}{stem}"
            loader = self._module(name, inner, "__init__")
            if loader is None:
                return None
        spec = ModuleSpec(name, loader, origin=loader.path)
        spec.has_location = True  # which gives the module its __file__
        spec.cached = loader.place  # it would be worked out otherwise, at some length
        if inner is not None:
            spec.submodule_search_locations = [inner]
        return spec

    def _module(self, name: str, folder: str, stem: str) -> CompiledModule | None:
        source = f"{folder}{os.sep}{stem}.py"
        place = f"{folder}{os.sep}__pycache__{os.sep}{stem}{self.ending}"
        try:
            found = os.stat(source)
            file = os.open(place, _FLAGS)
            try:
                compiled = os.read(file, MAXIMUM_BYTES)
            finally:
                os.close(file)
        except OSError:
            return None
        traits = (int(found.st_mtime) & 0xFFFFFFFF) | (found.st_size & 0xFFFFFFFF) << 32
        head = _HEAD + traits.to_bytes(8, "little")
        if not compiled.startswith(head) or len(compiled) == MAXIMUM_BYTES:
            return None
        return CompiledModule(name, source, place, compiled)


def install() -> None:
    """Load Trace's modules so from now on, when this one was found compiled beside its source."""
    spec = sys.modules[__name__].__spec__
    if (
        spec is None
        or type(spec.loader) is not SourceFileLoader
        or not (spec.origin and spec.cached)
    ):
        return
    folder, _, name = spec.origin.rpartition(os.sep)
    beside = f"{folder}{os.sep}__pycache__{os.sep}{name.removesuffix('.py')}"
    if spec.cached.startswith(beside):
        sys.meta_path.insert(0, CompiledModules(spec.cached[len(beside) :]))
