"""Datasets of chat messages for trainers, one JSON line a row: `sft`, `openai`, `kto` of episodes, `grpo` of tasks.

In: `DatasetSource`. Out: rows as docs/datasets.md describes them; `openai` is what OpenAI's fine-tuning API takes. `kto`
(Ethayarajh et al. 2024) labels an action by its session: which action of a bad session was the mistake is not known. Rejected,
with a decision: sessions that a form has no label for or that no chat format can express (a call without an answer, arguments
that are no JSON object, no word or call of the assistant); of `grpo`, tasks without a published rubric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson
import polars as pl

from env_builder.exports import conversations as chats
from env_builder.exports.conversations import LoggedConversation, Rejections, Row, dumps, form, functions
from env_builder.exports.exporter import PUBLISHED_TASKS, DatasetSource, Exporter


def _of_episodes(
    name: str, wanted: Callable[[LoggedConversation], str | None],
    rows: Callable[[LoggedConversation, list[Row]], Iterator[Row]], by_default: bool = False,
) -> Exporter:
    """Return an exporter of what `rows(episode, tools)` makes of each episode that `wanted` gives no reason against."""
    def write(source: DatasetSource, split: str, missed: Rejections) -> Iterator[Row]:
        tools = functions(source.tools)
        for episode in chats.accepted(source, split, missed, wanted):
            yield from rows(episode, tools)

    return form(name, write, by_default)


def _sft(episode: LoggedConversation, tools: list[Row]) -> Iterator[Row]:
    about = episode.about
    yield {"messages": episode.messages, "tools": dumps(tools), "episode_id": about["session_id"], "task_id": about["task_id"],
           "weight": about["weight"]}


def _openai(episode: LoggedConversation, tools: list[Row]) -> Iterator[Row]:
    last = max(place for place, message in enumerate(episode.messages) if message["role"] == "assistant")
    yield {"messages": episode.messages[:last + 1], **({"tools": tools, "parallel_tool_calls": False} if tools else {})}


def _kto(episode: LoggedConversation, tools: list[Row]) -> Iterator[Row]:
    about, written = episode.about, dumps(tools)
    for place in chats.acts(episode.messages):
        yield {"prompt": episode.messages[:place], "completion": [episode.messages[place]], "label": about["good"],
               "tools": written, "weight": about["weight"], "episode_id": about["session_id"], "task_id": about["task_id"],
               "turn_idx": episode.turns[place]}


def _grpo(source: DatasetSource, split: str, missed: Rejections) -> Iterator[Row]:
    tools = dumps(functions(source.tools))
    rated = source.tasks.select("task_id", "rate", "difficulty_band").iter_rows()
    rates = {task_id: (rate, band) for task_id, rate, band in rated}
    published = pl.DataFrame(schema=PUBLISHED_TASKS) if source.published is None else source.published
    own = published.filter(pl.col("split") == split, pl.col("rubric_id").is_not_null()).sort("task_id")
    without = set(source.tasks.filter(pl.col("split") == split)["task_id"]) - set(own["task_id"])
    missed += [(task_id, "no_rubric") for task_id in without]
    for task in own.iter_rows(named=True):
        rate, band = rates.get(task["task_id"], (None, None))
        yield {"prompt": chats.spoken(orjson.loads(task["opening"]), task["goal"]), "tools": tools, "task_id": task["task_id"],
               "family_id": task["family_id"], "rubric_id": task["rubric_id"], "environment": source.environment,
               "environment_digest": source.content_digest, "rate": rate, "difficulty_band": band}


SFT = _of_episodes("sft", chats.good, _sft, by_default=True)
OPENAI = _of_episodes("openai", chats.good, _openai)
KTO = _of_episodes("kto", chats.labelled, _kto)
GRPO = form("grpo", _grpo)
