"""Credentials: cut out of what is read, whatever `--privacy` says, for they are no personal data.

Everywhere: secrets in the forms that their makers give them; patterns follow detect-secrets (Yelp, Apache-2.0), which the tests
compare with. A filter in Rust selects the few texts that may hold one. In requests, pages and events of a web application also
the values of fields that are credentials by their names: passwords, tokens, and what forms carry against forgery, in queries,
forms and JSON, and what a row states to be typed into such a field. A token that asks for the next page is none. With privacy
on, words that announce a secret count too.

Does not see: a secret without a form of its own and without a field or word that announces it, or one that is encoded once
more."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus

import orjson
import polars as pl

from extractors.privacy.field_rows import without_typed
from extractors.privacy.letters import words_in
from extractors.privacy.markup import cut_markup, is_markup

SECRET = "[secret]"
WEB = ("request", "business", "log", "page")
"""Kinds of events that are a web application's, with queries, forms and addresses."""
_WEB_TEXTS = ("tool", "content", "arguments", "value")
_ALL_TEXTS = ("content", "arguments", "value")
_WORDS_OF_FIELD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CREDENTIALS = words_in(
    "password passwords passwd passwort pwd passphrase passcode kennwort contrasena contraseña csrf xsrf csrfmiddlewaretoken "
    "requestverificationtoken authenticitytoken otp totp cvv cvc apikey wpnonce phpsessid jsessionid sessid accesstoken "
    "authtoken idtoken refreshtoken sessiontoken secret pword userpassword")
_PAIRS = ("form key", "api key", "private key", "access key", "mot passe", "one time code", "security code",
          "verification code", "x amz signature", "x goog signature", "recaptcha response")
_OF_PAGES = words_in("page next continuation cursor sync start resume delta previous prev pagination max min num")
"""Words with which a token is no credential: it asks for more of a list, or counts."""
_HINT = (r"(?i)pass|pwd|kennwort|contrase|token|csrf|xsrf|secret|otp|cvv|cvc|api.?key|nonce|sess_?id|form.?key|private.?key"
         r"|access.?key|signature|(?:security|verification).?code|one.?time|recaptcha")
_PAIR = re.compile(r"(?P<name>[^\s?&;=\"'<>{},]{2,64})=(?P<value>[^\s&;\"'<>]+)")
_QUOTED = re.compile(r"\"(?P<name>[^\"\\]{2,64})\\*\"\s*:\s*\\*\"(?P<value>(?:[^\"\\]|\\[^\"])+)")


def without_credentials(events: pl.DataFrame) -> pl.DataFrame:
    """Return the events without credentials."""
    if events.is_empty():
        return events
    is_web = events["kind"].is_in(WEB)
    columns = {name: _cut(events[name], cut_forms, suspects(events[name])) for name in _ALL_TEXTS}
    for name in _WEB_TEXTS if is_web.any() else ():
        texts = columns.get(name, events[name])
        columns[name] = _cut(texts, cut_fields, is_web & _among(texts, lambda different: different.str.contains(_HINT)))
    return events.with_columns(**columns)


def bytes_without_credentials(content: bytes) -> bytes:
    """Return the bytes of a record that could not be read, without credentials."""
    text = content.decode("latin-1")
    for pattern in (_PAIR, _QUOTED):
        text = _cut_values(pattern, text)
    return cut_forms(text).encode("latin-1")


def record_without_credentials(content: bytes, value: Any, most: int) -> bytes:
    """Return the first bytes of a record that gave nothing, without credentials; JSON of its value, where that holds one."""
    if isinstance(value, dict | list):
        try:
            made = orjson.dumps(_without(value))
            content = content if made == orjson.dumps(value) else made
        except TypeError:   # its values are bytes, or numbers beyond JSON
            pass
    return bytes_without_credentials(content[:most])


def _cut(texts: pl.Series, cut: Callable[[str], str], is_suspect: pl.Series) -> pl.Series:
    if not is_suspect.any():
        return texts
    return pl.Series(texts.name, [cut(text) if suspect and text is not None else text
                                  for text, suspect in zip(texts, is_suspect, strict=True)], pl.String())


