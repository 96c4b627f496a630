"""Statements that a later one contradicts, and others that are only alike."""

from __future__ import annotations

import pytest

from trace_store.context.contradictions import contradicted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Use tabs for indentation.", "Do not use tabs for indentation."),
        ("Never touch the schema.", "You may touch the schema now."),
        ("Use at most 3 workers.", "Use at most 8 workers."),
        ("Keep the port at 8080.", "Please keep the port at 9090."),
        ("We decided to use SQLite for the store.", "We use PostgreSQL instead of SQLite."),
        ("Let's go with Redis for the queue.", "We switched from Redis to RabbitMQ."),
        ("I'll use JWT tokens.", "We decided on sessions rather than JWT."),
        ("Don’t run the slow tests.", "Run the slow tests."),
        ("The limit must be 100 requests a minute.", "The limit must be 60 requests a minute."),
    ],
)
def test_the_newer_one_counts(old: str, new: str) -> None:
    assert contradicted([old, "Write a summary of the day.", new]) == {0: 2}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Never delete the users table.", "Delete the orders cache."),
        ("Use at most 3 workers for imports.", "Use at most 8 threads for exports."),
        ("Export customers in batches of 100.", "Export suppliers in batches of 200."),
        ("Do not change the API.", "Do not change the API."),
        ("We use PostgreSQL instead of SQLite.", "We use SQLite instead of files for tests."),
        ("Fix the login.", "Do not log passwords."),
        ("Never push to main.", "Push the branch when the tests pass."),
        ("We keep the SQLite tests.", "The report is not ready."),
        ("Use 4 spaces.", "Use 2 blank lines between functions."),
        ("Make the tests pass.", "The tests must not need a network."),
    ],
)
def test_what_is_only_alike_stays(one: str, other: str) -> None:
    assert contradicted([one, other]) == {}


def test_the_newest_is_named() -> None:
    said = ["Use at most 3 workers.", "Use at most 5 workers.", "Use at most 8 workers."]
    assert contradicted(said) == {0: 2, 1: 2}
