"""The guard that redacts or refuses secrets in everything that enters a repository.

Only rule, position and id of a finding are reported; no attribute, error or `repr` has the value. Modules are loaded
and user files created only after something looks like a secret: `may_hold` is a fast check that may say no only if the
scanner would find nothing, and a test compares its words with the rules. Every commit runs it, so it loops over
constants. Known secrets are values in the environment and in `.env` files whose names mark them as secrets.
"""

from __future__ import annotations

import os

from trace_store import errors, secrets
from trace_store.disk.files import Disk, read_file
from trace_store.disk.layout import DIRECTORY_NAME
from trace_store.objects.content import ObjectCollector, RawContent, bytes_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.base.environment import Environment
    from trace_store.base.oid import ObjectId
    from trace_store.objects.content import Put, Salt
    from trace_store.secrets.engine import Scanner, SecretFinding
    from trace_store.secrets.settings import Settings
    from trace_store.store.store import Store

SETTINGS = "secrets.toml"
MAXIMUM_FILE_BYTES = 1 << 20
FACT = "secrets"
"""Metadata field of a commit with redacted secrets: the version of the rules."""
COLD_BYTES = 64 << 10
CONTENT_BYTES = 512
"""`may_hold` checks this many bytes per process, plus an overhead per content.

That is about the cost of loading the scanner.
"""

BEGINNINGS: tuple[bytes, ...] = (
    *(
        b"AAAAAAAAAAAAAAAAAAAAA AGE-PLUGIN- AGE-SECRET-KEY-1 AIza AKCp API- AQVN ATBB ATTA CCIPAT_ CCIPRJ_ "
        b"CFPAT- CLOJARS_ EAA EZAK EZTK FLWSECK GOCSPX- GR1348941 HRKU- NRAK- NRII- PMAK- SG. "
        b"access-development- access-production- access-sandbox- api_org_ bkua_ cio cmVmdGtuO crsr_ csk- dapi "
        b"dckr_oat_ dckr_pat_ doo_v1_ dop_v1_ dor_v1_ dose dp.audit. dp.ct. dp.pt. dp.sa. dp.scim. dp.st. dt0 "
        b"duffel_live_ duffel_test_ e2b_ figd_ fio-u- fo1_ gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glagent- "
        b"glcbt- gldt- glft- glimt- gloas- glpat- glptt- glrt- glsa_ glsoat- gsk_ hca hf_ hvb. hvr. hvs. ico- "
        b"jina_ key- lin_api_ lin_oauth_ lsv2_pt_ lsv2_sk_ napi_ nfp_ npm_ ntn_ nvapi- oy2 pat pcsk_ phx_ pk_ "
        b"pnu_ pplx- pscale_oauth_ pscale_pw_ pscale_tkn_ pul- pypi-AgEIcHlwaS5vcmc "
        b"pypi-AgENdGVzdC5weXBpLm9yZw r8_ rdme_ rk_live_ rk_prod_ rk_test_ rnd_ rubygems_ s-s4t2af- s-s4t2ud- "
        b"sb_secret_ sbp_ sdk- secret_ sgp_ shippo_live_ shippo_test_ shpat_ shpca_ shppa_ shpss_ sk- sk_ sl. "
        b"sntryu_ snyk_uat. sq0atp- sq0csp- sqa_ sqp_ squ_ tfp_ tgp_v1_ tk-us- tskey- tvly- v1.0- "
        b"vercel_blob_rw_ xai- xapp- xkeysib- xoxa- xoxb- xoxe xoxp- xoxr- xoxs- xprv9 xsmtpsib- ya29. "
    ).split(),
)
"""Prefixes of tokens, at the start of a word and followed by at least 8 characters."""

MARKS: tuple[bytes, ...] = (
    *(
        b"+ABa +ACR +AEh +AMC +ARm +ASb +ASt APIM "
        b".atlasv1. 1//0 :AA ABIA ABSK ACCA ACDb AIoT AKIA ASIA ATATT3xFfG ATCTT3xFfG AZDO AzCa "
        b"AzFu AzSe JQQJ9 LS0tLS1CRUdJTi NRAL Private-Lines: Q~ T3BlbkFJ X-Amz-Signature= X-Goog-Signature= "
        b"_mmk access_token$ bedrock-api-key- discord.com/api/ discordapp.com/api/ eyJ fm1_ fm1a_ "
        b"fm1r_ fm2_ fm2a_ fm2r_ glc_ "
        b"hooks.slack.com hooks.zapier.com sig= sntrys_ ver: webhook.office.com whsec_ xoxc- xoxd- "
    ).split(),
    b"-----BEGIN DSA PRIVATE KEY",
    b"-----BEGIN EC PRIVATE KEY",
    b"-----BEGIN ENCRYPTED PRIVATE KEY",
    b"-----BEGIN OPENSSH PRIVATE KEY",
    b"-----BEGIN PGP PRIVATE KEY",
    b"-----BEGIN PRIVATE KEY",
    b"-----BEGIN RSA PRIVATE KEY",
    b"SSWS ",
)
"""Words that are rare outside of secrets."""

