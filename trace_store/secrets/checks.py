"""Checks that tell secrets from false positives: pure functions of the matched bytes."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from itertools import pairwise
from math import log2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[bytes], bool]

_BASE62 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SMALL_WORD = re.compile(rb"[a-z]{3,}(?=[^A-Za-z0-9]|\Z)")
_NO_WORD = re.compile(rb"[^A-Za-z0-9]+")
_WORD = re.compile(rb"[0-9]{0,5}|[A-Za-z]{1,40}[0-9]{0,4}(?:[A-Z][A-Za-z]{2,40})?")
_WORD_IN_NAME = re.compile(rb"[0-9]{0,5}|[A-Za-z]{1,40}[0-9]{0,4}(?:[A-Za-z]{3,40}[0-9]{0,4}){0,2}")
_DIGITS = frozenset(b"0123456789")
_HEX = frozenset(b"0123456789abcdefABCDEF-")
_WORDS = (
    *(b"example", b"changeme", b"change_me", b"change-me", b"placeholder", b"redacted", b"xxxx"),
    *(b"dummy", b"sample", b"your_", b"your-", b"yourpass", b"<your", b"insert", b"replace_"),
    *(b"replace-", b"replaceme", b"fake", b"test_token", b"testtoken", b"not-a-", b"notareal"),
    *(b"****", b"....", b"____", b"todo", b"foobar", b"deadbeef", b"0123456789abcdef"),
    *(b"process.env", b"os.environ", b"getenv", b"import.meta", b"secrets.", b"config."),
)
"""Texts that mark a placeholder for a secret."""
_WEAK = frozenset(
    b"password passwd pass pw pwd secret postgres root admin guest user username token mysql redis rabbitmq minio"
    b" minioadmin test testing default none null true false undefined string mypassword mysecret hunter2 p@ssw0rd"
    b" password1 password123 port host db_password empty required optional".split()
)
"""Values that anyone can guess."""


def entropy(data: bytes) -> float:
    """Return the entropy in bits per byte; 0 for empty data."""
    size = len(data)
    return -sum(n / size * log2(n / size) for n in map(data.count, set(data)))


def at_least(bits: float) -> Check:
    """Return a check for a minimum entropy in bits per byte, which excludes examples and lists of words."""

    def check(data: bytes) -> bool:
        return entropy(data) >= bits and not is_example(data) and not is_list_of_words(data)

    return check


def is_list_of_words(data: bytes) -> bool:
    """Return True if most of it is lower-case words with punctuation between, as in a path."""
    words = _SMALL_WORD.findall(data)
    return len(words) > 2 and sum(map(len, words)) > len(data) // 2


def is_example(data: bytes) -> bool:
    """Return True if it is marked as an example or placeholder."""
    low = data.lower()
    return low in _WEAK or any(word in low for word in _WORDS)


def of_github(data: bytes) -> bool:
    """Return True if a GitHub or npm token has a valid checksum or looks random.

    A token of an undocumented form rather counts as a secret.
    """
    return has_checksum(data) or (entropy(data) >= 3.5 and not is_example(data))


def has_checksum(data: bytes) -> bool:
    """Return True if the last six characters are the base-62 CRC-32 of those after the prefix."""
    _, _, body = data.partition(b"_")
    return len(body) > 6 and body[-6:] == checksum(body[:-6])


def checksum(data: bytes) -> bytes:
    """Return the CRC-32 of data as six base-62 digits."""
    number, digits = zlib.crc32(data), bytearray()
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return bytes(reversed(digits))


def is_mixed(data: bytes) -> bool:
    """Return True if it has letters and digits, like most keys and few names."""
    kinds = set(data)
    return bool(kinds & _DIGITS) and any(chr(each).isalpha() for each in kinds)


def looks_random(data: bytes, share: float = 1 / 3) -> bool:
    """Return True if at least `share` of the letters are capital, are small, and change case, unlike in names."""
    letters = bytes(each for each in data if each in _LETTERS)
    least = share * len(letters)
    capital = sum(each < 0x60 for each in letters)
    changes = sum(one < 0x60 < other or other < 0x60 < one for one, other in pairwise(letters))
    return (
        len(data) >= 16
        and len(letters) > len(data) // 2
        and min(capital, len(letters) - capital, changes) >= least
    )


def is_words(data: bytes) -> bool:
    """Return True if it consists of words, some with a number at the end, like names and paths."""
    pieces = _NO_WORD.split(data)
    word = _WORD if len(pieces) < 3 else _WORD_IN_NAME
    return all(map(word.fullmatch, pieces)) and not looks_random(data, 1 / 4)


def is_key(data: bytes) -> bool:
    """Return True if the value of a secret's name looks generated."""
    if len(data) < 16 or is_example(data) or is_words(data) or is_list_of_words(data):
        return False
    if not (is_mixed(data) or looks_random(data)):
        return False
    if b"://" in data or data.startswith((b"sha256:", b"sha512-", b"sha1-")):
        return False
    if data.startswith((b"/", b"./", b"~/")) and not looks_random(data):
        return False
    # A hex digit has at most four bits; a word with a number has few.
    return entropy(data) >= (2.8 if _HEX.issuperset(data) else 3.4)


