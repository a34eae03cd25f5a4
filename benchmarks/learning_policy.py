"""The small policy of learning.py: log-linear choices over features that name no domain (learning_sight.py).

An act is chosen by a softmax: call a tool, say a phrase, or end. Its slots are filled one after the other by a softmax over
values that were seen, lists by an independent choice of each value. All choices of an episode have their log-probabilities;
gradients are exact (Williams 1992). What it knows of a service beside its weights (`Lexicon`) is read off the logs that it
learns from: the phrases, and which sources each slot was ever copied from.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from learning_phrases import Phrases
from learning_sight import Episode, Value, text_of
from numpy.typing import NDArray

N_ROWS = 1 << 16
N_WEIGHTS = 1 << 20
LIKELY = 0.02
"""Share of a slot's uses that a source must have had to be copied from."""
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Choice(NamedTuple):
    """One choice that was made, with what its gradient needs."""

    kind: str
    """`act`, `pick` (one of several values), `set` (each value or not)."""
    rows: Indices
    starts: Indices
    """Of `pick` and `set`: where in `rows` each value's features begin."""
    chosen: Indices
    """Number of what was chosen; of `set` 1 or 0 of each."""


class Slot(NamedTuple):
    """A place to fill."""

    name: str
    act: str
    many: bool


class Lexicon:
    """What is read off logs: acts, phrases, and from where each slot was copied."""

    def __init__(self, tools: list[dict[str, Any]], phrases: Phrases, sight: Callable[..., Episode] = Episode) -> None:
        self.phrases, self.sight = phrases, sight
        self.acts = [*sorted(tool["name"] for tool in tools), *sorted(phrases.by_name), "end"]
        self.number = {act: place for place, act in enumerate(self.acts)}
        self._sources: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._constants: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._n: Counter[tuple[str, str]] = Counter()
        self._likely: dict[tuple[str, str], frozenset[str]] = {}

    def learn(self, slot: Slot, wanted: Any, episode: Episode) -> None:
        """Note that a slot was given this."""
        key = (slot.act, slot.name)
        for one in wanted if isinstance(wanted, list) else [wanted]:
            self._n[key] += 1
            value = episode.seen.get(text_of(one))
            if value is None:
                self._constants[key][text_of(one)] += 1
            else:
                self._sources[key].update(value.sources)
        self._likely.pop(key, None)

    def candidates(self, slot: Slot, episode: Episode) -> list[Value]:
        """Return what the slot can be filled with: values from sources it was copied from, what the schema lists, constants."""
        key = (slot.act, slot.name)
        if key not in self._likely:
            self._likely[key] = frozenset(
                source for source, n in self._sources[key].items() if n >= LIKELY * self._n[key] and n > 1)
        likely = self._likely[key]
        found = {text: episode.value(text) for text, seen in episode.seen.items() if not likely.isdisjoint(seen.sources)}
        properties = episode.schemas.get(slot.act, {}).get("properties", {}).get(slot.name, {})
        listed = {text_of(one): one for one in properties.get("enum", ())}
        listed |= {text: text for text, n in self._constants[key].items() if n >= LIKELY * self._n[key] and n > 2}
        for text, one in listed.items():
            said = {"said"} if text.lower() in episode.said else {"not said"}
            known = found.get(text)
            features = frozenset({"listed", *said, *(known.features if known else ())})
            found[text] = Value(one, features, known.places if known else set())
        return [found[text] for text in sorted(found)]


def slots_of(act: str, episode: Episode, phrases: Phrases) -> list[Slot]:
    """Return the slots of an act: single ones before lists, which are chosen among what belongs to them."""
    if act in phrases.by_name:
        return [Slot(str(place), act, False) for place in range(phrases.by_name[act].n_gaps)]
    schema = episode.schemas.get(act, {})
    found = [Slot(name, act, schema.get("properties", {}).get(name, {}).get("type") == "array")
             for name in schema.get("required", ())]
    return sorted(found, key=lambda slot: slot.many)