NAMES: tuple[bytes, ...] = (
    *(
        b"ado_pat adobe algolia alibaba alicloud aliyun asana assembly_ai assemblyai auth aws_sec azdo "
        b"azure_devops cf_api cloudflare cohere cookie credential datadog dd-api dd-application dd_api dd_app "
        b"deepgram fastly firecrawl fireworks heroku ibm_api ibm_cloud ibmcloud jenkins key mailgun mistral "
        b"modal okta pagerduty pass paypal pd_api postmark pwd razorpay resend secret snyk ssws "
        b"tencentcloud token travis twilio vercel voyage wandb "
    ).split(),
)
"""Names of secrets, in lower case, which a value must follow."""

SPACED: tuple[bytes, ...] = (
    b"bearer",
    b"basic",
    b"discord",
    b"password",
    b"passwd",
    b"--",
    b"sshpass",
    b"secret set",
    b"cookie",
    b"login",
    b"env ",
    b"set -",
    b"setx",
    b"setenv",
    b"putenv",
    b"#define",
    b"identified",
    b"requirepass",
    b"masterauth",
    b"mysql",
    b"mariadb",
)
"""Words that a value may follow without a sign between."""

_FETCHERS = (b"curl", b"wget", b"http")
_DIGITS = frozenset(b"0123456789")
_ANY_NAME = (b"pass", b"pwd", b"secret", b"token", b"key", b"credential")
_IN_TOKENS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.=%$:")
_IN_WORDS = _IN_TOKENS - frozenset(b"_-+.=%$:")
_SIGNS = b"=:>,|"
"""Signs between a name and its value."""
_LISTS = (b">", b"|", b'",', b"',", b"`,")
"""Signs before a value that are rare in prose."""
_NO_VALUE = b" \t\r\n=:>,|\\\"'`"
_SCHEMES = (b"token", b"apikey", b"key", b"bearer", b"basic")
"""Words between the name of a header and its value."""
_TOKEN_BYTES = 8
_SHORTEST_TOKEN = 20
_BOT_TOKEN = 58
"""Length of a Discord token: three parts separated by dots."""
_ESCAPES = (b"\\u00", b"\\x", b"\\/", b"%2", b"%3", b"%4", b"%5", b"%7", b"&#", b"&quot;", b"&amp;")
"""Beginnings of escapes that may hide a secret, or the sign before it."""
_REACH = 80
"""Maximum distance between a name and its value."""

MAXIMUM_NAMES = 4096
"""How many names that passed are remembered."""

ENV_FILES = (".env", ".env.local", ".env.development", ".env.production", ".env.test")
MINIMUM_CHARACTERS = 8
MAXIMUM_VALUES = 1000

_TELLING = ("KEY", "TOKEN", "SECRET", "PASS", "CRED", "PWD", "AUTH", "PRIVATE", "SALT", "PIN")
_NOT_TELLING = (
    *("KEYBOARD", "KEYMAP", "MONKEY", "AUTHOR", "KEYWORD", "GPG_KEY", "KEY_ID", "PUBLIC", "_PATH"),
    *("_FILE", "_DIR", "_SOCK", "_URL", "_HOST", "_NAME", "_USER", "_TYPE", "PASSIVE", "BYPASS"),
    *("SHOPPING", "SPINNER", "PINNED", "MAX_TOKENS", "TOKEN_LIMIT", "TOKENIZERS"),
)


