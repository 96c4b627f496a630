"""Claude Code: transcripts of sessions and subagents."""

from __future__ import annotations

import re
from typing import Any

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.importers.decode import ReadAt
from trace_store.importers.formats.claude_code.locations import SUFFIXES, claude_code_history
from trace_store.importers.formats.claude_code.plan import ClaudeCodePlan

__all__ = ["NAME", "SUFFIXES", "histories", "is_document", "plan", "resume", "sniff"]

NAME = "claude-code"

_MARKS = (b'"parentUuid"', b'"leafUuid"', b'"isSidechain"', b'"isSnapshotUpdate"')

# Qwen Code writes the same records with Gemini contents.
_OF_GEMINI = re.compile(rb'"message"\s*:\s*{\s*"role"\s*:\s*"(?:user|model)"\s*,\s*"parts"')


def sniff(head: bytes) -> bool:
    """Return True if the first bytes are a Claude Code transcript."""
    if head.lstrip()[:1] != b"{" or not any(mark in head for mark in _MARKS):
        return False
    return _OF_GEMINI.search(head) is None


def is_document(head: bytes) -> bool:
    """Return False: transcripts have one record a line."""
    return False


def histories(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the transcripts of a project; see `contract.Format`."""
    return claude_code_history(environment, project_dir, disk)


def plan(name: str, read_at: ReadAt) -> ClaudeCodePlan:
    """Start the plan of a file; see `contract.Format`."""
    return ClaudeCodePlan(name, read_at)


def resume(name: str, read_at: ReadAt, saved: Any) -> ClaudeCodePlan:
    """Resume a saved plan; see `contract.Format`."""
    return ClaudeCodePlan.load(name, read_at, saved)
