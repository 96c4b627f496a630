"""The user's own files, which no repository can influence.

Rule: settings are in `trace/` below the settings folder; keys and notes about one repository are in `trace/<store id>/`
below the data folder. Nothing here comes from a repository, and no other user can read it.
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
    """Return the path of a user settings file, which need not exist.

    Raises:
        StateError: the user has no settings folder.
    """
    return os.path.join(_folder(environment.config_dir, "XDG_CONFIG_HOME"), FOLDER, name)


def store_file(environment: Environment, store_id: str, name: str) -> str:
    """Return the path of a file about one repository, which need not exist.

    Args:
        environment: has the user's data folder.
        store_id: the repository's id, in hex digits.
        name: the file name.

    Raises:
        FormatError: the id is invalid. It comes from a repository's configuration and becomes part of a path.
        StateError: the user has no data folder.
    """
    if not store_id or not _HEXADECIMAL.issuperset(store_id):
        raise errors.FormatError("the configuration has no valid store_id")
    return os.path.join(_folder(environment.data_dir, "XDG_DATA_HOME"), FOLDER, store_id, name)


def _folder(path: str, variable: str) -> str:
    if not path:
        raise errors.StateError(f"no home folder; set HOME or {variable}")
    return path
