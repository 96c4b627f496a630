"""What other programs leave in a file that is not theirs, told by its bytes.

Rule: pure. It explains what was found to be wrong anyhow, and finds nothing wrong itself: a message may well say
`<<<<<<<`.
"""

from __future__ import annotations

_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
_POINTER = b"version https://git-lfs.github.com/spec/"


def explained(data: bytes) -> str:
    """Return what another program did to a file, in half a sentence; empty when nothing tells."""
    lines = data.split(b"\n") if len(data) < 1 << 20 else data[: 1 << 20].split(b"\n")
    if all(any(line.startswith(mark) for line in lines) for mark in _MARKERS):
        return "git left the marks of a merge conflict in it: take one side of it with `git checkout --ours`"
    if data.startswith(_POINTER):
        return "it is a pointer of Git LFS, not the file: `git lfs pull` fetches it"
    if b"\r\n" in data and data.count(b"\r\n") == data.count(b"\n"):
        return (
            "git seems to have converted its line ends: core.autocrlf, or an attribute of the files"
        )
    return ""


def with_explanation(detail: str, data: bytes | None) -> str:
    """Return what is wrong with a file, with what explains it where something does."""
    why = explained(data) if data else ""
    return f"{detail}; {why}" if why else detail
