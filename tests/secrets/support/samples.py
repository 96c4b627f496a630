"""A set of our own: secrets in the places where they stand, and harmless texts that look like some.

Everything is put together from parts with a fixed seed, so that no file of this repository holds what looks like a
secret, and nothing here is one. The forms are those that issuers document; they were not made from the rules.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable
from typing import NamedTuple

from trace_store.secrets.checks import checksum

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
B32 = string.ascii_uppercase + "234567"
URL64 = ALNUM + "-_"
B64 = ALNUM + "+/"


class Secret(NamedTuple):
    """A secret: its kind, its value, and the text around it."""

    kind: str
    value: str
    text: str


class Dice:
    """Random texts that are the same at each run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, alphabet: str, size: int) -> str:
        return "".join(self.random.choices(alphabet, k=size))

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def github(self, prefix: str, size: int = 30) -> str:
        body = self.of(ALNUM, size)
        return prefix + body + checksum(body.encode()).decode()

    def base64(self, size: int) -> str:
        return base64.b64encode(self.random.randbytes(size)).decode()

    def jwt(self) -> str:
        parts = (
            {"alg": "HS256", "typ": "JWT"},
            {"sub": self.of(string.digits, 8), "iat": 1760000000},
        )
        encoded = [
            base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts
        ]
        return f"{encoded[0].decode()}.{encoded[1].decode()}.{self.of(URL64, 43)}"

    def armour(self, kind: str) -> str:
        body = self.base64(1190)
        lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
        return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


# With a distinctive format: found anywhere.
TOKENS: dict[str, Callable[[Dice], str]] = {
    "github classic": lambda d: d.github("gh" + "p_"),
    "github app": lambda d: d.github("gh" + "s_"),
    "github fine-grained": lambda d: f"github_{'pat'}_{d.of(ALNUM, 22)}_{d.of(ALNUM, 59)}",
    "gitlab": lambda d: f"gl{'pat'}-{d.of(URL64, 20)}",
    "gitlab runner": lambda d: f"gl{'rt'}-{d.of(URL64, 20)}",
    "npm": lambda d: d.github("npm" + "_"),
    "pypi": lambda d: f"pypi-{'AgEIcHlwaS5vcmc'}{d.of(URL64, 150)}",
    "rubygems": lambda d: f"rubygems{'_'}{d.of(HEX, 48)}",
    "docker": lambda d: f"dckr_{'pat'}_{d.of(URL64, 27)}",
    "aws id": lambda d: "AK" + "IA" + d.of(B32, 16),
    "google api": lambda d: "AI" + "za" + d.of(URL64, 35),
    "google oauth": lambda d: "GOC" + "SPX-" + d.of(URL64, 28),
    "azure ad": lambda d: f"{d.of(ALNUM, 3)}8Q~{d.of(ALNUM + '_~.-', 34)}",
    "digitalocean": lambda d: f"do{'p'}_v1_{d.of(HEX, 64)}",
    "databricks": lambda d: "da" + "pi" + d.of(HEX, 32),
    "vault": lambda d: f"hv{'s'}.{d.of(URL64, 95)}",
    "terraform": lambda d: f"{d.of(ALNUM, 14)}.{'atlas'}v1.{d.of(URL64, 67)}",
    "pulumi": lambda d: f"pu{'l'}-{d.of(HEX, 40)}",
    "doppler": lambda d: f"dp.{'pt'}.{d.of(ALNUM, 43)}",
    "supabase": lambda d: f"sb{'p'}_{d.of(HEX, 40)}",
    "netlify": lambda d: f"nf{'p'}_{d.of(ALNUM, 36)}",
    "anthropic": lambda d: f"sk-{'ant'}-api03-{d.of(URL64, 93)}AA",
    "openai": lambda d: f"sk-{'proj'}-{d.of(URL64, 74)}T3Blbk{'FJ'}{d.of(URL64, 74)}",
    "openrouter": lambda d: f"sk-{'or'}-v1-{d.of(HEX, 64)}",
    "deepseek": lambda d: f"sk{'-'}{d.of(HEX, 32)}",
    "huggingface": lambda d: f"hf{'_'}{d.of(string.ascii_letters, 34)}",
    "groq": lambda d: f"gs{'k'}_{d.of(ALNUM, 52)}",
    "xai": lambda d: f"xa{'i'}-{d.of(ALNUM, 80)}",
    "perplexity": lambda d: f"ppl{'x'}-{d.of(ALNUM, 48)}",
    "replicate": lambda d: f"r{'8'}_{d.of(ALNUM, 37)}",
    "pinecone": lambda d: f"pc{'sk'}_{d.of(ALNUM, 6)}_{d.of(ALNUM, 63)}",
    "langsmith": lambda d: f"lsv2_{'pt'}_{d.of(HEX, 32)}_{d.of(HEX, 10)}",
    "stripe": lambda d: f"sk_{'live'}_{d.of(ALNUM, 24)}",
    "stripe restricted": lambda d: f"rk_{'live'}_{d.of(ALNUM, 99)}",
    "stripe webhook": lambda d: f"wh{'sec'}_{d.of(ALNUM, 32)}",
    "slack bot": lambda d: (
        f"xo{'xb'}-{d.of(string.digits, 12)}-{d.of(string.digits, 13)}-{d.of(ALNUM, 24)}"
    ),
    "sendgrid": lambda d: f"S{'G'}.{d.of(URL64, 22)}.{d.of(URL64, 43)}",
    "mailgun": lambda d: f"ke{'y'}-{d.of(HEX, 32)}",
    "mailchimp": lambda d: f"{d.of(HEX, 32)}-u{'s'}17",
    "telegram": lambda d: f"{d.of('123456789', 10)}:A{'A'}{d.of(URL64, 33)}",
    "shopify": lambda d: f"shp{'at'}_{d.of(HEX, 32)}",
    "square": lambda d: f"sq0{'atp'}-{d.of(URL64, 22)}",
    "linear": lambda d: f"lin_{'api'}_{d.of(ALNUM, 40)}",
    "notion": lambda d: f"nt{'n'}_{d.of(ALNUM, 46)}",
    "figma": lambda d: f"fi{'gd'}_{d.of(URL64, 40)}",
    "airtable": lambda d: f"pa{'t'}{d.of(ALNUM, 14)}.{d.of(HEX, 64)}",
    "postman": lambda d: f"PM{'AK'}-{d.of(HEX, 24)}-{d.of(HEX, 34)}",
    "new relic": lambda d: f"NR{'AK'}-{d.of(UPPER, 27)}",
    "grafana": lambda d: f"gl{'sa'}_{d.of(ALNUM, 32)}_{d.of(HEX, 8)}",
    "sentry": lambda d: f"sn{'tryu'}_{d.of(HEX, 64)}",
    "atlassian": lambda d: f"ATA{'TT3'}xFfGF0{d.of(URL64, 170)}={d.of('0123456789ABCDEF', 8)}",
    "age": lambda d: f"AGE-{'SECRET'}-KEY-1{d.of('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}",
    "jwt": Dice.jwt,
    "rsa key": lambda d: d.armour("RSA "),
    "openssh key": lambda d: d.armour("OPENSSH "),
    "pkcs8 key": lambda d: d.armour(""),
}

