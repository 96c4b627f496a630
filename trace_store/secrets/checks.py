"""Checks that tell secrets from false positives: pure functions of the matched bytes."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from math import log2

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
_NO_VALUE = re.compile(rb"[a-z][a-z0-9+.-]*://|sha\d{1,3}[-:]")
"""A URL or a digest."""
_PATTERN = re.compile(rb"a-z[]A-Z0-9_]|A-Z[]a-z0-9_]|0-9[]A-Za-z_]|\(\?[=!:<]|\\[dws]")
"""In a regular expression."""
_TAG = re.compile(rb"<[a-z]{2,}(?:[ _-][a-z]+)*>")
"""What a reader replaces."""
_REFERENCE = re.compile(
    rb"[$#%@]?(?:\{\{?|\(\(?|\[)?[$%&*]?([A-Za-z_][A-Za-z_.:-]*)[0-9]{0,2}[\])}%]{0,3}[;,)]*\Z"
    rb"|<[A-Za-z][\w .:/-]*>[;,)]*\Z|<[a-z]{1,12}\Z|\$[({]|\{\{|\{%|<%|%\(|#\{|[0-9.,:/-]+\Z"
)
"""A variable, a template, a tag, or a number."""
_CALL = re.compile(rb"[A-Za-z_$][A-Za-z_$]*[0-9]{0,2}(?:(?:\.|->|::)[A-Za-z_$]+[0-9]{0,2})*[(\[{]")
_CODE_WORD = re.compile(
    rb"admin|array|async|await|begin|bytes|check|class|click|client|config|const|content|cookie|count|create|crypt|"
    rb"default|define|docker|email|empty|encod|error|event|false|field|format|github|header|hidden|index|input|label|"
    rb"lambda|length|local|login|message|method|module|number|object|option|param|print|private|process|prompt|public|"
    rb"query|random|request|require|response|result|return|secret|select|server|service|session|static|status|string|"
    rb"token|undefined|valid|value|verify|width"
    rb"|(?<![a-z])(?:data|list|name|none|null|pass|path|plain|self|text|test|this|true|type|user|file|func|http|json"
    rb")(?![a-z])"
)
"""Parts of code and settings that no generated value has but by chance."""
_PAIRS = frozenset(
    b"th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro"
    b" ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so"
    b" rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl"
    b" ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag if ap gr od bo sp rd do uc bu ei ov by rm ep tt"
    b" oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um pp ua up lu go ht ru ug ds lt pi rc rr eg au ck"
    b" sy ym dd xt eb tc kt cm md sk vo gn yp py kn cs js db sw cp nv ws lb wr ox xy rv dm ew mu br bi pt ak pu ui"
    b" rg ib tl ny ki rk ys ob mm fu ph og ms ye ud mb ip ub oi rl gu dr hr cc tw ft wn".split()
)
"""The pairs of letters that make nearly all of English text."""
_PAIR_SHARE = len(_PAIRS) / 26**2
_MEASURE = re.compile(
    rb"(?:[a-z]{1,4}:|[a-z])?[\[(<]?[+~-]?[0-9][0-9T:.,/+_-]*(?:[a-zA-Z%]{1,3}|[a-z]{1,8})?[\])>]?[,;:.)*]{0,3}\Z"
    rb"|[A-Za-z@_/-]{0,40}[0-9]+(?:\.[0-9]+)+[a-z0-9.+-]{0,12}(?:/[\w./:-]*)?\Z"
)
"""A time, a version, a size, or another number with its unit."""
_RUN = re.compile(rb"[A-Za-z]{3,}")
_PIECE = re.compile(rb"[0-9]*|[A-Za-z]{1,40}[0-9]{0,4}(?:[A-Za-z]{3,40}[0-9]{0,4}){0,2}")
_NAME = re.compile(rb"[a-z]{3,}(?:[._-](?:[a-z]{2,}|[0-9]{1,4}))+")
_STRUCTURE = frozenset(b"/=,():[]{}*;|<>+")
"""Signs of paths and code."""
_JOINTS = frozenset(b"._-")
_PLAIN_SIGNS = _STRUCTURE | _JOINTS | frozenset(b"@#&$?!~%")
_ADDRESS = re.compile(
    rb"https?://[^:@]*(?::[0-9]+[^@]*)?\Z|[0-9a-f]{7,40}(?:\.{2,3}[0-9a-f]{7,40}|[\])}.,;:]+)\Z"
)
"""An address without a password, or a hash of git in a range or a sentence."""
_FEWEST_PAIRS = 12
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


def is_example(data: bytes, *, long: bool = False) -> bool:
    """Return True if it is marked as an example or placeholder; `long` ignores marks that occur by chance."""
    low = data.lower()
    return low in _WEAK or any(word in low for word in _WORDS if not long or len(word) > 4)


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


def is_plain(data: bytes) -> bool:
    """Return True if it is a time, a size, an address, a path with its line, or a piece of code made of words."""
    if _MEASURE.match(data) or _ADDRESS.match(data):
        return True
    if _PATTERN.search(data) or _TAG.search(data):
        return True
    data = data.removeprefix(b"!").rstrip(b"?:")
    if _NAME.fullmatch(data) and 3 * _pairs(data)[1] >= 2 * _pairs(data)[0]:
        return True
    if not _is_made_of_words(data) or (looks_random(data, 1 / 4) and not _has_words(data)):
        return False
    signs = {each for each in data if each < 0x80} - _LETTERS - _DIGITS
    if not signs <= _PLAIN_SIGNS:
        return False
    if _DIGITS.isdisjoint(data):
        return signs <= _STRUCTURE | _JOINTS
    is_name = bool(signs) and signs <= _JOINTS and data == data.lower()
    return is_name or bool(signs & _STRUCTURE)


def _is_made_of_words(data: bytes) -> bool:
    """Return True if a text is mostly words, with any numbers separate from them."""
    pairs, frequent = _pairs(data)
    if pairs < 3 or frequent < min(pairs, _unlikely(pairs, 2.8)):
        return False
    kinds = [_kind(each) for each in data]
    if 3 * kinds.count(3) > len(data):
        return False
    if 6 * _mixed(kinds) > len(data):
        return False
    in_words = 2 * sum(map(len, _RUN.findall(data))) >= len(data)
    return in_words or all(map(_PIECE.fullmatch, _NO_WORD.split(data)))


def _mixed(kinds: list[int]) -> int:
    """Return how often a letter and a digit are neighbours, by the kinds of characters."""
    return sum((one == 0 < other < 3) or (other == 0 < one < 3) for one, other in pairwise(kinds))


def _unlikely(pairs: int, deviations: float) -> float:
    """Return how many of some pairs of letters are frequent in English by chance at most."""
    mean = pairs * _PAIR_SHARE
    return float(mean + deviations * (mean * (1 - _PAIR_SHARE)) ** 0.5)


def is_key(data: bytes) -> bool:
    """Return True if the value of a secret's name looks generated."""
    if len(data) < 16 or is_example(data):
        return False
    if is_interleaved(data) or is_scrambled(data):
        return True
    if is_plain(data) or is_words(data) or is_list_of_words(data):
        return False
    if not (is_mixed(data) or looks_random(data)):
        return False
    if b"://" in data or data.startswith((b"sha256:", b"sha512-", b"sha1-")):
        return False
    if data.startswith((b"/", b"./", b"~/")) and not looks_random(data):
        return False
    # A hex digit has at most four bits; a word with a number has few.
    return entropy(data) >= (2.8 if _HEX.issuperset(data) else 3.4)


