"""Secrets in texts, by the forms that their makers give them; they are cut out.

In: texts. Out: the same with `[secret]` in the place of each. Patterns after detect-secrets (Yelp, Apache-2.0), which
the tests hold them against. A filter in Rust says which texts may hold one, so that few are looked at closely. What it does not
see: a secret without a form of its own, where no field or word beside it says that it is one; one that is encoded once more.
"""

from __future__ import annotations

import re

import polars as pl

from extractors.privacy.pseudonyms import SECRET

_KEY_BLOCK = r"(?: [A-Z0-9]+)* PRIVATE KEY(?: BLOCK)?(?: ?-{4,5})?"
_KEY_SIGNS = r"(?:[A-Za-z0-9+/=\s,:-]|\\+[nrt])*"
PATTERNS: tuple[tuple[str, str], ...] = (
    ("private key", rf"(?:-{{4,5}} ?)?BEGIN{_KEY_BLOCK}(?:(?s:.*?)-{{4,5}} ?END{_KEY_BLOCK}|{_KEY_SIGNS})"
                    rf"|PuTTY-User-Key-File-\d(?:(?s:.*?)Private-MAC: ?[0-9a-fA-F]+|{_KEY_SIGNS})"),
    ("signed token", r"eyJ[A-Za-z0-9_=-]{5,}\.[A-Za-z0-9_=-]{2,}\.?[A-Za-z0-9_.+/=-]*"),
    ("AWS", r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}"),
    ("Google", r"\bAIza[0-9A-Za-z_-]{35}\b|\bGOCSPX-[\w-]{28}\b|\bya29\.[\w-]{20,}"),
    ("GitHub", r"gh[pousr]_[A-Za-z0-9_]{36,}|github_pat_\w{30,}"),
    ("GitLab", r"gl(?:pat|dt|ft|soat|rt|cbt|imt|agent|ptt|oas|ffct)-[\w-]{20,}|GR1348941[\w-]{20,}"),
    ("Slack", r"(?i:xox[abeoprs]-(?:\d+-)+[a-z0-9]+)|\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bxapp-\d-[0-9A-Za-z-]{10,}"
              r"|(?i:https://hooks\.slack\.com/services/T\w+/B\w+/\w+)"),
    ("Stripe", r"[rs]k_(?:live|test)_[0-9A-Za-z]{16,}|\bwhsec_[0-9A-Za-z]{24,}"),
    ("model provider", r"\bsk-(?:ant-|proj-|svcacct-|or-v1-)?[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]{20,}|"
                       r"\bhf_[A-Za-z0-9]{30,}\b|\bgsk_[A-Za-z0-9]{40,}\b"),
    ("infrastructure", r"\bdop_v1_[a-f0-9]{40,}|\bdckr_pat_[\w-]{20,}|\bhvs\.[\w-]{24,}|\bATATT3[\w=-]{30,}|\blin_api_\w{30,}"),
    ("npm", r"\bnpm_[A-Za-z0-9]{36}\b|:_authToken=\s*(?P<secret>[^\s\"\\]+)"),
    ("PyPI", r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}|pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9_-]{50,}"),
    ("SendGrid", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("Mailchimp", r"[0-9a-z]{32}-us[0-9]{1,2}"),
    ("Twilio", r"(?:AC|SK)[0-9a-z]{32}"),
    ("Square", r"sq0csp-[0-9A-Za-z\\_-]{43}|sq0[a-z]{3}-[0-9A-Za-z_-]{22,}"),
    ("Discord", r"\b[MNO][A-Za-z\d_-]{23,25}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,38}"),
    ("Telegram", r"\b\d{8,10}:[0-9A-Za-z_-]{34}(?:[0-9A-Za-z_]\b|-\B)"),
    ("Azure", r"AccountKey=[A-Za-z0-9+/=]{86,88}"),
    ("Artifactory", r"\bAKC[a-zA-Z0-9]{10,}\b"),
    ("SoftLayer", r"(?i:softlayer.com/soap/v3(?:.1)?/(?P<secret>[a-z0-9]{64}))"),
    ("Shopify", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    ("address with a password", r"://(?P<secret>[^\s/:@\"'<>]{0,256}:[^\s/:@\"'<>]{1,256})@"),
)
"""What has a form of its own, in the dialect that Rust's regex has too; where a part is named, that alone is the secret."""
_ASSIGNED = r"\\*[\"']?\]?\s*(?::=|=>|::|=|:|\s)\s*\\*[\"']?"
_KEY_WORD = r"(?:key|password|pass|pwd|pw|token)"
_SAID = (
    r"(?i:\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:basic|bearer|digest|token|negotiate)\s+(?P<secret>[^\s\"',;\\]{6,}))",
    r"(?i:\bcookie\\*[\"']?\s*[:=]\s*\\*[\"']?(?P<secret>[\w.-]+=[^\"'\\\n]{3,}))",
    r"(?i:\b(?:password|passwd|pwd|passphrase|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|bearer)"
    r"(?: is|\\?[\"']?\s*(?::|=)| )\s*\\?[\"']?(?P<secret>(?=[^\s\"',;\\]*\d)(?=[^\s\"',;\\]*[a-zA-Z])[^\s\"',;\\]{6,}))",
    rf"(?i:aws.{{0,20}}?{_KEY_WORD}.{{0,20}}?[\"'](?P<secret>[0-9a-z/+]{{40}})(?=\\*[\"']))",
    rf"(?i:(?:\b|_|-|api|cloud|iam|ibm){_KEY_WORD}{_ASSIGNED}(?P<secret>[a-z0-9_-]{{44}})(?![a-z0-9_-]))",
    rf"(?i:secret[-_]?(?:access)?[-_]?key{_ASSIGNED}(?P<secret>[a-f0-9]{{48}})(?![a-f0-9]))",
    rf"(?i:\b(?:cl(?:ou(?:dant)?)?|softlayer|sl)[_-]?(?:api)?[_-]?{_KEY_WORD}{_ASSIGNED}(?P<secret>[a-z0-9]{{64}}|[a-z]{{24}}))",
    r"(?:(?<=[\s=:\"'])|^)AP(?=[A-Za-z]*\d)[\dA-F](?=[A-Z0-9]*[a-z])[a-zA-Z0-9]{8,}(?=[\s\"'\\]|$)",
)
"""What a word beside it says, or its looks: of these one may be something else."""
_ALL = re.compile("|".join(f"(?P<p{number}>{pattern})".replace("(?P<secret>", f"(?P<s{number}>")
                           for number, pattern in enumerate((*(each for _, each in PATTERNS), *_SAID))))
_SIGNS = [
    "PRIVATE KEY", "PuTTY-User-Key", "eyJ", "AKIA", "ASIA", "ABIA", "ACCA", "A3T", "AIza", "GOCSPX-", "ya29.", "ghp_", "gho_",
    "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glimt-", "glagent-",
    "glptt-", "gloas-", "glffct-", "GR1348941", "xapp-", "k_live_", "k_test_", "whsec_", "sk-", "hf_", "gsk_", "npm_",
    "dop_v1_", "dckr_pat_", "hvs.", "ATATT3", "lin_api_", "_authToken", "pypi-", "SG.", "-us", "sq0", "AccountKey=", "AKC",
    "shpat_", "shpca_", "shppa_", "shpss_"]
_WORDS = [
    "password", "passwd", "pwd", "passphrase", "secret", "api key", "api_key", "api-key", "apikey", "access token",
    "access_token", "access-token", "accesstoken", "auth token", "auth_token", "auth-token", "authtoken", "bearer",
    "authorization", "cookie", "xox", "slack.com", "softlayer"]
_FORMS = (
    r"(?:AC|SK)[0-9a-z]{32}|[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.|[0-9]{8}:[0-9A-Za-z_-]{35}|AP[0-9A-F][A-Za-z0-9]{8}"
    r"|://[^\s/:@\"'<>]*:[^\s/:@\"'<>]+@")
_ASSIGNS = (
    r"(?i)(?:key|password|pass|pwd|pw|token)[\\\"'\]]{0,4}\s*[:=\s][=>:]?\s*[\\\"']{0,4}[a-z0-9_-]{24}"
    r"|aws.{0,20}(?:key|pw|pass|token)")
_HEADED = r"(?i)\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?[a-z]+\s|\bcookie\\*[\"']?\s*[:=]\s*\\*[\"']?[\w.-]+="
_SPOKEN = (r"(?i)(?:password|passwd|pwd|passphrase|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|bearer)"
           r"(?: is|\\?[\"']?\s*(?::|=)| )\s*\\?[\"']?[^\s\"',;\\]{6}")


def suspects(texts: pl.Series) -> pl.Series:
    """Whether a text may hold a secret: it has a sign of one, and a form."""
    may = (texts.str.contains_any(_SIGNS) | texts.str.contains_any(_WORDS, ascii_case_insensitive=True)
           | texts.str.contains(_FORMS) | texts.str.contains(_ASSIGNS))
    if not may.any():
        return may
    few = texts.filter(may)
    has = few.to_frame("text").select_seq(pl.any_horizontal(
        pl.col("text").str.contains(each) for each in (*(form for _, form in PATTERNS), _FORMS, _ASSIGNS, _SPOKEN, _HEADED)))
    return may.scatter(may.arg_true(), has.to_series())


def cut_out(text: str) -> str:
    """The text without its secrets."""
    return _ALL.sub(_without, text)


def _without(found: re.Match[str]) -> str:
    part = f"s{(found.lastgroup or 'p0')[1:]}"
    start, end = found.span(part) if found.groupdict().get(part) is not None else found.span()
    text = found.string
    return f"{text[found.start():start]}{SECRET}{text[end:found.end()]}"