@lru_cache(1 << 14)
def is_credential(name: str) -> bool:
    """Whether a field's name says that its value is a credential."""
    words = [word.lower() for word in _WORDS_OF_FIELD.findall(name)]
    if not words or not _OF_PAGES.isdisjoint(words):
        return False
    joined = " ".join(words)
    return (words[-1] == "token" or not _CREDENTIALS.isdisjoint(words) or "".join(words) in _CREDENTIALS
            or any(pair in joined for pair in _PAIRS))


def cut_fields(text: str) -> str:
    """Replace the values of credentials' fields in a web application's text: JSON, a query, a form, an address."""
    if text[:1] in "{[":
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _cut_values(_QUOTED, _cut_values(_PAIR, text))
        made = _without(value)
        return _cut_values(_QUOTED, text) if made == value else orjson.dumps(made).decode()   # a key may come twice
    return _cut_values(_PAIR, text)


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _emptied_value(each) if is_credential(name) else _without(each)
                for name, each in without_typed(value, is_credential, SECRET).items()}
    if isinstance(value, list):
        return [_without(each) for each in value]
    if not isinstance(value, str) or not re.search(_HINT, value):
        return value
    if is_markup(value):
        return cut_markup(_cut_values(_PAIR, value), is_credential, SECRET)
    return cut_fields(value)


def _emptied_value(value: Any) -> Any:
    """Return a credential's value without its texts: a form's may be a list of them."""
    if isinstance(value, list):
        return [_emptied_value(each) for each in value]
    return (SECRET if value else value) if isinstance(value, str) else _without(value)


def _cut_values(pattern: re.Pattern[str], text: str) -> str:
    def cut(match: re.Match[str]) -> str:
        start = match.start("value") - match.start()
        return match[0][:start] + SECRET if is_credential(unquote_plus(match["name"])) else match[0]

    return pattern.sub(cut, text)


_KEY_BLOCK = r"(?: [A-Z0-9]+)* PRIVATE KEY(?: BLOCK)?(?: ?-{4,5})?"
_KEY_SIGNS = r"(?:[A-Za-z0-9+/=\s,:-]|\\+[nrt])*"
PATTERNS: tuple[tuple[str, str], ...] = (
    ("private key", rf"(?:-{{4,5}} ?)?BEGIN{_KEY_BLOCK}(?:(?s:.*?)-{{4,5}} ?END{_KEY_BLOCK}|{_KEY_SIGNS})"
                    rf"|PuTTY-User-Key-File-\d(?:(?s:.*?)Private-MAC: ?[0-9a-fA-F]+|{_KEY_SIGNS})"),
    ("signed token", r"eyJ[A-Za-z0-9_=-]{5,4096}\.[A-Za-z0-9_=-]{2,}\.?[A-Za-z0-9_.+/=-]*"),
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
    ("address with a password", r"://(?P<secret>[^\s/:@\"'<>]{0,256}:[^\s/:@\"'<>]{1,256})@"))
"""What has a form of its own, in the dialect that Rust's regex has too; where a part is named, that alone is the secret."""
_ASSIGNED = r"\\*[\"']?\]?\s*(?::=|=>|::|=|:|\s)\s*\\*[\"']?"
_KEY_WORD = r"(?:key|password|pass|pwd|pw|token)"
_CONTEXTUAL = (
    r"(?i:\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:basic|bearer|digest|token|negotiate)\s+(?P<secret>[^\s\"',;\\]{6,}))",
    r"(?i:\bcookie\\*[\"']?\s*[:=]\s*\\*[\"']?(?P<secret>[\w.-]+=[^\"'\\\n]{3,}))",
    r"(?i:\b(?:password|passwd|pwd|passphrase|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|bearer)"
    r"(?: is|\\?[\"']?\s*(?::|=)| )\s*\\?[\"']?(?P<secret>(?=[^\s\"',;\\]*\d)(?=[^\s\"',;\\]*[a-zA-Z])[^\s\"',;\\]{6,}))",
    rf"(?i:aws.{{0,20}}?{_KEY_WORD}.{{0,20}}?[\"'](?P<secret>[0-9a-z/+]{{40}})(?=\\*[\"']))",
    rf"(?i:(?:\b|_|-|api|cloud|iam|ibm){_KEY_WORD}{_ASSIGNED}(?P<secret>[a-z0-9_-]{{44}})(?![a-z0-9_-]))",
    rf"(?i:secret[-_]?(?:access)?[-_]?key{_ASSIGNED}(?P<secret>[a-f0-9]{{48}})(?![a-f0-9]))",
    rf"(?i:\b(?:cl(?:ou(?:dant)?)?|softlayer|sl)[_-]?(?:api)?[_-]?{_KEY_WORD}{_ASSIGNED}(?P<secret>[a-z0-9]{{64}}|[a-z]{{24}}))",
    r"(?:(?<=[\s=:\"'])|^)AP(?=[A-Za-z]*\d)[\dA-F](?=[A-Z0-9]*[a-z])[a-zA-Z0-9]{8,}(?=[\s\"'\\]|$)")
