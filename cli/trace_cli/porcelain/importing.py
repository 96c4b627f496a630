"""`trace import`: transcripts of agent runs become branches."""

from __future__ import annotations
