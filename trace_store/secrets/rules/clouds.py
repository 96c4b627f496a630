"""Secrets of clouds, hosting, databases and secret managers."""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import BEFORE, GAP, Rule, near, token

_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_KEY = checks.at_least(3)
_LONG = checks.at_least(3.5)


CLOUDS = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html: prefixes, base 32
    Rule(
        "aws-access-key",
        rf"{BEFORE}((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}})\b",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        checks.at_least(2.5),
        trigger="(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7][A-Z2-7]",
    ),
    # docs.aws.amazon.com/sdkref/latest/guide/feature-static-credentials.html
    near(
        "aws-secret-key",
        "aws_secret aws-secret awssecret secretaccesskey secret_access_key secret_key aws_sec",
        "[A-Za-z0-9/+]{40}",
        _LONG,
        end="(?:[^A-Za-z0-9/+=]|\\z)",
    ),
    near(
        "aws-session-token",
        "aws_session_token sessiontoken session_token aws_security_token",
        "[A-Za-z0-9/+]{100,}={0,2}",
        _LONG,
        end="",
    ),
    # docs.aws.amazon.com/bedrock/latest/userguide/api-keys.html
    token("aws-bedrock-api-key", "ABSK", "[A-Za-z0-9+/]{100,270}={0,2}", _LONG, end=""),
    token("aws-bedrock-session-key", "bedrock-api-key-", "[A-Za-z0-9+/=]{60,}", _LONG, end=""),
    # cloud.google.com/docs/authentication/api-keys
    token("google-api-key", "AIza", "[A-Za-z0-9_-]{35}", _KEY, end=""),
    # developers.google.com/identity/protocols/oauth2
    token("google-oauth-secret", "GOCSPX-", "[A-Za-z0-9_-]{28}", _KEY, end=""),
    token("google-access-token", "ya29.", "[A-Za-z0-9_.-]{30,}", _KEY, end=""),
    token("google-refresh-token", "1//0", "[A-Za-z0-9_-]{40,}", _LONG, end=""),
    # learn.microsoft.com/azure/storage/common/storage-account-keys-manage: 64 bytes in base64
    Rule(
        "azure-storage-key",
        r"(?i:AccountKey)(?:=|%3D)([A-Za-z0-9+/]{86}==)",
        ("accountkey",),
        _LONG,
        loose=True,
    ),
    # learn.microsoft.com/azure/service-bus-messaging/service-bus-sas: 32 bytes in base64
    Rule(
        "azure-shared-access-key",
        r"(?i:SharedAccessKey)=([A-Za-z0-9+/_-]{42,44}=?)",
        ("sharedaccesskey",),
        _KEY,
        loose=True,
    ),
    # learn.microsoft.com/azure/storage/common/storage-sas-overview: the signature of a URL
    Rule(
        "azure-sas-signature",
        r"[?&;]sig=([A-Za-z0-9%+/]{43,60}(?:%3[dD]|=))",
        ("sig=",),
        _KEY,
        trigger="[?&;]sig=",
    ),
    # learn.microsoft.com/purview/sit-defn-azure-ad-client-secret
    Rule(
        "azure-client-secret",
        rf"{BEFORE}([A-Za-z0-9_~.]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}})",
        ("Q~",),
        _LONG,
        trigger="[0-9]Q~",
    ),
    # learn.microsoft.com/azure/devops/organizations/accounts/use-personal-access-tokens: 84 with a signature
    Rule(
        "azure-devops-token",
        rf"{BEFORE}([A-Za-z0-9]{{76}}AZDO[A-Za-z0-9]{{4}})\b",
        ("AZDO",),
        _LONG,
        trigger="AZDO",
    ),
    near("azure-devops-pat", "azure_devops ado_pat azdo system_accesstoken", "[a-z2-7]{52}", _KEY),
    # github.com/microsoft/security-utilities: the service's signature has a fixed position. A digest of
    # SHA-512 is as long as the first of these.
    Rule(
        "azure-signed-key",
        rf"{BEFORE}([A-Za-z0-9+/]{{76}}(?:ACDb|\+ASt|\+ABa|\+AMC|APIM)[A-Za-z0-9+/]{{5}}[AQgw]=="
        r"|[A-Za-z0-9+/]{33}(?:AIoT|AzCa|\+ASb|\+AEh|\+ARm)[A-Za-z0-9+/]{5}[AEIMQUYcgkosw048]="
        r"|[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{5}[AQgw]=="
        r"|[A-Za-z0-9+/]{42}(?:AzSe|\+ACR)[A-D][A-Za-z0-9+/]{5}"
        r"|[A-Za-z0-9]{52}JQQJ9[9DH][A-Za-z0-9][A-L][A-Za-z0-9]{16}[A-Za-z][A-Za-z0-9]{7}(?:[A-Za-z0-9]{2}==)?)",
        (
            "AzFu",
            "AzSe",
            "ACDb",
            "+ASt",
            "+ABa",
            "+ACR",
            "AIoT",
            "+AMC",
            "APIM",
            "AzCa",
            "+ASb",
            "+AEh",
            "+ARm",
            "JQQJ9",
        ),
        _LONG,
        unless=r"(?i:sha[0-9]{1,3}[-:])\z",
    ),
    # docs.digitalocean.com/reference/api/create-personal-access-token
    token("digitalocean-token", "dop_v1_", "[a-f0-9]{64}"),
    token("digitalocean-oauth-token", "doo_v1_", "[a-f0-9]{64}"),
    token("digitalocean-refresh-token", "dor_v1_", "[a-f0-9]{64}"),
    # devcenter.heroku.com/articles/platform-api-quickstart
    token("heroku-api-key", "HRKU-", "[A-Za-z0-9_-]{36,62}", _KEY, end=""),
    near("heroku-legacy-key", "heroku", _UUID),
    # developers.cloudflare.com/fundamentals/api
    token("cloudflare-origin-key", "v1.0-", "[a-f0-9]{24}-[a-f0-9]{146}"),
    near("cloudflare-token", "cloudflare cf_api", "[A-Za-z0-9_-]{37,40}", checks.is_key, end=""),
    # docs.netlify.com/api/get-started, vercel.com/docs/rest-api, fly.io/docs/security/tokens
    token("netlify-token", "nfp_", "[A-Za-z0-9]{36}", _KEY),
    near("vercel-token", "vercel", "[A-Za-z0-9]{24}", checks.is_key),
    token("vercel-blob-token", "vercel_blob_rw_", "[A-Za-z0-9]{16}_[A-Za-z0-9]{20,}", _KEY),
    Rule(
        "flyio-token",
        rf"{BEFORE}(fm[12][ar]?_[A-Za-z0-9+/=_,-]{{100,}})",
        ("fm1", "fm2"),
        _LONG,
        r"fm[12][ar]?_",
    ),
    token("flyio-auth-token", "fo1_", "[A-Za-z0-9_-]{43}", _KEY, end=""),
    token("render-api-key", "rnd_", "[A-Za-z0-9]{28,32}", _KEY),
    # docs.fastly.com/en/guides/using-api-tokens
    near("fastly-token", "fastly", "[A-Za-z0-9_-]{32}", checks.is_key, end=""),
    # supabase.com/docs/guides/api/api-keys
    token("supabase-token", "sbp_", "[a-f0-9]{40}"),
    token("supabase-secret-key", "sb_secret_", "[A-Za-z0-9_-]{22,}", _KEY, end=""),
    # planetscale.com/docs/concepts/service-tokens, neon.tech/docs/manage/api-keys
    token("planetscale-token", "pscale_tkn_", "[A-Za-z0-9_.=-]{32,64}", _KEY, end=""),
    token("planetscale-password", "pscale_pw_", "[A-Za-z0-9_.=-]{32,64}", _KEY, end=""),
    token("planetscale-oauth-token", "pscale_oauth_", "[A-Za-z0-9_.=-]{32,64}", _KEY, end=""),
    token("neon-api-key", "napi_", "[a-z0-9]{60,70}", _KEY),
    # docs.databricks.com/dev-tools/auth/pat
    token("databricks-token", "dapi", "[a-f0-9]{32}(?:-[0-9])?"),
    token("databricks-oauth-secret", "dose", "[a-f0-9]{32}"),
    # docs.snowflake.com/developer-guide/sql-api/authenticating
    token(
        "snowflake-session-token", "ver:", r"[0-9]-hint:[0-9]+-[A-Za-z0-9+/=_-]{60,}", _LONG, end=""
    ),
    # docs.doppler.com/reference/auth-token-formats
    Rule(
        "doppler-token",
        rf"{BEFORE}(dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?[A-Za-z0-9]{{40,44}})\b",
        ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
    ),
    # developer.hashicorp.com/vault/docs/concepts/tokens
    token("vault-token", "hvs.", "[A-Za-z0-9_-]{24,}", _KEY, end=""),
    token("vault-batch-token", "hvb.", "[A-Za-z0-9_-]{100,}", _KEY, end=""),
    token("vault-recovery-token", "hvr.", "[A-Za-z0-9_-]{24,}", _KEY, end=""),
    near("vault-legacy-token", "vault_token x-vault-token", r"s\.[A-Za-z0-9]{24}", _KEY),
    # developer.hashicorp.com/terraform/cloud-docs/users-teams-organizations/api-tokens
    Rule(
        "terraform-token",
        rf"{BEFORE}([A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}})",
        (".atlasv1.",),
    ),
    token("pulumi-token", "pul-", "[a-f0-9]{40}"),
    # developer.1password.com/docs/service-accounts, tailscale.com/kb/1277/key-prefixes
    token("1password-service-token", "ops_eyJ", "[A-Za-z0-9+/_-]{200,}={0,2}", end=""),
    Rule(
        "tailscale-key",
        rf"{BEFORE}(tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{{8,}}(?:-[A-Za-z0-9]{{16,}})?)",
        ("tskey-",),
        _KEY,
    ),
    # www.alibabacloud.com/help/ram, cloud.tencent.com/document/product/598
    Rule(
        "alibaba-secret-key",
        rf"(?i:aliyun|alibaba|alicloud|oss_access_key|access_?key_?secret){GAP}([A-Za-z0-9]{{30}})\b",
        ("aliyun", "alibaba", "alicloud", "oss_access_key", "secret"),
        checks.is_key,
        trigger=r"(?i:aliyun|alibaba|alicloud|oss_access_key|access_?key_?secret)",
        loose=True,
    ),
    near("tencent-secret-key", "tencentcloud tencent_secret", "[A-Za-z0-9]{32}", checks.is_key),
    # yandex.cloud/docs/iam/concepts/authorization/api-key, cloud.ibm.com/docs/account
    token("yandex-api-key", "AQVN", "[A-Za-z0-9_-]{35,38}", _KEY, end=""),
    near(
        "ibm-cloud-api-key",
        "ibmcloud ibm_api ibm_cloud",
        "[A-Za-z0-9_-]{44}",
        checks.is_key,
        end="",
    ),
    # docs.scalingo.com, upstash.com/docs
    token("scalingo-token", "tk-us-", "[A-Za-z0-9_-]{48}", _KEY, end=""),
)