class Guard:
    """Checks everything that is stored in one repository.

    There is one for an open repository. It reads the user's settings and the environment when it gets the first text.
    """

    def __init__(
        self,
        store_id: str,
        environment: Environment,
        *,
        disk: Disk | None = None,
        folder: str = "",
        place: str = "",
        mode: str = "",
    ) -> None:
        """Create a guard.

        Args:
            store_id: the id of the repository.
            environment: has known secrets and the location of the user's files.
            disk: reads those.
            folder: the project's folder, which may have a `.env`; "" without one.
            place: the path of its `.trace`; "" in memory.
            mode: one of `secrets.MODES`; "" uses the user's setting, or else `redact`.

        Raises:
            InvalidInputError: unknown mode.
        """
        if mode and mode not in secrets.MODES:
            raise errors.InvalidInputError(f"unknown mode {mode!r}", value=mode)
        self._store_id = store_id
        self._environment = environment
        self._disk = disk or Disk()
        self._folder = folder
        self._place = place
        self._mode = mode
        self._settings: Settings | None = None
        self._known: tuple[str, ...] = ()
        self._probes: tuple[bytes, ...] | None = None
        self._scanner: Scanner | None = None
        self._bytes_before_load = COLD_BYTES
        self._names: set[str] = set()

    @classmethod
    def of(cls, store: Store, environment: Environment, mode: str = "") -> Guard:
        """Return the guard of an open repository; arguments and errors as in the constructor."""
        folder = ""
        if store.local:
            above, name = os.path.split(store.layout.root)
            folder = above if name == DIRECTORY_NAME else ""
        disk, place = (store.disk, store.layout.root) if store.local else (None, "")
        store_id = store.config.store_id
        return cls(store_id, environment, disk=disk, folder=folder, place=place, mode=mode)

    @property
    def mode(self) -> str:
        """What happens to secrets; raises as `screened`."""
        if self._probes is None:
            self._read_settings()
        return self._mode

    @property
    def redacts(self) -> bool:
        """Whether secrets are replaced by placeholders; raises as `screened`."""
        return self.mode == secrets.REDACT

    @property
    def scanner(self) -> Scanner:
        """The scanner; raises as `screened`."""
        if self._probes is None:
            self._read_settings()
        return self._scanner or self._load()

    def gathering(self) -> ObjectCollector:
        """Return a collector for the objects of a commit that checks all content; raises as `screened`."""
        return ObjectCollector() if self.mode == secrets.OFF else _GuardedCollector(self)

    def meets(self, data: bytes) -> object:
        """Return a true value if data needs a closer look."""
        scanner = self._scanner
        if scanner is None:
            if self._probes is None:
                self._read_settings()
            self._bytes_before_load -= len(data) + CONTENT_BYTES
            if self._bytes_before_load > 0:
                return may_hold(data, self._probes or ())
            scanner = self._load()
        return scanner.meets(data)

    def passes(self, names: Collection[str]) -> bool:
        """Return True if no name needs a closer look; a name is a short text such as an id or a tool's name.

        Most names come again, so those that passed are remembered.
        """
        known = self._names
        if known.issuperset(names):
            return True
        new = [name for name in names if name not in known]
        if self.mode != secrets.OFF and self.meets(bytes_of("\n".join(new))):
            return False
        if len(known) > MAXIMUM_NAMES:
            known.clear()
        known.update(new)
        return True

    def check_name(self, name: str) -> None:
        """Raise SecretFoundError if the name of a ref holds a secret, unless the mode is `off` or `warn`."""
        if self.passes([name]) or self.mode == secrets.WARN:
            return
        found = self.scanner.find_bytes(bytes_of(name))
        if found:
            rule = found[0].rule
            raise errors.SecretFoundError(
                f"secret ({rule}) found in the name of a ref; nothing was stored",
                rule=rule,
                place="the name of a ref",
                id=found[0].id,
                count=len(found),
            )

    def screened(
        self, data: bytes, where: str = "", number: int = 1, hits: object = None
    ) -> tuple[bytes, list[SecretFinding]]:
        """Return data as it may be stored, the same object if unchanged, and the findings.

        Args:
            data: the bytes.
            where: what they are, for an error.
            number: the number of their first line.
            hits: the result of `meets`, or None if it was not called.

        Raises:
            SecretFoundError: there is a secret, and the mode is `block`; `place` is its position.
            InvalidInputError: the user's settings are not valid.
            StorageError: the user's files cannot be read.
        """
        mode = self.mode
        if mode == secrets.OFF:
            return data, []
        hits = hits or self.meets(data)
        if not hits:
            return data, []
        found = self.scanner.find_bytes(data, hits if isinstance(hits, list) else None)
        if not found or mode == secrets.WARN:
            return data, found
        if mode == secrets.BLOCK:
            first = found[0]
            place = f"{where}{', ' if where else ''}{position(data, first.start, number)}"
            raise errors.SecretFoundError(
                f"secret ({first.rule}) found in {place}; nothing was stored",
                rule=first.rule,
                place=place,
                id=first.id,
                count=len(found),
            )
        return secrets.engine.replaced(data, found), found

    def _read_settings(self) -> None:
        """Read the user's settings and the known secrets."""
        disk, environment = self._disk, self._environment
        path = environment.settings_file(SETTINGS) if environment.config_dir else ""
        if path and disk.exists(path):
            self._settings = secrets.settings.read_settings(
                read_file(disk, path, limit=MAXIMUM_FILE_BYTES) or b"", path
            )
            self._mode = self._mode or self._settings.mode
            self._bytes_before_load = 0  # the prefilter does not know the user's own rules
        self._mode = self._mode or secrets.REDACT
        pairs = list(environment.secrets)
        for name in ENV_FILES if self._folder else ():
            path = os.path.join(self._folder, name)
            if disk.exists(path):
                pairs += _env_values(_read_env(disk, os.path.realpath(path)))
        self._known = _secret_values(pairs)
        self._probes = tuple(map(_probe, self._known))

    def _load(self) -> Scanner:
        disk, environment, store_id = self._disk, self._environment, self._store_id
        self._scanner = secrets.engine.Scanner(
            () if self._settings is None else self._settings.rules,
            self._known,
            secrets.user_files.allowed(disk, environment, store_id),
            lambda: secrets.user_files.placeholder_key(disk, environment, store_id, self._place),
            environment.cache_folder(),
        )
        return self._scanner


