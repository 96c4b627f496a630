"""Modes: what happens to a secret."""

REDACT = "redact"
"""A placeholder is stored instead."""
BLOCK = "block"
"""Nothing is stored, and an error is raised."""
WARN = "warn"
"""It is stored and reported."""
OFF = "off"
"""Nothing is checked."""

MODES = (REDACT, BLOCK, WARN, OFF)
