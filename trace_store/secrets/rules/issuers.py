"""Secrets of issuers: model providers, clouds, code hosts and other services.

Their format or a name beside them identifies them.
"""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import BEFORE, GAP, Rule, near, token

_KEY = checks.at_least(3)
_LONG = checks.at_least(3.5)
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

MODELS = (
    # docs.anthropic.com/en/api: keys name what they are for
    Rule(
        "anthropic-api-key",
        rf"{BEFORE}(sk-ant-api[0-9]{{2}}-[A-Za-z0-9_-]{{60,}})",
        ("sk-ant-api",),
        _KEY,
    ),
    Rule(
        "anthropic-admin-key",
        rf"{BEFORE}(sk-ant-admin[0-9]{{2}}-[A-Za-z0-9_-]{{60,}})",
        ("sk-ant-admin",),
        _KEY,
    ),
    Rule(
        "anthropic-oauth-token",
        rf"{BEFORE}(sk-ant-(?:oat|ort|sid)[0-9]{{2}}-[A-Za-z0-9_-]{{60,}})",
        ("sk-ant-oat", "sk-ant-ort", "sk-ant-sid"),
        _KEY,
    ),
    # platform.openai.com/docs/api-reference/authentication: T3BlbkFJ is base64 of OpenAI
    Rule(
        "openai-api-key",
        rf"{BEFORE}(sk-(?:(?:proj|svcacct|service|admin|None)-)?[A-Za-z0-9_-]{{16,}}T3BlbkFJ[A-Za-z0-9_-]{{16,}})",
        ("T3BlbkFJ",),
    ),
    Rule(
        "openai-project-key",
        rf"{BEFORE}(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{{40,}})",
        ("sk-proj-", "sk-svcacct-", "sk-admin-"),
        _KEY,
    ),
    # openrouter.ai/docs/api-reference/authentication
    token("openrouter-key", "sk-or-v1-", "[a-f0-9]{64}"),
    # langfuse.com/docs, docs.smith.langchain.com
    token("langfuse-secret-key", "sk-lf-", _UUID),
    Rule(
        "langsmith-key",
        rf"{BEFORE}(lsv2_(?:pt|sk)_[a-f0-9]{{32}}_[a-f0-9]{{10}})\b",
        ("lsv2_pt_", "lsv2_sk_"),
    ),
    # huggingface.co/docs/hub/security-tokens
    token("huggingface-token", "hf_", "[A-Za-z0-9]{34,37}", _KEY),
    token("huggingface-org-token", "api_org_", "[A-Za-z0-9]{34}", _KEY),
    # console.groq.com/docs, docs.x.ai, docs.perplexity.ai, replicate.com/docs
    token("groq-key", "gsk_", "[A-Za-z0-9]{52}", _KEY),
    token("xai-key", "xai-", "[A-Za-z0-9]{70,90}", _KEY),
    token("perplexity-key", "pplx-", "[A-Za-z0-9]{40,56}", _KEY),
    token("replicate-token", "r8_", "[A-Za-z0-9]{37}", _KEY),
    # docs.cerebras.ai, docs.together.ai, build.nvidia.com, fireworks.ai/docs
    token("cerebras-key", "csk-", "[a-z0-9]{48}", _KEY),
    token("together-key", "tgp_v1_", "[A-Za-z0-9_-]{43}", _KEY, end=""),
    token("nvidia-key", "nvapi-", "[A-Za-z0-9_-]{60,70}", _KEY, end=""),
    near("fireworks-key", "fireworks", "fw_[A-Za-z0-9]{20,24}", _KEY),
    # elevenlabs.io/docs, deepgram, assemblyai: hexadecimal
    token("elevenlabs-key", "sk_", "[a-f0-9]{48}"),
    near("deepgram-key", "deepgram", "[a-f0-9]{40}", _KEY),
    near("assemblyai-key", "assemblyai assembly_ai", "[a-f0-9]{32}", _KEY),
    # docs.mistral.ai, docs.cohere.com, docs.voyageai.com: recognised by the name before
    near("mistral-key", "mistral", "[A-Za-z0-9]{32}", checks.is_key),
    near("cohere-key", "cohere co_api_key", "[A-Za-z0-9]{40}", checks.is_key),
    near("voyage-key", "voyage", "pa-[A-Za-z0-9_-]{40,46}", _KEY, end=""),
    # docs.pinecone.io, wandb.ai, jina.ai, docs.tavily.com, docs.firecrawl.dev, e2b.dev
    token("pinecone-key", "pcsk_", "[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,70}"),
    near("wandb-key", "wandb", "[a-f0-9]{40}", _KEY),
    token("jina-key", "jina_", "[a-f0-9]{32}[A-Za-z0-9_-]{28}", end=""),
    token("tavily-key", "tvly-", "(?:dev-|prod-)?[A-Za-z0-9]{32}", _KEY),
    near("firecrawl-key", "firecrawl", "fc-[a-f0-9]{32}"),
    token("e2b-key", "e2b_", "[a-f0-9]{40}"),
    # modal.com/docs/reference/modal.config, docs.sambanova.ai
    near("modal-token-secret", "modal", "as-[A-Za-z0-9]{22}", _KEY),
    # Other issuers with keys like OpenAI: DeepSeek, Moonshot, DashScope, LiteLLM, Stability
    Rule(
        "sk-key",
        rf"{BEFORE}(sk-[A-Za-z0-9_-]{{22,}})",
        ("sk-",),
        checks.is_sk_key,
        trigger="sk-[A-Za-z0-9]",
    ),
)