class _GuardedCollector(ObjectCollector):
    """Collects objects whose content was checked."""

    __slots__ = ("_guard", "_number", "found", "unchanged")

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard
        self._number = 0
        self.found: list[SecretFinding] = []
        self.unchanged: list[SecretFinding] = []

    def put(self, content: bytes) -> ObjectId:
        self._number += 1
        hits = self._guard.meets(content)
        if hits:
            content = self._redact(content, f"content {self._number}", hits)
        return super().put(content)

    def content_writer(self, salt: Salt | None) -> Put:
        if salt is None:
            return self.put
        put = super().content_writer(salt)

        def screened(content: bytes) -> ObjectId:
            self._number += 1
            return put(self._redact(content, f"content {self._number}"))

        return screened

    def text(self, text: str) -> str:
        if not text:
            return text
        data = bytes_of(text)
        kept = self._redact(data, "the commit message")
        return text if kept is data else text_of(kept)

    def passes(self, names: Collection[str]) -> bool:
        return self._guard.passes(names)

    @property
    def secrets(self) -> Mapping[str, int]:
        found = self.found + self.unchanged
        return counts(found) if found else {}

    @property
    def unchanged_secrets(self) -> Mapping[str, int]:
        kept = self._guard.mode != secrets.REDACT
        return counts(self.unchanged + (self.found if kept else []))

    @property
    def facts(self) -> Mapping[str, Any]:
        return (
            {FACT: secrets.rules.VERSION}
            if self.found and self._guard.mode == secrets.REDACT
            else {}
        )

    def _redact(self, data: bytes, where: str, hits: object = None) -> bytes:
        kept, found = self._guard.screened(data, where, hits=hits)
        if isinstance(data, RawContent):
            self.unchanged += found
            return data
        self.found += found
        return kept


def counts(found: list[SecretFinding]) -> dict[str, int]:
    """Return the number of secrets of each kind, most frequent first."""
    by_rule: dict[str, int] = {}
    for each in found:
        by_rule[each.rule] = by_rule.get(each.rule, 0) + 1
    return dict(sorted(by_rule.items(), key=lambda pair: (-pair[1], pair[0])))


def position(data: bytes, at: int, number: int = 1) -> str:
    """Return a position as text, such as `line 3, column 7`; `number` is the number of the first line."""
    line = data.count(b"\n", 0, at) + number
    column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    return f"line {line}, column {column}"


def _read_env(disk: Disk, path: str) -> bytes:
    try:
        return read_file(disk, path, limit=MAXIMUM_FILE_BYTES) or b""
    except errors.StorageError:
        return b""  # not readable for us


def may_hold(content: bytes, known: Sequence[bytes]) -> bool:
    """Return True if the scanner must look at a short text.

    Args:
        content: the text.
        known: parts of known secrets; an empty one matches every text.
    """
    for piece in known:
        if piece in content:
            return True
    if any(map(content.__contains__, _ESCAPES)):
        return True
    if b"://" in content and b"@" in content:
        return True
    # A secret that is recognised by its form alone is long and has no blanks.
    if max(map(len, content.split()), default=0) >= _SHORTEST_TOKEN and _may_hold_token(content):
        return True
    if content.count(b":") - content.count(b'":') > 3:
        return True  # .pgpass; a colon behind a quote is one of JSON
    low = content.lower()
    if b"=" in low or b":" in low or any(map(low.__contains__, _LISTS)):
        for word in NAMES:
            if word in low and _is_followed(low, word, True):
                return True
    if (b"-u" in low or b"-a" in low) and any(map(low.__contains__, _FETCHERS)):
        return True
    # In lists, tables and calls a name and a value have no sign between.
    if any(map(low.__contains__, _ANY_NAME)) and any(map(_is_mixed, content.split())):
        return True
    flat = b" ".join(low.split())
    for word in SPACED:  # noqa: SIM110 - a generator takes a call for each word
        if word in flat and _is_followed(flat, word, False):
            return True
    return False


