"""Options that several commands have which declare theirs with Typer: those with subcommands, or of many choices."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/json.md describes it.")]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print nothing, and leave sealing for later.")
]
Message = Annotated[
    str, typer.Option("-m", "--message", metavar="MESSAGE", help="What to say about the commit.")
]
