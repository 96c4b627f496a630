"""What `trace brief` says about what it did not find, or did not look at."""

from __future__ import annotations

from tests.support.command_line import Run, Trace, first


def test_a_task_that_does_not_exist_is_an_error(ok: Run, trace: Trace) -> None:
    ok("tr", "start", "Count words in any text", "--task", "WC-12", "-q")
    for unknown in ("WC-13", "#13", "https://example.org/issues/13"):
        outcome = trace("brief", "--task", unknown)
        assert outcome.code == 4
        assert f"no task or trajectory '{unknown}'" in outcome.err
    assert "Count words" in ok("brief", "--task", "wc-12").text
    for words in ("count the words", "words"):
        assert "Count words" in ok("brief", "--task", words).text
    for words in ("tabs and zebras", "nosuch"):
        assert "Nothing is recorded that bears on this." in ok("brief", "--task", words).text


def test_files_that_were_not_looked_at_are_named(ok: Run) -> None:
    files = [word for number in range(52) for word in ("--file", f"f{number}.py")]
    said = ok("brief", *files)
    assert "note: not looked at, after the first 50 files: f50.py, f51.py\n" in said.err
    assert first(ok("brief", *files, "--json"))["skipped"] == ["f50.py", "f51.py"]
    assert "not looked at" not in ok("brief", *files[:100]).err
