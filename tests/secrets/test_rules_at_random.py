"""Every rule finds random values of its own alphabet, as a whole.

    pytest -s tests/secrets/test_rules_at_random.py

prints a table: how many values each rule was tried with, and how many were found.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.secrets.support.matching import text_of
from trace_store.secrets import RULES, Scanner
from trace_store.secrets.engine import compiled, trigger_of
from trace_store.secrets.rules import Rule
from trace_store.secrets.words import may_hold

VALUES = int(os.environ.get("TRACE_TEST_SECRET_VALUES", 60))
"""300 for the table of the whole."""
LEAST = 0.98
SCANNER = Scanner()


def values(rule: Rule, source: random.Random) -> list[tuple[bytes, int, int]]:
    """Return texts with a secret of a rule, each with where that stands; fewer where its check lets few pass."""
    pattern = compiled(rule.pattern)
    found = []
    for _ in range(40 * VALUES):
        data = f"x {text_of(rule.pattern, source)} y".encode("latin-1")
        match = pattern.search(data)
        if match is None:
            continue
        start, end = match.span(min(pattern.groups, 1))
        unless = rule.unless and compiled(rule.unless).search(data[max(0, start - 80) : start])
        if start < end and not unless and (rule.check is None or rule.check(data[start:end])):
            found.append((data, start, end))
            if len(found) == VALUES:
                break
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_values_of_its_alphabet(rule: Rule) -> None:
    source = random.Random(rule.name)
    trigger = compiled(trigger_of(rule))
    samples = values(rule, source)
    whole = 0
    for data, start, end in samples:
        assert trigger.search(data), (rule.name, "its trigger is narrower than the rule", data)
        if any(f.start <= start and end <= f.end for f in SCANNER.find_bytes(data)):
            whole += 1
            assert may_hold(data, ()), (rule.name, "the short look passes it over", data)
    print(f"\n{rule.name:32} {len(samples):4} tried, {whole:4} found")
    assert whole >= LEAST * len(samples)
