"""Which values of variables and of `.env` files are secrets, and texts in which one is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store.base.environment import Environment
from trace_store.secrets.guard import Guard, counts, position

VALUE = "q7Zk2Xwp"
LONGER = "q7zk2xwp9vb4nt8s" * 2
TOKEN = "ghp_" + "k3Jd8Qm2xV7bN4cR9tY1wE6uS5pL0aH2gF8z"


def guard(folder: Path, name: str = "", value: str = "") -> Guard:
    """Return a guard that knows one variable, and the `.env` files of a folder."""
    data = str(folder / "data")
    known = ((name, value),) if name else ()
    return Guard("0" * 32, Environment(data_dir=data, secrets=known), folder=str(folder))


def finds(guard: Guard, value: str) -> bool:
    """Return True if a value is taken out of a text as a known one."""
    text = f"they said: {value} and went on".encode()
    kept, found = guard.screened(text)
    assert (value.encode() in kept) is not bool(found)
    return [each.rule for each in found] == ["known-value"]


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        *((VALUE, True), (VALUE[1:], False), ("abcdEFGh", True), ("aBcdefgh", True)),
        *(("k" * 19, False), ("k" * 20, True), ("K" * 19, False), ("K" * 20, True)),
        *(("K" + "k" * 18, False), ("K" + "k" * 19, True)),
        *(("words-" * 4 + "x", False), ("words_" * 4 + "x", False), ("words " * 4 + "x", False)),
        *(("12345678901", False), ("123456789012", True), ("1234567890123", True)),
        *(("12-3456789012", True), ("correct horse 7 battery", True), ("a b2c d3e f4g", True)),
        *(("/ada/key7", False), ("~/ada/key7", False), (".ada/key7", False), ("a/da/key7", True)),
        *(
            ("ada://key7", False),
            ("${ada_key7}", False),
            ("$(ada_key7)", False),
            ("$ada_key7", True),
        ),
        *(("<ada_key7>", False), ("C:\\ada7key", False), ("C:ada7key/", True)),
        *(("Your_key7", False), ("CHANGE_me7", False), ("xxxxada7", False), ("example7", False)),
        *(("my_key7your", True), ("[redacted:7]", False), ("[redacted7]", True)),
    ],
)
def test_which_values_are_secrets(tmp_path: Path, value: str, is_secret: bool) -> None:
    assert finds(guard(tmp_path, "ACME_PASSWORD", value), value) is is_secret


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        *(("API_KEY", True), ("my_token", True), ("CLIENT_SECRET", True), ("passphrase", True)),
        *(("CREDS", True), ("PWD_OF_ADA", True), ("AUTH", True), ("PRIVATE", True)),
        *(("SALT", True), ("PIN", True), ("NAME", False), ("HOST", False), ("KEYBOARD", False)),
        *(("MONKEY", False), ("AUTHOR", False), ("KEY_ID", False), ("PUBLIC_KEY", False)),
        *(("KEY_PATH", False), ("PASS_FILE", False), ("TOKEN_URL", False), ("MAX_TOKENS", False)),
    ],
)
def test_which_names_tell_a_secret(tmp_path: Path, name: str, is_secret: bool) -> None:
    assert finds(guard(tmp_path, name, VALUE), VALUE) is is_secret


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (f"A_KEY={VALUE}", VALUE),
        (f" export A.KEY = {VALUE} ", VALUE),
        (f"A_KEY={VALUE} # of ada", VALUE),
        (f"A_KEY={VALUE}#9", f"{VALUE}#9"),
        (f"A_KEY='{VALUE} # x' # y", f"{VALUE} # x"),
        (f'A_KEY="{VALUE}"9', VALUE),
        (f"A_KEY=`{VALUE}`", VALUE),
        (f"A_KEY='{VALUE}", f"'{VALUE}"),
        (f"A_KEY=x={VALUE}", f"x={VALUE}"),
        (f"A KEY={VALUE}", ""),
        (f"# A_KEY={VALUE}", ""),
        (f"A_KEY {VALUE}", ""),
    ],
)
@pytest.mark.parametrize("file", [".env", ".env.test"])
def test_the_lines_of_an_env_file(tmp_path: Path, file: str, line: str, value: str) -> None:
    (tmp_path / file).write_text(f"no line\n{line}\nB_KEY=z8Yj3Wvq\n")
    known = guard(tmp_path)
    assert finds(known, value or VALUE) is bool(value)
    assert finds(known, "z8Yj3Wvq")


@pytest.mark.parametrize("before", [0, 100, 300])
@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (f"password = {VALUE}9!", True),
        (f'"password": "{VALUE}9!"', True),
        (f"mysql -u ada --password {VALUE}9!", True),
        (TOKEN, True),
        (f"postgres://ada:{VALUE}9@db.example/x", True),
        (f"authorization: Bearer {LONGER}", True),
        (f"bearer {LONGER}", True),
        (f"cookie: session={LONGER[:16]}", True),
        ("password = ", False),
        ("the password is wrong", False),
    ],
)
def test_a_secret_is_found_wherever_it_stands(
    tmp_path: Path, before: int, text: str, is_found: bool
) -> None:
    """A short text is looked through for its signs, before the rules are loaded."""
    around = "word " * (before // 5)
    data = f"{around}{text}".encode()
    assert bool(guard(tmp_path).screened(data)[1]) is is_found
    again = guard(tmp_path)
    assert again.scanner is not None
    assert bool(again.screened(data)[1]) is is_found


def test_the_place_of_a_secret_in_a_text() -> None:
    data = b"one\ntwo secret\n\nsecret"
    assert [position(data, at) for at in (0, 3, 4, 8, 16)] == [
        *("line 1, column 1", "line 1, column 4", "line 2, column 1", "line 2, column 5"),
        "line 4, column 1",
    ]
    assert position(data, 8, 10) == "line 11, column 5"


def test_findings_are_counted_by_kind_most_frequent_first(tmp_path: Path) -> None:
    known = guard(tmp_path, "A_KEY", VALUE)
    text = f"{VALUE} password = k3Jd8Qm2x! {VALUE} {TOKEN}".encode()
    found = known.screened(text)[1]
    told = counts(found)
    assert list(told.values()) == [2, 1, 1]
    assert next(iter(told)) == "known-value"
    assert [*told][1:] == sorted([*told][1:])
