"""Every rule finds random values of its own alphabet, as a whole.

    pytest -s tests/secrets/test_rules_at_random.py

prints a table: how many values each rule was tried with, and how many were found; and how many texts that merely look
like one, and how many of these were taken for one.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import random
from itertools import takewhile

import pytest

from tests.secrets.support.matching import text_of
from trace_store.secrets.engine import Scanner, compiled
from trace_store.secrets.first_pass import trigger_of
from trace_store.secrets.guard import may_hold
from trace_store.secrets.rules import RULES
from trace_store.secrets.rules.rule import Rule

VALUES = int(os.environ.get("TRACE_TEST_SECRET_VALUES", 20))
"""300 for the table of the whole."""
LEAST = 0.98
MOST = 0.001
_TEXT = """
access account agent alpha answer branch build cache client cluster config context current data
default deploy development document engine event example feature field file filter folder format
group handler header history index input internal label layer local manager memory message
method model module name network object option output package parser path pattern place plugin
policy process production profile project provider query record region release remote report
request resource result route runtime sample schema search section server service session
setting source staging state status storage stream summary system table target template test
thread token type update user value version view window worker workspace
"""
WORDS = tuple(_TEXT.split())
SCANNER = Scanner()


def encoded(text: str, *, padded: bool = False) -> str:
    """Return a text in base64, for URLs unless it is padded."""
    if padded:
        return base64.b64encode(text.encode()).decode()
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def letters(source: random.Random, count: int) -> str:
    return encoded(source.randbytes(count).hex())[:count]


def login(source: random.Random) -> str:
    return encoded(f"{source.choice(WORDS)}:{letters(source, source.randint(8, 30))}", padded=True)


def part(**claims: str) -> str:
    return encoded(json.dumps(claims))


MADE = {
    "jwt": lambda source: ".".join(
        [part(alg="HS256"), part(sub=letters(source, source.randint(9, 99))), letters(source, 43)]
    ),
    "jwe": lambda source: ".".join(
        [
            part(alg="RSA-OAEP", enc="A256GCM"),
            *(letters(source, size) for size in (342, 16, source.randint(40, 300), 22)),
        ]
    ),
    "basic-auth": lambda source: f"Authorization: Basic {login(source)}",
    "docker-auth": lambda source: json.dumps({"auths": {"r.io": {"auth": login(source)}}}),
    "discord-bot-token": lambda source: ".".join(
        [encoded(str(source.randrange(10**17, 10**18))), letters(source, 6), letters(source, 38)]
    ),
}
"""Values that are made of something, by rule: random letters are none of them."""


@functools.cache
def values(rule: Rule) -> list[tuple[bytes, int, int]]:
    """Return texts with a secret of a rule, each with where that stands; fewer where its check lets few pass."""
    source = random.Random(rule.name)
    pattern, before = compiled(rule.pattern), rule.unless and compiled(rule.unless)
    found = []
    for _ in range(40 * VALUES):
        text = MADE[rule.name](source) if rule.name in MADE else text_of(rule.pattern, source)
        data = f"x {text} y".encode("latin-1")
        match = pattern.search(data)
        if match is None:
            continue
        start, end = match.span(min(pattern.groups, 1))
        unless = before and before.search(data[max(0, start - 80) : start])
        if start < end and not unless and (rule.check is None or rule.check(data[start:end])):
            found.append((data, start, end))
            if len(found) == VALUES:
                break
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_finds_values_of_its_alphabet(rule: Rule) -> None:
    trigger = compiled(trigger_of(rule))
    samples = values(rule)
    whole = 0
    for data, start, end in samples:
        assert trigger.search(data), (rule.name, "its trigger is narrower than the rule", data)
        if any(f.start <= start and end <= f.end for f in SCANNER.find_bytes(data)):
            whole += 1
            assert may_hold(data, ()), (rule.name, "the short look passes it over", data)
    print(f"\n{rule.name:32} {len(samples):4} tried, {whole:4} found")
    assert whole >= LEAST * len(samples)


CHOSEN = {"url-password", "netrc-password"}
"""Contexts in which any value is a password, even words."""


def look_alike(source: random.Random, length: int, begins: str, *, words_count: bool) -> str:
    """Return typical stand-ins for secrets: words, paths, references, repetitions."""
    sign = source.choice("-_./")
    words = sign.join(source.choices(WORDS, k=2 + length // 5))
    begins = source.choice(("", begins))
    named = [
        f"${{{words.upper().replace(sign, '_')[:40]}}}",
        f"<your-{source.choice(WORDS)}-{source.choice(WORDS)}>",
        f"process.env.{source.choice(WORDS).upper()}_{source.choice(WORDS).upper()}",
    ]
    said = [
        begins + words[: max(8, length - len(begins))],
        begins + source.choice("xX*.0") * max(8, length - len(begins)),
        f"/{source.choice(WORDS)}/{words.replace(sign, '/')}",
    ]
    return source.choice([*named, *said] if words_count else named[:2])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_passes_over_look_alikes(rule: Rule) -> None:
    source = random.Random(rule.name)
    samples = values(rule)
    secrets = [data[start:end].decode("latin-1") for data, start, end in samples]
    alike = zip(min(secrets, default=""), max(secrets, default=""), strict=False)
    begins = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], alike))
    words_count = rule.name not in CHOSEN
    count, wrong = 1_000 * VALUES // 300, []
    for _ in range(count if samples else 0):
        data, start, end = source.choice(samples)
        other = look_alike(source, end - start, begins, words_count=words_count).encode()
        text = data[:start] + other + data[end:]
        found = [
            f for f in SCANNER.find_bytes(text) if f.start < start + len(other) and f.end > start
        ]
        if found:
            wrong.append((found[0].rule, text[:200]))
    print(f"\n{rule.name:32} {count if samples else 0:5} look-alikes, {len(wrong)} taken for one")
    assert len(wrong) <= max(1, MOST * count), wrong[:5]