def is_interleaved(data: bytes) -> bool:
    """Return True for letters and digits that alternate, or whose letters are no words."""
    if not data.isalnum() or data.isalpha() or data.isdigit() or len(set(data)) < 9:
        return False
    changes = sum((one in _DIGITS) != (other in _DIGITS) for one, other in pairwise(data))
    pairs, frequent = _pairs(data)
    return changes > 2 or 10 * frequent < 6 * pairs


def is_scrambled(data: bytes) -> bool:
    """Return True if the case of letters changes often, but not as in names of several words."""
    pairs, frequent = _pairs(data)
    return data.isalnum() and looks_random(data, 1 / 5) and 10 * frequent < 6 * pairs


def is_generated(data: bytes) -> bool:
    """Return True if a text up to its quote or blank looks generated, and is no code, path or prose."""
    if is_example(data, long=True) or is_reference(data) or is_plain(data) or _NO_VALUE.match(data):
        return False
    kinds = [_kind(each) for each in data]
    if len(set(kinds)) < 3 or 2 * len(set(data)) < min(len(data), 26):
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    least = 25 if _DIGITS & set(data) else 45
    if 100 * changes < least * (len(data) - 1) and not looks_random(data, 1 / 4):
        return False
    return not (_has_words(data) or _is_call(data))


def is_reference(data: bytes) -> bool:
    """Return True if it names a value, or describes one, instead of being one."""
    found = _REFERENCE.match(data)
    return found is not None and not (found[1] and looks_random(found[1], 1 / 4))


def _kind(byte: int) -> int:
    """Return the kind of a character: digit, capital, small letter, or sign."""
    if byte in _DIGITS:
        return 0
    return (1 if byte < 0x60 else 2) if byte in _LETTERS else 3


def _has_words(data: bytes) -> bool:
    """Return True if it contains words: known ones, or pairs of letters as they are frequent in words."""
    if _CODE_WORD.search(data.lower()):
        return True
    pairs, frequent = _pairs(data)
    return pairs >= _FEWEST_PAIRS and frequent >= min(pairs, _unlikely(pairs, 4))


def _pairs(data: bytes) -> tuple[int, int]:
    """Return the number of pairs of letters, and of those that are frequent in English.

    A capital begins a word, or a word is in capitals.
    """
    pairs = [
        data[at : at + 2].lower()
        for at, (one, other) in enumerate(pairwise(data))
        if one in _LETTERS and other in _LETTERS and not one > 0x60 > other
    ]
    return len(pairs), sum(pair in _PAIRS for pair in pairs)


def _is_call(data: bytes) -> bool:
    """Return True if it is a name and brackets that are closed, as a call."""
    if not _CALL.match(data):
        return False
    pairs, frequent = _pairs(data)
    kinds = [_kind(each) for each in data]
    if 3 * kinds.count(3) > len(data) + 1 or 8 * _mixed(kinds) > len(data):
        return False
    if pairs < 3 or 4 * frequent < 3 * pairs:
        return False
    beyond = [
        data.count(last) - data.count(first)
        for first, last in ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    ]
    return (
        all(0 <= each <= 1 for each in beyond)
        or data.endswith(b",")
        or _CALL.fullmatch(data) is not None
    )


def is_delimited_password(data: bytes) -> bool:
    """Return True if a text up to its quote or blank, behind the name of a password, may be one."""
    return len(data) >= 8 and is_generated(data)


def is_delimited_key(data: bytes) -> bool:
    """Return True if a text up to its quote or blank, behind the name of a secret, may be one."""
    body = data.removeprefix(b"django-insecure-")
    return len(body) >= 16 and is_generated(body)


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
    if not (is_mixed(data) or kinds > 2 or looks_random(data) or is_scrambled(data)):
        return False
    if is_plain(data):
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
