"""`trace completion`: shell completion of commands, branches and addresses.

Rule: completion never writes. Without a repository it completes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from shlex import quote

from typer._completion_shared import get_completion_script

from trace_cli.arguments import Argument, takes
from trace_cli.porcelain.common import entry_of
from trace_cli.render.escape import one_line
from trace_store import Environment, Repo, Store
from trace_store.errors import TraceError
from trace_store.providers import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Invocation


PROGRAM = "trace"


@takes(Argument("SHELL", "shell", "bash, zsh or fish", choices=("bash", "zsh", "fish")))
def completion(invocation: Invocation, *, shell: str) -> None:
    """Print a shell completion script.

    Add one of these lines to `~/.bashrc`, `~/.zshrc` (after `compinit`) or `~/.config/fish/config.fish`. It completes
    commands, options, formats, branches, tags and the addresses of HEAD's latest messages. zsh and fish also show the
    text of each message.

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

_HARMLESS = str.maketrans({'"': "”", "'": "’", "`": "‘", "$": "＄", "\\": "＼"})
"""zsh evaluates the descriptions of completions, and these are untrusted text."""


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion function for fixed names."""
    known = tuple(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


def revisions(incomplete: str) -> list[str]:
    """Complete HEAD and the short names of branches and tags."""
    return _shown(_names(PLACES, "HEAD"), incomplete)


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
_HERE = "trace_cli.porcelain.completion"
COMPLETED: dict[str, str] = {
    "ADDRESS": f"{_HERE}:addresses",
    "BRANCH": f"{_HERE}:branches",
    "CHECKPOINT": f"{_HERE}:checkpoints",
    "COMMIT": f"{_HERE}:revisions",
    "EXPORTED": "trace_cli.porcelain.export:forms",
    "IMPORTED": "trace_cli.porcelain.import_:formats_of",
    "OBJECT": f"{_HERE}:revisions_and_addresses",
    "PREFIX": f"{_HERE}:refs",
    "PROVIDER": "trace_cli.porcelain.repair:providers",
    "REF": f"{_HERE}:refs",
    "REF NEW OLD": f"{_HERE}:refs",
    "RENDERER": f"{_HERE}:renderers",
    "REVISION": f"{_HERE}:revisions_and_addresses",
    "TRAJECTORY": f"{_HERE}:trajectories",
}
"""Completion functions by the kind of value in a declaration; imported on use."""
