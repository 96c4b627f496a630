"""Secrets of model providers and related services."""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import BEFORE, Rule, near, token

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
        trigger=rf"{BEFORE}sk-[A-Za-z0-9]",
    ),
)
