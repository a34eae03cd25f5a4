"""Checks of work over files and messages: `confined`, `lineage`, `listed`.

See what the episode changed, which files one app handed to another, and by the journal what changed after what: all as the
grader's own replay reached it. A document's class and key are its name, as in `state`; a file's `origin` and a message's text
are fields of its JSON value. Do not see: what was changed and changed back, the meaning of a message beyond the names in it
(one that says "not filed: a.pdf" lists a.pdf), names that are written in parts or without their extension.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..schemas import Schema, fields, mapping
from ..words import LONGEST_TEXT
from .kind import CheckKind, CheckResult, EpisodeView, Parameters, clip
from .patterns import ABSENT, CONSTRAINT, found_at, holds
from .states import ACCEPTED, COUNT, LOOSE, NAME, TEXT, TEXTS, AcceptedEnds, UntouchedCheck

ALLOWED: Schema = {"type": "array", "items": fields(
    "documents", documents={**NAME, "description": "class/key of a document, or how it begins"}, new={"type": "boolean"},
    where=mapping(CONSTRAINT), at_most=COUNT)}
SEPARATORS = "|,;<>()[]{}\"'`*•\t\r\n "
"""What stands between names of files in a text, whatever its form: a list, a table, a sentence."""


class PermittedChanges(NamedTuple):
    """Accepted end states, and documents that may change besides."""

    ends: AcceptedEnds
    allowed: list[Parameters]


class ConfinedCheck(UntouchedCheck):
    """Check that nothing changed but the accepted end state and what a rule permits."""

    description = ("Nothing changed beyond an accepted end state, but for documents that `allowed` permits: that begin so, are "
                   "`new`, hold values `where` it says, `at_most` so many.")
    parameters = fields("accepted", "allowed", accepted=ACCEPTED, allowed=ALLOWED, **LOOSE)
    stops = "end"

    def prepare(self, parameters: Parameters) -> Any:
        return PermittedChanges(super().prepare(parameters), parameters["allowed"])

    def judge(self, prepared: Any, view: EpisodeView) -> CheckResult:
        episode = view.episode._replace(difference=self.essential(prepared, view))
        return super().judge(prepared.ends, EpisodeView(episode, view.ask, view.seed))

    def is_lost(self, prepared: Any, view: EpisodeView) -> bool:
        return False  # a document that is too much can be taken away again

    def essential(self, prepared: Any, view: EpisodeView) -> dict[str, Any]:
        difference = view.episode.difference
        documents = dict(difference.get("documents", {}))
        for rule in prepared.allowed:
            own = [name for name in sorted(documents) if name.startswith(rule["documents"]) and _permits(rule, name, view)]
            for name in own[:rule.get("at_most", len(own))]:
                del documents[name]
        made = [each for each in difference.get("made", ()) if "/".join(each) in documents]
        rest = {name: value for name, value in difference.items() if name != "made"} | {"documents": documents}
        return rest | {"made": made} if made else rest


def _permits(rule: Parameters, name: str, view: EpisodeView) -> bool:
    before, after = view.document(name)
    if rule.get("new") and (before is not None or after is None):
        return False
    value = _value(after)
    return all(holds(constraint, found_at(value, at), view, None) for at, constraint in rule.get("where", {}).items())


class LineageCheck(CheckKind):
    """Check where the files come from that an episode leaves."""

    description = ("A file of each of these `origins` was handed over; and of no origin are more files left than were there "
                   "and were handed over: a file may be moved and downloaded again, but no copy stays with its source.")
    parameters = fields("origins", origins=TEXTS)
    stops = "end"

    def judge(self, prepared: Parameters, view: EpisodeView) -> CheckResult:
        handed = Counter(origin for _, origin in view.episode.received if isinstance(origin, str))
        grown: Counter[str] = Counter()
        for name in view.episode.difference.get("documents", {}):
            before, after = (_origin(text) for text in view.document(name))
            grown.update([after] if after is not None else [])
            grown.subtract([before] if before is not None else [])
        more = sorted(origin for origin, n in grown.items() if n > handed[origin])
        wanted = prepared["origins"]
        missing = sorted({origin for origin in wanted if not handed[origin]})
        share = 1 - len(missing) / len(set(wanted)) if wanted else 1.0
        return CheckResult(not more and not missing, {"missing": clip(missing), "more": clip(more)}, view.leans(), share)


def _origin(text: str | None) -> str | None:
    origin = found_at(_value(text), "/origin")
    return origin if isinstance(origin, str) else None


class NamesToList(NamedTuple):
    """What the agent's last word has to list."""

    messages: str
    names: tuple[str, ...] | None
    text: str
    files: str | None
    others: tuple[str, ...]


class ListingMessage(NamedTuple):
    """A message, and the names that it lists."""

    place: int
    """In the journal, of the step that changed it last; -1 if unknown."""
    names: frozenset[str]
    others: frozenset[str]
    """Further names of files."""


