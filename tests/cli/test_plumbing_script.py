"""A shell script that builds a commit with plumbing only; the ids are checked by another blake3."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from blake3 import blake3

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = r"""
set -eu
trace init -q
question=$(printf 'What is 6 times 7?' | trace hash-object -w --stdin)
answer=$(printf '42.' | trace hash-object -w --stdin)
commit=$(trace write-commit --update HEAD <<END
{"author": "script <script@example.org>", "time": 1700000000000, "ops": [["add", {"messages": [
  {"role": "user", "kind": "dialogue", "parts": [{"type": "text", "blob": "$question"}]},
  {"role": "assistant", "kind": "dialogue", "parts": [{"type": "text", "blob": "$answer"}]}]}]]}
END
)
test "$(trace rev-parse HEAD)" = "$commit"
test "$(trace symbolic-ref --short HEAD)" = main
test "$(trace ls-context | wc -l)" -eq 2
test "$(trace rev-list HEAD | trace cat-file --batch-check)" = "$commit commit $(trace cat-file -s HEAD)"
trace update-ref refs/tags/first HEAD 0000000000000000000000000000000000000000000000000000000000000000
for oid in "$question" "$answer" "$commit"; do
  trace cat-file --raw "$oid" > "$oid"
done
trace fsck
trace compile --format openai
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_commit_from_plumbing_alone(tmp_path: Path) -> None:
    tools, folder = tmp_path / "tools", tmp_path / "folder"
    tools.mkdir()
    folder.mkdir()
    program = tools / "trace"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trace_cli "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", SCRIPT],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}",
        },
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        '{"messages":[{"role":"user","content":"What is 6 times 7?"},'
        '{"role":"assistant","content":"42."}]}\n'
    )
    objects = [path for path in folder.iterdir() if path.is_file()]
    assert len(objects) == 3
    for path in objects:
        assert blake3(path.read_bytes()).hexdigest() == path.name
        if shutil.which("b3sum"):
            sums = subprocess.run(["b3sum", path], capture_output=True, text=True, check=True)
            assert sums.stdout.split()[0] == path.name
