"""Forms of output: escaped text, tables for people, JSON records for programs.

Import from the modules themselves; by way of this package only what few calls of a command come to.
"""

from trace_store.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.render.changes import diff_lines
    from trace_cli.render.graph import Drawing
    from trace_cli.render.structure import json_value, to_json

__all__ = ["Drawing", "diff_lines", "json_value", "to_json"]

__getattr__ = door(
    __name__,
    {
        "Drawing": "graph",
        "diff_lines": "changes",
        "json_value": "structure",
        "to_json": "structure",
    },
)