class Policy:
    """Weights, and the choices they make."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.acting: Floats = np.zeros((N_ROWS, len(lexicon.acts)))
        self.filling: Floats = np.zeros(N_WEIGHTS)
        self._row: dict[str, int] = {}
        self._place: dict[tuple[str, str, str], int] = {}

    def copy(self) -> Policy:
        """Return the same, to be changed by itself."""
        twin = Policy(self.lexicon)
        twin.acting, twin.filling = self.acting.copy(), self.filling.copy()
        return twin

    def act(self, episode: Episode, draw: np.random.Generator | None, wanted: str | None = None) -> tuple[str, Choice]:
        """Return the next act: drawn, the likeliest (`draw` None), or the one that was `wanted`."""
        rows = np.fromiter({self._rows(feature) for feature in sorted(episode.moment())}, np.int64)
        number = self.lexicon.number[wanted] if wanted is not None else _one(softmax(self.acting[rows].sum(0)), draw)
        return self.lexicon.acts[number], Choice("act", rows, _NONE, np.array([number]))

    def fill(
        self, slot: Slot, episode: Episode, chosen: dict[str, str], draw: np.random.Generator | None, wanted: Any = None
    ) -> tuple[Any, Choice | None]:
        """Return a slot's value, and the choice; (None, None) where nothing can fill it or what was wanted was not seen."""
        values = self.lexicon.candidates(slot, episode)
        if not values:
            return None, None
        rows, starts = self._features(slot, values, episode, chosen)
        if wanted is not None:
            asked = {text_of(one) for one in (wanted if slot.many and isinstance(wanted, list) else [wanted])}
            held = np.array([int(text_of(value.value) in asked) for value in values])
            if held.sum() != len(asked):
                return None, None
        else:
            scores = np.add.reduceat(self.filling[rows], starts)
            if slot.many:
                chance = _sigmoid(scores)
                held = (chance > (0.5 if draw is None else draw.random(len(values)))).astype(int)
                if not held.any():
                    held[int(scores.argmax())] = 1
            else:
                held = np.zeros(len(values), int)
                held[_one(softmax(scores), draw)] = 1
        if slot.many:
            return [value.value for value, one in zip(values, held, strict=True) if one], Choice("set", rows, starts, held)
        number = int(held.argmax())
        return values[number].value, Choice("pick", rows, starts, np.array([number]))

    def _features(
        self, slot: Slot, values: list[Value], episode: Episode, chosen: dict[str, str]
    ) -> tuple[Indices, Indices]:
        rows: list[int] = []
        starts = []
        for value in values:
            starts.append(len(rows))
            rows.append(self._weight(slot, "is a value"))
            rows += [self._weight(slot, feature) for feature in value.features]
            rows += [self._weight(slot, feature) for feature in episode.about(value, slot.name, chosen)]
        return np.array(rows), np.array(starts)

    def _rows(self, feature: str) -> int:
        row = self._row.get(feature)
        if row is None:
            row = self._row[feature] = zlib.crc32(feature.encode()) % N_ROWS
        return row

    def _weight(self, slot: Slot, feature: str) -> int:
        key = (slot.act, slot.name, feature)
        place = self._place.get(key)
        if place is None:
            place = self._place[key] = zlib.crc32("|".join(key).encode()) % N_WEIGHTS
        return place

    def residuals(self, choice: Choice) -> Floats:
        """Of each option of a choice: was it chosen (1 or 0), minus how likely it is. The gradient is its sum over features."""
        if choice.kind == "act":
            chance = softmax(self.acting[choice.rows].sum(0))
        else:
            scores = np.add.reduceat(self.filling[choice.rows], choice.starts)
            chance = _sigmoid(scores) if choice.kind == "set" else softmax(scores)
        if choice.kind == "set":
            return np.asarray(choice.chosen - chance)
        left = -chance
        left[choice.chosen[0]] += 1.0
        return np.asarray(left)


    def likelihood(self, choices: Iterable[Choice]) -> float:
        """Logarithm of the probability of these choices."""
        total = 0.0
        for choice in choices:
            left = self.residuals(choice)
            if choice.kind == "set":
                total += float(np.log1p(-np.minimum(np.abs(left), 1 - 1e-12)).sum())
            else:
                total += float(np.log(max(1e-12, 1.0 - left[choice.chosen[0]])))
        return total


class Learner:
    """Ascends weighted log-likelihoods of choices, with a step of each weight's own (AdaGrad; Duchi, Hazan, Singer 2011)."""

    def __init__(self, policy: Policy, rate: float) -> None:
        self.policy, self.rate = policy, rate
        self._acting: Floats = np.full_like(policy.acting, 1e-2)
        self._filling: Floats = np.full_like(policy.filling, 1e-2)

    def step(self, weighed: Iterable[tuple[float, Choice]]) -> None:
        """One step along the sum of weight * gradient of the log-probability of each choice."""
        acting: dict[int, Floats] = {}
        places, amounts = [], []
        for weight, choice in weighed:
            left = weight * self.policy.residuals(choice)
            if choice.kind == "act":
                for row in choice.rows.tolist():
                    acting[row] = acting[row] + left if row in acting else left
            else:
                places.append(choice.rows)
                amounts.append(np.repeat(left, np.diff(np.append(choice.starts, len(choice.rows)))))
        if acting:
            rows, slope = np.array(list(acting)), np.array(list(acting.values()))
            self._acting[rows] += slope**2
            self.policy.acting[rows] += self.rate * slope / np.sqrt(self._acting[rows])
        if places:
            unique, inverse = np.unique(np.concatenate(places), return_inverse=True)
            slope = np.bincount(inverse, np.concatenate(amounts))
            self._filling[unique] += slope**2
            self.policy.filling[unique] += self.rate * slope / np.sqrt(self._filling[unique])


def softmax(scores: Floats) -> Floats:
    """Chances of options."""
    lifted = np.exp(scores - scores.max())
    return np.asarray(lifted / lifted.sum())


def _sigmoid(scores: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -30, 30))))


def _one(chance: Floats, draw: np.random.Generator | None) -> int:
    return int(chance.argmax()) if draw is None else int(np.searchsorted(np.cumsum(chance), draw.random() * chance.sum()))


_NONE = np.zeros(0, np.int64)