PLACES: tuple[Callable[[str], str], ...] = (
    lambda s: f"SOME_VARIABLE={s}\nDEBUG=1\n",
    lambda s: json.dumps({"role": "tool", "content": f"$ cat notes\n{s}\n"}),
    lambda s: f"    client = Client({s!r})\n",
    lambda s: f"I found this in the settings:\n\n{s}\n\nShall I use it?",
    lambda s: json.dumps({"input": {"command": json.dumps({"env": {"X": f"\t{s}"}})}}),
    lambda s: f"2026-03-02 09:15:22 INFO connecting ({s}) ...",
)

# Recognized only by the text before them.
NAMED: dict[str, Callable[[Dice], tuple[str, str]]] = {
    "aws secret": lambda d: _in(d.of(B64, 40), "aws_secret_access_key = {}\nregion = eu-west-1"),
    "aws secret json": lambda d: _in(d.of(B64, 40), '{{"SecretAccessKey": "{}", "x": 1}}'),
    "azure storage": lambda d: _in(
        d.base64(64), "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x"
    ),
    "azure service bus": lambda d: _in(
        d.base64(32), "Endpoint=sb://x.net/;SharedAccessKeyName=Root;SharedAccessKey={}"
    ),
    "azure sas": lambda d: _in(
        d.of(ALNUM, 43) + "%3D", "https://a.blob.example/c?sv=2024-11-04&sr=c&sig={}"
    ),
    "slack webhook": lambda d: _in(
        f"T{d.of(UPPER, 10)}/B{d.of(UPPER, 10)}/{d.of(ALNUM, 24)}",
        "https://hooks.slack.com/services/{}",
    ),
    "discord webhook": lambda d: _in(
        f"{d.of('123456789', 19)}/{d.of(URL64, 68)}", "https://discord.com/api/webhooks/{}"
    ),
    "twilio": lambda d: _in(d.of(HEX, 32), 'TWILIO_AUTH_TOKEN="{}"'),
    "heroku": lambda d: _in(d.uuid(), "HEROKU_API_KEY: {}"),
    "cloudflare": lambda d: _in(d.of(URL64, 40), "export CLOUDFLARE_API_TOKEN={}"),
    "datadog": lambda d: _in(d.of(HEX, 32), "DD_API_KEY={} DD_SITE=datadoghq.eu agent run"),
    "mistral": lambda d: _in(d.of(ALNUM, 32), 'os.environ["MISTRAL_API_KEY"] = "{}"'),
    "wandb": lambda d: _in(d.of(HEX, 40), "wandb_api_key: {}"),
    "postgres url": lambda d: _in(
        d.of(ALNUM, 16), "DATABASE_URL=postgres://app:{}@db.internal:5432/app"
    ),
    "mongo url": lambda d: _in(
        d.of(ALNUM, 12), "mongodb+srv://svc:{}@cluster0.example.net/x?w=majority"
    ),
    "redis url": lambda d: _in(d.of(URL64, 20), '"redis://:{}@10.0.0.5:6379/0"'),
    "basic header": lambda d: _in(
        base64.b64encode(f"ada:{d.of(ALNUM, 14)}".encode()).decode(),
        'curl -H "Authorization: Basic {}" x',
    ),
    "bearer header": lambda d: _in(d.of(URL64, 40), "Authorization: Bearer {}\r\nAccept: */*"),
    "api key header": lambda d: _in(d.of(HEX, 40), 'headers = {{"X-Api-Key": "{}"}}'),
    "netrc": lambda d: _in(d.of(ALNUM, 12), "machine git.example.org login ada password {}"),
    "npmrc": lambda d: _in(d.base64(24), "//registry.example.org/:_authToken={}"),
    "docker auth": lambda d: _in(
        base64.b64encode(f"ada:{d.of(ALNUM, 14)}".encode()).decode(),
        '{{"auths": {{"r.io": {{"auth": "{}"}}}}}}',
    ),
    "sshpass": lambda d: _in(d.of(ALNUM, 10) + "!7", "sshpass -p '{}' ssh root@10.0.0.7"),
    "curl user": lambda d: _in(d.of(ALNUM, 14), "curl -u ada:{} https://api.example.org/v1"),
    "password yaml": lambda d: _in(
        "Kx9" + d.of(ALNUM + "!#%", 9), "db:\n  user: app\n  password: {}\n"
    ),
    "password python": lambda d: _in(
        "Kx9" + d.of(ALNUM, 9), 'conn = connect(user="app", password="{}")'
    ),
    "password json": lambda d: _in(
        "Kx9" + d.of(ALNUM, 9), '{{\\"user\\": \\"app\\", \\"password\\": \\"{}\\"}}'
    ),
    "password ado": lambda d: _in(
        "Kx9" + d.of(ALNUM, 9), "Server=db;Database=app;User Id=app;Password={};"
    ),
    "django secret": lambda d: _in(d.of(LOWER + "!@#%^*-_+", 50), "SECRET_KEY = '{}'"),
    "client secret": lambda d: _in(d.of(URL64, 40), 'client_id: "app", client_secret: "{}"'),
    "generic api key": lambda d: _in(d.of(ALNUM, 32), 'const API_KEY = "{}";'),
    "access token json": lambda d: _in(
        d.of(URL64, 64), '{{"access_token":"{}","expires_in":3600}}'
    ),
    "discord bot": lambda d: _in(
        f"M{d.of(URL64, 25)}.{d.of(URL64, 6)}.{d.of(URL64, 38)}", "DISCORD_TOKEN={}"
    ),
    "wireguard": lambda d: _in(
        d.of(B64, 42) + "M=", "[Interface]\nPrivateKey = {}\nAddress = 10.0.0.2"
    ),
    "kubeconfig": lambda d: _in(
        base64.b64encode(d.armour("RSA ").encode()).decode(), "    client-key-data: {}\n"
    ),
    "okta": lambda d: _in("00" + d.of(URL64, 40), "Authorization: SSWS {}"),
    # What the limits in docs/secrets.md speak of: nothing tells these from prose and names.
    "in words": lambda d: _in("swordfish", "the password is {}, but do not tell"),
    "letters alone": lambda d: _in("correcthorse", 'password = "{}"'),
    "short": lambda d: _in("x7!k", 'password: "{}"'),
    "cut in two": lambda d: _in(d.of(ALNUM, 36), 'token = "gh" + "p_" + "{}"'),
}


