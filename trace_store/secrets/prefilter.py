"""A fast check whether a short text may contain a secret, before the scanner is loaded.

It may say no only if the scanner would find nothing; a test compares the words here with the rules. Every commit runs
it, so it imports nothing and loops over constants.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COLD_BYTES = 64 << 10
CONTENT_BYTES = 512
"""The prefilter checks this many bytes per process, plus an overhead per content.

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
_REACH = 80
"""Maximum distance between a name and its value."""


def may_hold(content: bytes, known: Sequence[bytes]) -> bool:
    """Return True if the scanner must look at a short text.

    Args:
        content: the text.
        known: parts of known secrets; an empty one matches every text.
    """
    for piece in known:
        if piece in content:
            return True
    if b"\\u00" in content or b"\\/" in content or b"%3D" in content:
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
