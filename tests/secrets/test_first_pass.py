"""Hyperscan and RE2 name the same rules, so a scanner finds the same with both.

    TRACE_TEST_SECRET_VALUES=420 pytest -s tests/secrets/test_first_pass.py

compares 100,000 random values, and prints how many texts and secrets there were.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.transcripts import REASON
from tests.secrets.support.matching import text_of
from tests.secrets.support.samples import harmless, secrets
from tests.secrets.test_rules_at_random import MADE, VALUES
from trace_store import Environment, Repo
from trace_store.secrets import first_pass
from trace_store.secrets.engine import Scanner, compiled
from trace_store.secrets.first_pass import ESCAPES, hyperscan_pass
from trace_store.secrets.rules import RULES
from trace_store.secrets.rules.rule import Rule

hyperscan = pytest.importorskip("hyperscan")

REAL = os.environ.get("TRACE_TEST_TRANSCRIPTS", "")
SECRET = b"github_token = 'ghp_" + b"aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3'"
CLASS = re.compile(r"\[(?:\\.|[^\\\]])*\]")
ALL_BUT_ONE = re.compile(r"\[\^(?:\\.|.)\]")
AROUND = (
    b"",
    b" ",
    b"\n",
    b"\t",
    b"\v",
    b"\r\n",
    b"\\n",
    b'"',
    b"'",
    b"\\u0027",
    b"%3D",
    b"=",
    b"\0",
    b"\xc3",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the database."""
    made = tmp_path_factory.mktemp("cache")
    assert hyperscan_pass(str(made))
    return made


@pytest.fixture(scope="module")
def scanner(folder: Path) -> Scanner:
    return Scanner(cache=str(folder))


def database(folder: Path) -> Path:
    [path] = folder.iterdir()
    return path


def found(scanner: Scanner, data: bytes) -> list[tuple[str, int, int]]:
    return [(each.rule, each.start, each.end) for each in scanner.find_bytes(data)]


def random_texts(rule: Rule, count: int) -> list[bytes]:
    """Return texts with a random value of a rule among blanks, signs and parts of other texts."""
    source = random.Random(f"first pass {rule.name}")
    others = [text.encode("utf-8", "surrogatepass") for text in harmless()]
    texts = []
    for _ in range(count):
        value = MADE[rule.name](source) if rule.name in MADE else text_of(rule.pattern, source)
        pieces = [source.choice(others)[: source.choice((0, 1, 7, 16, 33, 200))] for _ in range(2)]
        pieces[1:1] = [source.choice(AROUND), value.encode("latin-1"), source.choice(AROUND)]
        texts.append(b"".join(pieces))
    return texts


def test_the_findings_in_random_values_are_the_same(scanner: Scanner) -> None:
    plain, meets = Scanner(), scanner.meets
    texts = places = 0
    for number, rule in enumerate(RULES):
        pattern = compiled(rule.pattern)
        for text in random_texts(rule, VALUES):
            hits = meets(text) or ()
            assert (number in hits) == (pattern.search(text) is not None), (rule.name, text)
            expected = found(plain, text)
            assert found(scanner, text) == expected, (rule.name, text)
            texts, places = texts + 1, places + len(expected)
    print(
        f"\n{texts:,} texts of {len(RULES)} rules, {places:,} secrets in them, the same with both"
    )


def test_no_rule_has_the_form_of_which_hyperscan_misses_matches() -> None:
    """An unlimited repeat of all bytes but one, as design note 016 describes."""
    for rule in RULES:
        pattern = CLASS.sub(lambda m: "." if ALL_BUT_ONE.fullmatch(m[0]) else "x", rule.pattern)
        assert not re.search(r"(?<!\\)\.(?:[*+]|\{[0-9]+,\})", pattern), rule.name


def test_the_findings_in_the_samples_are_the_same(scanner: Scanner) -> None:
    plain = Scanner()
    texts = [sample.text for sample in secrets()] + list(harmless())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        assert found(scanner, data) == found(plain, data)


@pytest.mark.skipif(not REAL, reason=REASON)
def test_the_findings_in_real_transcripts_are_the_same(scanner: Scanner) -> None:
    plain = Scanner()
    files = sorted(path for path in Path(REAL).rglob("*") if path.is_file())
    lines = [line for path in files for line in path.read_bytes().splitlines(keepends=True)]
    places = 0
    for line in lines:
        expected = found(plain, line)
        assert found(scanner, line) == expected
        places += len(expected)
    print(f"\n{len(lines):,} lines of {len(files)} files, {places:,} findings, the same with both")