class ListedCheck(CheckKind):
    """Check that the agent's last word lists what it should."""

    description = (
        "The agent's last word among the `messages` (or its last ones together) lists these `names` (without them: those of "
        "the changed `files`): no fewer, no other name with one of their extensions, none of `others`; and each was listed "
        "after its file was changed last.")
    parameters = fields(
        "messages", messages={**NAME, "description": "how the names of the messages begin, such as class/channel/"},
        names=TEXTS, text=TEXT, files={**NAME, "description": "how the names of the files begin, such as class/folder/"},
        others=TEXTS)
    stops = "end"

    def prepare(self, parameters: Parameters) -> NamesToList:
        if "names" not in parameters and "files" not in parameters:
            raise ValueError("`listed` needs `names`, or the `files` whose names they are")
        names = tuple(dict.fromkeys(parameters["names"])) if "names" in parameters else None
        return NamesToList(parameters["messages"], names, parameters.get("text", "/text"), parameters.get("files"),
                           tuple(parameters.get("others", ())))

    def judge(self, wanted: NamesToList, view: EpisodeView) -> CheckResult:
        names = frozenset(wanted.names if wanted.names is not None else _names_below(str(wanted.files), view))
        changes = view.episode.last_changes() if view.episode.last_changes else {}
        listings = _listings(wanted, names, changes, view)
        changed = {name: changes.get(f"{wanted.files}{name}", -1) for name in names} if wanted.files else {}
        best = CheckResult(False, {"missing": clip(sorted(names)), "others": []}, view.leans(), 0.0)
        for n in range(1, len(listings) + 1):
            latest = listings[-n:]
            others = sorted(frozenset().union(*(each.others for each in latest)))
            in_time = {name for name in names for each in latest
                       if name in each.names and (not changed or each.place > changed[name])}
            missing = sorted(names - in_time)
            share = len(in_time) / (len(names) + len(others)) if names or others else 1.0
            if not best.passed and (share >= (best.share or 0.0)):
                evidence = {"missing": clip(missing), "others": clip(others)}
                best = CheckResult(not missing and not others, evidence, view.leans(), share)
        return best


def _names_below(files: str, view: EpisodeView) -> list[str]:
    """Return the names of the changed files that are there at the end."""
    documents = view.episode.difference.get("documents", {})
    return [name.rpartition("/")[2] for name, text in documents.items() if name.startswith(files) and text is not None]


def _listings(
    wanted: NamesToList, names: frozenset[str], changes: dict[str, int], view: EpisodeView,
) -> list[ListingMessage]:
    """Return the agent's messages, the one that was changed last at the end."""
    listings = []
    for name, document in sorted(view.episode.difference.get("documents", {}).items()):
        if name.startswith(wanted.messages) and document is not None:
            text = found_at(_value(document), wanted.text)
            own, others = names_in(text if isinstance(text, str) else "", names, wanted.others)
            listings.append(ListingMessage(changes.get(name, -1), own, others))
    return sorted(listings, key=lambda each: each.place)


def names_in(text: str, names: Iterable[str], others: Sequence[str] = ()) -> tuple[frozenset[str], frozenset[str]]:
    """Return which of the names a text lists, and its further names of files: words that end as one of the names does, and
    those of `others`."""
    rest = text[:LONGEST_TEXT].replace("\\_", "_")
    listed: dict[str, bool] = {}
    for name in sorted({*names, *others}, key=lambda each: (-len(each), each)):
        rest, listed[name] = _without(rest, name)
    wanted = set(names)
    extensions = {extension for name in wanted if (extension := _extension(name))}
    words = rest.translate(dict.fromkeys(map(ord, SEPARATORS), " ")).split()
    plain = (word.rstrip(".:!?").replace("\\", "/").rpartition("/")[2] for word in words)
    further = {word for word in plain if _extension(word) in extensions}
    own = frozenset(name for name in wanted if listed[name])
    return own, frozenset(further | {name for name in others if listed[name] and name not in wanted})


def _without(text: str, name: str) -> tuple[str, bool]:
    """Return the text without a name where it stands by itself, and whether it does."""
    pieces, start, is_listed = [], 0, False
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        if not _continues(text[at - 1:at]) and not _continues(text[end:end + 1]) and not (
                text[end:end + 1] in (".", "-") and text[end + 1:end + 2].isalnum()) and text[at - 1:at] not in (".", "-"):
            pieces.append(text[start:at])
            start, is_listed = end, True
        at = text.find(name, end)
    return " ".join([*pieces, text[start:]]), is_listed


def _continues(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def _extension(name: str) -> str | None:
    stem, dot, extension = name.rpartition(".")
    return extension.casefold() if dot and stem and extension.isalnum() else None


def _value(text: str | None) -> Any:
    """Return a document's JSON value; the text itself if it is not JSON."""
    if text is None:
        return ABSENT
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text
