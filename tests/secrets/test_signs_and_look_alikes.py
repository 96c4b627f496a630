"""Generated values of each kind are all found, and texts that only look like one are not.

    pytest -s tests/secrets/test_signs_and_look_alikes.py

prints how many of each kind were found, and how many look-alikes were taken for a secret.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.importers.support.transcripts import REASON, real_files
from tests.secrets.support.redaction import redacted
from trace_store.secrets.engine import Scanner
from trace_store.secrets.guard import may_hold

SCANNER = Scanner()
VALUES = 300
LOOK_ALIKES = 1_000
MIXED = string.ascii_letters + string.digits
SMALL = string.ascii_lowercase + string.digits
SIGNS = "$%&(),/;<[]{|}"
ANY_SIGN = "!#$%&()*+,-./:;<=>?@[]^_{|}~"
DJANGO = SMALL + "!@#$%^&*(-_=+)"
"""The letters of `django.core.management.utils.get_random_secret_key`."""


def drawn(source: random.Random, letters: str, size: int) -> str:
    """Draw a value that has a letter and a digit: what has only letters is a word to any reader."""
    while True:
        value = "".join(source.choices(letters, k=size))
        if not (value.isalpha() or value.isdigit()) and any(map(str.isdigit, value)):
            return value


def sign_inside(source: random.Random) -> str:
    value = drawn(source, MIXED, 20)
    at = source.randrange(1, len(value))
    return value[:at] + source.choice(SIGNS) + value[at:]


Make = Callable[[random.Random], str]
PASSWORDS: dict[str, Make] = {
    "a sign first": lambda source: source.choice(SIGNS) + drawn(source, MIXED, 20),
    "a sign inside": sign_inside,
    "signs anywhere": lambda source: "k" + drawn(source, MIXED + ANY_SIGN, 24),
    "small letters and digits": lambda source: drawn(source, SMALL, 20),
    "letters and digits": lambda source: drawn(source, MIXED, 20),
}
KEYS: dict[str, Make] = {
    "small letters and digits, 20": lambda source: drawn(source, SMALL, 20),
    "small letters and digits, 32": lambda source: drawn(source, SMALL, 32),
    "letters and digits, 24": lambda source: drawn(source, MIXED, 24),
    "a sign inside": sign_inside,
}
DJANGO_KEYS: dict[str, Make] = {
    "a key of Django": lambda source: "k" + drawn(source, DJANGO, 49),
    "a first key of Django": lambda source: "django-insecure-" + drawn(source, DJANGO, 50),
}
PASSWORD_PLACES = {
    "environment": "DB_PASSWORD={}",
    "environment, quoted": "export DB_PASSWORD='{}'\n",
    "JSON": '{{"user":"svc","password":"{}"}}',
    "JSON in JSON": '{{\\"user\\":\\"svc\\",\\"password\\":\\"{}\\"}}',
    "YAML": "db:\n  password: {}\n",
    "YAML, quoted": "password: '{}'",
    "Python": 'conn = connect(user="app", password="{}")',
    "curl": "curl -u ada:{} https://example.org",
    "curl, quoted": "curl -s --user 'ada:{}' https://example.org",
    "sshpass": "sshpass -p {} ssh root@10.0.0.7",
    "sshpass, quoted": "sshpass -p '{}' ssh root@10.0.0.7",
    "option": "tool --password '{}' run",
    "mysql": "mysql -u root -p'{}' shop",
    "URL, escaped": "next=%2Fa%3Fpassword%3D{}",
}
KEY_PLACES = {
    "environment": "API_KEY={}",
    "Python": 'client_secret = "{}"',
    "JSON": '{{"auth_token": "{}"}}',
    "YAML": "  secret_key: {}\n",
    "URL, escaped": "https://example.org/cb?state=1%26api_key%3D{}",
    "JSON, escaped": '"q": "access_token\\u003d{}"',
    "program, escaped": "api_key\\x3d{}",
    "HTML": "api_key&#61;{}",
    "HTML, quoted": "api_key=&quot;{}&quot;",
}
DJANGO_PLACES = {
    "settings.py": "SECRET_KEY = '{}'",
    "settings.py, double": 'SECRET_KEY = "{}"',
    "environment": "SECRET_KEY={}",
    "JSON": '{{"SECRET_KEY": "{}"}}',
}
KINDS = [
    (f"{what}: {place}", make, text)
    for makes, places in (
        (PASSWORDS, PASSWORD_PLACES),
        (KEYS, KEY_PLACES),
        (DJANGO_KEYS, DJANGO_PLACES),
    )
    for what, make in makes.items()
    for place, text in places.items()
]


@pytest.mark.parametrize(("name", "make", "text"), KINDS, ids=[kind[0] for kind in KINDS])
def test_generated_values_are_found(name: str, make: Make, text: str) -> None:
    source = random.Random(name)
    missed = []
    for _ in range(VALUES):
        value = make(source)
        data = text.format(value).encode()
        start = data.find(value.encode())
        found = SCANNER.find_bytes(data)
        if not any(
            each.start <= start and start + len(value) <= each.end for each in found
        ) or not may_hold(data, ()):
            missed.append(data)
    print(f"\n{name:50} {VALUES - len(missed):3} of {VALUES} found")
    assert len(missed) <= 0, missed


TOKEN = "ghp_" + "".join(random.Random(4).choices(string.ascii_letters + string.digits, k=36))
BEHIND = ["%3D", "%3d", "%22", "\\u003d", "\\x3d", "&#61;", "&#x3D;", "&quot;", "\x1b[32m"]


@pytest.mark.parametrize("escape", [*BEHIND, "\\u001b[1;31m", "\\n", "=3D"])
def test_a_token_behind_an_escape_is_found(escape: str) -> None:
    text = f"https://example.org/?q{escape}{TOKEN} and more"
    assert TOKEN not in redacted(SCANNER, text)
    assert redacted(SCANNER, text).startswith(f"https://example.org/?q{escape}[redacted:")
    assert may_hold(text.encode(), ())


NAMES = ("password", "DB_PASSWORD", "api_key", "SECRET_KEY", "auth_token", "client_secret")
FORMS = ("{}={}", "{}: {}", "{} = '{}'", '"{}": "{}"', 'self.{} = "{}"')
CODE = (
    lambda word, number: f"get_{word()}({word()}.{word()})",
    lambda word, number: f"{word()}.{word().title()}[{number()}]",
    lambda word, number: f"${{{word().upper()}_{word().upper()}}}",
    lambda word, number: f"{{{{ {word()}.{word()} }}}}",
    lambda word, number: f"$({word()} {word()}/{word()}.txt)",
    lambda word, number: f"{word()}/{word()}-{number()}/{word()}.{word()}:{number()}",
    lambda word, number: f"process.env.{word().upper()}_{word().upper()},",
    lambda word, number: f"{word()}{word().title()}{word().title()}({number()}),",
    lambda word, number: f"2026-0{number() % 9 + 1}-1{number() % 10}T08:{number() % 50 + 10}:00Z",
    lambda word, number: f"{word()}-{word()}-v{number()}.{number()}.{number()}",
    lambda word, number: f"<{word()}-{word()}>",
    lambda word, number: f"{word()}?.{word()} ?? {word()}",
    lambda word, number: f"^[A-Za-z0-9_]{{{number() % 30 + 1},}}$",
    lambda word, number: f"https://{word()}.example.org/{word()}/{number()}?{word()}={word()}",
    lambda word, number: f"[{number()}.{number()}ms]",
    lambda word, number: f"%({word()}_{word()})s",
    lambda word, number: f"lambda: {word()}({word()}, {number()})",
    lambda word, number: f"{word()}_{word()}:{word()}@{word()}",
)
_WORDS = """
user account config session request response value token secret password handler storage index render parse update
delete create default environment option result module package service client server project release version document
template message content history
"""
WORDS = tuple(_WORDS.split())


def told(texts: list[str], what: str) -> list[tuple[str, str]]:
    wrong = [(found[0].rule, t) for t in texts if (found := SCANNER.find_bytes(t.encode()))]
    print(f"\n{what}: {len(wrong)} of {len(texts)} taken for a secret")
    return wrong


def test_lines_of_code_and_settings_are_no_secrets() -> None:
    source = random.Random(1)
    texts = []
    for at in range(LOOK_ALIKES):
        value = CODE[at % len(CODE)](lambda: source.choice(WORDS), lambda: source.randint(1, 400))
        texts.append(source.choice(FORMS).format(source.choice(NAMES), value))
    wrong = told(texts, "generated lines")
    assert len(wrong) <= LOOK_ALIKES // 1_000, wrong


def vocabulary(paths: list[Path]) -> list[str]:
    """Return names, calls and paths of real transcripts; what is generated there, such as ids, has digits."""
    found: set[str] = set()
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        text = re.sub(r"[A-Za-z0-9+/=_-]{60,}", " ", text)
        found.update(
            re.findall(r"(?<![\w\\/+-])[a-z_$][A-Za-z_$.:/()\[\],<>-]{7,40}(?![\w\\])", text)
        )
    return sorted(found)


@pytest.mark.skipif(not real_files(), reason=REASON)
def test_the_words_of_real_transcripts_are_no_secrets() -> None:
    source = random.Random(2)
    words = vocabulary(real_files())
    texts = [
        source.choice(FORMS).format(source.choice(NAMES), word)
        for word in source.sample(words, LOOK_ALIKES)
    ]
    wrong = told(texts, "words of transcripts")
    assert len(wrong) <= LOOK_ALIKES // 1_000, wrong
