"""Good and bad behaviour side by side: acts of two sessions of one task that were in the same state and parted there.

In: `Source`. Out: pairs of acts (`pairs`), pairs of whole sessions (`whole`). The state of a session is its task and all
calls so far with their answers; two sessions part at the first call that differs. Where a failed task has no good session
of its own but a verified solution (`Source.ways`), the solution is the good side, in the bad session's own conversation.

Sees: calls, arguments, answers; whether the words so far are the same too (`exact`). Does not see: whether the act where
they part is the one that the failure comes from; a way that leads to the same end by other calls parts early, and counts as
a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, takewhile, zip_longest
from typing import Any, NamedTuple

import orjson
import polars as pl

from env_builder.exports.adapters.play import callable_names
from env_builder.exports.conversations import Episode, acts
from env_builder.exports.exporter import WAYS, Source
from env_builder.exports.lines import Left, is_bad, labelled, told
from env_builder.runtime.canonical import canonical

Row = dict[str, Any]


class Pair(NamedTuple):
    """Two acts in the same state."""

    prompt: list[Row]
    chosen: Row
    rejected: Row
    exact: bool
    """The conversation before is the same word for word, not the calls alone."""
    difference: int
    """Of two calls of one tool: how many values differ; 100: other tools; 200: a call and words; 300: words alone, of two
    messages or beside one call."""
    good: Row
    """About the good episode."""
    bad: Row


class _Way(NamedTuple):
    """What an episode did, call by call."""

    episode: Episode | None
    """None: a solution that nobody logged."""
    about: Row
    calls: list[tuple[str, str]]
    """Tool and canonical arguments."""
    answers: list[str | None]
    places: list[int]
    """Of each call the place of its message."""
    solution: list[Row]


def pairs(source: Source, side: str, missed: Left) -> Iterator[Pair]:
    """For each bad session of a side the act where it parts from the good one nearest to it, by task and session."""
    solutions = solved(source)
    for task_id, episodes in groupby(told(source, side, missed, labelled), lambda episode: episode.about["task_id"]):
        good, bad = _sorted(list(episodes))
        if not good and task_id in solutions and bad:
            good = [_solved(bad[0].about, solutions[task_id])]
        seen = set()
        for each in bad:
            found = [pair for other in good if (pair := _pair(other, each))]
            best = min(found, key=lambda pair: (not pair.exact, pair.difference, pair.good["session_id"] or ""), default=None)
            key = best and orjson.dumps([best.prompt, best.chosen, best.rejected])
            if best is None or key in seen:
                missed.append((each.about["session_id"], "no_pair"))
                continue
            seen.add(key)
            yield best


def whole(source: Source, side: str, missed: Left) -> Iterator[tuple[Episode, Episode]]:
    """Each bad session of a side with the good one of its task that went the same way longest: of those that began with the
    same words, else of those with the same instructions (people seldom ask twice in the same words)."""
    for _, episodes in groupby(told(source, side, missed, labelled), lambda episode: episode.about["task_id"]):
        good, bad = _sorted(list(episodes))
        for each in bad:
            alike = _alike(good, each, _opening) or _alike(good, each, _instructions)
            if not alike or each.episode is None:
                missed.append((each.about["session_id"], "no_pair"))
                continue
            nearest = max(alike, key=lambda other: (_common(other, each), other.about["session_id"]))
            if nearest.episode is not None:
                yield nearest.episode, each.episode


def shared(good: list[Episode], solution: list[Row] | None, bad: Episode) -> int:
    """How many of the calls of a session lie on the way of a good one of its task, or of its verified solution."""
    ways = [*map(_way, good), *([_solved(bad.about, solution)] if solution is not None else [])]
    return max((_common(way, _way(bad)) for way in ways), default=0)


def solved(source: Source) -> dict[str, list[Row]]:
    """The verified solution of each published task."""
    ways, names = pl.DataFrame(schema=WAYS) if source.ways is None else source.ways, callable_names(source.tools["tool"])
    return {task_id: [
        {**step, "tool": names.get(step["tool"], step["tool"])} if "tool" in step else step for step in orjson.loads(steps)]
        for task_id, steps in ways.select("task_id", "solution").drop_nulls().iter_rows()}


def _sorted(episodes: list[Episode]) -> tuple[list[_Way], list[_Way]]:
    return ([_way(each) for each in episodes if each.about["good"]], [_way(each) for each in episodes if is_bad(each.about)])


def _way(episode: Episode) -> _Way:
    calls, answers, places = [], [], []
    for place, message in enumerate(episode.messages):
        for call in message.get("tool_calls", ()):
            calls.append((call["function"]["name"], canonical(orjson.loads(call["function"]["arguments"]))))
            answers.append(episode.messages[place + 1]["content"])
            places.append(place)
    return _Way(episode, episode.about, calls, answers, places, [])


def _alike(good: list[_Way], bad: _Way, told: Callable[[_Way], list[Row]]) -> list[_Way]:
    return [each for each in good if told(each) == told(bad)]


def _instructions(way: _Way) -> list[Row]:
    """What stood there before anybody said or did anything."""
    return list(takewhile(lambda message: message["role"] in ("system", "developer"), _opening(way)))


def _opening(way: _Way) -> list[Row]:
    """What stood there before the policy's first move."""
    messages = [] if way.episode is None else way.episode.messages
    return messages[:next(acts(messages), len(messages))]


