"""What `trace status` says of a branch and its upstream."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.command_line import Outcome

Run = Callable[..., Outcome]


def test_ahead_and_behind(ok: Run) -> None:
    ok("commit", "--user", "first", "-q")
    nothing = json.loads(ok("status", "--json").out)
    assert (nothing["upstream"], nothing["ahead"], nothing["behind"]) == (None, None, None)
    assert "upstream" not in ok("status").text
    ok("update-ref", "refs/heads/idea", "HEAD")
    ok("branch", "-q", "-u", "idea", "main")
    assert "upstream: idea, which stands at the same commit" in ok("status").lines
    for text in ("second", "third"):
        ok("commit", "--user", text, "-q")
    assert "upstream: idea, ahead by 2 commits" in ok("status").lines
    ok("commit", "--user", "beside", "--branch", "idea", "-q")
    assert "upstream: idea, ahead by 2 commits and behind by 1 commit" in ok("status").lines
    said = json.loads(ok("status", "--json").out)
    assert (said["upstream"], said["ahead"], said["behind"]) == ("refs/heads/idea", 2, 1)
    ok("update-ref", "-d", "refs/heads/idea")
    assert "upstream: idea, which has no commit" in ok("status").lines
