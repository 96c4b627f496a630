"""What no issuer's form tells, but the place where it stands: headers, URLs, command lines, assignments."""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import Rule

_VALUE = r"""[^\s"'\\`,;<>(){}\[\]$|]"""
_IS = r"""(?:\\*["'`])?\]?\s{0,4}(?::=|=>|={1,3}|:)\s{0,4}(?:[A-Za-z]{0,2}\\*["'`])?"""
_PASSWORD = r"(?:passw(?:or)?d|passphrase|passwort|pwd|_pass|(?-i:[a-z]Pass|\bpass))(?:_?[0-9])?"
_KEY = (
    r"(?:api|access|secret|private|encryption|signing|master|auth|account|service|app|admin|deploy|consumer|shared"
    r"|hmac|jwt|cookie|session|webhook|client|storage|crypto?|aes|rsa|license)"
    r"[_.-]?key|secret(?:[_.-]?(?:key|value|token))?(?:[_.-]?base)?|[_.-]token|authtoken|accesstoken|bearertoken|apitoken"
    r"|refreshtoken|credentials?|[_.-]auth"
)
_BARE = r"""\btoken"""
# Such names end in `token` or `key`, and what they name opens nothing.
_NO_SECRET = (
    r"(?i:(?:\b|_)count|page|next|continuation|cursor|sync|pagination|resume|public|csrf|xsrf|cache|primary|foreign|sort"
    r"|partition|group|object|idempotency|dedup|hash|digest|checksum|fingerprint)[\w.-]{0,24}[^\w]{0,12}\z"
)
_NAMES = ("pass", "pwd")
_OPENING = r"""\\*["']?"""
_LINE_END = r"(?:,|\s|\\+[nrt]){1,12}"
_NAMED = rf"(?i:name{_OPENING}\s{{0,4}}:\s{{0,4}}{_OPENING}[\w.-]{{0,60}}"
_VALUED = rf"[\w.-]{{0,20}}){_OPENING}{_LINE_END}(?:{_OPENING}|-\s)(?i:value){_OPENING}\s{{0,4}}:\s{{0,4}}{_OPENING}"
_KEY_NAMES = ("key", "secret", "token", "credential", "auth")

GENERAL = (
    # RFC 3986 3.2.1: what stands before the host
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
        trigger=r"(?i:authorization|basic )",
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
        # Prose speaks of a login with password too; a machine it does not name.
        r"(?:machine\s{1,8}\S{1,128}|default)(?:\s|\\+[nrt]){1,8}login\s{1,8}\S{1,128}(?:\s|\\+[nrt]){1,8}"
        r"password\s{1,8}([^\s\"'\\]{4,128})",
        ("password",),
        checks.is_url_password,
        trigger=r"password\s+\S",
    ),
    Rule(
        "command-line-password",
        r"""(?:sshpass\s{1,4}-p\s{0,4}|(?:\A|[^\w-])--(?:password|passwd|token|api-key|secret)[\s=]{1,4}|(?:mysql|mariadb)[\w-]{0,10}\s(?:[^\n|;]{0,200}?\s)??-p|docker\s{1,4}login\s(?:[^\n|;]{0,200}?\s)??-p[\s=]{1,4}|(?:curl|wget)\s[^\n|;]{0,200}?(?:-u|--user)\s{1,4}["']?[A-Za-z0-9_.@-]{1,64}:)["']?([^\s"'\\`$<>|;&(){}]{6,128})""",
        (
            *(
                "sshpass",
                "--password",
                "--passwd",
                "--token",
                "--api-key",
                "--secret",
                "curl",
                "wget",
            ),
            *("mysql", "mariadb", "docker login"),
        ),
        checks.is_password,
        trigger=r"(?:sshpass\s|--(?:password|passwd|token|api-key|secret)[\s=]|(?:curl|wget)\s|(?:mysql|mariadb)[\w-]*\s|docker\s+login\s)",
    ),
    # cli.github.com/manual/gh_secret_set
    Rule(
        "github-secret-set",
        rf"""gh\s{{1,4}}secret\s{{1,4}}set\s[^\n|;&]{{0,120}}?(?:--body[\s=]|-b[\s=]?|<<<\s?){_OPENING}([^\s"'\\]{{8,512}})""",
        ("secret",),
        checks.is_password,
        trigger=r"gh\s{1,4}secret\s{1,4}set\s",
    ),
    # RFC 6265: the header as a whole, since what of it opens a session each site decides itself
    Rule(
        "cookie",
        rf"""(?i:(?:\A|[^\w-])(?:set-)?cookie|--cookie){_OPENING}(?:\s{{0,4}}:|\s)\s{{0,4}}{_OPENING}([\w.-]{{1,64}}=[^\r\n"'\\]{{16,1000}})""",
        ("cookie",),
        checks.is_cookie,
        loose=True,
    ),
    # docs.docker.com/reference/dockerfile, ENV in its older form
    Rule(
        "dockerfile-env",
        rf"(?:\A|[\n]|\\n)ENV\s{{1,4}}\w{{0,40}}(?:PASSWORD|PASSWD|PASS|PWD|SECRET|TOKEN|KEY)\w{{0,20}}\s{{1,4}}({_VALUE}{{8,256}})",
        ("ENV ",),
        checks.is_password,
    ),
    # postgresql.org/docs/current/libpq-pgpass.html
    Rule(
        "pgpass",
        r"[\w.-]{1,80}:(?:[0-9]{4,5}|\*):[\w.*-]{1,63}:[\w.*-]{1,63}:([^\s:\"'\\]{8,128})(?:\s|\\|\"|\z)",
        (":",),
        checks.is_password,
        trigger=r":(?:[0-9]{4,5}|\*):[\w.*-]+:[\w.*-]+:[^\s:]",
    ),
    # kubernetes.io, env of a container: a name, and its value on the next line
    Rule(
        "named-password",
        rf"{_NAMED}(?:passw(?:or)?d|pwd|_pass|-pass){_VALUED}({_VALUE}{{8,128}})",
        _NAMES,
        checks.is_password,
        trigger=rf"{_NAMED}(?:passw(?:or)?d|pwd|_pass|-pass){_VALUED}",
        loose=True,
    ),
    Rule(
        "named-secret",
        rf"{_NAMED}(?:secret|token|key|credential){_VALUED}({_VALUE}{{16,512}})",
        _KEY_NAMES,
        checks.is_key,
        trigger=rf"{_NAMED}(?:secret|token|key|credential){_VALUED}",
        loose=True,
    ),
    # Assignments in programs, settings and connection strings
    Rule(
        "password",
        rf"(?i:{_PASSWORD}){_IS}({_VALUE}{{8,128}})",
        _NAMES,
        checks.is_password,
        trigger=rf"(?i:{_PASSWORD}){_IS}{_VALUE}{{8}}",
        loose=True,
    ),
    Rule(
        "secret-value",
        rf"(?i:{_KEY}|{_BARE}){_IS}([A-Za-z0-9_.~+/@!%^&*#=-]{{16,512}}={{0,2}})",
        _KEY_NAMES,
        checks.is_key,
        unless=_NO_SECRET,
        trigger=rf"(?i:{_KEY}|{_BARE}){_IS}[A-Za-z0-9_.~+/@!%^&*#=-]{{16}}",
        loose=True,
    ),
)