@pytest.mark.parametrize("byte", [*range(0x21), 0x7F, 0x80, 0x85, 0xA0, 0xFF])
def test_any_byte_separates_for_both_alike(scanner: Scanner, byte: int) -> None:
    plain, sign = Scanner(), bytes((byte,))
    for text in (
        b"password=Tr0ub4dor%b3xyz and more",
        b"password =%bTr0ub4dor-3xyz and more",
        b"Authorization:%bBearer%b" + b"q7Zk2Xwp" * 4,
        b"login%bghp_" + b"aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3" + b"%bx",
        b"SECRET_KEY = 'q7Zk2%bXwp$9fLs!mN4'",
        b"machine h login ada%bpassword q7Zk2Xwp%b",
    ):
        data = text.replace(b"%b", sign)
        assert found(scanner, data) == found(plain, data), data


def test_user_rules_and_known_values_are_found_and_never_written(
    folder: Path, scanner: Scanner
) -> None:
    own, known = Rule("acme", "acme_[a-z0-9]{12}", ("acme_",)), "swordfish9"
    both = [
        Scanner(own=[own], known=[known], cache=str(folder)),
        Scanner(own=[own], known=[known]),
    ]
    data = b"acme_q7zk2xwp9flsm and swordfish9, \\u0027 " + SECRET
    for each in both:
        assert [one.rule for one in each.find_bytes(data)] == [
            "acme",
            "known-value",
            "github-token",
        ]
    written = database(folder).read_bytes()
    assert b"acme_" not in written
    assert b"swordfish9" not in written


def test_an_append_keeps_the_database_in_the_cache_folder(tmp_path: Path) -> None:
    environment = Environment(author="ada", cache_dir=str(tmp_path / "cache"))
    with Repo.init(tmp_path / "repository", environment=environment) as repo:
        assert repo.append("user", SECRET.decode()).secrets == {"github-token": 1}
    assert database(tmp_path / "cache" / "trace").suffix == ".hsdb"


def test_only_its_owner_can_read_the_file(folder: Path) -> None:
    if os.name == "posix":
        assert database(folder).stat().st_mode & 0o777 == 0o600


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def replace(path: Path) -> None:
    other = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    other.compile([b"nothing"], [0])
    path.write_bytes(bytes(32) + hyperscan.dumpb(other))


def share(path: Path) -> None:
    path.chmod(0o666)


@pytest.mark.parametrize("damage", [cut, flip, replace, share])
def test_a_file_that_is_not_ours_and_whole_is_written_again(
    folder: Path, tmp_path: Path, damage: Any
) -> None:
    if damage is share and os.name != "posix":
        pytest.skip("Windows has no such permissions")
    path = tmp_path / database(folder).name
    path.write_bytes(database(folder).read_bytes())
    path.chmod(0o600)
    damage(path)
    meets = hyperscan_pass(str(tmp_path))
    assert meets
    assert meets(SECRET)
    assert path.read_bytes() == database(folder).read_bytes()
    assert os.name != "posix" or path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_without_a_folder_to_write_to_re2_finds_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    scanner = Scanner(cache=str(tmp_path / "file" / "cache"))
    assert found(scanner, SECRET) == found(Scanner(), SECRET) != []


@pytest.mark.parametrize("lacks", ["package", "comparison"])
def test_without_hyperscan_or_its_comparison_re2_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    if lacks == "package":
        monkeypatch.setitem(sys.modules, "hyperscan", None)
    else:
        monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-aarch64")
    scanner = Scanner(cache=str(tmp_path))
    assert found(scanner, SECRET) == found(Scanner(), SECRET) != []
    assert not list(tmp_path.iterdir())


def test_on_a_processor_without_support_re2_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise hyperscan.ArchitectureError("error code -11")

    monkeypatch.setattr(hyperscan, "Database", refuse)
    scanner = Scanner(cache=str(tmp_path))
    assert found(scanner, SECRET) == found(Scanner(), SECRET) != []


def test_threads_scan_at_the_same_time(folder: Path) -> None:
    meets = hyperscan_pass(str(folder))
    assert meets
    text = b"some words\n" * 50_000 + SECRET
    wrong: list[int] = []
    expected = sorted(meets(text) or ())

    def scan() -> None:
        wrong.extend(1 for _ in range(20) if sorted(meets(text) or ()) != expected)

    threads = [threading.Thread(target=scan) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert expected
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_scans_with_what_it_inherits(folder: Path) -> None:
    script = (
        "import os, sys\n"
        "from trace_store.secrets.engine import Scanner\n"
        f"scanner, data = Scanner(cache={str(folder)!r}), {SECRET!r}\n"
        "assert scanner.find_bytes(data)\n"
        "child = os.fork()\n"
        "found = scanner.find_bytes(data)\n"
        "os._exit(not found) if child == 0 else sys.exit(os.waitpid(child, 0)[1] or not found)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_escapes_have_the_number_behind_the_rules(scanner: Scanner) -> None:
    assert scanner.meets(b"a \\u0041 b") == [ESCAPES] == Scanner().meets(b"a \\u0041 b")
    assert first_pass.standard_pass() is Scanner().meets
