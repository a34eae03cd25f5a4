"""Secrets in texts, by the forms that their makers give them; they are cut out.

In: texts. Out: the same with `[secret]` in the place of each. Patterns after detect-secrets' detectors (Yelp, Apache-2.0). A
filter in Rust says which texts may hold one, so that few are looked at closely. What it does not see: a secret without a form
of its own, where no field or word beside it says that it is one.
"""

from __future__ import annotations

import re

import polars as pl

from extractors.privacy.pseudonyms import SECRET

NAMED = "named"
"""The pattern that looks for a word which says that what follows is a secret."""
PATTERNS: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-])*?(?:-----END (?:[A-Z]+ )*PRIVATE KEY"
                    r"(?: BLOCK)?-----|$)"),
    ("signed token", r"\beyJ[A-Za-z0-9_=-]+\.eyJ[A-Za-z0-9_=-]+\.?[A-Za-z0-9_.+/=-]*"),
    ("AWS", r"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("Google", r"\bAIza[0-9A-Za-z_-]{35}\b|\bGOCSPX-[\w-]{28}\b|\bya29\.[\w-]{20,}"),
    ("GitHub", r"\bgh[pousr]_[A-Za-z0-9_]{36,}\b|\bgithub_pat_\w{30,}\b"),
    ("GitLab", r"\bgl(?:pat|dt|ft|soat|rt|cbt|imt|agent)-[\w-]{20,}|\bGR1348941[\w-]{20,}"),
    ("Slack", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|https://hooks\.slack\.com/services/T\w+/B\w+/\w+"),
    ("Stripe", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}\b|\bwhsec_[0-9A-Za-z]{24,}"),
    ("model provider", r"\bsk-(?:ant-|proj-|svcacct-|or-v1-)?[A-Za-z0-9_-]{20,}|"
                       r"\bhf_[A-Za-z0-9]{30,}\b|\bgsk_[A-Za-z0-9]{40,}\b"),
    ("npm", r"\bnpm_[A-Za-z0-9]{36}\b|//[^\s]+/:_authToken=\S+"),
    ("PyPI", r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}|\bpypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9_-]{50,}"),
    ("SendGrid", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}\b"),
    ("Mailchimp", r"\b[0-9a-z]{32}-us[0-9]{1,2}\b"),
    ("Twilio", r"\b(?:AC|SK)[0-9a-f]{32}\b"),
    ("Square", r"\bsq0(?:csp|atp|idp)-[0-9A-Za-z_-]{22,43}"),
    ("Discord", r"\b[MNO][A-Za-z\d_-]{23,25}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,38}\b"),
    ("Telegram", r"\b\d{8,10}:[0-9A-Za-z_-]{35}\b"),
    ("Azure", r"\bAccountKey=[A-Za-z0-9+/=]{86,88}"),
    ("Artifactory", r"\bAKC[a-zA-Z0-9]{10,}\b"),
    ("Shopify", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    ("address with a password", r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'<>]{1,64}:[^\s/:@\"'<>]{3,64}@"),
    (NAMED, r"(?i)\b(?:password|passwd|pwd|passphrase|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|bearer)"
              r"(?: is|\\?[\"']?\s*(?::|=)| )\s*\\?[\"']?(?=[^\s\"',;\\]*\d)(?=[^\s\"',;\\]*[a-zA-Z])[^\s\"',;\\]{6,}"),
)
_ALL = re.compile("|".join(f"(?P<p{number}>{pattern.removeprefix('(?i)')})" if not pattern.startswith("(?i)")
                           else f"(?P<p{number}>(?i:{pattern.removeprefix('(?i)')}))"
                           for number, (_, pattern) in enumerate(PATTERNS)))
_SIGNS = [
    "PRIVATE KEY", "eyJ", "AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza", "GOCSPX-", "ya29.", "ghp_", "gho_", "ghu_", "ghs_",
    "ghr_", "github_pat_", "glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glimt-", "glagent-", "GR1348941",
    "xox", "slack.com", "k_live_", "k_test_", "whsec_", "sk-", "hf_", "gsk_", "npm_", "_authToken", "pypi-", "SG.", "-us",
    "sq0", "AccountKey=", "AKC", "shpat_", "shpca_", "shppa_", "shpss_", "://", ":AA"]
_WORDS = [
    "password", "passwd", "pwd", "passphrase", "secret", "api key", "api_key", "api-key", "apikey", "access token",
    "access_token", "access-token", "accesstoken", "auth token", "auth_token", "auth-token", "authtoken", "bearer"]
_FORMS = r"(?-u:\b)(?:AC|SK)[0-9a-f]{32}(?-u:\b)|[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\."
_BEARER = re.compile(r"(?i)^(.*?(?:\bis\b|[:=]|\s)\s*\\?[\"']?)(\S+)$", re.DOTALL)


def suspects(texts: pl.Series) -> pl.Series:
    """Whether a text may hold a secret."""
    return (texts.str.contains_any(_SIGNS) | texts.str.contains_any(_WORDS, ascii_case_insensitive=True)
            | texts.str.contains(_FORMS))


def cut_out(text: str) -> str:
    """The text without its secrets."""
    return _ALL.sub(_without, text)


def _without(found: re.Match[str]) -> str:
    name = PATTERNS[int((found.lastgroup or "p0")[1:])][0]
    text = found[0]
    if name == NAMED:
        told = _BEARER.match(text)
        return told[1] + SECRET if told else SECRET
    if name == "address with a password":
        return text[:text.index("://") + 3] + SECRET + "@"
    return SECRET
