"""The table of formats, those of other packages, and the page that describes them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import trace_store.exporters
from tests.exporters.support.sessions import MODEL, repository, rich_session
from trace_store.base.frozen import replace
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import LOSSES, Loss, Losses, file_name
from trace_store.exporters.registry import FORMS, GROUP, writer_named, writer_names
from trace_store.exporters.session import read_session
from trace_store.objects.parts import Reasoning

DOCS = Path(__file__).resolve().parents[2] / "docs"
PLUGIN = """
from trace_store.exporters.contract import Exported

NAME = "shouted"
SUFFIX = ".txt"


def write(session):
    text = "\\n".join(turn.message.text.upper() for turn in session.turns)
    return Exported(text.encode(), (), "session.txt")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that brings one format, one that is in the table already, and one that is broken."""
    (tmp_path / "shouting.py").write_text(PLUGIN)
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    points = f"[{GROUP}]\nshouted = shouting\nhtml = shouting\nbroken = nowhere.to_be_found\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_package_brings_a_format(package: Path) -> None:
    assert {"shouted", "broken", *FORMS} <= set(writer_names())
    exported = writer_named("shouted").write(rich_session())
    assert b"WHICH TAGS ARE THERE?" in exported.to_bytes()


def test_what_the_table_has_is_not_replaced(package: Path) -> None:
    assert writer_named("html").NAME == "html"


def test_a_format_that_cannot_be_loaded_is_refused_by_name(package: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.to_be_found"):
        writer_named("broken")
    with pytest.raises(InvalidInputError, match=r"one of .*broken, "):
        writer_named("nope")


def test_every_format_has_what_a_writer_has() -> None:
    session = rich_session()
    for name, (_, suffix) in FORMS.items():
        writer = writer_named(name)
        assert (name, suffix) == (writer.NAME, writer.SUFFIX)
        exported = writer.write(session)
        assert exported.file_name.endswith(writer.SUFFIX)
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", exported.file_name)
        assert (
            b"".join(exported.chunks()) == exported.to_bytes() == writer.write(session).to_bytes()
        )
        assert {loss.what for loss in exported.losses} <= set(LOSSES)
        if exported.text:
            exported.to_bytes().decode("utf-8")


@pytest.mark.parametrize("name", ["html", "markdown"])
def test_forms_for_reading_name_what_nobody_can_read(name: str) -> None:
    repo = repository()
    repo.append("assistant", [Reasoning("", signature="c2VhbGVk")], model=MODEL)
    exported = writer_named(name).write(read_session(repo.store))
    assert b"reasoning that only the provider can read" in exported.to_bytes()
    assert [str(loss) for loss in exported.losses] == [f"1 reasoning signature (bound to {MODEL})"]


def test_losses_have_documented_words() -> None:
    """What writers count is in the list, and the page has the list."""
    used: set[str] = set()
    for path in Path(trace_store.exporters.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("losses.add"):
                constants = (n for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant))
                used |= {n.value for n in constants if isinstance(n.value, str)}
    assert used <= set(LOSSES)
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    section = page.split("\n## Codes of losses\n")[1].split("\n## ")[0]
    told = dict(re.findall(r"(?m)^\| `([a-z-]+)` \| (.+) \|$", section))
    assert told == LOSSES


def test_the_page_names_every_format() -> None:
    page = (DOCS / "exporting.md").read_text(encoding="utf-8")
    told = re.findall(r"(?m)^\| `([a-z][a-z-]*)` \| .* \| .* \|$", page)
    assert set(told) == set(FORMS)


def test_losses_are_counted_by_word_and_detail() -> None:
    losses = Losses()
    losses.add("image", "too large", 2)
    losses.add("image")
    losses.add("image", "too large")
    losses.add("priority", count=0)
    assert losses.all() == (Loss("image", 1), Loss("image", 3, "too large"))
    assert [str(each) for each in losses.all()] == ["1 image", "3 images (too large)"]
    assert str(Loss("priority", 2000)) == "2,000 priorities"


def test_names_of_files_are_fit_for_every_file_system() -> None:
    session = rich_session()
    for id_, name in (
        ("../../etc/passwd", "etc-passwd.md"),
        ("a b\x00c", "a-b-c.md"),
        ("...", "session.md"),
        ("é" * 300, "session.md"),
        ("x" * 300, f"{'x' * 120}.md"),
    ):
        assert file_name(replace(session, id=id_), ".md") == name
