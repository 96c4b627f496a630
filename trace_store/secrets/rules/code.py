"""Secrets of code hosts, package registries, CI and monitoring."""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import BEFORE, Rule, near, token

_KEY = checks.at_least(3)
_LONG = checks.at_least(3.5)
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

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
    # docs.npmjs.com/cli/configuring-npm/npmrc: what stands in .npmrc
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
    # docs.docker.com/reference/cli/docker/login: what stands in config.json
    Rule(
        "docker-auth",
        r"""\\*"auth\\*"\s{0,4}:\s{0,4}\\*"([A-Za-z0-9+/]{12,}={0,2})\\*\"""",
        ('auth"', 'auth\\"'),
        checks.is_basic,
        trigger=r"""\\*"auth\\*"\s*:""",
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
