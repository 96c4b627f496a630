"""Secrets without an issuer: private keys, standard tokens, and what context shows.

The context is a header, a URL, a command line or an assignment.
"""

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


_VALUE = r"""[^\s"'\\`,;<>(){}\[\]$|]"""
# A call or an index follows the name of a function or an array, not a value.
_NO_CALL = r"""(?:[\s"'\\`,;<>){}\]$|]|\z)"""
_OPENING = r"""\\*["'`]?"""
_BLANKS = r"(?:\s{0,4}|[ \t]{0,24})"
_IS = rf"""(?:\\*["'`])?\]?{_BLANKS}(?::=|=>|={{1,3}}|:|>){_BLANKS}(?:[A-Za-z]{{0,2}}\\*["'`])?"""
_IS_BEFORE = _IS.replace(_BLANKS, r"[ \t]{0,24}")
"""On the same line: a line end is a blank in a message, but an escape in the file that it is imported from."""
# Triggers accept more than their rules: all of them are one automaton, which builds its states while it matches.
# Counting, word boundaries and long lists of names multiply the states.
_WIDE_IS = r"""\\*["'`]?\]?\s*[:=>][=>\s]*[A-Za-z]{0,2}[\s\\"'`]*"""
# A text up to its quote or blank, whatever signs it has.
_DELIMITED = r"""[^\s"'\\`]"""
_DELIMITER = r"""(?:\\*["'`]|\s|\\+[nrt]|\z)"""
_BEGIN = r"(?:\b|_|\\[nrt]|-D)"
_PASSWORD = rf"(?i:passw(?:or)?d|passphrase|passwort|pwd|_pass|-pass|{_BEGIN}(?-i:pass|Pass)|(?-i:[a-z]Pass))"
_PASSWORD += r"(?:_?[0-9])?"
# Test output has `PASS: name`, which is not a password.
_PASS = rf"""{_BEGIN}PASS(?:\s{{0,4}}={{1,3}}|\\*["'`]\]?\s{{0,4}}[:=]>?|:\s{{0,4}}\\*["'`])\s{{0,4}}{_OPENING}"""
_WIDE_PASS = r"(?i:passw(?:or)?d|passphrase|passwort|pwd|pass)[0-9_]*"
_KEY = (
    r"(?:api|access|secret|private|encryption|signing|master|auth|account|service|app|admin|deploy|consumer|shared"
    r"|hmac|jwt|cookie|session|webhook|client|storage|crypto?|aes|rsa|license)"
    r"[_.-]?key|secret(?:[_.-]?(?:key|value|token))?(?:[_.-]?base)?|[_.-]token|(?-i:[a-z0-9]Token)|authtoken|accesstoken"
    r"|bearertoken|apitoken|refreshtoken|credentials?|[_.-]auth"
)
_BARE = rf"{_BEGIN}token"
_WIDE_KEY = r"(?i:key|secret|token|auth|credentials?|(?:key|secret|token|value)[_.-]?base|secret[_.-]?value)"
# Names that end in `token` or `key` but are not secret.
_NO_SECRET = (
    r"(?i:(?:(?:\b|_)count|page|next|continuation|cursor|sync|pagination|resume|public|publishable|anon|csrf|xsrf|cache|primary"
    r"|foreign|sort|partition|group|object|idempotency|dedup|hash|digest|checksum|fingerprint)"
    r"(?:[_.-]?(?:page|api))?[_.-]?(?:key|token)s?|\bnext_public_\w{0,60})[^\w]{0,40}\z"
)
_NAMES = ("pass", "pwd")
_LINE_END = r"(?:,|\s|\\+[nrt]){1,12}"
# A name and its value in separate fields: `- name: N` above `value: V`, `key="N" value="V"`.
_NAMED = rf"(?:(?i:name|key|variable){_OPENING}\s{{0,4}}[:=]\s{{0,4}}){_OPENING}(?i:[\w.-]{{0,60}}"
_VALUED = rf"[\w.-]{{0,20}}){_OPENING}{_LINE_END}{_OPENING}(?:-\s)?(?i:value){_OPENING}\s{{0,4}}[:=]{_BLANKS}{_OPENING}"
# Commands that set a variable: ENV N V, set -x N V, setenv("N", "V").
_SET = (
    rf"(?:\bENV|\bsetx|\bset\s{{1,4}}-[a-zA-Z-]{{1,9}}|\bsetenv|\bputenv|\bSetEnvironmentVariable|#define)"
    rf"[ \t(]{{1,4}}{_OPENING}(?i:[\w.-]{{0,60}}"
)
_TO = rf"[\w.-]{{0,20}}){_OPENING},?[ \t]{{1,24}}{_OPENING}"
_WIDE_NAMED = (
    r"""(?:(?i:name|key|variable)[\\"'`]*\s*[:=][\s\\"'`]*|"""
    r"""(?:ENV|setx|set\s+-\S+|setenv|putenv|SetEnvironmentVariable|#define)[ \t(]+[\\"'`]*)[\w.-]*"""
)
# A list or a table of names and values.
_LISTED = (
    r"""(?:[\[({,|]\s{0,4}|\\[nrt]|\n)\\*["'`]?(?i:[\w.-]{0,60}(?:passw(?:or)?d|passphrase|pwd|pass|secret|key_base|token|key|credentials?)s?)"""
    r"""(?:\\*["'`]\s{0,4},\s{0,4}\\*["'`]|\\*`?[ \t]{0,40}\|[ \t]{0,4}\\*`?)"""
)
_GIVEN = (
    r"""(?i:password\s{1,4}(?:=\s{1,4})?\\*["']|(?:identified\s{1,4}(?:with\s{1,4}\w{1,40}\s{1,4})?by|requirepass|masterauth)"""
    r"""\s{1,4}\\*["']?)"""
)
_COMMAND = (
    r"""(?:sshpass\s{1,4}-p\s{0,4}|(?:\A|[^\w-]|\\[nrt])--?(?i:[\w.-]{0,40}(?:password|passwd|passphrase|pwd|[_-]pass|(?-i:[a-z]Pass))|token|api-key|secret)[\s=]{1,4}"""
    r"""|(?:mysql|mariadb)[\w-]{0,10}\s(?:[^\n|;]{0,200}?\s)??-p|(?:docker|podman|helm|oras|az|npm|cf|buildah|skopeo)\s(?:[^\n|;]{0,80}?\s)??login\s(?:[^\n|;]{0,200}?\s)??-p[\s=]{1,4}"""
    r"""|(?:curl|wget|http)\s[^\n|;]{0,200}?(?:-u|--user|-a|--auth)[\s=]{0,4}["']?[A-Za-z0-9_.@%+-]{1,64}:)["']?"""
)
# A command-line option with such a name.
_OPTION = r"""(?:\A|[^\w-]|\\[nrt])--?(?i:[\w.-]{0,40}(?:token|key|secret|credentials?|key_base))[\s=]{1,4}["']?"""
_COMMANDS = (
    *("sshpass", "--", "curl", "wget", "mysql", "mariadb", "docker", "login"),
    *("-password", "-passwd"),
)
_COMMAND_TRIGGER = (
    r"(?:sshpass\s|--?(?i:[\w.-]*(?:pass|pwd|token|api-key|secret)[\w]*)[\s=]"
    r"|(?:curl|wget|http)\s[^\n|;]*(?:-u|--user|-a|--auth)"
    r"|(?:(?:mysql|mariadb)[\w-]*|login)\s[^\n|;]*\n?-p)"
)
_PASSWORD_TRIGGER = rf"{_WIDE_PASS}{_WIDE_IS}{_DELIMITED}{{8}}"
_SECRET_TRIGGER = rf"{_WIDE_KEY}{_WIDE_IS}{_DELIMITED}{{16}}"
_KEY_NAMES = ("key", "secret", "token", "credential", "auth")

