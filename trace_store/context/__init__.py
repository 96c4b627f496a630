"""Contexts: what a model is shown, its size in tokens, and what a provider said it used."""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.compiler import ContextCompiler

__all__ = ["ContextCompiler"]

__getattr__ = door(__name__, {"ContextCompiler": "compiler"})
