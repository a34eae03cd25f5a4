"""Clean events: remove secrets, and replace personal data by pseudonyms.

Event ids stay. Equal texts are cleaned once. What people said is searched again with the names of its session, for misspelt
ones: a rare word within one edit (Damerau 1964) of a name of five letters or more, found by deletions (SymSpell).

Secrets are cut out by the forms that their makers give them; patterns follow detect-secrets (Yelp, Apache-2.0), which the tests
compare with. A filter in Rust selects the few texts that may hold one. Does not see: two mistakes in one word, short names, a
secret without a form of its own and without a field or word that announces it, or one that is encoded once more."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from functools import lru_cache

import polars as pl

from extractors.privacy.fields import kind_of_identity
from extractors.privacy.people import ON_PATHS, People, PersonFact, states_who
from extractors.privacy.pseudonyms import SECRET, Pseudonyms
from extractors.privacy.rewriting import Carried, Carrier

_TEXTS = ("content", "arguments", "value", "name", "session_id", "call_id", "requestor", "lossy")
_TOKENS = ("prompt_token_ids", "completion_token_ids", "logprobs", "token_ids")
"""Of a model's usage: they spell the text that was there before."""
_SPOKEN_KINDS = ("message", "reasoning", "feedback")
_FIVE = re.compile(r"(?<![\w.#$€£-])\d{5}(?:-\d{4})?(?![\w-]|\.\d)")


class Cleaner:
    """Cleans events, piece by piece."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._carrier = Carrier(people, pseudonyms)
        self._people, self._pseudonyms = people, pseudonyms
        self._names: dict[str, frozenset[str]] = {}
        self._zips: dict[str, frozenset[str]] = {}

    @property
    def met(self) -> set[PersonFact]:
        """What was replaced for its form alone: known from now on."""
        return self._carrier.met

    def events(self, events: pl.DataFrame) -> pl.DataFrame:
        if events.is_empty():
            return events
        on_paths = events["kind"].is_in(ON_PATHS)
        texts = events.select(*_TEXTS, tool=pl.when(on_paths).then("tool"))
        clean = self.texts(pl.concat(texts.get_columns()))   # all at once: the same stands in several
        columns = {name: clean.slice(at * events.height, events.height) for at, name in enumerate(texts.columns)}
        columns["name"] = self._identities(events, columns["name"])
        columns["tool"] = columns["tool"].zip_with(on_paths, events["tool"])
        made = events.with_columns(**columns)
        if events["usage"].null_count() < events.height:
            made = made.with_columns(pl.Series("usage", [_without_tokens(each) for each in events["usage"]], pl.String()))
        names: dict[str, set[str]] = {}   # words of names, and postal codes, in the texts of each session where some are
        zips: dict[str, set[str]] = {}
        sessions = events["session_id"].to_list()
        for column in ("content", "arguments", "value") if self._names else ():
            for session_id, text in zip(sessions, events[column].to_list(), strict=True):
                if text in self._names and session_id is not None:
                    names.setdefault(session_id, set()).update(self._names[text])
                    zips.setdefault(session_id, set()).update(self._zips[text])
        people = {session_id: frozenset(each & self._people.words) for session_id, each in names.items()}
        contents = made["content"].to_list()
        spoken = events.select("session_id", "content").with_row_index().filter(
            events["kind"].is_in(_SPOKEN_KINDS) & events["content"].is_not_null() & events["session_id"].is_in(list(people)))
        for at, session, before in spoken.iter_rows():
            contents[at] = self._correct_spelling(contents[at], before, people[session], zips[session])
        self._names, self._zips = {}, {}
        return made.with_columns(pl.Series("content", contents, pl.String())) if people else made

    def _identities(self, events: pl.DataFrame, cleaned: pl.Series) -> pl.Series:
        """Who did something, with those whom nothing but this place tells: a short or a plain name."""
        names = events["name"]
        same = events.select((states_who() & (pl.col("name") == cleaned)).fill_null(False).alias("same"))["same"]
        made = {name: self._pseudonyms.of(kind, name) for name in names.filter(same).unique()
                if name.lower() not in self._people.tools and (kind := kind_of_identity(name))}
        return cleaned.replace(made) if made else cleaned

    def texts(self, texts: pl.Series) -> pl.Series:
        different = texts.drop_nulls().unique()
        if different.is_empty():
            return texts
        made: list[str] = []
        for text, carried in zip(different, self._carried(different), strict=True):
            made.append(carried.text)
            if carried.names or carried.zips:
                self._names[text], self._zips[text] = carried.names, carried.zips
        changed = different != pl.Series(made)
        if not changed.any():
            return texts
        new = pl.Series(made).filter(changed)
        return texts.replace(different.filter(changed), new)

    def _carried(self, texts: pl.Series) -> Iterator[Carried]:
        cached = [self._carrier.cached(text) for text in texts]
        new = texts.filter(pl.Series([each is None for each in cached], dtype=pl.Boolean()))
        suspect = iter(suspects(new))
        for text, carried in zip(texts, cached, strict=True):
            yield carried or self._carrier.carry(text, cut_out(text) if next(suspect) else text)

    def _correct_spelling(self, text: str, before: str, names: frozenset[str], zips: set[str]) -> str:
        new_zips = zips - self._zips.get(before, frozenset())
        if new_zips:
            text = _FIVE.sub(lambda match: self._pseudonyms.of("zip", match[0]) if match[0] in new_zips else match[0], text)
        return replace_misspelt(text, names, self._people.rare, self._pseudonyms)


def _without_tokens(usage: str | None) -> str | None:
    if usage is None or not any(name in usage for name in _TOKENS):
        return usage
    document = json.loads(usage)
    if not isinstance(document, dict):
        return None
    return json.dumps({name: value for name, value in document.items() if name not in _TOKENS})


LEAST = 5
_WORD = re.compile(r"[^\W\d_]{4,}")


def replace_misspelt(text: str, names: frozenset[str], rare: Set[str], pseudonyms: Pseudonyms) -> str:
    """Replace the misspelt names in a text."""
    near = _near(names)
    if not near or rare.isdisjoint(_WORD.findall(text.lower())):
        return text

    def replaced(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in rare or near.get(word) == word:
            return match[0]
        name = next((near[each] for each in (word, *_shorter(word)) if each in near and _is_one_edit(word, near[each])), None)
        return pseudonyms.word(name if match[0].islower() else name.upper() if match[0].isupper() else name.title()
                               ) if name else match[0]

    return _WORD.sub(replaced, text)


@lru_cache(1 << 8)   # the names of a session are asked for with each of its texts
def _near(names: frozenset[str]) -> dict[str, str]:
    """Names, and what is left of them without one letter -> the name."""
    near: dict[str, str] = {}
    for name in sorted(names):
        if len(name) >= LEAST:
            for each in (name, *_shorter(name)):
                near.setdefault(each, name)
    return near


def _shorter(word: str) -> list[str]:
    return [word[:at] + word[at + 1:] for at in range(len(word))]


def _is_one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[at:], other[at:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


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
    """Remove the secrets from a text."""
    return _ALL.sub(_without, text)


def _without(match: re.Match[str]) -> str:
    part = f"s{(match.lastgroup or 'p0')[1:]}"
    start, end = match.span(part) if match.groupdict().get(part) is not None else match.span()
    text = match.string
    return f"{text[match.start():start]}{SECRET}{text[end:match.end()]}"
