"""`trace completion`: shell completion of commands, branches and addresses.

Rule: completion never writes. Without a repository it completes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from shlex import quote

from typer._completion_shared import get_completion_script

from trace_cli.arguments import Argument, takes
from trace_cli.commands import BY_NAME, TOPICS
from trace_cli.porcelain.common import entry_of
from trace_cli.porcelain.config import USER_NAME
from trace_cli.render.escape import one_line
from trace_cli.runtime import Invocation
from trace_store import Commit, Environment, ObjectId, Repo, Store, llm
from trace_store.contracts.ref_names import SESSIONS
from trace_store.errors import TraceError
from trace_store.objects.message import ROLES
from trace_store.providers import FORMATS
from trace_store.secrets import MODES
from trace_store.store.config import KNOWN_KEYS

PROGRAM = "trace"


@takes(Argument("SHELL", "shell", "bash, zsh or fish", choices=("bash", "zsh", "fish")))
def completion(invocation: Invocation, *, shell: str) -> None:
    """Print a shell completion script.

    Add one of these lines to `~/.bashrc`, `~/.zshrc` (after `compinit`) or `~/.config/fish/config.fish`. It completes
    commands, options, formats, settings, branches, tags, ids of sessions and commits, and the addresses of HEAD's
    latest messages. zsh and fish also show the text of each message.

        eval "$(trace completion bash)"
        eval "$(trace completion zsh)"
        trace completion fish | source
    """
    variable = f"_{PROGRAM.upper()}_COMPLETE"
    script = get_completion_script(prog_name=PROGRAM, complete_var=variable, shell=shell)
    invocation.line(script.strip())


PLACES = ("refs/heads/", "refs/tags/")
MAXIMUM_ADDRESSES = 40
MAXIMUM_COMMITS = 400
"""How many commits are searched: a key press should not read a long history."""
SHOWN_CHARACTERS = 60
SHORT_DIGITS = 12

_HARMLESS = str.maketrans({'"': "”", "'": "’", "`": "‘", "$": "＄", "\\": "＼"})
"""zsh evaluates the descriptions of completions, and these are untrusted text."""


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion function for fixed names."""
    known = tuple(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


def revisions(incomplete: str) -> list[str]:
    """Complete HEAD, the short names of branches and tags, and begun ids of sessions and commits."""
    named = _shown(_names(PLACES, "HEAD"), incomplete)
    return [*named, *session_ids(incomplete), *commits(incomplete)] if incomplete else named


def session_ids(incomplete: str) -> list[str]:
    """Complete the ids of sessions."""
    ids = (name.split("/")[1] for name in _names((SESSIONS,)) if "/" in name)
    return _shown(dict.fromkeys(ids), incomplete)


def sessions(incomplete: str) -> list[str]:
    """Complete the ids of sessions, and the short names of branches."""
    return list(dict.fromkeys([*session_ids(incomplete), *branches(incomplete)]))


def commits(incomplete: str) -> list[str]:
    """Complete the ids of commits from their first four digits or more."""
    if not ObjectId.is_prefix(incomplete):
        return []
    try:
        with _opened() as store:
            found = store.objects.resolve_prefix(incomplete)
            repo = Repo(store, environment=Environment.read())
            ids = [oid for oid in found if isinstance(repo.get(oid), Commit)]
            return [oid.short(max(SHORT_DIGITS, len(incomplete))) for oid in ids]
    except (TraceError, OSError):
        return []


def settings(incomplete: str) -> list[str]:
    """Complete the names of settings: of the repository, and the user's own."""
    own = [USER_NAME, *(f"model.{name}" for name in llm.KEYS)]
    return one_of([*sorted(KNOWN_KEYS), *own])(incomplete)


def commands(incomplete: str) -> list[str]:
    """Complete the names of commands and topics, for `trace help`."""
    return one_of([*BY_NAME, *TOPICS])(incomplete)


def branches(incomplete: str) -> list[str]:
    """Complete the short names of branches."""
    return _shown(_names(PLACES[:1]), incomplete)


def checkpoints(incomplete: str) -> list[str]:
    """Complete the names of checkpoints."""
    return _shown(_names(("refs/checkpoints/",)), incomplete)


def trajectories(incomplete: str) -> list[str]:
    """Complete the ids of trajectories."""
    return _shown(_names(("refs/trajectories/",)), incomplete)


def refs(incomplete: str) -> list[str]:
    """Complete HEAD and the full names of refs."""
    return _shown(_names(("",), "HEAD"), incomplete)


def addresses(incomplete: str) -> list[tuple[str, str]]:
    """Complete addresses of HEAD's latest messages, newest first, with their texts."""
    found: list[tuple[str, str]] = []
    try:
        with _opened() as store:
            repo, revision = Repo(store, environment=Environment.read()), "HEAD"
            for _ in range(MAXIMUM_COMMITS):
                entry = entry_of(repo, revision)
                if any(str(each).startswith(incomplete) for each in entry.addresses):
                    found += [
                        (str(address), one_line(line).translate(_HARMLESS))
                        for address, line in reversed(entry.message_lines(SHOWN_CHARACTERS))
                        if str(address).startswith(incomplete)
                    ]
                if len(found) >= MAXIMUM_ADDRESSES or not entry.parents:
                    break
                revision = str(entry.parents[0])
    except (TraceError, OSError):
        return []
    return found[:MAXIMUM_ADDRESSES]


def revisions_and_addresses(incomplete: str) -> list[tuple[str, str]]:
    """Complete names of commits and addresses of messages."""
    return [*((name, "") for name in revisions(incomplete)), *addresses(incomplete)]


def _names(places: Iterable[str], *others: str) -> list[str]:
    """Return `others`, then the names of refs below `places` without that prefix.

    Returns nothing without a repository.
    """
    try:
        with _opened() as store:
            found = (
                name.removeprefix(place)
                for place in places
                for name, _ in store.refs.iterate(place or "refs/")
            )
            return [*others, *found]
    except (TraceError, OSError):
        return []


def _shown(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the matching names that need no shell quoting.

    Any other name could run a command when the shell inserts it.
    """
    return [name for name in names if name.startswith(incomplete) and quote(name) == name]


def _opened() -> Store:
    return Store.open(Store.find(os.getcwd(), Environment.read()))


renderers = one_of(FORMATS)
roles = one_of(ROLES)
secret_modes = one_of(MODES)
_HERE = "trace_cli.porcelain.completion"
COMPLETED: dict[str, str] = {
    "A": f"{_HERE}:revisions",
    "ADDRESS": f"{_HERE}:addresses",
    "B": f"{_HERE}:revisions",
    "BRANCH": f"{_HERE}:branches",
    "CHECKPOINT": f"{_HERE}:checkpoints",
    "COMMIT": f"{_HERE}:revisions",
    "EXPORTED": "trace_cli.porcelain.export:forms",
    "HELPED": f"{_HERE}:commands",
    "HOOKED": "trace_cli.porcelain.hooks:hooked",
    "MCP_AGENT": "trace_cli.porcelain.mcp:known_agents",
    "IMPORTED": "trace_cli.porcelain.import_:formats_of",
    "KEY": f"{_HERE}:settings",
    "MODE": f"{_HERE}:secret_modes",
    "OBJECT": f"{_HERE}:revisions_and_addresses",
    "POINT": f"{_HERE}:revisions",
    "PREFIX": f"{_HERE}:refs",
    "PROVIDER": "trace_cli.porcelain.repair:providers",
    "REF": f"{_HERE}:refs",
    "REF NEW OLD": f"{_HERE}:refs",
    "RENDERER": f"{_HERE}:renderers",
    "REVISION": f"{_HERE}:revisions_and_addresses",
    "ROLE": f"{_HERE}:roles",
    "SESSION": f"{_HERE}:sessions",
    "TRAJECTORY": f"{_HERE}:trajectories",
    "UPSTREAM": f"{_HERE}:branches",
}
"""Completion functions by the kind of value in a declaration; imported on use."""
