"""Good and bad behaviour side by side: actions (`dpo`), whole sessions (`reward_model`), actions one by one (`process_reward`).

In: `DatasetSource`. Out: rows as docs/datasets.md describes them. The state of a session is its task and all calls so far with
their answers; two sessions part at the first call that differs. If a failed task has no good session of its own but a verified
solution (`published`), the solution is the good one, in the bad session's own conversation. Rejected, with a decision: sessions
that are neither good nor bad, that no chat format can express, or without a counterpart. `weight`: how likely the labels are
right. Sources: Rafailov et al. 2023 (`dpo`); Wang et al. 2024, Math-Shepherd (`process_reward`: labels from logged
continuations).

Sees: calls, arguments, answers; whether the words so far are the same too (`exact`). Does not see: whether the action where
they part caused the failure, other calls that lead to the same end, and mistakes of a session that went well all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise, takewhile, zip_longest
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import orjson
import polars as pl

from env_builder.audit.values import leaves
from env_builder.exports import conversations as chats
from env_builder.exports.adapters.play import callable_names
from env_builder.exports.conversations import Rejections, Row, acts, form
from env_builder.exports.exporter import PUBLISHED_TASKS, DatasetSource
from env_builder.runtime.canonical import canonical


class PreferencePair(NamedTuple):
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


class _CallPath(NamedTuple):
    """What an episode did, call by call."""

    messages: list[Row] | None
    """None: a solution that nobody logged."""
    about: Row
    calls: list[tuple[str, str]]
    """Tool and canonical arguments."""
    answers: list[str | None]
    places: list[int]
    """Of each call the place of its message."""


def pairs(source: DatasetSource, split: str, missed: Rejections) -> Iterator[PreferencePair]:
    """For each bad session of a side the act where it parts from the good one nearest to it, by task and session."""
    solutions = solved(source)
    for task_id, paths in _by_task(source, split, missed):
        good, bad = _parted(paths)
        if not good and task_id in solutions and bad:
            good = [_solved(bad[0].about, solutions[task_id])]
        taken = set()
        for each in bad:
            candidates = [pair for other in good if (pair := _pair(other, each))]
            best = min(candidates, key=lambda pair: (not pair.exact, pair.difference, pair.good["session_id"] or ""),
                       default=None)
            key = best and orjson.dumps([best.prompt, best.chosen, best.rejected])
            if best is None or key in taken:
                missed.append((each.about["session_id"], "no_pair"))
                continue
            taken.add(key)
            yield best


def solved(source: DatasetSource) -> dict[str, list[Row]]:
    """Return the verified solution of each published task."""
    published = pl.DataFrame(schema=PUBLISHED_TASKS) if source.published is None else source.published
    names = callable_names(source.tools["tool"])
    return {task_id: [
        {**step, "tool": names.get(step["tool"], step["tool"])} if "tool" in step else step for step in orjson.loads(steps)]
        for task_id, steps in published.select("task_id", "solution").drop_nulls().iter_rows()}


def _by_task(source: DatasetSource, split: str, missed: Rejections) -> Iterator[tuple[str, list[_CallPath]]]:
    """Yield the good and the bad episodes of a split, task by task."""
    labelled = map(_path_of, chats.accepted(source, split, missed, chats.labelled))
    for task_id, paths in groupby(labelled, lambda path: path.about["task_id"]):
        yield task_id, list(paths)


def _parted(paths: list[_CallPath]) -> tuple[list[_CallPath], list[_CallPath]]:
    return [path for path in paths if path.about["good"]], [path for path in paths if chats.is_bad(path.about)]


def _path_of(episode: chats.LoggedConversation) -> _CallPath:
    calls, answers, places = [], [], []
    for place, message in enumerate(episode.messages):
        for call in message.get("tool_calls", ()):
            calls.append((call["function"]["name"], canonical(orjson.loads(call["function"]["arguments"]))))
            answers.append(episode.messages[place + 1]["content"])
            places.append(place)
    return _CallPath(episode.messages, episode.about, calls, answers, places)


def _instructions(path: _CallPath) -> list[Row]:
    """Return what stood there before anybody said or did anything."""
    return list(takewhile(lambda message: message["role"] in ("system", "developer"), _opening(path)))


def _opening(path: _CallPath) -> list[Row]:
    """Return what stood there before the policy's first move."""
    messages = path.messages or []
    return messages[:next(acts(messages), len(messages))]


def _solved(about: Row, steps: list[Row]) -> _CallPath:
    calls = [(step["tool"], canonical(step["arguments"])) for step in steps if "tool" in step]
    own = {**about, "session_id": None, "good": True, "weight": 1.0}
    return _CallPath(None, own, calls, [None] * len(calls), [0] * len(calls))


def _common(one: _CallPath, other: _CallPath) -> int:
    """How many calls both begin with, answered alike."""
    both = zip(one.calls, other.calls, one.answers, other.answers, strict=False)
    same = takewhile(lambda each: each[0] == each[1] and each[2] in (None, each[3]), both)
    return sum(1 for _ in same)


