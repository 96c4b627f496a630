"""Secrets in transcripts: imported messages, kept files, cost for growing files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.secrets.test_engine import OTHER, TOKEN
from tests.support.command_line import Trace
from trace_store.base.environment import Environment
from trace_store.contracts.ref_names import FILES
from trace_store.errors import SecretFoundError
from trace_store.importers.import_paths import import_paths
from trace_store.objects.commit import read_commit
from trace_store.secrets.guard import FACT, Guard
from trace_store.secrets.placeholders import PlaceholderCount
from trace_store.secrets.rules import VERSION
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.writer import Writer

PLACEHOLDER = re.compile(rb"\[redacted:[a-z0-9-]+:[a-z2-7]{12}\]")
SESSION = "5d5c1cf0-8c3c-4d7a-a7f1-0a7a2c1d9e10"


def record(number: int, text: str) -> str:
    """A record of Claude Code."""
    role = "assistant" if number % 2 else "user"
    said = {"id": f"msg_{number}", "content": [{"type": "text", "text": text}]}
    told = {
        "parentUuid": None if not number else f"u{number - 1}",
        "uuid": f"u{number}",
        "sessionId": SESSION,
        "type": role,
        "timestamp": f"2026-03-02T09:{number // 60:02d}:{number % 60:02d}.000Z",
        "message": {"role": role, **(said if number % 2 else {"content": text})},
    }
    return json.dumps(told, separators=(",", ":"))


def writer_of(store: Store, mode: str = "", **variables: str) -> Writer:
    environment = Environment(data_dir=os.environ["XDG_DATA_HOME"], secrets=variables.items())
    return Writer(store, environment=environment, secrets=mode)


def everything(store: Store) -> bytes:
    return b"\0".join(store.objects.read(oid) for oid in store.objects.iterate())


def kept(store: Store) -> list[bytes]:
    return [b"".join(restore(tip, store.objects.read)) for _, tip in store.refs.iterate(FILES)]


def masked(data: bytes, *secrets: str) -> bytes:
    for secret in secrets:
        data = data.replace(secret.encode(), b"*")
    return data


def test_restored_is_the_file_without_its_secrets(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lines = [record(n, f"line {n}") for n in range(5)]
    lines[2] = record(2, f"the token is {TOKEN}, say\n{OTHER}")
    lines.insert(3, f"no json, but {OTHER} stands in it")
    path.write_text("\n".join(lines) + "\n")
    store = Store.memory()
    (report,) = import_paths(writer_of(store), [str(path)]).files
    assert report.secrets == {"aws-access-key": 2, "github-token": 1}
    stored = everything(store)
    assert TOKEN.encode() not in stored
    assert OTHER.encode() not in stored
    (whole,) = kept(store)
    assert len(PLACEHOLDER.findall(whole)) == 3
    assert PLACEHOLDER.sub(b"*", whole) == masked(path.read_bytes(), TOKEN, OTHER)
    facts = [read_commit(oid, store.objects.read).meta.get(FACT) for oid in commits(store)]
    assert sorted(fact for fact in facts if fact is not None) == [VERSION]


def commits(store: Store) -> list[bytes]:
    found: list[bytes] = []
    for _, tip in store.refs.iterate("refs/heads/"):
        at: bytes | None = tip
        while at is not None:
            found.append(at)
            parents = read_commit(at, store.objects.read).parents
            at = parents[0] if parents else None
    return found


def test_a_file_without_secrets_becomes_the_same_with_and_without_a_look(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(record(n, f"line {n}: password? token!") + "\n" for n in range(40)))
    found = []
    for mode in ("redact", "off", "block", "warn"):
        store = Store.memory()
        import_paths(writer_of(store, mode), [str(path)])
        found.append(sorted(store.objects.iterate()))
    assert found[0] == found[1] == found[2] == found[3]


def test_only_what_is_new_of_a_grown_file_is_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "session.jsonl"
    lines = [record(n, f"line {n}: " + "said at length " * 200) for n in range(400)]
    lines[7] = record(7, f"a token: {TOKEN}")
    path.write_text("".join(line + "\n" for line in lines[:390]))
    looked = 0
    plain = Guard.meets

    def meets(self: Guard, data: bytes) -> object:
        nonlocal looked
        looked += len(data)
        return plain(self, data)

    monkeypatch.setattr(Guard, "meets", meets)
    with Store.init(str(tmp_path)) as store:
        import_paths(writer_of(store), [str(path)])
        whole = looked
        assert whole >= path.stat().st_size - 400
        path.write_text("".join(line + "\n" for line in [*lines, record(400, f"again {TOKEN}")]))
        looked = 0
        (report,) = import_paths(writer_of(store), [str(path)]).files
        assert report.secrets == {"github-token": 1}
        assert looked < sum(map(len, lines[389:])) + 300_000
        tips = list(store.refs.iterate(FILES))
        assert len(tips) == 1, "what was kept of the shorter file goes"
        (data,) = kept(store)
        assert PLACEHOLDER.sub(b"*", data) == masked(path.read_bytes(), TOKEN)
        assert len(set(PLACEHOLDER.findall(data))) == 1
        looked = 0
        (report,) = import_paths(writer_of(store), [str(path)]).files
        assert report.skipped == "unchanged"
        assert looked == len(path.name), "which the log of operations has"


def test_block_stores_nothing_and_names_rule_and_place(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lines = [record(n, f"line {n}") for n in range(600)]
    lines[500] = record(500, f"the token is {TOKEN}")
    path.write_text("".join(line + "\n" for line in lines))
    store = Store.memory()
    with pytest.raises(SecretFoundError) as caught:
        import_paths(writer_of(store, "block"), [str(path)])
    error = caught.value
    assert (error.rule, error.code) == ("github-token", "secret-found")
    assert "line 501, column" in str(error.place)
    assert TOKEN not in repr(error) + str(error) + repr(error.data)
    assert not list(store.objects.iterate())


def test_block_refuses_one_file_and_takes_the_others(
    repository: Trace, settings: Path, tmp_path: Path
) -> None:
    ids = [SESSION.replace("5d5c", letter * 4) for letter in "abc"]
    lines = ["Hello.", f"the token is {TOKEN}", "And goodbye."]
    for number, (id_, line) in enumerate(zip(ids, lines, strict=True)):
        data = f"{record(0, 'First.')}\n{record(1, 'Yes?')}\n{record(2, line)}\n"
        (tmp_path / f"{number}.jsonl").write_text(data.replace(SESSION, id_))
    for paths in (["0.jsonl", "1.jsonl", "2.jsonl"], ["."]):
        run = repository("import", "--secrets", "block", *paths)
        assert run.code == 3
        assert "secret (github-token) found in " in run.err
        assert "1.jsonl, line 3, column " in run.err
        assert TOKEN not in run.err + run.text
        found = repository("for-each-ref", "--format", "%(refname)").text.splitlines()
        assert [name.rpartition("/")[2] for name in found if "refs/heads" in name] == ids[::2]
        assert TOKEN.encode() not in b"".join(p.read_bytes() for p in trace_files(tmp_path))
    assert repository("import", "--secrets", "block", "1.jsonl").code == 3
    assert not [line for line in repository("for-each-ref").lines if ids[1] in line]
    with (tmp_path / "0.jsonl").open("a") as file:
        file.write(record(3, "More.").replace(SESSION, ids[0]) + "\n")
        file.write(record(4, TOKEN).replace(SESSION, ids[0]) + "\n")
    before = repository("for-each-ref").out
    assert repository("import", "--secrets", "block", "0.jsonl").code == 3
    assert repository("for-each-ref").out == before, "what was imported before stays as it is"


def trace_files(folder: Path) -> list[Path]:
    return [path for path in (folder / ".trace").rglob("*") if path.is_file()]


def test_warn_stores_it_and_tells(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(record(0, f"the token is {TOKEN}") + "\n")
    store = Store.memory()
    (report,) = import_paths(writer_of(store, "warn"), [str(path)]).files
    assert report.secrets == {"github-token": 1}
    assert TOKEN.encode() in everything(store)


DOCUMENTS = {
    "openai": {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": f"use {TOKEN}"},
            {"role": "user", "content": "é" * 50 + f" postgres://me:s3cr3tPw9@host/ {OTHER}"},
            {"role": "assistant", "content": "done"},
        ],
    },
    "anthropic": {
        "system": f"key {OTHER}",
        "messages": [{"role": "user", "content": [{"type": "text", "text": f"{TOKEN} é"}]}],
    },
    "opencode": {
        "info": {"id": "ses_1", "title": f"about {OTHER}"},
        "messages": [
            {
                "info": {"id": "msg_1", "role": "user", "sessionID": "ses_1"},
                "parts": [{"id": "prt_1", "type": "text", "text": f"use {TOKEN}"}],
            }
        ],
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_documents_come_back_without_their_secrets(
    name: str, indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(DOCUMENTS[name], indent=indent, ensure_ascii=False))
    store = Store.memory()
    import_paths(writer_of(store), [str(path)])
    stored = everything(store)
    for secret in (TOKEN, OTHER, "s3cr3tPw9"):
        assert secret.encode() not in stored
    (whole,) = kept(store)
    told = masked(path.read_bytes(), TOKEN, OTHER, "s3cr3tPw9")
    assert PLACEHOLDER.sub(b"*", whole) == told
    json.loads(whole)


def test_rows_of_a_dump_lose_their_secrets(tmp_path: Path) -> None:
    told = json.dumps({"role": "user", "time": {"created": 1}})
    part = json.dumps({"type": "text", "text": f"it's {TOKEN}\nand more"}).replace("'", "''")
    path = tmp_path / "dump.sql"
    path.write_text(
        "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n"
        "CREATE TABLE session (id text, title text);\n"
        "INSERT INTO session VALUES('ses_1','a session');\n"
        "CREATE TABLE message (id text, session_id text, time_created integer, data text);\n"
        f"INSERT INTO message VALUES('msg_1','ses_1',1,'{told}');\n"
        "CREATE TABLE part (id text, message_id text, session_id text, data text);\n"
        f"INSERT INTO part VALUES('prt_1','msg_1','ses_1','{part}');\nCOMMIT;\n"
    )
    store = Store.memory()
    import_paths(writer_of(store), [str(path)], format="opencode")
    assert TOKEN.encode() not in everything(store)
    for whole in kept(store):
        assert PLACEHOLDER.sub(b"*", whole) == masked(path.read_bytes(), TOKEN)


def test_who_takes_a_file_back_is_told_of_placeholders(
    repository: Trace, settings: Path, tmp_path: Path
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(f"{record(0, f'{TOKEN} and {OTHER}')}\n{record(1, TOKEN)}\n")
    assert repository("import", "session.jsonl", "-q").code == 0
    note = "note: 3 placeholders stand in place of secrets, whose values are not stored\n"
    printed = repository("export", "--native")
    assert printed.err == note
    assert PLACEHOLDER.sub(b"*", printed.out) == masked(path.read_bytes(), TOKEN, OTHER)
    assert repository("export", "--native", "-o", "back.jsonl").err == note
    assert (tmp_path / "back.jsonl").read_bytes() == printed.out
    assert repository("export", "--native", "--all", "-o", ".").err == note
    assert json.loads(repository("export", "--native", "--json").out)["placeholders"] == 3


@pytest.mark.parametrize("size", [1, 2, 7, 40, 63, 64, 65, 1000])
def test_placeholders_count_once_wherever_a_text_is_cut(size: int) -> None:
    whole = b"[[redacted:a:%b] [redacted:%b:%b][redacted:no] [redacted:b:%b" % (
        *(b"2" * 12, b"n" * 40, b"z" * 12, b"a" * 12),
    )
    for text, expected in ((whole, 2), (whole + b"]", 3), (b"[" * 200, 0)):
        count = PlaceholderCount()
        for at in range(0, len(text), size):
            count.add(text[at : at + size])
        assert count.number == expected
