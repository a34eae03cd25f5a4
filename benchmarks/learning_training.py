"""How the small policy of learning.py learns: from datasets as they were exported, then in a room.

`imitated` (SFT lines) and `weighted` (offline: every session of the trajectories by its advantage) see files of OUT/datasets
alone; `practised` plays tasks of the split `train` in the room and sees the reward of its grader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from learning_phrases import LEAST, Phrases
from learning_policy import Choice, Learner, Lexicon, Policy, Slot, slots_of
from learning_sight import Episode

from env_builder.runtime import Environment

MOST_ACTS = 30
PUSH = 0.5
"""How much all bad sessions weigh beside all good ones."""
Row = dict[str, Any]


class Session(NamedTuple):
    """A session of a log: chat messages, the tools it had, and what is known of its success."""

    messages: list[Row]
    tools: list[Row]
    reward: float
    """Chance that it went well."""


class Played(NamedTuple):
    """An episode of the policy."""

    reward: float
    """Of the room's grader; 0 where it is unscored."""
    choices: list[Choice]
    scored: bool


def sft(path: Path) -> list[Session]:
    """Sessions of an SFT file."""
    found = []
    with path.open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            tools = json.loads(line["tools"]) if isinstance(line["tools"], str) else line["tools"]
            found.append(Session(line["messages"], [tool["function"] for tool in tools], 1.0))
    return found


def logged(path: Path, tools: list[Row]) -> list[tuple[str, Session]]:
    """(task, session) of a side, from its Parquet file of steps; the chance is .5 where nothing is known."""
    steps = pl.read_parquet(path).sort("task_id", "episode_id", "step_idx").select(
        "task_id", "episode_id", "role", "kind", "label_prob", pl.coalesce("observation", "action_text").alias("content"),
        tool="action_name", arguments="action_arguments")
    found = []
    for rows in steps.partition_by("task_id", "episode_id", maintain_order=True):
        label = rows["label_prob"].drop_nulls()
        messages = [_message(row) for row in rows.iter_rows(named=True)]
        found.append((rows["task_id"][0], Session(messages, tools, float(label[-1]) if len(label) else 0.5)))
    return found


def _message(row: Row) -> Row:
    if row["kind"] == "call":
        return {"role": "assistant", "tool_calls": [{"function": {"name": row["tool"], "arguments": row["arguments"] or "{}"}}]}
    return {"role": row["role"], "content": row["content"], "name": row["tool"]}


def lexicon_of(
    sessions: Sequence[Session], least: int = LEAST, sight: Callable[..., Episode] = Episode, kind: type[Lexicon] = Lexicon
) -> Lexicon:
    """Return the phrases (of `least` utterances or more) and sources of the slots of these sessions."""
    said = (message["content"] for session in sessions for message in session.messages
            if message["role"] == "assistant" and message.get("content"))
    lexicon = kind(sessions[0].tools, Phrases(said, least), sight)
    for session in sessions:
        for episode, act, given in _acts(session, lexicon):
            for slot in slots_of(act, episode, lexicon.phrases):
                if given.get(slot.name) is not None:
                    lexicon.learn(slot, given[slot.name], episode)
    return lexicon


def choices_of(session: Session, policy: Policy) -> list[Choice]:
    """Return the choices that this session's agent made, as far as the policy could have made them."""
    found = []
    for episode, act, given in _acts(session, policy.lexicon):
        found.append(policy.act(episode, None, act)[1])
        chosen: dict[str, str] = {}
        for slot in slots_of(act, episode, policy.lexicon.phrases):
            wanted = given.get(slot.name)
            if wanted is None:
                continue
            choice = policy.fill(slot, episode, chosen, None, wanted)[1]
            found += [choice] if choice else []
            chosen |= _named(slot, wanted)
    return found


def _acts(session: Session, lexicon: Lexicon) -> Iterable[tuple[Episode, str, Row]]:
    """Return (what was seen before, act, what its slots were given) of each act of a session, in order; at last its end."""
    episode = lexicon.sight(session.tools)
    called = ""
    for message in session.messages:
        text = message.get("content")
        if message["role"] == "user" and text:
            episode.hear(text)
        elif message["role"] == "tool":
            episode.answered(called, text or "")
        elif message["role"] == "assistant":
            name = lexicon.phrases.name_of(text) if text else None
            if name is not None:
                gaps = lexicon.phrases.by_name[name].gaps_of(text or "") or ()
                yield episode, name, {str(place): gap for place, gap in enumerate(gaps)}
                episode.do(name)
            for call in message.get("tool_calls") or ():
                called = call["function"]["name"]
                arguments = json.loads(call["function"]["arguments"])
                yield episode, called, arguments
                episode.do(called, called, arguments)
    yield episode, "end", {}


