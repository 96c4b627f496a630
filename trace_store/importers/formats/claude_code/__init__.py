"""Claude Code: the transcripts that it keeps of its sessions, and those of its subagents."""

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

# Qwen Code has the same records with contents of Gemini's in them.
_OF_GEMINI = re.compile(rb'"message"\s*:\s*{\s*"role"\s*:\s*"(?:user|model)"\s*,\s*"parts"')


def sniff(head: bytes) -> bool:
    """Tell from the first bytes of a file whether it is a transcript of Claude Code."""
    if head.lstrip()[:1] != b"{" or not any(mark in head for mark in _MARKS):
        return False
    return _OF_GEMINI.search(head) is None


def is_document(head: bytes) -> bool:
    """Tell that a transcript is a record a line."""
    return False


def histories(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the transcripts of a project; see `contract.Format`."""
    return claude_code_history(environment, project_dir, disk)


def plan(name: str, read_at: ReadAt) -> ClaudeCodePlan:
    """Begin the plan of a file; see `contract.Format`."""
    return ClaudeCodePlan(name, read_at)


def resume(name: str, read_at: ReadAt, saved: Any) -> ClaudeCodePlan:
    """Go on with a saved plan; see `contract.Format`."""
    return ClaudeCodePlan.load(name, read_at, saved)
