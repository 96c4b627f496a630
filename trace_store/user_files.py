"""The user's own files, outside every repository: what a repository must not decide about itself.

Rule: settings (whom to trust, rules of the user's own) stand in `trace/` under the folder for settings, keys and what
was noted about one repository in `trace/<store id>/` under the folder for data. Nothing read here comes from a
repository, and nothing here is readable by other users.
"""

from __future__ import annotations

import os

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.environment import Environment

FOLDER = "trace"
_HEXADECIMAL = frozenset("0123456789abcdef")


def settings_file(environment: Environment, name: str) -> str:
    """Return the path of one of the user's settings files, which need not exist.

    Raises:
        StateError: the user has no folder for settings.
    """
    return os.path.join(_folder(environment.config_dir, "XDG_CONFIG_HOME"), FOLDER, name)


def store_file(environment: Environment, store_id: str, name: str) -> str:
    """Return the path of a file about one repository, which need not exist.

    Args:
        environment: says where the user's data are.
        store_id: the repository's id, in hexadecimal characters.
        name: the file.

    Raises:
        FormatError: it is no id: the configuration of a repository, which may come from a stranger, tells it, and it
            becomes a path.
        StateError: the user has no folder for data.
    """
    if not store_id or not _HEXADECIMAL.issuperset(store_id):
        raise errors.FormatError("the configuration has no valid store_id")
    return os.path.join(_folder(environment.data_dir, "XDG_DATA_HOME"), FOLDER, store_id, name)


def _folder(path: str, variable: str) -> str:
    if not path:
        raise errors.StateError(f"there is no home folder; set HOME or {variable}")
    return path