def fitted(policy: Policy, weighed: Sequence[tuple[float, list[Choice]]], epochs: int, rate: float, seed: int) -> None:
    """Ascend the weighted log-likelihood of sessions' choices, a session a step, in an order drawn by the seed."""
    learner, draw = Learner(policy, rate), np.random.default_rng(seed)
    for _ in range(epochs):
        for place in draw.permutation(len(weighed)):
            weight, choices = weighed[place]
            learner.step((weight, choice) for choice in choices)


def contrasted(
    policy: Policy, told: Sequence[tuple[float, list[Choice]]], epochs: int, rate: float, heat: float, seed: int
) -> None:
    """Learn from sessions that went well and from those that did not, as KTO does (Ethayarajh et al. 2024).

    `told`: (chance that it went well, choices). A session pulls or pushes the likelihood of its choices, the less the further
    the policy has moved already. Bad sessions together push half as much as good ones pull: most of what they did was right.
    """
    before = [policy.likelihood(choices) for _, choices in told]
    good = sum(max(0.0, 2 * chance - 1) for chance, _ in told)
    bad = sum(max(0.0, 1 - 2 * chance) for chance, _ in told)
    learner, draw = Learner(policy, rate), np.random.default_rng(seed)
    for _ in range(epochs):
        for place in draw.permutation(len(told)):
            chance, choices = told[place]
            moved = heat * (policy.likelihood(choices) - before[place])
            worth = 2 * chance - 1 if chance > 0.5 else (2 * chance - 1) * PUSH * good / max(bad, 1e-9)
            weight = worth * 2 / (1 + np.exp(np.clip(np.sign(worth) * moved, -30, 30)))
            learner.step((float(weight), choice) for choice in choices)


def play(policy: Policy, room: Environment, task_id: str, draw: np.random.Generator | None) -> Played:
    """One episode: drawn, or with None the likeliest choices."""
    begun = room.reset(task_id)
    episode, choices = policy.lexicon.sight(begun.tools), []
    for message in begun.messages:
        if message["role"] == "user":
            episode.hear(message["content"])
    for _ in range(MOST_ACTS):
        act, choice = policy.act(episode, draw)
        choices.append(choice)
        if act == "end":
            break
        given: Row = {}
        chosen: dict[str, str] = {}
        for slot in slots_of(act, episode, policy.lexicon.phrases):
            value, choice_of_value = policy.fill(slot, episode, chosen, draw)
            if choice_of_value is not None:
                choices.append(choice_of_value)
                given[slot.name] = value
                chosen |= _named(slot, value)
        _acted(room, episode, policy, act, given)
    room.finish()
    reward = room.grade().reward
    return Played(reward or 0.0, choices, reward is not None)


def _acted(room: Environment, episode: Episode, policy: Policy, act: str, given: Row) -> None:
    phrase = policy.lexicon.phrases.by_name.get(act)
    if phrase is None:
        result = room.call(act, given)
        episode.do(act, act, given)
        episode.answered(act, result.content)
        return
    reply = room.say(phrase.said(str(given.get(str(place), "")) for place in range(phrase.n_gaps)))
    episode.do(act)
    if reply is not None:
        episode.hear(reply)


def practised(
    policy: Policy, room: Environment, task_ids: Sequence[str], rounds: int, n_tasks: int, group: int, rate: float, seed: int
) -> list[float]:
    """Policy gradient in the room; the mean reward of each round.

    A round plays `n_tasks` tasks `group` times; an episode's advantage is its reward minus the group's mean, over the
    group's standard deviation (Shao et al. 2024); groups whose rewards are alike teach nothing.
    """
    learner, draw, curve = Learner(policy, rate), np.random.default_rng(seed), []
    for _ in range(rounds):
        weighed: list[tuple[float, Choice]] = []
        rewards = []
        for task_id in draw.choice(task_ids, n_tasks, replace=False):
            episodes = [play(policy, room, str(task_id), draw) for _ in range(group)]
            got = np.array([episode.reward for episode in episodes])
            rewards.append(got.mean())
            if got.std() > 0:
                for advantage, episode in zip((got - got.mean()) / got.std(), episodes, strict=True):
                    weighed += [(float(advantage), choice) for choice in episode.choices]
        learner.step(weighed)
        curve.append(float(np.mean(rewards)))
    return curve


def _named(slot: Slot, value: Any) -> dict[str, str]:
    return {} if slot.many or not isinstance(value, str) else {slot.name: value}
