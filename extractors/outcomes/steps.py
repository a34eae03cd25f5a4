"""Signals about steps: one that most sessions take before they write and this one did not, words without the deed, and ends.

What is usual is learnt per service from its own sessions. Agents that speak in set sentences say some of them right after a
write; one of these without a write is a promise. Sees the order of calls and messages, set sentences (digits aside), and
questions that begin alike. Does not see: agents that word everything anew each time, steps that most sessions skip, whether an
answer to a question was checked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, once
from extractors.outcomes.refusals import IDENTITY, INSTRUCTING, Step, steps_of

_SPLIT = re.compile(r"(?<=[.!?])\s+|\n+")
_NAMES = re.compile(r"\S*[\d@]\S*")
_FEWEST = 5
"""Sessions with a sentence or a step, below which nothing is learnt of it."""
_AFTER_WRITE = 0.7
"""Share of a sentence's uses right after a write, from which on it tells that something was done."""
_USUAL = 0.75
"""Share of the sessions that write with a step before it, from which on the step is due."""
_ANSWERS = re.compile(rf"(?i){_NAMES.pattern}|^\W*(?:yes|yep|yeah|sure|ok|okay|no|nope|nah)\b")
"""Last words that answer a question: with a name or number, or with yes or no."""
_ELSE = re.compile(r"(?i)\b(?:else|further|more|other|today|next)\b")


def promised(evidence: Evidence) -> pl.DataFrame:
    """-1 where the agent says what others say right after a write, or claims success, and wrote nothing before it."""
    rows = []
    for sessions in sessions_by_service(evidence).values():
        n_used, after = Counter[str](), defaultdict[str, Counter[str]](Counter)
        spoken = {session: [[sentence for sentence, _ in set_sentences(step)] for step in steps]
                  for session, steps in sessions.items()}
        for session, steps in sessions.items():
            for place, sentences in enumerate(spoken[session]):
                for sentence in sentences:
                    n_used[sentence] += 1
                    if place > 0 and steps[place - 1].acts:
                        after[sentence][steps[place - 1].tool or ""] += 1
        usual = {sentence for sentence, n in n_used.items() if n >= _FEWEST}
        telling = {sentence: frozenset(tool for tool, n in tools.items() if n > 1) or frozenset(tools)
                   for sentence, tools in after.items()
                   if sentence in usual and tools.total() >= _AFTER_WRITE * n_used[sentence]}
        n_claims = [any(step.acts for step in steps) for steps in sessions.values() if any(step.claims for step in steps)]
        trusted = len(n_claims) >= _FEWEST and sum(n_claims) >= _AFTER_WRITE * len(n_claims)
        for session, steps in sessions.items():
            empty = next(_empty_words(steps, spoken[session], telling, usual, trusted), None)
            if empty is not None:
                rows.append((session, -1.0, "says that it was done, and nothing was", [empty.turn_id]))
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _empty_words(steps: Sequence[Step], sentences: Sequence[Sequence[str]], telling: Mapping[str, frozenset[str]],
                 usual: set[str], trusted: bool) -> Iterator[Step]:
    """Yield the messages that tell of a write where no tool that they follow elsewhere wrote since the last such words."""
    wrote, ever = set[str](), False
    repeated: set[str] = set()
    for step, own in zip(steps, sentences, strict=True):
        if step.acts:
            wrote, ever = wrote | {step.tool or ""}, True
        if step.kind == "message" and step.role == "assistant":
            spoken = {*own}
            claims = spoken & telling.keys() - repeated if spoken <= usual else set[str]()
            repeated |= spoken
            empty = any(not telling[sentence] & wrote for sentence in claims)
            if empty or (trusted and step.claims and spoken and spoken <= usual and not ever):
                yield step
            if claims:
                wrote = set()


def skipped(evidence: Evidence) -> pl.DataFrame:
    """-1 where a session went without a question or a read that most sessions have, whatever they write, before they write."""
    rows = []
    for sessions in sessions_by_service(evidence).values():
        instructions = {step.content for steps in sessions.values() for step in steps if step.role in INSTRUCTING}
        if not any(map(IDENTITY.search, instructions)):
            continue
        before = {session: _steps_before(steps) for session, steps in sessions.items()}
        due = _due(before)
        for session, (tool, marks) in before.items():
            if tool and (missing := sorted(due - marks)):
                wrote = next(step.turn_id for step in sessions[session] if step.acts)
                rows.append((session, -1.0, f"wrote without {missing[0]}, as most sessions do not", [wrote]))
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _due(before: Mapping[str, tuple[str, frozenset[str]]]) -> frozenset[str]:
    """Return the steps that most sessions take before the first write, whichever tool it is made with."""
    by_tool: dict[str, list[frozenset[str]]] = defaultdict(list)
    for tool, marks in before.values():
        if tool:
            by_tool[tool].append(marks)
    marks_of = [marks for marks in by_tool.values() if len(marks) >= _FEWEST]
    usual = [{mark for mark, n in Counter(mark for each in marks for mark in each).items() if n >= _USUAL * len(marks)}
             for marks in marks_of]
    return frozenset(set.intersection(*usual)) if usual else frozenset()


def _steps_before(steps: Sequence[Step]) -> tuple[str, frozenset[str]]:
    """Return the first tool that writes ("" if none does), and the steps before it: tools called, a question that asks for
    something."""
    marks: set[str] = set()
    for place, step in enumerate(steps):
        if step.acts:
            return step.tool or "", frozenset(marks)
        following = steps[place + 1] if place + 1 < len(steps) else None
        if (step.kind == "message" and step.role == "assistant" and following is not None and following.role == "user"
                and _NAMES.search(following.content)):
            marks.add("a question that the user answered with a name or number")
        elif step.kind == "call":
            marks.add(f"the read {step.tool}")
    return "", frozenset(marks)


def left(evidence: Evidence) -> pl.DataFrame:
    """-1 where the user left while the agent still asked for something, in a service whose users answer."""
    rows = []
    for sessions in sessions_by_service(evidence).values():
        answered = [sum(step.kind == "message" and step.role == "user" for step in steps) > 1 for steps in sessions.values()]
        if 2 * sum(answered) <= len(answered):
            continue
        for session, steps in sessions.items():
            spoken = [step for step in steps if step.kind == "message" and step.role == "assistant"]
            if spoken and spoken[-1].content.rstrip().endswith("?") and not _ELSE.search(_SPLIT.split(spoken[-1].content)[-1]):
                last = steps[-1]
                if last is spoken[-1] or (last.role == "user" and not _ANSWERS.search(last.content)):
                    rows.append((session, -1.0, "ends while the agent still asks", [spoken[-1].turn_id]))
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


@once
def sessions_by_service(evidence: Evidence) -> dict[str, dict[str, list[Step]]]:
    """Return by kind of service the steps of each session with words."""
    service = dict(evidence.session_requests.filter("worded").select("session_id", "service").iter_rows())
    sessions: dict[str, dict[str, list[Step]]] = defaultdict(dict)
    for session, steps in steps_of(evidence).items():
        if session in service:
            sessions[service[session]][session] = steps
    return sessions


def set_sentences(step: Step) -> list[tuple[str, str]]:
    """Return the agent's sentences, each with names and numbers masked and as it stands."""
    if step.kind != "message" or step.role != "assistant":
        return []
    sentences = ((_NAMES.sub("#", part.strip().lower()), part.strip()) for part in _SPLIT.split(step.content))
    return sorted({each for each in sentences if each[0] and not each[0].endswith("?")})
