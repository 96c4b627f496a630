"""The packages and modules that users, and the commands for people, import from."""

from __future__ import annotations

PUBLIC = (
    *("trace_store", "trace_store.errors", "trace_store.base.ident"),
    "trace_store.briefing",
    *(
        "trace_store.capture",
        "trace_store.context",
        "trace_store.exporters",
        "trace_store.importers",
        "trace_store.llm",
    ),
    *(
        "trace_store.maintenance",
        "trace_store.merge",
        "trace_store.providers",
        "trace_store.secrets",
    ),
    *("trace_store.store", "trace_store.trajectories", "trace_store.web"),
    "trace_store.mcp",
)
"""A package offers the names in its `__all__`, a module all of its names. Everything deeper is private."""
