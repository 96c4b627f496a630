"""`trace rev-parse`: resolve revisions to ids.

One line per argument: a revision gives its object id; a message address gives 32 hex digits, a dot and a number; `A..B`
gives the id of B and, on the next line, `^` and the id of A; `A...B` gives the ids of A and B, then `^` and the id of
each best common ancestor; `^A` gives `^` and the id of A. With `--short`, ids and addresses have 12 digits. With
`--trace-dir`, the first line is the absolute path of the `.trace` directory.

A full id is printed even if there is no such object; `trace cat-file -e` tests whether it exists.
"""

from __future__ import annotations

import os

from trace_cli import plumbing
from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.runtime import Invocation
from trace_store import store as repository
from trace_store.base.oid import is_full_id

SHORT_CHARACTERS = 12


@takes(
    Option("--short", "short", "Print 12 characters of each id"),
    Option("--trace-dir", "trace_dir", "Print the path of the `.trace` directory"),
    Argument("REVISION", "revisions", "Revisions, ranges or addresses", ANY),
)
def run(invocation: Invocation, *, short: bool, trace_dir: bool, revisions: list[str]) -> int:
    """Print the ids; nothing is printed if one of the revisions is unknown."""
    if not (revisions or trace_dir):
        raise usage_error("no revision is given")
    if all(map(is_full_id, revisions)):
        root = repository.discovery.find(
            invocation.folder, invocation.environment, explicit=invocation.directory
        )
        lines = [each[:SHORT_CHARACTERS] for each in revisions] if short else revisions
    else:
        with plumbing.support.open_store(invocation) as store:
            root = store.layout.root
            lines = [
                line
                for each in revisions
                for line in plumbing.addresses.addressed(store, each, short)
            ]
    if trace_dir:
        invocation.line(os.path.abspath(root))
    for line in lines:
        invocation.line(line)
    return 0
