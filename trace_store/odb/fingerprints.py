"""Fingerprints of purged texts, to recognise content that contains one.

    tombstones/text-<hash>    ["fingerprint", {"by": text, "forms": [[size, sieve, check], …], "salt": bytes,
                               "time": milliseconds, "why": text}]

A form is one encoding of the text: `size` is its length in bytes, `check` the first 16 bytes of the hash of salt and
form, and `sieve` the low two bits of each of its eight middle bytes. Content is reduced to these bits, which is as fast
as a copy, and searched for the sieve; a hash is computed only where it matches.

Rule: pure functions. A fingerprint does not reveal the text, but it can confirm a guess, as an object id can.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.codec import decode, encode
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Form = tuple[int, bytes, bytes]

KIND = "fingerprint"
PREFIX = "text-"
CHECK_BYTES = 16
SALT_BYTES = 16
SIEVE_BYTES = 8
MAXIMUM_BYTES = 64 * 1024
"""Maximum size of a file."""
MAXIMUM_FORM_BYTES = 1 << 16
MAXIMUM_FORMS = 1000
"""Maximum forms of a fingerprint: about 80 short texts. Each costs 1 ms per MiB written."""
_LOW_BITS = bytes(byte & 3 for byte in range(256))


class Fingerprint:
    """The fingerprint of one purge of texts.

    Attributes:
        forms: (size, sieve, check) of each encoding.
        salt: 16 bytes, hashed before each form.
        time, by, why: as in a tombstone.
    """

    __slots__ = ("by", "forms", "salt", "time", "why")

    def __init__(
        self, forms: Iterable[Form], salt: bytes, time: int, by: str = "", why: str = ""
    ) -> None:
        self.forms = tuple(forms)
        self.salt = salt
        self.time = time
        self.by = by
        self.why = why

    @classmethod
    def of(
        cls, spellings: Iterable[bytes], salt: bytes, time: int, by: str = "", why: str = ""
    ) -> Fingerprint:
        """Return the fingerprint of a text, given all its encodings."""
        forms = []
        for form in sorted(set(spellings), key=lambda form: (len(form), form)):
            start, end = _middle(len(form))
            sieve = form[start:end].translate(_LOW_BITS)
            forms.append((len(form), sieve, digest(salt + form)[:CHECK_BYTES]))
        return cls(forms, salt, time, by, why)

    def encode(self) -> bytes:
        """Return the bytes of the fingerprint's file."""
        fields = {
            "by": self.by,
            "forms": [list(form) for form in self.forms],
            "salt": self.salt,
            "time": self.time,
            "why": self.why,
        }
        return encode([KIND, fields])

    def matches(self, data: bytes, reduced: bytes) -> bool:
        """Return True if the data contains the text; `reduced` is `reduce(data)`."""
        for size, sieve, check in self.forms:
            start = (size - len(sieve)) // 2
            at = reduced.find(sieve, start)
            while at >= 0:
                form = data[at - start : at - start + size]
                if len(form) < size:
                    break
                if digest(self.salt + form)[:CHECK_BYTES] == check:
                    return True
                at = reduced.find(sieve, at + 1)
        return False


def reduce(data: bytes) -> bytes:
    """Return the low two bits of each byte, to search for sieves."""
    return data.translate(_LOW_BITS)


def find(data: bytes, texts: Iterable[Fingerprint]) -> Fingerprint | None:
    """Return the first fingerprint whose text is in the data, or None."""
    reduced = reduce(data)
    return next((text for text in texts if text.matches(data, reduced)), None)


def file_name(data: bytes) -> str:
    """Return the name of a fingerprint's file, given its bytes."""
    return PREFIX + digest(data).hex()


def parse(name: str, data: bytes) -> Fingerprint | None:
    """Return the fingerprint in a file, or None if the file is invalid."""
    if len(data) > MAXIMUM_BYTES or file_name(data) != name:
        return None
    fields: Mapping[str, object]
    try:
        kind, fields = decode(data)
        forms, salt, time = fields["forms"], fields["salt"], fields["time"]
        by, why = fields["by"], fields["why"]
    except (errors.TraceError, ValueError, KeyError, TypeError):
        return None
    is_sound = (
        kind == KIND
        and isinstance(salt, bytes)
        and len(salt) == SALT_BYTES
        and type(time) is int
        and 0 < time < 1 << 53
        and isinstance(by, str)
        and isinstance(why, str)
        and (by + why).isprintable()
        and isinstance(forms, list)
        and 0 < len(forms) <= MAXIMUM_FORMS
        and all(map(_is_form, forms))
    )
    if not is_sound:
        return None
    assert isinstance(forms, list)
    return Fingerprint(map(tuple, forms), salt, time, by, why)  # type: ignore[arg-type]


def _is_form(form: object) -> bool:
    if not isinstance(form, list) or len(form) != 3:
        return False
    size, sieve, check = form
    return (
        type(size) is int
        and 0 < size <= MAXIMUM_FORM_BYTES
        and isinstance(sieve, bytes)
        and len(sieve) == min(size, SIEVE_BYTES)
        and isinstance(check, bytes)
        and len(check) == CHECK_BYTES
    )


def _middle(size: int) -> tuple[int, int]:
    width = min(size, SIEVE_BYTES)
    start = (size - width) // 2
    return start, start + width