def _is_mixed(word: bytes) -> bool:
    """Return True if a word is long enough for a value and has a digit or mixed case."""
    if len(word) < _TOKEN_BYTES:
        return False
    inner = word[1:]
    return not _DIGITS.isdisjoint(word) or not (inner.islower() or inner.isupper())


def _may_hold_token(content: bytes) -> bool:
    for word in BEGINNINGS:
        if word in content and _begins_token(content, word):
            return True
    if b"-us" in content and any(b"-us%d" % digit in content for digit in range(10)):
        return True
    if any(word.count(b".") == 2 and len(word) >= _BOT_TOKEN for word in content.split()):
        return True
    return any(map(content.__contains__, MARKS))


def _begins_token(content: bytes, word: bytes) -> bool:
    at = content.find(word)
    while at >= 0:
        behind = content[at + len(word) : at + len(word) + _TOKEN_BYTES]
        # The letter before may belong to an escape sequence.
        alone = at == 0 or content[at - 1] not in _IN_WORDS or content[max(0, at - 2)] == 0x5C
        alone = alone or content[at - 1 : at] in (b"m", b"D")  # of a colour, or of `=3D`
        if alone and len(behind) == _TOKEN_BYTES and _IN_TOKENS.issuperset(behind):
            return True
        at = content.find(word, at + 1)
    return False


def _is_followed(low: bytes, word: bytes, given: bool) -> bool:
    """Return True if a value may follow a word; `given` requires a sign between."""
    at = low.find(word)
    while at >= 0:
        behind = low[at + len(word) : at + len(word) + _REACH]
        signs = [n for n, each in enumerate(behind) if each in _SIGNS] if given else [-1]
        for sign in signs:
            said = behind[sign + 1 :].lstrip(_NO_VALUE).split(None, 1)
            if not said:
                continue
            several = len(said) > 1 and (not given or said[0] in _SCHEMES)
            if several or len(said[0]) >= _TOKEN_BYTES:
                return True
        at = low.find(word, at + 1)
    return False


def _secret_values(variables: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the values that are secrets by their name and value, without duplicates."""
    found = dict.fromkeys(value for name, value in variables if _is_secret(name.upper(), value))
    return tuple(found)[:MAXIMUM_VALUES]


def _is_secret(name: str, value: str) -> bool:
    if len(value) < MINIMUM_CHARACTERS or not any(map(name.__contains__, _TELLING)):
        return False
    if any(map(name.__contains__, _NOT_TELLING)) or not value.isprintable():
        return False
    if value[0] in "/~." or "://" in value or value.startswith(("${", "$(", "<", "[redacted:")):
        return False
    if value[1:3] == ":\\" or value.lower().startswith(("your", "change", "xxxx", "example")):
        return False
    # Prose and numbers such as sizes are not secrets; they occur in texts for other reasons.
    letters = value.replace("-", "").replace("_", "").replace(" ", "")
    if letters.isalpha() and (letters.islower() or letters.istitle() or letters.isupper()):
        return len(letters) >= 20 and " " not in value and "-" not in value and "_" not in value
    return not (value.isdigit() and len(value) < 12)


def _env_values(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield names and values of a `.env` file; other lines are ignored."""
    for line in data.decode("utf-8", "replace").splitlines():
        name, is_, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not is_ or not name.replace("_", "").replace(".", "").isalnum():
            continue
        quote = value[:1]
        if quote in ("'", '"', "`") and value.find(quote, 1) > 0:
            value = value[1 : value.find(quote, 1)]
        else:
            value = value.partition(" #")[0].strip()
        yield name, value


def _probe(secret: str) -> bytes:
    """Return the longest part of a value that escaping never changes; empty if it is too short."""
    pieces = [""]
    for each in secret:
        if each.isascii() and (each.isalnum() or each in "_-.+=@:"):
            pieces[-1] += each
        elif pieces[-1]:
            pieces.append("")
    longest = max(pieces, key=len)
    return longest.encode() if len(longest) > 3 else b""