GENERAL = (
    # RFC 3986 3.2.1: user information
    Rule(
        "url-password",
        r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'\\<>{}$]{0,64}:([^\s/@:"'\\<>{}$`]{3,128})@[A-Za-z0-9\[_-]""",
        ("://",),
        checks.is_url_password,
        trigger=r"""://[^\s/:@"'\\<>{}$]*:[^\s/:@"'\\<>{}$`]+@""",
    ),
    # RFC 6750, RFC 7617: headers
    Rule(
        "bearer-token",
        r"(?i:bearer)\s{1,4}([A-Za-z0-9_.~+/-]{20,}=*)",
        ("bearer",),
        checks.is_key,
        trigger=r"(?i:bearer)\s+[A-Za-z0-9_.~+/-]",
        loose=True,
    ),
    Rule(
        "basic-auth",
        r"(?i:basic)\s{1,4}([A-Za-z0-9+/]{8,}={0,2})",
        ("basic",),
        checks.is_basic,
        trigger=r"(?i:authorization|basic\s)",
        loose=True,
    ),
    Rule(
        "authorization-header",
        r"""(?i:authorization|x-api-key|x-auth-token|api-key|private-token|x-access-token)\\*["']?\s{0,4}[:=]\s{0,4}\\*["']?(?:(?i:token|apikey|key)\s)?([A-Za-z0-9_.~+/-]{20,}=*)""",
        (
            "authorization",
            "x-api-key",
            "x-auth-token",
            "api-key",
            "private-token",
            "x-access-token",
        ),
        checks.is_key,
        loose=True,
    ),
    # gnu.org/software/inetutils, netrc; curl.se/docs/manpage.html -u; sshpass(1), mysql(1)
    Rule(
        "netrc-password",
        # Prose mentions logins and passwords, but no machine.
        r"(?:machine\s{1,8}\S{1,128}|default)(?:\s|\\+[nrt]){1,8}login\s{1,8}\S{1,128}(?:\s|\\+[nrt]){1,8}"
        r"password\s{1,8}([^\s\"'\\]{4,128})",
        ("password",),
        checks.is_url_password,
        trigger=r"password\s+\S",
    ),
    Rule(
        "command-line-password",
        rf"{_COMMAND}([^\s\"'\\`$<>|;&(){{}}]{{6,128}})",
        _COMMANDS,
        checks.is_password,
        trigger=_COMMAND_TRIGGER,
    ),
    Rule(
        "command-line-secret",
        rf"{_OPTION}([^\s\"'\\`$<>|;&(){{}}]{{16,512}})",
        ("-",),
        checks.is_key,
        unless=_NO_SECRET,
        trigger=r"""(?i:token|key|secret|credentials?|key_base)[\s=]+["']?[^\s\"'\\`$<>|;&(){}]{16}""",
    ),
    # cli.github.com/manual/gh_secret_set
    Rule(
        "github-secret-set",
        rf"""gh\s{{1,4}}secret\s{{1,4}}set\s[^\n|;&]{{0,120}}?(?:--body[\s=]|-b[\s=]?|<<<\s?){_OPENING}([^\s"'\\]{{8,512}})""",
        ("secret",),
        checks.is_password,
        trigger=r"gh\s{1,4}secret\s{1,4}set\s",
    ),
    # RFC 6265: the whole header, since each site decides which cookie is the session
    Rule(
        "cookie",
        rf"""(?i:(?:\A|[^\w-])(?:set-)?cookie|--cookie){_OPENING}(?:\s{{0,4}}:|\s)\s{{0,4}}{_OPENING}([\w.-]{{1,64}}=[^\r\n"'\\]{{16,1000}})""",
        ("cookie",),
        checks.is_cookie,
        loose=True,
    ),
    # postgresql.org/docs/current/libpq-pgpass.html
    Rule(
        "pgpass",
        r"[\w.-]{1,80}:(?:[0-9]{4,5}|\*):[\w.*-]{1,63}:[\w.*-]{1,63}:([^\s:\"'\\]{8,128})(?:\s|\\|\"|\z)",
        (":",),
        checks.is_password,
        unless=r"(?:[0-9a-fA-F]{1,4}:){3}\z",  # an IPv6 address
        trigger=r":(?:[0-9]{4,5}|\*):[\w.*-]+:[\w.*-]+:[^\s:]",
    ),
    # kubernetes.io, env of a container; docs.docker.com/reference/dockerfile, ENV; fishshell.com, set; setx of Windows
    Rule(
        "named-password",
        rf"(?:{_NAMED}(?:passw(?:or)?d|passphrase|pwd|pass){_VALUED}|{_SET}(?:passw(?:or)?d|passphrase|pwd|pass){_TO})({_VALUE}{{8,128}})",
        _NAMES,
        checks.is_password,
        trigger=rf"{_WIDE_NAMED}(?i:pass|pwd)",
        loose=True,
    ),
    Rule(
        "named-secret",
        rf"(?:{_NAMED}(?:secret|token|key|credential){_VALUED}|{_SET}(?:secret|token|key|credential){_TO})({_VALUE}{{16,512}})",
        _KEY_NAMES,
        checks.is_key,
        unless=_NO_SECRET,
        trigger=rf"{_WIDE_NAMED}(?i:secret|token|key|credential)",
        loose=True,
    ),
    Rule(
        "listed-secret",
        rf"{_LISTED}({_VALUE}{{16,512}})",
        (*_NAMES, *_KEY_NAMES),
        checks.is_key,
        unless=_NO_SECRET,
        trigger=rf"(?i:(?:passw(?:or)?d|passphrase|pwd|pass|secret|key_base|token|key|credential)s*)[\\\"'`\s]*[,|][\s\\\"'`]*{_VALUE}{{16}}",
        loose=True,
    ),
    # postgresql.org/docs/current/sql-createrole, dev.mysql.com/doc/refman/en/create-user, redis.io/docs: requirepass
    Rule(
        "sql-password",
        rf"{_GIVEN}([^\s\"'\\`;,(){{}}<>$|]{{8,128}})",
        ("password", "identified", "requirepass", "masterauth"),
        checks.is_password,
        trigger=_GIVEN,
        loose=True,
    ),
    # Assignments in programs, settings and connection strings
    Rule(
        "password",
        rf"(?:{_PASSWORD}{_IS}|{_PASS})({_VALUE}{{8,512}}){_NO_CALL}",
        _NAMES,
        checks.is_password,
        trigger=_PASSWORD_TRIGGER,
        loose=True,
    ),
    Rule(
        "secret-value",
        rf"(?i:{_KEY}|{_BARE}){_IS}([A-Za-z0-9_.~+/@!%^&*#=-]{{16,512}}={{0,2}})",
        _KEY_NAMES,
        checks.is_key,
        unless=_NO_SECRET,
        trigger=_SECRET_TRIGGER,
        loose=True,
    ),
    # The same, with any signs: what generators of passwords and frameworks (Django) make.
    Rule(
        "delimited-password",
        rf"(?:{_PASSWORD}{_IS_BEFORE}|{_PASS})({_DELIMITED}{{8,128}}){_DELIMITER}",
        _NAMES,
        checks.is_delimited_password,
        trigger=_PASSWORD_TRIGGER,
        loose=True,
    ),
    Rule(
        "delimited-secret",
        rf"(?i:{_KEY}|{_BARE}){_IS_BEFORE}({_DELIMITED}{{16,512}}){_DELIMITER}",
        _KEY_NAMES,
        checks.is_delimited_key,
        unless=_NO_SECRET,
        trigger=_SECRET_TRIGGER,
        loose=True,
    ),
    Rule(
        "delimited-argument",
        rf"{_COMMAND}({_DELIMITED}{{8,128}}){_DELIMITER}",
        _COMMANDS,
        checks.is_delimited_password,
        trigger=_COMMAND_TRIGGER,
    ),
)
