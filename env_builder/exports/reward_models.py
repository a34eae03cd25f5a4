"""Rows to train what judges: whole sessions against each other (`reward_model`), and acts one by one (`process_reward`).

`reward_model`: {"prompt": what both began with, "chosen", "rejected": the rest of each, "tools", "weight", "task_id",
"exact", "chosen_episode_id", "rejected_episode_id"}: a bad session with the good one of its task that went the same way
longest, of those that began with the same words (`exact`), else of those with the same instructions: what the user said is then
in both sides.

`process_reward`: {"prompt": text, "completions": [an act and what came of it, as text], "labels": [bool], "weight",
"task_id", "episode_id"}. An act of a good session is labelled true; of a bad one it is true while a good session of the
task went the same way (a hard estimate from logged continuations: Wang et al. 2024, Math-Shepherd), and false from the
first one that none did.

Left out, with a verdict: sessions that are neither good nor bad, what no chat format can tell, and bad ones without a good
one beside them. Does not see: mistakes of a session that went well all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise

from env_builder.exports.conversations import Episode, acts, dumps, functions
from env_builder.exports.exporter import Source
from env_builder.exports.lines import Left, Row, form, labelled, told
from env_builder.exports.pairs import shared, solved, whole


def _pairs(source: Source, side: str, missed: Left) -> Iterator[Row]:
    tools = dumps(functions(source.tools))
    for good, bad in whole(source, side, missed):
        n = 0
        first = min(_first(good), _first(bad))
        while n < first and good.messages[n] == bad.messages[n]:
            n += 1
        weights = (good.about["weight"], bad.about["weight"])
        yield {"prompt": good.messages[:n], "chosen": good.messages[n:], "rejected": bad.messages[n:],
               "tools": tools, "exact": n == first,
               "weight": None if None in weights else round(weights[0] * weights[1], 6), "task_id": good.about["task_id"],
               "chosen_episode_id": good.about["session_id"], "rejected_episode_id": bad.about["session_id"]}


def _first(episode: Episode) -> int:
    return next(acts(episode.messages), len(episode.messages))


def _steps(source: Source, side: str, missed: Left) -> Iterator[Row]:
    solutions = solved(source)
    for task_id, found in groupby(told(source, side, missed, labelled), lambda episode: episode.about["task_id"]):
        episodes = list(found)
        good = [each for each in episodes if each.about["good"]]
        for each in episodes:
            solution = solutions.get(task_id)
            if not good and solution is None:
                missed.append((each.about["session_id"], "no_pair"))
            elif row := _judged(each, shared(good, solution, each)):
                yield row


def _judged(episode: Episode, n_right: int) -> Row | None:
    """The row of an episode whose first `n_right` calls lie on a good way."""
    places = [*acts(episode.messages), len(episode.messages)]
    completions, labels, n_calls = [], [], 0
    for place, after in pairwise(places):
        n_calls += "tool_calls" in episode.messages[place]
        completions.append("\n".join(map(_text, episode.messages[place:after])))
        labels.append(episode.about["good"] or n_calls <= n_right)
    about = episode.about
    return None if not completions else {
        "prompt": "\n".join(map(_text, episode.messages[:places[0]])), "completions": completions, "labels": labels,
        "weight": about["weight"], "task_id": about["task_id"], "episode_id": about["session_id"]}


def _text(message: Row) -> str:
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls", ())]
    return f"{message['role']}: " + "\n".join([*([message["content"]] if message["content"] else []), *calls])


REWARD_MODEL = form("reward_model", _pairs)
PROCESS_REWARD = form("process_reward", _steps)
