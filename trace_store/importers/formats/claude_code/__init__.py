"""Claude Code: transcripts of sessions and subagents."""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Mapping
from typing import Any

from trace_store.base.environment import Environment
from trace_store.contracts.agent_facts import CALL, PURPOSE
from trace_store.disk.files import Disk, read_file
from trace_store.errors import StorageError
from trace_store.importers.formats.claude_code.plan import ClaudeCodePlanner
from trace_store.importers.input_files import ReadAt, files_in

__all__ = [
    "NAME",
    "SUFFIXES",
    "facts_of_agent",
    "histories",
    "is_document",
    "plan",
    "resume",
    "sniff",
]
NAME = "claude-code"
_MARKS = (b'"parentUuid"', b'"leafUuid"', b'"isSidechain"', b'"isSnapshotUpdate"')
# Qwen Code writes the same records with Gemini contents.
_OF_GEMINI = re.compile(rb'"message"\s*:\s*{\s*"role"\s*:\s*"(?:user|model)"\s*,\s*"parts"')
SUFFIXES = (".jsonl",)
MAXIMUM_NAME_CHARACTERS = 200
"""Claude Code truncates longer folder names and adds a hash that differs between builds."""
MAXIMUM_FACTS_BYTES = 1 << 20
AGENT_FACTS_SUFFIX = ".meta.json"
"""The end of the name of a file about a subagent, in place of that of its transcript."""
_KEPT = frozenset(string.ascii_letters + string.digits)


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


def plan(name: str, read_at: ReadAt) -> ClaudeCodePlanner:
    """Return the planner of a file; see `contract.Format`."""
    return ClaudeCodePlanner(name, read_at)


def resume(name: str, read_at: ReadAt, saved: Any) -> ClaudeCodePlanner:
    """Return a planner that resumes from saved state; see `contract.Format`."""
    return ClaudeCodePlanner.load(name, read_at, saved)


def claude_code_history(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the transcripts of a project's sessions and subagents, sorted.

    Args:
        environment: locates Claude Code's files.
        project_dir: the project folder.
        disk: the file access to use.
    """
    if not environment.claude_dir:
        return []
    projects = os.path.join(environment.claude_dir, "projects")
    names, _ = disk.scan(projects)
    paths: list[str] = []
    wanted = {project_name(path) for path in (project_dir, os.path.realpath(project_dir))}
    for name in names:
        if any(_is_folder_of(name, project) for project in wanted):
            paths += files_in(os.path.join(projects, name), disk, SUFFIXES)
    return paths


def facts_of_agent(path: str, disk: Disk) -> Mapping[str, str]:
    """Return the call and the purpose of a subagent, from `agent-ID.meta.json` beside its transcript.

    The file names the call (`toolUseId`), the type and the task of the agent. Older versions wrote none.
    """
    stem, _ = os.path.splitext(path)
    try:
        known = json.loads(
            read_file(disk, stem + AGENT_FACTS_SUFFIX, limit=MAXIMUM_FACTS_BYTES) or b"{}"
        )
    except (StorageError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    told = {CALL: known.get("toolUseId"), PURPOSE: known.get("description")}
    return {key: text for key, text in told.items() if isinstance(text, str) and text}


def every_history(environment: Environment, disk: Disk) -> list[str]:
    """Return the transcripts of all projects, sorted within each."""
    if not environment.claude_dir:
        return []
    return files_in(os.path.join(environment.claude_dir, "projects"), disk, SUFFIXES)


def project_name(path: str) -> str:
    """Return Claude Code's folder name of a project: other characters become dashes."""
    # JavaScript counts characters beyond the basic plane twice.
    return "".join(
        c if c in _KEPT else "-" if ord(c) < 0x10000 else "--" for c in os.path.abspath(path)
    )


def _is_folder_of(name: str, project: str) -> bool:
    if len(project) <= MAXIMUM_NAME_CHARACTERS:
        return name == project
    return name.startswith(project[:MAXIMUM_NAME_CHARACTERS])
