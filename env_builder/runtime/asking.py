"""What the words of an agent ask of its user.

In: a text. Out: the sentences of it that ask for something, their telling words, whether they ask for a yes or a no; of a
user's words, whether they say yes or no; the facts of a text with numbers of things among them ("2 bags").
Sees: question marks, English words of request, of confirmation, of yes and no. Does not see: other languages' requests without
a question mark, irony, what a pronoun stands for. Text is only searched, never run and never a pattern.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from .words import Fact, facts_in

LONGEST = 20_000
"""Characters of a text that are read."""
SHORTEST_WORD = 2

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_COUNT = re.compile(r"(?<![\w.,-])(\d{1,6})[ -]([^\W\d_]{3,})")
_ENDS = re.compile(r"[.?!](?=\s|$)|\n")
_REQUESTS = re.compile(
    r"\?|\b(?:please|provide|share|tell|need|confirm|specify|which|what|enter|choose|select|who|whom|whose|when|where|clarify|give"
    r"|know|verify)\b")
_DIGIT = re.compile(r"\d")
_PARTS = re.compile(r"[^\W_]+|[\W_]+")
_CONFIRMS = re.compile(
    r"yes ?/ ?no|\(y/n\)|\bconfirm\b|\bproceed\b|\bgo ahead\b|\b(?:is|are) (?:that|this|these|those|it|everything|all) "
    r"(?:right|correct|ok|okay|fine|accurate)|\bcorrect\?|\bright\?"
    r"|\b(?:shall|should|may|can) (?:i|we) (?!have|get|know|ask|see|help|assist|be|do)"
    r"|\b(?:would|do) you (?:like|want|wish|agree)\b|\bare you sure\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[:;,\n]|(?<=[.?!]) ")
_CHOOSES = re.compile(r"\b(?:which|what|whose|where|when|who|how (?:many|much))\b", re.IGNORECASE)
_OPENS = re.compile(
    r"\bhow (?:can|may|could|else can) (?:i|we)\b|\bwhat (?:can|could|may|else)\b|\b(?:anything|something) (?:else|more)\b"
    r"|\bmore (?:about|information|details|context)\b", re.IGNORECASE)
_YES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|ya|sure|ok|okay|correct|right|absolutely|definitely|of course|certainly|please do|go ahead"
    r"|confirmed|(?:that|this|it)(?:'s| is) (?:right|correct|fine|good)|sounds good|oui|ja|si|sí)\b", re.IGNORECASE)
_NO = re.compile(
    r"\W*(?:no|nope|nah|never ?mind|not|don'?t|do not|that'?s not|that is not|wrong|incorrect|nein|non)\b", re.IGNORECASE)
_STOPPED = """
a able about above after again ahead all also am an and any anyone anything are as ask assist assistance at available be
because been before being below but by can cannot certainly choose confirm correct could d dear detail details did do does
doing done down each else ensure enter feel few find first for free from further get give glad go going great had has have
having he hello help her here hers hi him his hold how however i if in inform information into is it its just kindly know let
like ll m may me might moment more most must my need needed no nor not now of off ok okay on once one only or other our out
over own please proceed provide re regarding right s same see select shall share she should so some something specify such
sure t tell than thank thanks that the their them then there these they this those through to today too under until up us use
using ve very want was we well were what when where whether which while who whom whose why will wish with within without would
yes yet you your yours
"""
_STOP = frozenset(_STOPPED.split())
"""Words that tell nothing of what is asked for."""


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, in order; a mark inside a word ends none."""
    ends = [0, *(found.end() for found in _ENDS.finditer(text, 0, LONGEST)), min(len(text), LONGEST)]
    return [found for begin, end in pairwise(ends) if (found := text[begin:end].strip())]


@lru_cache(maxsize=1024)
def telling(text: str) -> frozenset[str]:
    """Words of a text that may say what it is about, in small letters and without a plural's s."""
    return frozenset(_stem(word.replace("-", "")) for word in _WORD.findall(text[:LONGEST].lower())
                     if len(word) >= SHORTEST_WORD and word not in _STOP)


@lru_cache(maxsize=1024)
def question(text: str) -> str:
    """The sentences that ask for something, one a line; empty where there is none."""
    small = text[:LONGEST].lower()
    if len(small) != len(text[:LONGEST]):  # a letter that is two small ones
        small = text[:LONGEST]
    hits = [found.start() for found in _REQUESTS.finditer(small)]
    if not hits:
        return ""
    asked, begin, at = [], 0, 0
    for end in (*(found.end() for found in _ENDS.finditer(small)), len(small)):
        if at < len(hits) and hits[at] < end:
            asked.append(text[begin:end].strip())
            while at < len(hits) and hits[at] < end:
                at += 1
        begin = end
    return "\n".join(asked)


def confirms(asked: str) -> bool:
    """Does the question ask for a yes or a no?"""
    return _CONFIRMS.search(asked) is not None


def agreeing(asked: str) -> frozenset[str]:
    """Telling words of the clauses that ask for a yes; none where they speak of nothing: shall I go ahead, are you sure."""
    return frozenset().union(*(telling(clause) for clause in _CLAUSES.split(asked) if _CONFIRMS.search(clause)))


def chooses(asked: str) -> bool:
    """Does it ask which, what, when …, so that neither a yes nor a no answers it?"""
    return _CHOOSES.search(asked) is not None


def opens(asked: str) -> bool:
    """Does it leave open what is to be told: how can I help, is there anything else …, or no telling word at all?"""
    return not telling(asked) or _OPENS.search(asked) is not None


def granted(text: str) -> bool | None:
    """Does a user's text begin with a yes (True) or a no (False)? None: with neither."""
    return True if _YES.match(text) else False if _NO.match(text) else None


@lru_cache(maxsize=1024)
def stated(text: str) -> frozenset[Fact]:
    """Facts of a text (`words.facts_in`), days without their year, and ("count", "2 bag") for numbers of things."""
    if not _DIGIT.search(text):
        return frozenset()
    counts = ((n, word.lower()) for n, word in _COUNT.findall(text[:LONGEST]))
    facts = ((kind, f"--{value[-5:]}" if kind == "date" else value) for kind, value in facts_in(text))
    return frozenset((*facts, *(("count", f"{int(n)} {_stem(word)}") for n, word in counts if word not in _STOP)))


def shape(fact: Fact) -> str | None:
    """What facts have in common that may be taken for each other: ids their form, counts what is counted; None: a number."""
    kind, value = fact
    if kind == "id":
        return "id " + "".join(_form(part) for part in _PARTS.findall(value))
    return f"count {value.partition(' ')[2]}" if kind == "count" else "date" if kind == "date" else None


def _form(part: str) -> str:
    head = part.rstrip("0123456789")
    if head.isalpha() and len(head) < len(part):
        return f"{head}{'9' * (len(part) - len(head))}"
    return part if not part.isalnum() else f"{'9' if part.isdigit() else 'a' if part.isalpha() else 'x'}{len(part)} "


def _stem(word: str) -> str:
    return word[:-1] if len(word) > SHORTEST_WORD and word.endswith("s") and not word.endswith("ss") else word
