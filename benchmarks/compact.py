"""Messages as compact JSON and back: by orjson as one would do it, or by the standard library where it is missing."""

from __future__ import annotations

from benchmarks.model import Turn

try:
    import orjson

    PACKAGE = "orjson"

    def dumps(turn: Turn) -> bytes:
        """Return a message as JSON."""
        data: bytes = orjson.dumps(turn)
        return data

    def loads(data: bytes) -> Turn:
        """Return the message of JSON."""
        turn: Turn = orjson.loads(data)
        return turn

except ImportError:
    import json

    PACKAGE = "json of the standard library"

    def dumps(turn: Turn) -> bytes:
        """Return a message as JSON."""
        return json.dumps(turn, ensure_ascii=False, separators=(",", ":")).encode()

    def loads(data: bytes) -> Turn:
        """Return the message of JSON."""
        turn: Turn = json.loads(data)
        return turn
