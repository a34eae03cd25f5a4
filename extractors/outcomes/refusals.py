"""Signals about requests that the agent declined: for a reason that the instructions give, or in vain.

Where refusing is right, a session that declines looks like one that failed: nothing was done. Whether it was right shows in its
words: a right refusal names the rule, so its words stand in the instructions or in what the session had read, and are not those
of every refusal. An agent that declines, is pressed, and then does it all the same has broken the rule that it named. The same
goes for a request that the user took back.

Sees the column `stance` of turns (`declines`, `claims`, `both`, `takes_back`; without it all signals here abstain), words of
system messages and answers, and the words of all refusals of a service. Does not see: whether the rule applies, other languages
than English, refusals without words."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import orjson
import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, once

_TOKENS = re.compile(r"[^\W\d_]{4,}|\b\d+(?:[.,]\d+)*\b")
_ENDING = re.compile(r"(?:ings?|edly|ed|ies|es|s|ly|e|y)$")
_STOPS = frozenset(re.findall(
    r"\w+",
    "this that these those with from have has been because sorry unfortunately cannot could would should will your yours you "
    "they them their there here than then also more most some such only just very what when where which while about into over "
    "after before please thank thanks help make made want need must does doing done possible allow allowed able unable afraid "
    "not can our ours are were was rule rules policy policies again other another"))
_SENTENCES = re.compile(r"(?<=[.!?:;])\s+|\n{2,}|\n(?=[-*#\d])")
_RULE = re.compile(
    r"(?i)\b(?:must|only|never|unless|may not|cannot|can't|refuse|reject|deny|decline|at most|at least|within|until|nobody|"
    r"no one|not (?:allowed|permitted|possible|eligible)|no (?:more|longer|later)|more than|forbidden|prohibited|"
    r"possible|once|no \w+(?:s|tions?|ing|als?))\b")
"""Words by which a sentence of the instructions states a rule."""
IDENTITY = re.compile(
    r"(?i)\b(?:verif\w+|identit\w+|identify|authenticat\w+|who you are|log ?in|pin|passwords?|date of birth|"
    r"security question|on file|whoever (?:asks|calls)|compare\w*)\b")
"""A refusal for lack of proof of who asks names the rule, if the instructions ask for proof in any of these words."""
INSTRUCTING = ("system", "developer")
_SHARED = 2
"""Stems that a refusal has in common with the instructions, from which on it names a rule of them."""
_COMMON = 0.95
"""Share of a service's refusals with a stem, above which it tells no reason."""
_ANY = 0.5
"""Share of other statements that name a rule by chance, from which on refusals that name one tell nothing."""
_MOSTLY = 0.5
"""Share of a service's refusals that name a rule, from which on one without it speaks against its session."""
_RARELY = 0.05
"""Share of a service's refusals without a rule, below which they are taken for rules in other words."""
_OFFER = re.compile(
    r"(?i)\?|\b(?:however|instead|alternative\w*|"
    r"(?:i|we) can(?!'t|not)|would you like|if you (?:like|wish|want|prefer)|let me know)\b")
"""A refusal with an offer: what the user then answers may take the offer up."""
_ASSENTS = re.compile(r"(?i)^\W*(?:yes|yep|yeah|sure|ok|okay|go ahead|please do|do it)\b")


class Step(NamedTuple):
    """A turn as the signals here read it."""

    turn_id: str
    position: int
    kind: str
    role: str | None
    tool: str | None
    content: str
    declines: bool
    claims: bool
    takes_back: bool
    acts: bool
    """A call that succeeded and is not known to read."""


class Refusal(NamedTuple):
    """A refusal of a session: what it says until the next call or request."""

    turns: list[str]
    stems: frozenset[str]
    read: frozenset[str]
    """Stems of the answers that the session had read."""
    asked: frozenset[str]
    """Stems of the user's words."""
    rules: list[frozenset[str]]
    """Stems of each sentence of the instructions that states a rule."""
    unproven: bool
    """It is for lack of proof of who asks, and the instructions ask for proof."""
    others: list[frozenset[str]]
    """Stems of each statement of the agent that declines nothing."""


@once
def steps_of(evidence: Evidence) -> dict[str, list[Step]]:
    """Return the steps of every session, in order."""
    steps: dict[str, list[Step]] = {}
    if "stance" not in evidence.turns.columns:
        return steps
    acting = set(evidence.writes["turn_id"])
    columns = "session_id", "turn_id", "position", "kind", "role", "tool", "content", "stance"
    for session, turn, position, kind, role, tool, content, stance in evidence.turns.select(columns).iter_rows():
        steps.setdefault(session, []).append(Step(
            turn, position, kind, role, tool, content or "", stance in ("declines", "both"), stance in ("claims", "both"),
            stance == "takes_back", turn in acting))
    return steps