def is_sk_key(data: bytes) -> bool:
    """Return True if the text after `sk-` is lower-case words and then only letters and digits."""
    *words, body = data.split(b"-")
    plain = all(len(word) <= 12 and word.isalnum() and word.islower() for word in words)
    return plain and len(body) >= 22 and body.isalnum() and is_key(body)


def is_password(data: bytes) -> bool:
    """Return True if the value of a password's name may be one that a person chose."""
    if len(data) < 8 or is_example(data) or data.startswith((b"/", b"./", b"~/", b"%", b"&")):
        return False
    kinds = sum(
        any(test(chr(each)) for each in set(data))
        for test in (str.islower, str.isupper, str.isdigit, _is_sign)
    )
    if not is_mixed(data) and kinds < 3 and not looks_random(data):
        return False
    return entropy(data) >= 2.5


def _is_sign(character: str) -> bool:
    return not character.isalnum() and character not in "_-."


def is_url_password(data: bytes) -> bool:
    """Return True if the password in a URL may be a real one."""
    is_name = data.startswith((b"${", b"$(", b"{{", b"<"))
    return not is_name and not is_example(data) and len(set(data)) > 2 and not data.isdigit()


def is_cookie(data: bytes) -> bool:
    """Return True if a value in a `Cookie` header looks generated."""
    pairs = (pair.partition(b"=")[2] for pair in data.split(b";"))
    return any(is_key(value.strip()) for value in pairs)


def is_basic(data: bytes) -> bool:
    """Return True if base64 data contains a name, a colon and a password."""
    try:
        decoded = base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    name, colon, password = decoded.partition(b":")
    return bool(name and colon) and decoded.isascii() and is_url_password(password)


def is_jwt(data: bytes) -> bool:
    """Return True if the first part of a JSON web token is a header."""
    head = data.partition(b".")[0]
    try:
        decoded = base64.urlsafe_b64decode(head + b"=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return False
    return b'"alg"' in decoded


def is_discord(data: bytes) -> bool:
    """Return True if the first part of a Discord bot token is a numeric id."""
    try:
        return base64.b64decode(data.partition(b".")[0] + b"==").isdigit()
    except (binascii.Error, ValueError):
        return False


def is_private_key(data: bytes) -> bool:
    """Return True if there is key data between the first and last line of a private key."""
    body = data.split(b"-----")[2] if data.count(b"-----") > 1 else data
    letters = sum(chr(each).isalnum() for each in body)
    return letters >= 48 and len(set(body)) > 12 and not is_list_of_words(body)
