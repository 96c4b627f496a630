"""Write a repository of this version into tests/format/repositories/VERSION, to be read by every later one.

    python tools/make_fixture.py            write that of this version anew; `git add -f` takes all of it

It is the example with its operations of every kind, and besides an imported session, a diverged branch, a commit that
only the journal has, and remembered counts. `expected.json` says what its branches compile to.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.make_example import MAIN, Watch, build  # noqa: E402 - the checkout
from trace_store import __version__, importers  # noqa: E402
from trace_store.context.compiler import ContextCompiler  # noqa: E402
from trace_store.contracts.ref_names import BRANCHES  # noqa: E402
from trace_store.history.commit import write  # noqa: E402
from trace_store.history.draft import Draft  # noqa: E402
from trace_store.history.log import log  # noqa: E402
from trace_store.maintenance.seal import seal  # noqa: E402
from trace_store.store.store import Store  # noqa: E402
from trace_store.writer import Writer  # noqa: E402

FIXTURES = ROOT / "tests/format/repositories"
SAMPLES = ROOT / "trace_store/samples"


def main() -> int:
    """Write the fixture; return the exit code."""
    folder = FIXTURES / __version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target = folder / "repository"
    build(target)
    with Store.open(str(target), clock=Watch(), durability="fast") as store:
        extend(store)
        (folder / "expected.json").write_text(
            json.dumps(expected(store), indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
    shutil.rmtree(target / "local/packs")  # git has these packs
    return 0


def extend(store: Store) -> None:
    """Add cases that the example does not have."""
    importers.import_paths.import_paths(
        Writer(store), [str(path) for path in sorted(SAMPLES.glob("*.jsonl"))]
    )
    say(store, "Before the others moved it.", "shared")
    seal(store)
    tip = store.refs.read(BRANCHES + "shared")
    assert tip is not None
    say(store, "Ours.", "shared")
    say(store, "Theirs.", "theirs")
    seal(store)
    theirs = store.refs.read(BRANCHES + "theirs")
    assert theirs is not None
    store.refs.files.add(BRANCHES + "shared", theirs)
    say(store, "Only the journal has this.", "main")
    for _ in log(store, MAIN):
        pass


def say(store: Store, text: str, branch: str) -> None:
    """Append one message to a branch."""
    draft = Draft(Writer(store, author="Ada <ada@example.org>").on(branch))
    draft.append("user", text)
    write(draft)


def expected(store: Store) -> dict[str, Any]:
    """Return the compiled contexts of the branches, and their sizes."""
    contexts = ContextCompiler(store)
    branches = {}
    for name, tips in store.refs.iterate_tips(BRANCHES):
        context = contexts.compile(name, model="any")  # factors of models may change
        branches[name] = {
            "tips": sorted(map(str, tips)),
            "messages": len(context),
            "prefix": context.prefix_hash.hex(),
            "tokens": context.message_token_count,
            "commits": sum(1 for _ in log(store, name)),
        }
    refs = sorted(name for name, _ in store.refs.iterate())
    return {"branches": branches, "refs": refs, "objects": len(list(store.objects.iterate()))}


if __name__ == "__main__":
    sys.exit(main())