@once
def digests_of(evidence: Evidence) -> dict[str, str]:
    """Return a digest of each session's steps, with the arguments of its calls: what a memo of them alone is made from."""
    acting = set(evidence.writes["turn_id"])
    columns = ["session_id", "turn_id", "position", "kind", "role", "tool", "content", "arguments"]
    stance = ["stance"] if "stance" in evidence.turns.columns else []
    return {session: hashlib.sha256(orjson.dumps([(*row, row[1] in acting) for row in rows])).hexdigest()
            for session, rows in groupby(evidence.turns.select(columns + stance).iter_rows(), itemgetter(0))}


@once
def declined_only(evidence: Evidence) -> set[str]:
    """Return the sessions that declined, or whose request was taken back."""
    return {session for session, steps in steps_of(evidence).items()
            if any(step.declines for step in steps) or _retraction(steps) is not None}


def stems(text: str) -> frozenset[str]:
    """Return the stems of the words that tell something."""
    return frozenset(_ENDING.sub("", word)[:7] for word in _TOKENS.findall(text.lower()) if word not in _STOPS)


def sentences_in(text: str) -> list[str]:
    """Return the sentences of instructions."""
    return [sentence for part in _SENTENCES.split(text) if (sentence := part.strip())]


def rules_in(text: str) -> list[str]:
    """Return the sentences of instructions that state a rule."""
    return [sentence for sentence in sentences_in(text) if _RULE.search(sentence)]


def cites(evidence: Evidence) -> pl.DataFrame:
    """1 where the agent declined by a rule of the instructions; -1 where one of its refusals names nothing, though most do.

    A refusal without any word of the request, the rules or what was read gives no reason at all; it counts wherever most do.
    """
    by_service: dict[str, dict[str, list[Refusal]]] = defaultdict(dict)
    service = dict(evidence.session_requests.select("session_id", "service").iter_rows())
    in_vain = set(gave_in(evidence)["session_id"])
    for session, steps in steps_of(evidence).items():
        if session in service and any(step.declines for step in steps):
            by_service[service[session]][session] = _refusals(steps)
    rows = [row for refusals in by_service.values() for row in _reasons(refusals) if row[0] not in in_vain]
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _refusals(steps: Sequence[Step]) -> list[Refusal]:
    """Gather the refusals of a session and what they can be held against; one goes on until the next call, new name, or refusal
    that nobody pressed for."""
    instructions = [step.content for step in steps if step.role in INSTRUCTING]
    rules = [stems(sentence) for text in instructions for sentence in rules_in(text)]
    read = stems(" ".join(step.content for step in steps if step.kind == "call").replace("_", " "))
    asked = stems(" ".join(step.content for step in steps if step.role == "user"))
    others = [stems(step.content) for step in steps if step.kind == "message" and step.role == "assistant"
              and not step.declines and "?" not in step.content]
    proving = any(map(IDENTITY.search, instructions))
    groups: list[list[Step]] = [[]]
    for place, step in enumerate(steps):
        if step.declines:
            if groups[-1] and steps[place - 1] is groups[-1][-1]:
                groups.append([])
            groups[-1].append(step)
        elif groups[-1] and (step.kind == "call" or (step.role == "user" and _asks_anew(steps, place, of_user=True))):
            groups.append([])
    spoken = [(group, " ".join(step.content for step in group)) for group in groups if group]
    return [Refusal([step.turn_id for step in group], stems(text), read, asked, rules, proving and bool(IDENTITY.search(text)),
                    others) for group, text in spoken]


def _reasons(refusals: Mapping[str, Sequence[Refusal]]) -> Iterator[tuple[str, float, str, list[str]]]:
    """Vote on the sessions of one service by the reasons that their refusals give."""
    every = [refusal for own in refusals.values() for refusal in own]
    n_with = Counter(stem for refusal in every for stem in refusal.stems)
    telling = {stem for stem, n in n_with.items() if n <= max(1, _COMMON * len(every))}
    has_rules = any(refusal.rules for refusal in every)
    named = {session: [_named(refusal, telling, has_rules) for refusal in own] for session, own in refusals.items()}
    n_named = sum(bool(each) for own in named.values() for each in own)
    mostly = _MOSTLY * len(every) <= n_named <= (1.0 - _RARELY) * len(every)
    n_blank = sum(_is_blank(refusal) for refusal in every)
    seldom_blank = _RARELY * len(every) <= n_blank <= _MOSTLY * len(every)
    source = "a rule of the instructions" if has_rules else "what it had read"
    worth = _beyond_chance(every) if has_rules else 0.5
    for session, shared in named.items():
        own = refusals[session]
        turns = [turn for refusal in own for turn in refusal.turns]
        words = sorted({stem for each in shared for stem in each})
        empty = any(not each and not _nears(refusal, telling) for each, refusal in zip(shared, own, strict=True))
        if seldom_blank and any(map(_is_blank, own)):
            # a condition that bears out another refusal of the session (1.0, `conditions.py`) does not make up for this one
            yield session, -1.0 if len(own) > 1 else -max(worth, 0.5), "declined without a reason", turns
            continue
        if not worth or (words and not has_rules and not empty):
            continue   # what agents give as a reason where no rule is known is right as often as wrong
        if empty and mostly:
            yield session, -worth, f"declined by nothing of {source}", turns
        elif words and not empty:
            yield session, worth, f"declined by {source}: {', '.join(words[:6])}", turns


