"""The policy of loop.py: the small one of learning.py, with a sharper sight and shorter phrases. Still it learns from the
published datasets and in the published environment alone.

`Sharp` reads answers that are Python literals as well as JSON, takes an answer out of its envelope, and keeps what answers
state for the choice of acts: truths, words, and how large numbers and how long lists are. `plain` drops what an agent says
only for form: of an utterance with several sentences those stay that are said alone elsewhere.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from learning_policy import Choice, Lexicon, Policy, Slot, softmax
from learning_sight import Episode, Value, _leaves, text_of, words
from learning_training import Session, lexicon_of

GRID = (1, 2, 3, 4, 5, 10, 20, 30, 50, 100, 200, 500)
LEAST = 4
"""Utterances of a phrase."""
MOST_WORDS = 40
ALONE = 3
"""Utterances of nothing but a sentence, to take it for one that is said alone."""
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_PART = re.compile(r"[^\W\d_]+|\d+")
_DIGIT = re.compile(r"\d")


class Sharp(Episode):
    """What was seen and done, with what answers state."""

    def __init__(self, tools: list[dict[str, Any]], usual: Mapping[str, Iterable[str]] = MappingProxyType({})) -> None:
        super().__init__(tools)
        for name, schema in self.schemas.items():
            self.schemas[name] = {**schema, "required": [*dict.fromkeys([*schema.get("required", ()), *usual.get(name, ())])]}
        self._facts: dict[str, None] = {}
        self._words: dict[str, None] = {}

    def hear(self, text: str) -> None:
        """Take in what the user says."""
        super().hear(text)
        if len(self._words) < MOST_WORDS:
            self._words |= dict.fromkeys(word for word in self._last_words if len(word) > 2)
        numbers = [int(word) for word in words(text) if word.isdigit() and len(word) < 3]
        self._facts |= {f"user>={step}": None for number in numbers for step in GRID if number >= step}

    def answered(self, tool: str, content: str) -> None:
        """Take in a tool's answer."""
        self._n_answers += 1
        document = parsed(content)
        for path, value, marks in _leaves(document, "", frozenset()):
            self._see(value, f"{tool}:{path.rpartition('.')[2]}", marks, self._n_answers)
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._see(f"{value:.2f}", f"{tool}:{path.rpartition('.')[2]} as money", marks, self._n_answers)
        facts = [*stated(document, ""), *spoken_of(document, self.said)]
        self._answer = {f"{tool} {fact}" for fact in facts}
        self._facts |= dict.fromkeys(facts)

    def moment(self) -> set[str]:
        """Features for the choice of the next act."""
        found, last = super().moment(), self.acts[-1]
        for fact in self._facts:
            found |= {f"fact {fact}", f"fact {fact} last={last}"}
            if ">=" not in fact:
                found |= {f"fact {fact} word={word}" for word in self._words}
        return found

    def about(self, value: Value, slot: str, chosen: dict[str, str]) -> list[str]:
        """Features of a value for a slot: how much of it the user said, too."""
        parts = [part.lower() for part in _PART.findall(text_of(value.value))]
        n_said = sum(part in self.said for part in parts)
        share = "all" if n_said == len(parts) else "some" if n_said else "none"
        return [*super().about(value, slot, chosen), f"parts said={share}", f"parts said={share} of {len(parts)}"]


class Supple(Lexicon):
    """What is read off logs; a slot is filled with values of its type, with objects too."""

    def candidates(self, slot: Slot, episode: Episode) -> list[Value]:
        """Return what the slot can be filled with."""
        kind = episode.schemas.get(slot.act, {}).get("properties", {}).get(slot.name, {}).get("type")
        found = super().candidates(slot, episode)
        if kind == "object":
            found = [value._replace(value=json.loads(value.value)) for value in found
                     if isinstance(value.value, str) and value.value.startswith("{")]
        return [value for value in found if _fits(value.value, kind)]


