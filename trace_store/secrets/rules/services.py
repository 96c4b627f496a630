"""Secrets of payment, mail, chat, document and other services."""

from __future__ import annotations

from trace_store.secrets import checks
from trace_store.secrets.rules.rule import BEFORE, Rule, near, token

_KEY = checks.at_least(3)
_LONG = checks.at_least(3.5)
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

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
        trigger=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
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
