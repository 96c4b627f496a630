"""What becomes of a secret that is found."""

REDACT = "redact"
"""A placeholder is stored in its place."""
BLOCK = "block"
"""Nothing is stored."""
WARN = "warn"
"""It is stored, and its finding told."""
OFF = "off"
"""Nobody looks."""

MODES = (REDACT, BLOCK, WARN, OFF)
