"""Signals about steps: one that most sessions take before they write and this one did not, words without the deed, and ends.

What is usual is learnt per service from its own sessions. Agents that speak in set sentences say some of them right after a
write; one of these without a write is a promise. Sees the order of calls and messages, set sentences (digits aside), and
questions that begin alike. Does not see: agents that word everything anew each time, steps that most sessions skip, whether an
answer to a question was checked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence
from extractors.outcomes.refusals import IDENTITY, INSTRUCTING, Step, steps_of

_SPLIT = re.compile(r"(?<=[.!?])\s+|\n+")
_NAMES = re.compile(r"\S*\d\S*")
_FEWEST = 5
"""Sessions with a sentence or a step, below which nothing is learnt of it."""
_AFTER_WRITE = 0.7
"""Share of a sentence's uses right after a write, from which on it tells that something was done."""
_USUAL = 0.75
"""Share of the sessions that write with a step before it, from which on the step is due."""
_ELSE = re.compile(r"(?i)\b(?:else|further|more|other|today|next)\b")


def promised(evidence: Evidence) -> pl.DataFrame:
    """-1 where the agent says what others say right after a write, or claims success, and wrote nothing before it."""
    rows = []
    for sessions in _by_service(evidence).values():
        n_used, n_after = Counter[str](), Counter[str]()
        for steps in sessions.values():
            for place, step in enumerate(steps):
                for sentence in _set_sentences(step):
                    n_used[sentence] += 1
                    n_after[sentence] += place > 0 and steps[place - 1].acts
        usual = {sentence for sentence, n in n_used.items() if n >= _FEWEST}
        telling = {sentence for sentence, n in n_used.items() if n >= _FEWEST and n_after[sentence] >= _AFTER_WRITE * n}
        n_claims = [any(step.acts for step in steps) for steps in sessions.values() if any(step.claims for step in steps)]
        trusted = len(n_claims) >= _FEWEST and sum(n_claims) >= _AFTER_WRITE * len(n_claims)
        for session, steps in sessions.items():
            empty = next(_empty_words(steps, telling, usual, trusted), None)
            if empty is not None:
                rows.append((session, -1.0, "says that it was done, and nothing was", [empty.turn_id]))
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _empty_words(steps: Sequence[Step], telling: set[str], usual: set[str], trusted: bool) -> Iterator[Step]:
    """Yield the messages that tell of a write where none was made since the agent last told of one."""
    wrote = ever = False
    repeated: set[str] = set()
    for step in steps:
        wrote, ever = wrote or step.acts, ever or step.acts
        if step.kind == "message" and step.role == "assistant":
            spoken = set(_set_sentences(step))
            told = spoken <= usual and bool(spoken & telling - repeated)
            repeated |= spoken
            if (told and not wrote) or (trusted and step.claims and spoken and spoken <= usual and not ever):
                yield step
            if told:
                wrote = False


def skipped(evidence: Evidence) -> pl.DataFrame:
    """-1 where a session wrote without a question or a read that most sessions have before they write."""
    rows = []
    for sessions in _by_service(evidence).values():
        before = {session: _steps_before(steps) for session, steps in sessions.items() if any(step.acts for step in steps)}
        n_with = Counter(mark for marks in before.values() for mark in marks)
        due = {mark for mark, n in n_with.items() if len(before) > n >= max(_FEWEST, _USUAL * len(before))}
        instructions = (step.content for steps in sessions.values() for step in steps if step.role in INSTRUCTING)
        checked = any(map(IDENTITY.search, instructions))
        for session, marks in before.items():
            if (missing := sorted(due - marks)) and checked:
                wrote = next(step.turn_id for step in sessions[session] if step.acts)
                rows.append((session, -1.0, f"wrote without {missing[0]}, as most sessions do not", [wrote]))
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _steps_before(steps: Sequence[Step]) -> set[str]:
    """Return the kinds of steps before the first write: a question that asks for something, the tools called."""
    marks = set()
    for place, step in enumerate(steps):
        if step.acts:
            break
        following = steps[place + 1] if place + 1 < len(steps) else None
        if (step.kind == "message" and step.role == "assistant" and following is not None and following.role == "user"
                and _NAMES.search(following.content)):
            marks.add("a question that the user answered with a name or number")
        elif step.kind == "call":
            marks.add(f"the read {step.tool}")
    return marks


def left(evidence: Evidence) -> pl.DataFrame:
    """-1 where the user left while the agent still asked for something."""
    rows = []
    for session, steps in steps_of(evidence):
        asked = [step for step in steps if step.kind == "message" and step.role == "assistant"]
        if asked and asked[-1].content.rstrip().endswith("?") and not _ELSE.search(_SPLIT.split(asked[-1].content)[-1]):
            last = steps[-1]
            if last is asked[-1] or (last.role == "user" and not _NAMES.search(last.content)):
                rows.append((session, -1.0, "ends while the agent still asks", [asked[-1].turn_id]))
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _by_service(evidence: Evidence) -> dict[str, dict[str, list[Step]]]:
    service = dict(evidence.session_requests.filter("worded").select("session_id", "service").iter_rows())
    sessions: dict[str, dict[str, list[Step]]] = defaultdict(dict)
    for session, steps in steps_of(evidence):
        if session in service:
            sessions[service[session]][session] = steps
    return sessions


def _set_sentences(step: Step) -> list[str]:
    """Return the agent's sentences, names and numbers masked."""
    if step.kind != "message" or step.role != "assistant":
        return []
    sentences = (_NAMES.sub("#", part.strip().lower()) for part in _SPLIT.split(step.content))
    return sorted({sentence for sentence in sentences if sentence and not sentence.endswith("?")})