class Careful(Policy):
    """A policy that does the same at most twice in a row."""

    def act(self, episode: Episode, draw: np.random.Generator | None, wanted: str | None = None) -> tuple[str, Choice]:
        """Return the next act."""
        act, choice = super().act(episode, draw, wanted)
        if wanted is not None or episode.acts[-2:] != [act, act]:
            return act, choice
        scores = self.acting[choice.rows].sum(0)
        scores[self.lexicon.number[act]] = -np.inf
        chance = softmax(scores)
        number = int(chance.argmax()) if draw is None else int(draw.choice(len(chance), p=chance))
        return self.lexicon.acts[number], choice._replace(chosen=np.array([number]))


def _fits(value: Any, kind: str | None) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "integer":
        return str(value).isdigit()
    return isinstance(value, dict) or kind != "object"


@lru_cache(maxsize=8192)
def parsed(content: str) -> Any:
    """Return an answer as JSON has it, without its envelope; a text where it is neither JSON nor a Python literal."""
    document: Any = content
    for read in (json.loads, ast.literal_eval):
        try:
            document = read(content)
            break
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    if isinstance(document, tuple) and len(document) == 2 and isinstance(document[0], bool):
        document = document[1]
    if isinstance(document, dict) and len(document) == 2:
        inner = [value for value in document.values() if isinstance(value, dict | list)]
        if len(inner) == 1 and isinstance(inner[0], dict):
            document = inner[0]
    return json.loads(json.dumps(document, default=str))


def stated(document: Any, name: str) -> Iterator[str]:
    """Yield what an answer states as a whole: its truths and words, how large its numbers are and how long its lists."""
    if not isinstance(document, dict):
        yield f"{name}kind={type(document).__name__}"
        return
    for key, value in document.items():
        key = f"{name}{key}"
        if value is None or isinstance(value, bool):
            yield f"{key}={value}"
        elif isinstance(value, int | float | list):
            size = len(value) if isinstance(value, list) else value
            yield f"{key}>={max((step for step in GRID if size >= step), default=0)} at most"
            yield from (f"{key}>={step}" for step in GRID if size >= step)
        elif isinstance(value, str) and len(value) < 25:
            yield f"{key} is given" if _DIGIT.search(value) else f"{key}={value}"


def spoken_of(document: Any, said: str) -> Iterator[str]:
    """Yield what entries of lists state that the user speaks of by a word of theirs."""
    for key, entries in document.items() if isinstance(document, dict) else ():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and any(isinstance(value, str) and len(value) > 2 and value.lower() in said
                                               for value in entry.values()):
                yield from stated(entry, f"{key}: ")


def learner_of(sessions: Sequence[Session]) -> Careful:
    """Return a policy with no weights yet, that has the phrases, slots and sources of these sessions."""
    return Careful(lexicon_of(sessions, LEAST, partial(Sharp, usual=usual(sessions)), Supple))


def usual(sessions: Sequence[Session]) -> dict[str, list[str]]:
    """Return the arguments of each tool that most of its calls give, whether the schema asks for them or not."""
    n_calls: Counter[str] = Counter()
    n_given: Counter[tuple[str, str]] = Counter()
    for session in sessions:
        for call in (call["function"] for message in session.messages for call in message.get("tool_calls") or ()):
            n_calls[call["name"]] += 1
            n_given.update((call["name"], name) for name in json.loads(call["arguments"]))
    return {tool: sorted(name for of, name in n_given if of == tool and 2 * n_given[of, name] > n)
            for tool, n in n_calls.items()}


def plain(sessions: Sequence[Session]) -> list[Session]:
    """Return the sessions with each utterance of the agent without what is said for form."""
    alone = Counter(_beginning(text) for session in sessions for text in _said(session) if not _SENTENCE.search(text))
    return [session._replace(messages=[
        {**message, "content": _core(message["content"], alone)} if _is_said(message) else message
        for message in session.messages]) for session in sessions]


def _core(text: str, alone: Counter[str]) -> str:
    kept = [sentence for sentence in _SENTENCE.split(text) if alone[_beginning(sentence)] >= ALONE]
    return " ".join(kept) or text


def _said(session: Session) -> Iterator[str]:
    return (message["content"] for message in session.messages if _is_said(message))


def _is_said(message: dict[str, Any]) -> bool:
    return message["role"] == "assistant" and bool(message.get("content"))


def _beginning(text: str) -> str:
    return " ".join("#" if _DIGIT.search(word) else word for word in text.split()[:3])