_ANY_CASE_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


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
    near("heroku-legacy-key", "heroku", _ANY_CASE_UUID),
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


CODE = (
    # github.blog/2021-04-05-behind-githubs-new-authentication-token-formats: prefix, CRC-32 at the end
    Rule(
        "github-token",
        rf"{BEFORE}(gh[pousr]_[A-Za-z0-9]{{36,255}})\b",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        checks.of_github,
    ),
    token("github-fine-grained-token", "github_pat_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", _KEY),
    # docs.gitlab.com/security/tokens: prefixes
    token(
        "gitlab-token", "glpat-", r"[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?", _KEY, end=""
    ),
    token("gitlab-oauth-secret", "gloas-", "[A-Za-z0-9_-]{64}", _KEY, end=""),
    token("gitlab-deploy-token", "gldt-", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    token("gitlab-runner-token", "glrt-", "[A-Za-z0-9_.-]{20,}", _KEY, end=""),
    token("gitlab-job-token", "glcbt-", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    token("gitlab-trigger-token", "glptt-", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    token("gitlab-feed-token", "glft-", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    token("gitlab-mail-token", "glimt-", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    token("gitlab-agent-token", "glagent-", "[A-Za-z0-9_-]{50,}", _KEY, end=""),
    token("gitlab-scim-token", "glsoat-", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    token("gitlab-registration-token", "GR1348941", "[A-Za-z0-9_-]{20,}", _KEY, end=""),
    # support.atlassian.com/bitbucket-cloud/docs/app-passwords, .../access-tokens
    token("bitbucket-app-password", "ATBB", "[A-Za-z0-9]{32}", _KEY),
    token("bitbucket-access-token", "ATCTT3xFfG", "[A-Za-z0-9+/=_-]{100,}", _KEY, end=""),
    # id.atlassian.com/manage-profile/security/api-tokens
    token("atlassian-token", "ATATT3xFfG", "[A-Za-z0-9+/_-]{100,}(?:=[A-F0-9]{8})?", _KEY, end=""),
    # github.blog/2021-09-23-announcing-npms-new-access-token-format: the same checksum
    token("npm-token", "npm_", "[A-Za-z0-9]{36}", checks.of_github),
    # docs.npmjs.com/cli/configuring-npm/npmrc: the contents of .npmrc
    Rule(
        "npmrc-token",
        r"""_(?:authToken|auth|password)\s{0,4}=\s{0,4}["']?([A-Za-z0-9+/_=.-]{16,})""",
        ("_authToken", "_auth", "_password"),
        checks.is_key,
        trigger=r"_(?:authToken|auth|password)\s*=",
    ),
    # Python's package index, on its API tokens: a macaroon, which begins with the index it is for
    token("pypi-token", "pypi-AgEIcHlwaS5vcmc", "[A-Za-z0-9_-]{50,}", end=""),
    token("testpypi-token", "pypi-AgENdGVzdC5weXBpLm9yZw", "[A-Za-z0-9_-]{50,}", _LONG, end=""),
    # guides.rubygems.org/api-key-scopes, learn.microsoft.com/nuget, doc.rust-lang.org/cargo, clojars
    token("rubygems-key", "rubygems_", "[a-f0-9]{48}"),
    token("nuget-key", "oy2", "[a-z0-9]{43}", _KEY),
    token("cratesio-token", "cio", "[A-Za-z0-9]{32}", _LONG),
    token("clojars-token", "CLOJARS_", "[a-z0-9]{60}"),
    # docs.docker.com/security/access-tokens
    token("docker-token", "dckr_pat_", "[A-Za-z0-9_-]{27}", _KEY, end=""),
    token("docker-org-token", "dckr_oat_", "[A-Za-z0-9_-]{32}", _KEY, end=""),
    # docs.docker.com/reference/cli/docker/login: the contents of config.json
    Rule(
        "docker-auth",
        r"""\\*"auth\\*"\s{0,4}:\s{0,4}\\*"([A-Za-z0-9+/]{12,}={0,2})\\*\"""",
        ('auth"', 'auth\\"'),
        checks.is_basic,
        trigger=r""""auth\\*"\s*:""",
    ),
    # jfrog.com/help: API keys and reference tokens
    token("artifactory-api-key", "AKCp", "[A-Za-z0-9]{69}", _LONG),
    token("artifactory-token", "cmVmdGtuO", "[A-Za-z0-9]{55}", _LONG),
    # docs.sonarsource.com: user, project and global analysis tokens
    Rule("sonar-token", rf"{BEFORE}(sq[pua]_[a-f0-9]{{40}})\b", ("sqp_", "squ_", "sqa_")),
    # circleci.com/docs/managing-api-tokens, buildkite.com/docs/apis
    token("circleci-token", "CCIPAT_", "[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    token("circleci-project-token", "CCIPRJ_", "[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    token("buildkite-token", "bkua_", "[a-f0-9]{40}"),
    near("jenkins-token", "jenkins", "11[0-9a-f]{32}"),
    near("travis-token", "travis", "[A-Za-z0-9]{22}", checks.is_key),
    # www.jenkins.io and app.harness.io docs: personal access tokens
    token("harness-token", "pat.", r"[A-Za-z0-9_-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    token("octopus-api-key", "API-", "[A-Z0-9]{25,32}", checks.is_key),
    token("launchdarkly-sdk-key", "sdk-", _UUID),
    # docs.snyk.io, docs.sourcegraph.com/admin/access_tokens
    token("snyk-token", "snyk_uat.", r"[0-9a-f]{8}\.[A-Za-z0-9_.-]{40,}", end=""),
    near("snyk-api-key", "snyk", _UUID),
    token("sourcegraph-token", "sgp_", "(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    # docs.sentry.io/api/auth
    token("sentry-org-token", "sntrys_", "eyJ[A-Za-z0-9+/=_-]{40,}", end=""),
    token("sentry-user-token", "sntryu_", "[a-f0-9]{64}"),
    # grafana.com/docs: service accounts, access policies
    token("grafana-service-token", "glsa_", "[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    token("grafana-cloud-token", "glc_", "eyJ[A-Za-z0-9+/=]{40,}", end=""),
    # docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys
    token("newrelic-user-key", "NRAK-", "[A-Z0-9]{27}", _KEY),
    token("newrelic-insert-key", "NRII-", "[A-Za-z0-9_-]{32}", _KEY, end=""),
    Rule(
        "newrelic-license-key",
        rf"{BEFORE}([a-f0-9]{{36}}(?:FFFF)?NRAL)\b",
        ("NRAL",),
        trigger="[a-fF0-9]NRAL",
    ),
    # docs.datadoghq.com/account_management/api-app-keys
    near(
        "datadog-key",
        "datadog dd_api dd_app dd-api dd-application",
        "[a-f0-9]{40}|[a-f0-9]{32}",
        _KEY,
    ),
    # docs.dynatrace.com/docs/dynatrace-api/basics/dynatrace-api-authentication
    token("dynatrace-token", "dt0", r"[a-z][0-9]{2}\.[A-Z2-7]{24}\.[A-Z2-7]{64}"),
    token("honeycomb-key", "hca", "[a-z0-9]{2}_[a-z0-9]{58}", _KEY),
    near("pagerduty-key", "pagerduty pd_api", "[A-Za-z0-9+_-]{20}", checks.is_key, end=""),
    # learning.postman.com/docs/developer/postman-api/authentication
    token("postman-key", "PMAK-", "[a-f0-9]{24}-[a-f0-9]{34}"),
    token("infracost-key", "ico-", "[A-Za-z0-9]{32}", checks.is_key),
    token("readme-key", "rdme_", "[a-z0-9]{70}"),
    token("cursor-key", "crsr_", "[a-f0-9]{64}"),
)


SERVICES = (
    # docs.stripe.com/keys, docs.stripe.com/webhooks; what begins with pk_ is public
    Rule(
        "stripe-secret-key",
        rf"{BEFORE}(sk_(?:live|test|prod)_[A-Za-z0-9]{{16,247}})\b",
        ("sk_live_", "sk_test_", "sk_prod_"),
        _KEY,
    ),
    Rule(
        "stripe-restricted-key",
        rf"{BEFORE}(rk_(?:live|test|prod)_[A-Za-z0-9]{{16,247}})\b",
        ("rk_live_", "rk_test_", "rk_prod_"),
        _KEY,
    ),
    token("webhook-secret", "whsec_", "[A-Za-z0-9+/]{24,}={0,2}", _KEY, end=""),
    # developer.squareup.com/docs/build-basics/access-tokens
    token("square-access-token", "EAAA", "[A-Za-z0-9_-]{60}", _LONG, end=""),
    token("square-token", "sq0atp-", "[A-Za-z0-9_-]{22}", _KEY, end=""),
    token("square-oauth-secret", "sq0csp-", "[A-Za-z0-9_-]{43}", _KEY, end=""),
    # developer.paypal.com/braintree/docs, developer.paypal.com/api/rest
    Rule(
        "braintree-access-token",
        rf"{BEFORE}(access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\$[a-f0-9]{{32}})\b",
        ("access_token$",),
    ),
    near("paypal-secret", "paypal", "E[A-Za-z0-9_-]{79}", checks.is_key, end=""),
    # shopify.dev/docs/apps/build/authentication-authorization
    token("shopify-access-token", "shpat_", "[a-fA-F0-9]{32}"),
    token("shopify-custom-app-token", "shpca_", "[a-fA-F0-9]{32}"),
    token("shopify-private-app-token", "shppa_", "[a-fA-F0-9]{32}"),
    token("shopify-shared-secret", "shpss_", "[a-fA-F0-9]{32}"),
    # plaid.com/docs/quickstart/glossary, razorpay, flutterwave, easypost, shippo, duffel, lob
    Rule(
        "plaid-access-token",
        rf"{BEFORE}(access-(?:sandbox|development|production)-{_UUID})\b",
        ("access-sandbox-", "access-development-", "access-production-"),
    ),
    near("razorpay-secret", "razorpay", "[A-Za-z0-9]{24}", checks.is_key),
    Rule(
        "flutterwave-secret-key",
        rf"{BEFORE}(FLWSECK(?:_TEST)?-[a-zA-Z0-9]{{32}}-X)\b",
        ("FLWSECK",),
    ),
    Rule("easypost-key", rf"{BEFORE}(EZ[AT]K[A-Za-z0-9]{{54}})\b", ("EZAK", "EZTK"), _LONG),
    Rule(
        "shippo-token",
        rf"{BEFORE}(shippo_(?:live|test)_[a-f0-9]{{40}})\b",
        ("shippo_live_", "shippo_test_"),
    ),
    Rule(
        "duffel-token",
        rf"{BEFORE}(duffel_(?:live|test)_[A-Za-z0-9_=-]{{43}})",
        ("duffel_live_", "duffel_test_"),
    ),
    # api.slack.com/authentication/token-types, api.slack.com/messaging/webhooks
    token("slack-bot-token", "xoxb-", "[0-9]{8,14}-[0-9]{8,14}(?:-[A-Za-z0-9]{16,})?", end=""),
    Rule(
        "slack-user-token",
        rf"{BEFORE}(xox[pars]-(?:[0-9]-)?[A-Za-z0-9-]{{20,}})",
        ("xoxp-", "xoxa-", "xoxr-", "xoxs-"),
        _KEY,
    ),
    token("slack-app-token", "xapp-", "[0-9]-[A-Z0-9]{8,}-[0-9]{8,}-[a-f0-9]{40,}"),
    Rule(
        "slack-config-token", rf"{BEFORE}(xoxe(?:\.xox[bp])?-[0-9]-[A-Za-z0-9]{{100,}})", ("xoxe",)
    ),
    Rule(
        "slack-session-token",
        rf"{BEFORE}(xox[cd]-[A-Za-z0-9%/+=-]{{40,}})",
        ("xoxc-", "xoxd-"),
        _KEY,
    ),
    Rule(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,60})",
        ("hooks.slack.com",),
        _KEY,
    ),
    # discord.com/developers/docs/reference#authentication, .../resources/webhook
    Rule(
        "discord-bot-token",
        rf"{BEFORE}([MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,38}})",
        (".",),
        checks.is_discord,
        # A token begins with a number in base64; this is six digits of it.
        trigger=r"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){2}",
    ),
    Rule(
        "discord-webhook",
        r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/([0-9]{17,20}/[A-Za-z0-9_-]{60,72})",
        ("discord.com/api/", "discordapp.com/api/"),
    ),
    # core.telegram.org/bots/api#authorizing-your-bot
    Rule(
        "telegram-bot-token",
        r"(?:\A|[^0-9])([0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|\z)",
        (":AA",),
        _LONG,
        trigger="[0-9]:AA[A-Za-z0-9_-]",
    ),
    # learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors
    Rule(
        "teams-webhook",
        rf"webhook\.office\.com/webhookb2/({_UUID}@{_UUID}/IncomingWebhook/[a-f0-9]{{32}}/{_UUID})",
        ("webhook.office.com",),
    ),
    # www.twilio.com/docs/iam/api-keys, .../usage/requests-to-twilio
    near("twilio-auth-token", "twilio", "[a-f0-9]{32}", _KEY),
    near("twilio-api-key", "twilio", "SK[a-f0-9]{32}", _KEY),
    # www.twilio.com/docs/sendgrid, documentation.mailgun.com, mailchimp.com/developer, postmarkapp.com
    token("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", end=""),
    near("mailgun-key", "mailgun", "key-[a-f0-9]{32}|[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}", _KEY),
    token("mailgun-private-key", "key-", "[a-f0-9]{32}", _KEY),
    Rule(
        "mailchimp-key",
        rf"{BEFORE}([a-f0-9]{{32}}-us[0-9]{{1,2}})\b",
        ("-us",),
        _KEY,
        trigger="[a-f0-9]-us[0-9]",
    ),
    near("postmark-token", "postmark", _UUID),
    token("brevo-key", "xkeysib-", "[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    token("brevo-smtp-key", "xsmtpsib-", "[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    near("resend-key", "resend", "re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    # linear.app/developers, developers.notion.com, www.figma.com/developers, airtable.com/developers
    token("linear-key", "lin_api_", "[A-Za-z0-9]{40}", _KEY),
    token("linear-oauth-token", "lin_oauth_", "[a-f0-9]{64}"),
    token("notion-token", "ntn_", "[A-Za-z0-9]{40,50}", _KEY),
    token("notion-legacy-token", "secret_", "[A-Za-z0-9]{43}", _LONG),
    token("figma-token", "figd_", "[A-Za-z0-9_-]{40,}", _KEY, end=""),
    Rule(
        "airtable-token",
        rf"{BEFORE}(pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}})\b",
        ("pat",),
        trigger=r"pat[A-Za-z0-9]+\.[a-f0-9]",
    ),
    # developers.asana.com, developer.atlassian.com/cloud/trello, developer.clickup.com, dropbox.com
    near("asana-token", "asana", "[12]/[0-9]{10,}(?:/[0-9]{10,})?:[a-f0-9]{32}", _KEY),
    token("trello-token", "ATTA", "[a-f0-9]{64}"),
    token("clickup-token", "pk_", "[0-9]{6,9}_[A-Z0-9]{32}"),
    token("dropbox-token", "sl.", "[A-Za-z0-9_-]{130,}", _LONG, end=""),
    # www.contentful.com/developers, segment.com/docs, posthog.com/docs, typeform, frame.io, prefect.io
    token("contentful-token", "CFPAT-", "[A-Za-z0-9_-]{43}", _KEY, end=""),
    token("segment-token", "sgp_", "[A-Za-z0-9]{64}", _KEY),
    token("posthog-key", "phx_", "[A-Za-z0-9_-]{40,}", _KEY, end=""),
    token("typeform-token", "tfp_", "[A-Za-z0-9_.=-]{59}", _KEY, end=""),
    token("frameio-token", "fio-u-", "[A-Za-z0-9_=-]{64}", _KEY, end=""),
    token("prefect-key", "pnu_", "[A-Za-z0-9]{36}", _KEY),
    near("algolia-key", "algolia", "[a-f0-9]{32}", _KEY),
    Rule(
        "mapbox-secret-token",
        rf"{BEFORE}(sk\.eyJ[A-Za-z0-9_-]{{20,}}\.[A-Za-z0-9_-]{{22}})",
        ("sk.eyJ",),
    ),
    Rule("maxmind-key", rf"{BEFORE}([A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk)\b", ("_mmk",)),
    # developer.okta.com/docs/guides/create-an-api-token, developers.facebook.com, developer.x.com
    near("okta-token", "okta ssws", "00[A-Za-z0-9_-]{40}", checks.is_key, end=""),
    Rule("okta-ssws-token", r"SSWS\s(00[A-Za-z0-9_-]{40})", ("SSWS ",), _KEY),
    token("facebook-token", "EAA", "[A-Za-z0-9]{120,}", _LONG),
    token(
        "x-bearer-token", "AAAAAAAAAAAAAAAAAAAAA", "[A-Za-z0-9%]{60,}", checks.at_least(4), end=""
    ),
    near("adobe-secret", "adobe", "p8e-[a-zA-Z0-9]{32}", _KEY),
    Rule(
        "intra42-secret",
        rf"{BEFORE}(s-s4t2(?:ud|af)-[a-f0-9]{{64}})\b",
        ("s-s4t2ud-", "s-s4t2af-"),
    ),
    Rule(
        "zapier-webhook",
        r"hooks\.zapier\.com/hooks/catch/([0-9]{5,9}/[a-z0-9]{6,8})\b",
        ("hooks.zapier.com",),
    ),
    near(
        "client-secret",
        "client_secret clientsecret client-secret",
        "[A-Za-z0-9_~.-]{20,}",
        checks.is_key,
        end="",
    ),
    Rule(
        "signed-url",
        r"[?&](?:X-Amz-Signature|X-Goog-Signature)=([a-f0-9]{64,})",
        ("X-Amz-Signature=", "X-Goog-Signature="),
        checks.at_least(2),
    ),
)