def _pair(good: _CallPath, bad: _CallPath) -> PreferencePair | None:
    n = _common(good, bad)
    chosen, rejected = _act(good, n), _act(bad, n)
    if chosen is None or rejected is None or bad.messages is None:
        return None
    (place, wanted), (other, unwanted) = chosen, rejected
    history = bad.messages[:other] if good.messages is None else good.messages[:place]
    exact = history == bad.messages[:other]
    n_differ = _difference(wanted, unwanted)
    if n_differ == 300 and (not exact or (wanted["content"] or "") == (unwanted["content"] or "")):
        return None
    return PreferencePair(history, wanted, unwanted, exact, n_differ, good.about, bad.about)


def _act(path: _CallPath, n: int) -> tuple[int, Row] | None:
    """Place and message of what was done after the first `n` calls: the next call, else the words after them."""
    if n < len(path.calls):
        if path.messages is not None:
            return path.places[n], path.messages[path.places[n]]
        tool, arguments = path.calls[n]
        call = {"id": f"call_{n}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        return 0, {"role": "assistant", "content": None, "tool_calls": [call]}
    messages, after = path.messages or [], path.places[n - 1] if n else -1
    return next(((place, messages[place]) for place in acts(messages) if place > after), None)


def _difference(one: Row, other: Row) -> int:
    calls = [message["tool_calls"][0]["function"] for message in (one, other) if "tool_calls" in message]
    if len(calls) < 2:
        return 200 if calls else 300
    if calls[0]["name"] != calls[1]["name"]:
        return 100
    values = [sorted(("".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path), canonical(value))
                     for path, value in leaves(orjson.loads(call["arguments"]))) for call in calls]
    return int(min(99, sum(a != b for a, b in zip_longest(*values)))) or 300


def _dpo(source: DatasetSource, split: str, missed: Rejections) -> Iterator[Any]:
    """Rows in order of difference; what is in memory is a key and a position a row."""
    tools = chats.dumps(chats.functions(source.tools))
    places: list[tuple[bool, int, str, str, int, int]] = []
    begins = 0
    with TemporaryFile() as lines:
        for pair in pairs(source, split, missed):
            length = lines.write(orjson.dumps({
                "prompt": pair.prompt, "chosen": [pair.chosen], "rejected": [pair.rejected], "tools": tools,
                "exact": pair.exact, "difference": pair.difference, "weight": _weight(pair.good, pair.bad),
                "task_id": pair.bad["task_id"], "chosen_episode_id": pair.good["session_id"],
                "rejected_episode_id": pair.bad["session_id"]}))
            places.append((not pair.exact, pair.difference, pair.bad["task_id"], pair.bad["session_id"], begins, length))
            begins += length
        for *_, begins, length in sorted(places):
            lines.seek(begins)
            yield orjson.Fragment(lines.read(length))


def _weight(good: Row, bad: Row) -> float | None:
    """How likely both labels are right."""
    return None if None in (good["weight"], bad["weight"]) else round(good["weight"] * bad["weight"], 6)


EXPORTER = form("dpo", _dpo)


def _pairs(source: DatasetSource, split: str, missed: Rejections) -> Iterator[Row]:
    """Each bad session of a split with the good one of its task that went the same path longest: of those that began with the
    same words, else of those with the same instructions (people seldom ask twice in the same words)."""
    tools = chats.dumps(chats.functions(source.tools))
    for _, paths in _by_task(source, split, missed):
        good_paths, bad_paths = _parted(paths)
        for path in bad_paths:
            alike = next((same for part_of in (_opening, _instructions)
                          if (same := [other for other in good_paths if part_of(other) == part_of(path)])), None)
            if not alike:
                missed.append((path.about["session_id"], "no_pair"))
                continue
            nearest = max(alike, key=lambda other: (_common(other, path), other.about["session_id"]))
            good, bad = nearest.messages or [], path.messages or []
            first = min(next(acts(messages), len(messages)) for messages in (good, bad))
            n = next((n for n in range(first) if good[n] != bad[n]), first)
            yield {"prompt": good[:n], "chosen": good[n:], "rejected": bad[n:], "tools": tools, "exact": n == first,
                   "weight": _weight(nearest.about, path.about), "task_id": nearest.about["task_id"],
                   "chosen_episode_id": nearest.about["session_id"], "rejected_episode_id": path.about["session_id"]}


def _steps(source: DatasetSource, split: str, missed: Rejections) -> Iterator[Row]:
    solutions = solved(source)
    for task_id, paths in _by_task(source, split, missed):
        solution = solutions.get(task_id)
        good, _ = _parted(paths)
        for each in paths:
            about, messages = each.about, each.messages or []
            if not good and solution is None:
                missed.append((about["session_id"], "no_pair"))
                continue
            right = good if solution is None else [*good, _solved(about, solution)]
            n_right = max(_common(path, each) for path in right)
            places = [*acts(messages), len(messages)]
            completions, labels, n_calls = [], [], 0
            for place, after in pairwise(places):
                n_calls += "tool_calls" in messages[place]
                completions.append("\n".join(map(_text, messages[place:after])))
                labels.append(about["good"] or n_calls <= n_right)
            if completions:
                yield {"prompt": "\n".join(map(_text, messages[:places[0]])), "completions": completions, "labels": labels,
                       "weight": about["weight"], "task_id": about["task_id"], "episode_id": about["session_id"]}


def _text(message: Row) -> str:
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls", ())]
    return f"{message['role']}: " + "\n".join([*([message["content"]] if message["content"] else []), *calls])


REWARD_MODEL = form("reward_model", _pairs)
PROCESS_REWARD = form("process_reward", _steps)
