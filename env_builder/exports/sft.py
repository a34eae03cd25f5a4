"""Good sessions as chat messages for supervised fine-tuning: one JSON line a session, one file a side.

A line is {"messages": […], "tools": "…", "episode_id", "task_id", "weight"}: messages in OpenAI's chat format
(`conversations.py`), tools as JSON text, and the weight of the label: how likely it is that the session is good.

Left out, with a verdict: sessions not known to be good, and sessions with a call that was never answered, whose arguments
are no JSON object, or without any word or call of the assistant.
"""

from __future__ import annotations

from collections.abc import Iterator

from env_builder.exports.conversations import dumps, functions
from env_builder.exports.exporter import Source
from env_builder.exports.lines import Left, Row, form, good, told


def _rows(source: Source, side: str, missed: Left) -> Iterator[Row]:
    tools = dumps(functions(source.tools))
    for episode in told(source, side, missed, good):
        about = episode.about
        yield {"messages": episode.messages, "tools": tools, "episode_id": about["session_id"],
               "task_id": about["task_id"], "weight": about["weight"]}


EXPORTER = form("sft", _rows, by_default=True)
