"""`trace secrets`, and `--secrets` of the commands that write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.secrets.test_engine import OTHER, TOKEN
from tests.support.command_line import Trace
from trace_store import Repo, Store
from trace_store.base.environment import Environment
from trace_store.objects.commit import read_commit


def stored(folder: Path) -> bytes:
    files = (path for path in (folder / ".trace").rglob("*") if path.is_file())
    return b"\0".join(path.read_bytes() for path in files)


def said(trace: Trace) -> bytes:
    return trace("cat-context").out


def test_a_commit_tells_kinds_and_never_values(
    repository: Trace, settings: Path, tmp_path: Path
) -> None:
    run = repository("commit", "-q", "--user", f"{TOKEN} {TOKEN} {OTHER}", "-m", f"with {OTHER}")
    assert (run.code, run.err) == (0, "")
    run = repository("commit", "--user", f"{TOKEN} {TOKEN} {OTHER}", "-m", f"with {OTHER}")
    assert run.err == "4 secrets replaced (aws-access-key 2, github-token 2)\n"
    run = repository("commit", "--user", f"{TOKEN} {OTHER} {TOKEN} {TOKEN}")
    assert run.err == "4 secrets replaced (github-token 3, aws-access-key 1)\n"
    told = json.loads(repository("commit", "--result-json", "--user", f"x {TOKEN}").out)
    assert told["secrets"] == {"github-token": 1}
    assert repository("label", "HEAD.0", "--add", OTHER).code == 0
    everything = stored(tmp_path) + repository("log", "--json").out + said(repository)
    assert TOKEN.encode() not in everything
    assert OTHER.encode() not in everything


@pytest.mark.parametrize(("mode", "count"), [("redact", 1), ("warn", 0)])
def test_a_commit_records_whether_its_secrets_were_replaced(mode: str, count: int) -> None:
    with Repo(Store.memory(), secrets=mode) as repo:
        done = repo.append("user", f"here {TOKEN}")
        commit = read_commit(done.oid, repo.store.objects.read)
    assert dict(done.secrets) == {"github-token": 1}
    assert dict(done.redacted) == {"github-token": 1} if count else not done.redacted
    assert len(commit.meta) == count


def test_block_leaves_the_store_as_it_is(repository: Trace, settings: Path, tmp_path: Path) -> None:
    before = stored(tmp_path)
    run = repository("commit", "--secrets", "block", "--user", f"one\ntwo {TOKEN}")
    assert run.code == 3
    assert "secret (github-token) found in content 1, line 2, column 5" in run.err
    assert TOKEN not in run.err
    run = repository("commit", "--secrets", "block", "--user", f"\n{TOKEN}")
    assert "line 2, column 1" in run.err
    assert stored(tmp_path) == before
    settings.write_text('mode = "block"\n')
    assert repository("commit", "--user", TOKEN).code == 3
    assert stored(tmp_path) == before
    run = repository("commit", "--secrets", "warn", "--user", TOKEN)
    assert run.err == "1 secret found, but not replaced (github-token 1)\n"
    assert TOKEN.encode() in said(repository)
    assert repository("commit", "--secrets", "off", "--user", TOKEN).err == ""
    run = repository("commit", "--secrets", "never", "--user", TOKEN)
    assert run.code == 2
    assert "unknown mode 'never'" in run.err


def test_a_repository_has_no_say(repository: Trace, settings: Path, tmp_path: Path) -> None:
    config = tmp_path / ".trace" / "config"
    config.write_text(config.read_text() + '\nsecrets = "off"\n[secrets_mode]\nmode = "off"\n')
    run = repository("commit", "--user", TOKEN)
    assert "1 secret replaced" in run.err
    assert TOKEN.encode() not in stored(tmp_path)


def test_what_is_allowed_is_kept_by_id_outside_the_repository(
    repository: Trace, settings: Path, tmp_path: Path
) -> None:
    run = repository("secrets", "test", stdin=f"a\nb {TOKEN} {OTHER}".encode())
    assert run.code == 7
    (first, rule, *place), second = (line.split() for line in run.out.decode().splitlines())
    assert (rule, place) == ("github-token", ["line", "2,", "column", "3"])
    assert repository("secrets", "allow", first).code == 0
    assert repository("secrets", "allow", "--list").out.decode().split() == [first]
    run = repository("commit", "--user", f"{TOKEN} {OTHER}")
    assert run.err == "1 secret replaced (aws-access-key 1)\n"
    assert TOKEN.encode() in said(repository)
    assert second[0].encode() in said(repository)
    assert repository("secrets", "allow", "--remove", first).code == 0
    assert repository("secrets", "allow", "--remove", first).code == 4
    assert repository("secrets", "allow", "no id").code == 2
    assert repository("secrets", "allow").code == 2
    assert repository("secrets", "test", stdin=b"nothing").code == 0
    for path in (tmp_path / "data").rglob("*"):
        assert path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_rules_of_ones_own(repository: Trace, settings: Path, tmp_path: Path) -> None:
    settings.write_text(
        '[[rule]]\nname = "acme-token"\npattern = "acme_([a-z0-9]{8})"\nwords = ["acme_"]\n'
        '[[rule]]\nname = "staff-number"\npattern = "S-[0-9]{6}"\n'
    )
    rows = [json.loads(line) for line in repository("secrets", "rules", "--json").out.splitlines()]
    assert rows[0] == {"rule": "acme-token", "words": ["acme_"]}
    assert len(rows) > 200
    run = repository("commit", "--user", "acme_12345678 and S-123456")
    assert run.err == "2 secrets replaced (acme-token 1, staff-number 1)\n"
    assert b"acme_[redacted:acme-token:" in said(repository)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mode = ", "is not TOML"),
        ('mode = "sometimes"', "unknown mode 'sometimes'"),
        ("modes = 1", "unknown key: modes"),
        ("rule = 1", "`rule` must be a list"),
        ('[[rule]]\nname = "A b"\npattern = "x"', "needs a name of lower-case letters"),
        ('[[rule]]\nname = "jwt"\npattern = "x"', "rule jwt exists already"),
        ('[[rule]]\nname = "a"\npattern = "(?<=x)y"', "the pattern of rule a is not a valid RE2"),
        ('[[rule]]\nname = "a"\npattern = "x*"', "matches the empty string"),
        ('[[rule]]\nname = "a"\npattern = "x"\nwords = "x"', "the words of rule a"),
    ],
)
def test_settings_that_cannot_be_are_told_and_nothing_is_stored(
    text: str, told: str, repository: Trace, settings: Path, tmp_path: Path
) -> None:
    settings.write_text(text)
    before = stored(tmp_path)
    run = repository("commit", "--user", "words")
    assert run.code == 2
    assert told in run.err
    assert "secrets.toml" in run.err
    assert run.err.count("\n") <= 2
    assert stored(tmp_path) == before


def test_values_of_the_environment_and_of_env_files(repository: Trace, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# ours\nexport DB_PASSWORD='sw0rdfish-of-ours' # not theirs\nDEBUG=yes\nPASS=abc\n"
    )
    (tmp_path / ".env.local").symlink_to(os.devnull)
    text = "say correct horse 7 battery, sw0rdfish-of-ours, /home/ada/.ssh/identity, 1234567890"
    run = repository("commit", "--user", text)
    assert run.err == "2 secrets replaced (known-value 2)\n"
    told = said(repository)
    assert b"horse" not in told
    assert b"sw0rdfish" not in told
    assert b"/home/ada/.ssh/identity, 1234567890" in told


def test_an_import_tells_what_it_replaced(
    repository: Trace, settings: Path, tmp_path: Path
) -> None:
    path = tmp_path / "said.jsonl"
    path.write_text(json.dumps({"role": "user", "content": f"use {TOKEN}"}) + "\n")
    run = repository("import", "said.jsonl")
    assert run.err == "1 secret replaced (github-token 1)\n"
    report = json.loads(repository("import", "said.jsonl", "--json").out)
    assert report["secrets"] == {}
    native = repository("export", "--native").out
    assert json.loads(native)["content"].startswith("use [redacted:github-token:")
    path.write_text(json.dumps({"role": "user", "content": f"again {OTHER}"}) + "\n")
    before = stored(tmp_path)
    run = repository("import", "said.jsonl", "--secrets", "block")
    assert run.code == 3
    assert "line 1, column" in run.err
    assert stored(tmp_path) == before


def with_variable(folder: Path, name: str, value: str) -> Environment:
    """Return an environment with one variable beside what the tests of commands have."""
    data = str(folder / "data")
    return Environment(author="Ada", discovery=False, data_dir=data, secrets=((name, value),))


@pytest.mark.parametrize(
    ("value", "is_secret"), [("q7Zk2Xwp", True), ("q7Zk2Xw", False), ("q7Zk2-Xw", True)]
)
def test_the_value_of_a_variable_is_a_secret_from_eight_characters_on(
    repository: Trace, tmp_path: Path, value: str, is_secret: bool
) -> None:
    around = with_variable(tmp_path, "ACME_DB_PASSWORD", value)
    run = repository("commit", "-q", "--user", f"it said: {value} is wrong", environment=around)
    assert (run.code, run.err) == (0, "")
    assert (value.encode() not in stored(tmp_path)) is is_secret
    assert (b"[redacted:" in said(repository)) is is_secret
    (tmp_path / ".env").write_text(f"DB_PASSWORD={value}\n")
    plain = Environment(author="Ada", discovery=False, data_dir=str(tmp_path / "data"))
    assert repository("commit", "-q", "--user", f"again: {value}", environment=plain).code == 0
    assert (value.encode() not in stored(tmp_path)) is is_secret


def test_names_are_looked_through_also_when_they_are_the_first(
    repository: Trace, tmp_path: Path
) -> None:
    """Ids and names of calls are short, and are remembered once they have passed."""
    for name in (f"look_{TOKEN}", f"look_{TOKEN}", "look"):
        message = {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": f"{name}-1",
                    "type": "function",
                    "function": {"name": name, "arguments": "{}"},
                }
            ],
        }
        run = repository("commit", "-q", "--json", stdin=json.dumps(message).encode())
        assert (run.code, run.err) == (0, "")
    assert TOKEN.encode() not in stored(tmp_path)
    assert b"look" in said(repository)
    run = repository("branch", TOKEN)
    assert run.code == 3
    assert "the name of a ref" in run.err
    assert TOKEN not in run.err


@pytest.mark.parametrize(
    "value",
    [
        *("C:\\keys\\ada7", "/home/ada/key7", "~/keys/ada7", "https://ada.example/7"),
        *("${KEY_OF_ADA_7}", "$(cat key7)", "changeme7", "<your-key-7>", "some words here"),
        *("12345678901", "passwordonly"),
    ],
)
def test_the_value_of_a_variable_that_only_points_to_a_secret_stays(
    repository: Trace, tmp_path: Path, value: str
) -> None:
    around = with_variable(tmp_path, "ACME_KEY", value)
    assert repository("commit", "-q", "--user", f"it is {value} here", environment=around).code == 0
    assert value.encode() in stored(tmp_path)
