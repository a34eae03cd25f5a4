"""A user's words as one sentence to read, with the values of slots marked.

In: words, and the slots that were found in them. Out: text for people; the words themselves stay as they are in `mart.goals`.
Sees: what stands there to the letter. Does not see: a value said in another form, which of several equal words is the slot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

SUBSTANTIVE = 4
"""An opening of fewer words than this may be a greeting."""

_GREETING = 3
"""A sentence of fewer words than this before others is one."""

LONGEST = 240
"""Signs of a sentence; longer words are cut where a sentence ends."""

_WORD = re.compile(r"[^\W_]+")
_ENDS = (".", "!", "?", "…", "。", "！", "？")
_DANGLING = re.compile(r"(?i)[\s,]+(?:and|but|or|then|so)(?:\s+i)?[\s,]*$")
"""English words that led to another request, which was cut off as a goal of its own (`families`)."""
_OPENING = re.compile(r"([^\W\d_][^,.!?…\n]*)[,.!?…\n]")
_PIECE = re.compile(r"(?<=[.!?…。！？])\s+|\s*\n+\s*")
_BEFORE, _AFTER = r"(?<![^\W_])[#@$]?", r"(?![^\W_])"
_NO_BRACES = str.maketrans("", "", "{}[]")
_NUMBERED = re.compile(r"\{(\w+?)_\d+\}")
_TOKEN = re.compile(r"\{[^{}]*\}|[#@$]?[^\W_](?:[\w@./:'’-]*\w)?")
_DIGITS = re.compile(r"\d")
_AGAIN = re.compile(r"…(?:[\s,]*…)+")

Slots = Mapping[str, str | Sequence[str]]
Mark = Callable[[str, str], str]
"""What stands in a text for (slot, its value)."""


def opening_of(words: str) -> str:
    """What a text begins with before its first comma or end of sentence, where that is short; empty where it is not."""
    first = _OPENING.match(words.lstrip())
    return first.group(1).lower() if first and len(_WORD.findall(first.group(1))) < SUBSTANTIVE else ""


def cleaned(words: str, openings: frozenset[str] = frozenset()) -> str:
    """The words in one line: without what only greets before them, what is said twice, and the rest of a very long text.

    `openings`: short beginnings that say nothing, as `opening_of` gives them.
    """
    said = pieces_of(words, openings)
    kept = said[0] if said else ""
    for piece in said[1:]:
        if len(kept) + len(piece) >= LONGEST:
            break
        kept += f". {piece}" if kept[-1].isalnum() else f" {piece}"
    return shortened(_DANGLING.sub("", kept), LONGEST)


def pieces_of(words: str, openings: frozenset[str] = frozenset()) -> list[str]:
    """Sentences of a text, without greetings before them and what the one before says already."""
    pieces = [" ".join(piece.split()) for piece in _PIECE.split(words.strip())]
    pieces = [piece for piece in pieces if piece]
    while len(pieces) > 1 and len(_WORD.findall(pieces[0])) < _GREETING:
        del pieces[0]
    said = [*pieces[:1], *(piece for before, piece in pairwise(pieces) if piece not in before)]
    while said and (begins := opening_of(said[0])) in openings and begins:
        rest = said[0][len(begins):].lstrip(" ,.!?…")
        if not (rest or said[1:]):
            break
        said[:1] = [rest] if rest else []
    return said


def shortened(text: str, most: int) -> str:
    """At most so many signs, cut after a word."""
    if len(text) <= most:
        return text
    cut = text[:most - 1]
    whole = cut.rsplit(" ", 1)[0] if " " in cut else cut
    return whole.rstrip(" ,;:.-([") + "…"


def marked(text: str, slots: Slots, mark: Mark) -> str:
    """The text with `mark(slot, value)` in the place of each value that stands in it, longer values first."""
    of_value = {value.strip(): name for name, values in sorted(slots.items(), reverse=True)
                for value in ([values] if isinstance(values, str) else values) if _tells(value.strip())}
    if not of_value:
        return text
    longest_first = sorted(of_value, key=lambda value: (-len(value), value))
    spelled = "|".join(re.escape(value) if _short(value) else f"(?i:{re.escape(value)})" for value in longest_first)
    lowered = {value.lower(): name for value, name in of_value.items()}

    def instead(found: re.Match[str]) -> str:
        return mark(lowered[found.group(1).lower()], found.group())

    return re.sub(f"{_BEFORE}({spelled}){_AFTER}", instead, text)


def _short(value: str) -> bool:
    return len(value) < SUBSTANTIVE and not any(sign.isdigit() for sign in value)


def _tells(value: str) -> bool:
    """Is a value found in words that value, and not any little word?"""
    return bool(value) and (not _short(value) or any(sign.isupper() for sign in value))


def with_values(names: Mapping[str, str]) -> Mark:
    """`[name: value]`; `names`: slot -> what it is called."""
    return lambda slot, value: filled(names[slot], value)


def filled(name: str, value: str | Sequence[str] | None) -> str:
    """`[name: value]`, several values with commas; `[name]` where it is not known."""
    told = value if isinstance(value, str) else ", ".join(value or ())
    return f"[{name}: {' '.join(told.split())}]" if told else f"[{name}]"


def without_values(names: Mapping[str, str]) -> Mark:
    """`{name}`."""
    return lambda slot, value: f"{{{names[slot]}}}"


def general(text: str, usual: Callable[[str], bool]) -> str:
    """The text with `…` for each word that holds a digit, and each capitalised one inside a sentence that is not `usual`: what
    is left is said of many things alike. Marks in braces stay."""
    def instead(found: re.Match[str]) -> str:
        word = found.group()
        if word.startswith("{"):
            return word
        first = text[:found.start()].rstrip(" '\"(")[-1:] in ("", *_ENDS)
        strange = _DIGITS.search(word) or (word[0].isupper() and not first and not usual(word.lower()))
        return "…" if strange else word

    return _AGAIN.sub("…", _TOKEN.sub(instead, text))


def called(slots: Sequence[str], label: str) -> dict[str, str]:
    """Slot -> what it is called in a sentence: the end of its path, as long as no other slot of these ends like it.

    `label`: what names the kind; parts of routes in it that are numbered apart lose their number, where one has the name.
    """
    ends = Counter(slot.rsplit(".", 1)[-1] for slot in slots)
    parts = Counter(_NUMBERED.findall(label))
    numbered = {f"{name}_1": name for name, n in parts.items() if n == 1 and name not in ends}
    return {slot: numbered.get(end, end) if ends[end] == 1 else slot.translate(_NO_BRACES)
            for slot in slots for end in [slot.rsplit(".", 1)[-1]]}


_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


_ROUTE = re.compile(r"([A-Z]+) (/.*)")
_VARIES = re.compile(r"\{[^{}]*\}")
_VERBS = {"GET": ("list", "look up"), "HEAD": ("check", "check"), "POST": ("add", "update"), "PUT": ("set", "set"),
          "PATCH": ("change", "change"), "DELETE": ("delete", "delete")}
"""Method -> what it does to all things of a kind, and to one."""
_ENVELOPE = re.compile(r"api|v\d+", re.IGNORECASE)
"""Parts of a path that name an interface and no thing."""


def spoken(tool: str) -> str:
    """A tool's name in words: `findOpenSlot` and `find_open_slot` are `find open slot`, `PATCH /rooms/{rooms_1}/keys` is
    `rooms: change keys`."""
    route = _ROUTE.fullmatch(tool)
    if route is None:
        return _VARIES.sub("…", tool) if "/" in tool and " " in tool else _worded(tool) or tool
    parts = [part for part in route[2].split("/") if part]
    things = [part for part in parts if not _VARIES.search(part)]
    things = [_worded(part) for part in things if not _ENVELOPE.fullmatch(part)] or things
    if not things:
        return _VARIES.sub("…", tool)
    every, one = _VERBS.get(route[1], (route[1].lower(),) * 2)
    verb = one if _VARIES.search(parts[-1]) else "" if route[1] == "POST" and things[1:] else every
    return f"{things[0]}: {' '.join([verb, *things[1:]]).strip()}"


def asked_by(goal: str) -> str:
    """A goal that nobody put into words, so that it is the requests that were made, in words; any other as it is."""
    routes = goal.split(", ")
    return ", ".join(map(spoken, routes)) if all(map(_ROUTE.fullmatch, routes)) else goal


def _worded(name: str) -> str:
    words = [word for part in re.split(r"[^0-9A-Za-z\u0080-\uffff]+", name) for word in _HUMPS.split(part) if word]
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words)
