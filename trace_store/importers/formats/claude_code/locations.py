"""Where Claude Code keeps the transcripts of a project.

Rule: knows names of folders; opens no transcript.
"""

from __future__ import annotations

import os
import string

from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.importers.files import files_in

SUFFIXES = (".jsonl",)
MAXIMUM_NAME_CHARACTERS = 200
"""Claude Code cuts longer names of project folders, and adds a hash that differs between its builds."""

_KEPT = frozenset(string.ascii_letters + string.digits)


def claude_code_history(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the transcripts of a project's sessions and their subagents, sorted; none when there are none.

    Args:
        environment: says where Claude Code keeps its files.
        project_dir: the project's folder.
        disk: the access to files.
    """
    if not environment.claude_dir:
        return []
    projects = os.path.join(environment.claude_dir, "projects")
    names, _ = disk.scan(projects)
    found: list[str] = []
    wanted = {project_name(path) for path in (project_dir, os.path.realpath(project_dir))}
    for name in names:
        if any(_is_folder_of(name, project) for project in wanted):
            found += files_in(os.path.join(projects, name), disk, SUFFIXES)
    return found


def every_history(environment: Environment, disk: Disk) -> list[str]:
    """Return the transcripts of all projects, sorted within each; a project's first one is enough for its folder."""
    if not environment.claude_dir:
        return []
    return files_in(os.path.join(environment.claude_dir, "projects"), disk, SUFFIXES)


def project_name(path: str) -> str:
    """Return the name of the folder in which Claude Code keeps a project: each other character becomes a dash."""
    # Characters beyond the basic plane are two to JavaScript.
    return "".join(
        c if c in _KEPT else "-" if ord(c) < 0x10000 else "--" for c in os.path.abspath(path)
    )


def _is_folder_of(name: str, project: str) -> bool:
    if len(project) <= MAXIMUM_NAME_CHARACTERS:
        return name == project
    return name.startswith(project[:MAXIMUM_NAME_CHARACTERS])
