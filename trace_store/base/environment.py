"""Environment variables that Trace uses, read once, and the user's own files.

Rule: no other module of the library reads the process's environment. A caller can build its own Environment.

Rule: settings are in `trace/` below the settings folder; keys and notes about one repository are in `trace/<store id>/`
below the data folder; what can be computed again is in `trace/` below the cache folder. Nothing there comes from a
repository, and no other user can read it.
"""

from __future__ import annotations

import os

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_EDITORS = ("TRACE_EDITOR", "GIT_EDITOR", "VISUAL", "EDITOR")
_LIST_EDITORS = ("TRACE_EDITOR", "GIT_SEQUENCE_EDITOR", *_EDITORS[1:])
_ACCOUNTS = ("USER", "LOGNAME", "USERNAME")
_FOLDER = "trace"
_HEXADECIMAL = frozenset("0123456789abcdef")
OWN_ID = (os.geteuid(),) if hasattr(os, "geteuid") else None
DISCOVERY_OFF = frozenset({"off", "0", "no", "false", "never"})


class Environment:
    """Settings from the environment; immutable.

    Attributes:
        trace_dir: the `.trace` directory to use (`TRACE_DIR`), or None to search for one.
        discovery: whether parent folders are searched (`TRACE_DISCOVERY=off` disables it).
        given_author: the author of new commits (`TRACE_AUTHOR`), or None.
        home: the home folder, or "".
        claude_dir: where Claude Code keeps its sessions (`CLAUDE_CONFIG_DIR`, else `~/.claude`), or "".
        codex_dir: where Codex keeps its sessions (`CODEX_HOME`, else `~/.codex`), or "".
        gemini_dir: where Gemini CLI keeps its chats (`.gemini` in `GEMINI_CLI_HOME`, else `~/.gemini`), or "".
        copilot_dir: where Copilot CLI keeps its sessions (`COPILOT_HOME`, else `~/.copilot`), or "".
        config_dir: the folder for settings (`XDG_CONFIG_HOME`, else `~/.config`), or "".
        data_dir: the folder for data (`XDG_DATA_HOME`, else `~/.local/share`), or "".
        cache_dir: the folder for what can be computed again (`XDG_CACHE_HOME`, else `~/.cache`), or "".
        opencode_database: opencode's database (`OPENCODE_DB`), or "" for those in `data_dir`.
        editor: the user's editor (`TRACE_EDITOR`, else `GIT_EDITOR`, `VISUAL` or `EDITOR`), or "".
        list_editor: the editor for todo lists (`TRACE_EDITOR`, else `GIT_SEQUENCE_EDITOR`, else as `editor`), or "".
        pager: the user's pager (`TRACE_PAGER`, else `GIT_PAGER`); "" for none, None if neither is set.
        other_pager: the fallback pager (`PAGER`, else `less`).
        color: whether to colour output (not with `NO_COLOR` or `TERM=dumb`).
        secrets: all variables, from which `secrets.guard` picks the secret ones; hidden from `repr`.
        debug: whether unexpected errors show a traceback (`TRACE_DEBUG=1`).
        user_ids: user ids that own "our" files: the effective user, and under sudo also the caller; None if the
            system has no user ids.
    """

    def __init__(
        self,
        *,
        trace_dir: str | None = None,
        discovery: bool = True,
        author: str | None = "unknown",
        account: str = "",
        home: str = "",
        claude_dir: str = "",
        codex_dir: str = "",
        gemini_dir: str = "",
        copilot_dir: str = "",
        config_dir: str = "",
        data_dir: str = "",
        cache_dir: str = "",
        opencode_database: str = "",
        editor: str = "",
        list_editor: str | None = None,
        pager: str | None = "",
        other_pager: str = "less",
        color: bool = False,
        debug: bool = False,
        user_ids: tuple[int, ...] | None = OWN_ID,
        secrets: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.trace_dir = trace_dir
        self.discovery = discovery
        self.given_author = author
        self._account = account
        self.home = home
        self.claude_dir = claude_dir
        self.codex_dir = codex_dir
        self.gemini_dir = gemini_dir
        self.copilot_dir = copilot_dir
        self.config_dir = config_dir
        self.data_dir = data_dir
        self.cache_dir = cache_dir
        self.opencode_database = opencode_database
        self.editor = editor
        self.list_editor = editor if list_editor is None else list_editor
        self.pager = pager
        self.other_pager = other_pager
        self.color = color
        self.debug = debug
        self.user_ids = user_ids
        self.secrets = secrets

    @property
    def author(self) -> str:
        """`given_author`, else the account name; `store.author` also asks the user's settings and git.

        Computed on first use, because looking up the account name is slow.
        """
        if self.given_author is not None:
            return self.given_author
        self._account = self._account or _account()
        return self._account

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "secrets": tuple(self.secrets)}  # for another process

    def variables(self, *names: str) -> dict[str, str]:
        """Return the given variables that are set and not empty."""
        return {name: value for name, value in self.secrets if value and name in names}

    def settings_file(self, name: str) -> str:
        """Return the path of a user settings file, which need not exist.

        Raises:
            StateError: the user has no settings folder.
        """
        return os.path.join(_existing(self.config_dir, "XDG_CONFIG_HOME"), _FOLDER, name)

    def data_file(self, *names: str) -> str:
        """Return the path of a file in the user's data folder, which need not exist.

        Raises:
            StateError: the user has no data folder.
        """
        return os.path.join(_existing(self.data_dir, "XDG_DATA_HOME"), _FOLDER, *names)

    def cache_folder(self) -> str:
        """Return the folder for what can be computed again, which need not exist; "" for none."""
        return os.path.join(self.cache_dir, _FOLDER) if self.cache_dir else ""

    def store_file(self, store_id: str, name: str) -> str:
        """Return the path of a file about one repository, which need not exist.

        Args:
            store_id: the repository's id, in hex digits.
            name: the file name.

        Raises:
            FormatError: the id is invalid. It comes from a repository's configuration and becomes part of a path.
            StateError: the user has no data folder.
        """
        if not store_id or not _HEXADECIMAL.issuperset(store_id):
            raise errors.FormatError("the configuration has no valid store_id")
        return self.data_file(store_id, name)

    def __repr__(self) -> str:
        shown = [
            f"{name.removeprefix('_')}={each!r}"
            for name, each in vars(self).items()
            if name != "secrets"
        ]
        return f"Environment({', '.join(shown)})"

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None) -> Environment:
        """Return the environment of this process, or of the given variables."""
        values = os.environ if variables is None else variables
        home = values.get("HOME") or values.get("USERPROFILE") or ""
        if not home and variables is None:
            expanded = os.path.expanduser("~")
            home = "" if expanded == "~" else expanded

        gemini_home = values.get("GEMINI_CLI_HOME") or home

        def first_of(names: Iterable[str]) -> str:
            return next(filter(None, (values.get(n, "").strip() for n in names)), "")

        def folder(variable: str, *below_home: str) -> str:
            return values.get(variable) or (os.path.join(home, *below_home) if home else "")

        return cls(
            trace_dir=values.get("TRACE_DIR") or None,
            discovery=values.get("TRACE_DISCOVERY", "").strip().lower() not in DISCOVERY_OFF,
            author=first_of(("TRACE_AUTHOR",)) or None,
            account=first_of(_ACCOUNTS),
            home=home,
            claude_dir=folder("CLAUDE_CONFIG_DIR", ".claude"),
            codex_dir=folder("CODEX_HOME", ".codex"),
            gemini_dir=os.path.join(gemini_home, ".gemini") if gemini_home else "",
            copilot_dir=folder("COPILOT_HOME", ".copilot"),
            config_dir=folder("XDG_CONFIG_HOME", ".config"),
            data_dir=folder("XDG_DATA_HOME", ".local", "share"),
            cache_dir=folder("XDG_CACHE_HOME", ".cache"),
            opencode_database=values.get("OPENCODE_DB", ""),
            editor=first_of(_EDITORS),
            list_editor=first_of(_LIST_EDITORS),
            pager=next((values[n] for n in ("TRACE_PAGER", "GIT_PAGER") if n in values), None),
            other_pager=values.get("PAGER", "less"),
            color=not values.get("NO_COLOR") and values.get("TERM") != "dumb",
            debug=values.get("TRACE_DEBUG", "") not in ("", "0"),
            user_ids=_user_ids(values.get("SUDO_UID", "")),
            secrets=values.items(),
        )


def _user_ids(sudo_uid: str) -> tuple[int, ...] | None:
    """Return the user ids that own "our" files.

    SUDO_UID is trusted only for root, because any user can set it.
    """
    own = (os.geteuid(),) if hasattr(os, "geteuid") else None
    if own == (0,) and sudo_uid.isascii() and sudo_uid.isdecimal() and len(sudo_uid) < 11:
        return (0, int(sudo_uid))
    return own


def _existing(folder: str, variable: str) -> str:
    if not folder:
        raise errors.StateError(f"no home folder; set HOME or {variable}")
    return folder


def _account() -> str:
    try:
        import pwd  # POSIX only

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError, AttributeError):
        return "unknown"


def variables_with(**more: str) -> dict[str, str]:
    """Return the variables of this process and some more, for a program that it starts."""
    return {**os.environ, **more}