"""What a word beside it says, or its looks: of these one may be something else."""
_ALL = re.compile("|".join(f"(?P<p{number}>{pattern})".replace("(?P<secret>", f"(?P<s{number}>")
                           for number, pattern in enumerate((*(each for _, each in PATTERNS), *_CONTEXTUAL))))
_FORMED = re.compile("|".join(f"(?P<p{number}>{pattern})".replace("(?P<secret>", f"(?P<s{number}>")
                              for number, (_, pattern) in enumerate(PATTERNS)))
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
    r"(?:AC|SK)[0-9a-z]{32}", r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.", r"[0-9]{8}:[0-9A-Za-z_-]{35}",
    r"AP[0-9A-F][A-Za-z0-9]{8}", r"://[^\s/:@\"'<>]*:[^\s/:@\"'<>]+@")
_ASSIGNS = (
    r"(?i)(?:key|password|pass|pwd|pw|token)[\\\"'\]]{0,4}\s*[:=\s][=>:]?\s*[\\\"']{0,4}[a-z0-9_-]{24}"
    r"|aws.{0,20}(?:key|pw|pass|token)")
_HEADED = r"(?i)\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?[a-z]+\s|\bcookie\\*[\"']?\s*[:=]\s*\\*[\"']?[\w.-]+="
_SPOKEN = (r"(?i)(?:password|passwd|pwd|passphrase|secret|api[ _-]?key|access[ _-]?token|auth[ _-]?token|bearer)"
           r"(?: is|\\?[\"']?\s*(?::|=)| )\s*\\?[\"']?[^\s\"',;\\]{6}")

_TEXT = pl.col("text").str
# made once: an expression for each of many small chunks takes longer than its texts
# a pattern of plain words, and each form by itself, are found several times as fast as one automaton of all of them
_MAY = pl.any_horizontal(_TEXT.contains("|".join(map(re.escape, _SIGNS))),
                         _TEXT.contains_any(_WORDS, ascii_case_insensitive=True),
                         *map(_TEXT.contains, _FORMS), _TEXT.contains(_ASSIGNS))
_HAS = pl.any_horizontal(_TEXT.contains(each) for each in (
    *(form for _, form in PATTERNS), *_FORMS, _ASSIGNS, _SPOKEN, _HEADED))


def suspects(texts: pl.Series) -> pl.Series:
    """Whether a text may hold a secret: it has a sign of one, and a form."""
    return _among(texts, _different_suspects)


def _different_suspects(texts: pl.Series) -> pl.Series:
    may = texts.to_frame("text").select_seq(_MAY).to_series()
    if not may.any():
        return may
    has = texts.filter(may).to_frame("text").select_seq(_HAS)
    return may.scatter(may.arg_true(), has.to_series())


def _among(texts: pl.Series, test: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Whether a text passes a test, which looks at equal texts once; what is no text passes none."""
    different = texts.unique()
    return texts.is_in(different.filter(test(different)).implode()).fill_null(False)


def cut_out(text: str) -> str:
    """Remove the secrets from a text, those too that a word beside them announces."""
    return _ALL.sub(_emptied, text)


def cut_forms(text: str) -> str:
    """Remove the secrets that have a form of their own from a text."""
    return _FORMED.sub(_emptied, text)


def _emptied(match: re.Match[str]) -> str:
    part = f"s{(match.lastgroup or 'p0')[1:]}"
    start, end = match.span(part) if match.groupdict().get(part) is not None else match.span()
    text = match.string
    return f"{text[match.start():start]}{SECRET}{text[end:match.end()]}"
