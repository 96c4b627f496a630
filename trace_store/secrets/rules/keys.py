"""Private keys, and tokens of standard formats."""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import BEFORE, Rule, near, token

_B32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7Lqpzry9x8gf2tvdw0s3jn54khce6mua7l"
# Characters in a key's lines; line ends may be escaped.
_ARMOR = r"(?:[A-Za-z0-9+/=\s:,.()@*-]|\\+[nrt])"
_TEXT = r"(?:[A-Za-z0-9+/=\s]|\\+[nrt])"


def _armored(name: str, kinds: str, behind: str = "") -> Rule:
    head = f"-----BEGIN {kinds}PRIVATE KEY{behind}-----"
    return Rule(
        name,
        f"({head}{_ARMOR}*?-----END {kinds}PRIVATE KEY{behind}-----|{head}{_TEXT}{{64,}})",
        (f"-----BEGIN {kinds}PRIVATE KEY" if kinds.isupper() or not kinds else "-----BEGIN ",),
        checks.is_private_key,
    )


KEYS = (
    # OpenSSH, PROTOCOL.key; RFC 4880 6.2; RFC 7468 10 and 11, RFC 5915 (EC), RFC 3447 (RSA)
    _armored("openssh-private-key", "OPENSSH "),
    _armored("pgp-private-key", "PGP ", " BLOCK"),
    _armored("encrypted-private-key", "ENCRYPTED "),
    _armored("rsa-private-key", "RSA "),
    _armored("ec-private-key", "EC "),
    _armored("dsa-private-key", "DSA "),
    _armored("private-key", ""),
    # PuTTY manual, appendix C: the format of PPK files
    Rule(
        "putty-private-key",
        rf"(Private-Lines: [0-9]+(?:\s|\\+[nr])+{_TEXT}{{40,}})",
        ("Private-Lines:",),
        checks.at_least(3),
    ),
    # kubernetes.io, kubeconfig: base64 of a PEM file that begins with -----BEGIN ... PRIVATE
    Rule(
        "base64-private-key",
        rf"{BEFORE}(LS0tLS1CRUdJTi(?:BSU0EgUFJJVkFURS|BFQyBQUklWQVRF|BQUklWQVRF|BPUEVOU1NIIFBSSVZBVEUg)"
        r"[A-Za-z0-9+/]{60,}={0,2})",
        ("LS0tLS1CRUdJTi",),
    ),
    # github.com/C2SP/C2SP/age.md: Bech32
    Rule(
        "age-secret-key",
        rf"{BEFORE}(AGE-SECRET-KEY-1[{_B32}]{{58}})\b",
        ("AGE-SECRET-KEY-1",),
        checks.at_least(3),
    ),
    Rule(
        "age-plugin-identity",
        rf"{BEFORE}(AGE-PLUGIN-[A-Z0-9]{{1,20}}-1[{_B32}]{{20,}})\b",
        ("AGE-PLUGIN-",),
    ),
    # wireguard.com, wg(8): a key of 32 bytes in base64
    near(
        "wireguard-private-key",
        "privatekey presharedkey",
        r"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=",
        end="",
    ),
    # RFC 7519: three parts in base64url, the first two of them JSON objects
    Rule(
        "jwt",
        rf"{BEFORE}(eyJ[A-Za-z0-9_-]{{10,}}\.eyJ[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]{{16,}})",
        ("eyJ",),
        checks.is_jwt,
        trigger="eyJ",
    ),
    # RFC 7516: five parts
    Rule(
        "jwe",
        rf"{BEFORE}(eyJ[A-Za-z0-9_-]{{10,}}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{{12,}}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{{16,}})",
        ("eyJ",),
        checks.is_jwt,
        trigger="eyJ",
    ),
    # BIP 32: serialised extended private keys
    token("bip32-private-key", "xprv9", "[1-9A-HJ-NP-Za-km-z]{106}"),
)