def _is_blank(refusal: Refusal) -> bool:
    """Return whether a refusal has no word in common with the request, any rule or what it had read: it gives no reason."""
    return not refusal.unproven and refusal.stems.isdisjoint(refusal.read.union(refusal.asked, *refusal.rules))


def _nears(refusal: Refusal, telling: Set[str]) -> bool:
    """Return whether a refusal shares words with a rule, though the user's alone: it may name the rule."""
    return any(len(refusal.stems & telling & rule) >= _SHARED for rule in refusal.rules)


def _beyond_chance(refusals: Collection[Refusal]) -> float:
    """Return the share of the agents' other statements that name no rule; 0 where most do, as long instructions match any."""
    texts = {(spoken, refusal.asked & spoken): refusal.rules for refusal in refusals for spoken in refusal.others}
    statements = [any(len(spoken & rule) >= _SHARED and spoken & rule - asked for rule in rules)
                  for (spoken, asked), rules in texts.items()]
    share = (sum(statements) + 1.0) / (len(statements) + 2.0)
    return round(1.0 - share, 6) if statements and share < _ANY else float(not statements)


def _named(refusal: Refusal, telling: Set[str], has_rules: bool) -> list[str]:
    """Return the stems by which a refusal names a rule, or without instructions what it had read; none if it names nothing."""
    if refusal.unproven:
        return ["identity"]
    own = refusal.stems & telling
    if not has_rules:
        return sorted(own & refusal.read)
    shared = [sorted(own & rule) for rule in refusal.rules if len(own & rule) >= _SHARED and own & rule - refusal.asked]
    return max(shared, key=lambda stems: (len(stems), stems), default=[])


@once
def gave_in(evidence: Evidence) -> pl.DataFrame:
    """-1 where the agent did, or said that it did, what it had declined or what the user had taken back."""
    return pl.DataFrame(sorted(_broken(evidence)), schema=VOTES, orient="row")


def _broken(evidence: Evidence) -> Iterator[tuple[str, float, str, list[str]]]:
    begins = {(session, position) for session, position in evidence.goals.select("session_id", "begins").iter_rows()}
    for session, steps in steps_of(evidence).items():
        after = _retraction(steps)
        acted = None if after is None else _act_after(steps, after)
        if acted is not None:
            yield session, -1.0, "did what the user had taken back", [steps[after or 0].turn_id, steps[acted].turn_id]
            continue
        for place in range(len(steps) - 2):
            pressed = steps[place + 1]
            if (steps[place].declines and not _OFFER.search(steps[place].content)
                    and pressed.kind == "message" and pressed.role == "user"
                    and (session, pressed.position) not in begins and not _asks_anew(steps, place + 1)):
                acted = _act_after(steps, place + 1)
                if acted is not None and not steps[acted].declines:
                    yield session, -1.0, "did what it had declined", [steps[place].turn_id, steps[acted].turn_id]
                    break


def _act_after(steps: Sequence[Step], place: int) -> int | None:
    """Return the place of the next step if it writes or claims."""
    following = place + 1
    if following < len(steps) and (steps[following].acts or steps[following].claims):
        return following
    return None


def _asks_anew(steps: Sequence[Step], place: int, of_user: bool = False) -> bool:
    """Return whether a user's message names something with a digit that was not named before it. `of_user`: by the user."""
    before = " ".join(step.content for step in steps[:place] if step.role == "user" or not of_user).lower()
    return any(word not in before for word in re.findall(r"\S*\d\S*", steps[place].content.lower()))


def _retraction(steps: Sequence[Step]) -> int | None:
    """Return the place of the message in which the user takes a request back, after a question of the agent."""
    for place in range(1, len(steps)):
        asked, step = steps[place - 1], steps[place]
        if (step.role == "user" and step.kind == "message" and asked.role == "assistant" and "?" in asked.content
                and step.takes_back and not _ASSENTS.search(step.content) and place + 1 < len(steps)):
            return place
    return None