def _in(value: str, text: str) -> tuple[str, str]:
    return value, text.format(value)


def secrets() -> list[Secret]:
    """Return the secrets."""
    dice = Dice(20261122)
    found: list[Secret] = []
    for number, (kind, make) in enumerate(TOKENS.items()):
        for turn in range(2):
            value = make(dice)
            place = PLACES[(number + 3 * turn) % len(PLACES)]
            found.append(Secret(kind, value, place(value)))
    for kind, make_named in NAMED.items():
        value, text = make_named(dice)
        found.append(Secret(kind, value, text))
    return found


def harmless(count: int = 1000) -> list[str]:
    """Return harmless texts, of every kind as many."""
    dice = Dice(22112026)
    word = dice.random.choice
    words = [
        "parse",
        "user",
        "token",
        "secret",
        "config",
        "render",
        "password",
        "index",
        "auth",
        "key",
    ]

    def name() -> str:
        return "_".join(dice.random.sample(words, 3))

    kinds: tuple[Callable[[], str], ...] = (
        lambda: f"commit {dice.of(HEX, 40)}\nAuthor: Ada <ada@example.org>",
        lambda: f"{dice.of(HEX, 7)}..{dice.of(HEX, 7)} 100644",
        lambda: json.dumps(
            {"uuid": dice.uuid(), "parentUuid": dice.uuid(), "sessionId": dice.uuid()}
        ),
        lambda: f"sha256:{dice.of(HEX, 64)}  dist/app-{dice.random.randint(1, 99)}.tar.gz",
        lambda: f'"integrity": "sha512-{dice.base64(64)}"',
        lambda: f'name = "serde"\nchecksum = "{dice.of(HEX, 64)}"',
        lambda: f"h1:{dice.base64(32)}",
        lambda: f"data:image/png;base64,iVBORw0KGgo{dice.base64(dice.random.randint(200, 900))}",
        lambda: f'{{"type":"base64","media_type":"image/png","data":"{dice.base64(600)}"}}',
        lambda: f"tests/test_{name()}.py::test_{name()} PASSED",
        lambda: (
            f'!function(e,t){{var n=t.{dice.of(string.ascii_lowercase, 3)};e.exports=n("{dice.of(LOWER, 5)}")}}'
        ),
        lambda: json.dumps(
            {"input_tokens": dice.random.randint(1, 10**6), "cache_read_input_tokens": 7}
        ),
        lambda: f"order {dice.of(string.digits, 12)} of customer C-{dice.of(string.digits, 8)}",
        lambda: f"toolu_{dice.of(ALNUM, 24)} answered msg_{dice.of(ALNUM, 24)}",
        lambda: f'{{"id": "call_{dice.of(ALNUM, 24)}", "type": "function"}}',
        lambda: (
            f'{{"id":"chatcmpl-{dice.of(ALNUM, 29)}","system_fingerprint":"fp_{dice.of(HEX, 10)}"}}'
        ),
        lambda: f"password = get_{name()}(user)",
        lambda: f"def {name()}(token: str, api_key: str | None = None) -> None: ...",
        lambda: f'api_key = os.environ["{name().upper()}"]',
        lambda: f"apiKey: process.env.{name().upper()}_KEY,",
        lambda: f"password: ${{{{ secrets.{name().upper()} }}}}",
        lambda: f"export TOKEN=<your {word(words)} token>",
        lambda: (
            f'password="{word(["changeme", "example-password", "your-password-here", "xxxxxxxxxxxx"])}"'
        ),
        lambda: "Authorization: Bearer $TOKEN",
        lambda: (
            f"https://example.org:{dice.random.randint(1000, 9999)}/a/b?page={dice.random.randint(1, 9)}"
        ),
        lambda: f"git@github.com:ada/{word(words)}-{dice.of(LOWER, 6)}.git",
        lambda: f"postgres://postgres:postgres@localhost:5432/{word(words)}",
        lambda: f"task-{dice.of(LOWER, 10)}-{dice.of(LOWER, 5)}   1/1  Running",
        lambda: f'ETag: "{dice.of(HEX, 32)}"\nX-Request-Id: {dice.uuid()}',
        lambda: f"next_page_token: {dice.of(ALNUM, 30)}",
        lambda: f"{dice.random.random():.15f} {dice.random.getrandbits(60)}",
        lambda: f"-----BEGIN CERTIFICATE-----\n{dice.base64(300)}\n-----END CERTIFICATE-----",
        lambda: f"-----BEGIN PUBLIC KEY-----\n{dice.base64(300)}\n-----END PUBLIC KEY-----",
        lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{dice.of(B64, 44)} ada@laptop",
        lambda: (
            f"npm_config_cache=/home/ada/.npm npm_package_version={dice.random.randint(1, 9)}.0.1"
        ),
        lambda: f'W/"{dice.of(ALNUM, 27)}" last-modified {dice.random.randint(10**9, 2 * 10**9)}',
        lambda: f"//# sourceMappingURL=app.{dice.of(HEX, 20)}.js.map",
        lambda: f"color: #{dice.of(HEX, 6)}; --token-{word(words)}: {dice.random.randint(1, 99)}px",
        lambda: f"the tokenizer said {dice.random.randint(1, 9999)} tokens; secret: none of that",
        lambda: f'<input type="password" name="{name()}" autocomplete="current-password">',
    )
    return [kinds[number % len(kinds)]() for number in range(count)]