def _solved(about: Row, steps: list[Row]) -> _Way:
    calls = [(step["tool"], canonical(step["arguments"])) for step in steps if "tool" in step]
    own = {**about, "session_id": None, "good": True, "weight": 1.0}
    return _Way(None, own, calls, [None] * len(calls), [0] * len(calls), steps)


def _common(one: _Way, other: _Way) -> int:
    """How many calls both begin with, answered alike."""
    n = 0
    for a, b, said, heard in zip(one.calls, other.calls, one.answers, other.answers, strict=False):
        if a != b or (said is not None and said != heard):
            break
        n += 1
    return n


def _pair(good: _Way, bad: _Way) -> Pair | None:
    n = _common(good, bad)
    chosen, rejected = _act(good, n, bad), _act(bad, n, good)
    if chosen is None or rejected is None or bad.episode is None:
        return None
    (place, wanted), (other, unwanted) = chosen, rejected
    history = bad.episode.messages[:other] if good.episode is None else good.episode.messages[:place]
    exact = good.episode is None or history == bad.episode.messages[:other]
    n_differ = _difference(wanted, unwanted)
    if n_differ == 300 and (not exact or _content(wanted) == _content(unwanted)):
        return None
    return Pair(history, wanted, unwanted, exact, n_differ, good.about, bad.about)


def _act(way: _Way, n: int, other: _Way) -> tuple[int, Row] | None:
    """Place and message of what was done after the first `n` calls: the next call, else the words after them."""
    if n < len(way.calls):
        if way.episode is not None:
            return way.places[n], way.episode.messages[way.places[n]]
        tool, arguments = way.calls[n]
        call = {"id": f"call_{n}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        return 0, {"role": "assistant", "content": None, "tool_calls": [call]}
    if way.episode is None:
        return None
    after = way.places[n - 1] if n else -1
    words = [place for place in acts(way.episode.messages) if place > after]
    return (words[0], way.episode.messages[words[0]]) if words else None


def _content(message: Row) -> str:
    return message["content"] or ""


def _difference(one: Row, other: Row) -> int:
    calls = [message["tool_calls"][0]["function"] if "tool_calls" in message else None for message in (one, other)]
    if calls[0] is None or calls[1] is None:
        return 300 if calls[0] is calls[1] else 200
    if calls[0]["name"] != calls[1]["name"]:
        return 100
    leaves = [sorted(_leaves(orjson.loads(call["arguments"]), "")) for call in calls]  # type: ignore[index]
    return int(min(99, sum(a != b for a, b in zip_longest(*leaves)))) or 300


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{place}]")
    else:
        yield path, canonical(value)
