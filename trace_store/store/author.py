"""The author of new commits: who is writing, as the environment, the user's settings and git know it.

The first of these that is set and valid counts:

    TRACE_AUTHOR                 the environment variable
    user.name                    the user's own setting, in `trace/user.toml` of the settings folder
    git's user.name              of the work tree around the repository, else the user's or the system's
    the name of the account

Rule: a repository has no say. git's files are read without git, which would take as long as a commit. git is asked only
if one of them includes others.
"""

from __future__ import annotations

import os

from trace_store import disk, errors
from trace_store.base.environment import Environment
from trace_store.base.ident import check_author
from trace_store.disk.files import Disk, replace_file
from trace_store.disk.git import git_dir, read_text, settings_in_force
from trace_store.store import config

FILE_NAME = "user.toml"


def author_of(environment: Environment, root: str = "") -> str:
    """Return the author of new commits; `root` is the `.trace` directory, "" without one."""
    if environment.given_author is not None:
        return environment.given_author
    files = Disk()
    for name in (_own_name(environment, files), _git_name(environment, root, files)):
        if name and _is_valid(name):  # an error is slow to load
            return name
    return environment.author


def user_name(environment: Environment) -> str:
    """Return the user's own setting `user.name`; "" without one."""
    return _own_name(environment, Disk())


def set_user_name(environment: Environment, name: str | None) -> None:
    """Change the user's own setting `user.name`; None removes it.

    Raises:
        InvalidInputError: the name is empty, too long, or has control characters.
        StateError: the user has no settings folder.
        StorageError: the file cannot be written.
    """
    text = "" if name is None else f"name = {config.format_value(check_author(name.strip()))}\n"
    replace_file(
        Disk(), environment.settings_file(FILE_NAME), text.encode(), durable=False, private=True
    )


def _is_valid(name: str) -> bool:
    try:
        check_author(name)
    except errors.InvalidInputError:
        return False
    return True


def _own_name(environment: Environment, disk: Disk) -> str:
    if not environment.config_dir:
        return ""
    try:
        path = environment.settings_file(FILE_NAME)
        return str(config.parse(read_text(disk, path), path).get("name", ""))
    except errors.FormatError:
        return ""


def _git_name(environment: Environment, root: str, disk: Disk) -> str:
    """Return git's `user.name`; "" without one. The last file that sets it counts."""
    name = ""
    try:
        git = (root and git_dir(disk, root)) or ""
        for section, key, value in settings_in_force(environment, git, disk):
            if section.partition(".")[0] in ("include", "includeif"):
                return _ask_git(root or ".")
            if (section, key) == ("user", "name"):
                name = value.strip()
    except errors.StorageError:
        return name
    return name


def _ask_git(root: str) -> str:
    return (
        disk.git.ask_git(os.path.dirname(root) or ".", "config", "--get", "user.name") or ""
    ).strip()
