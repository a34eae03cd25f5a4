"""Good sessions as OpenAI's fine-tuning API takes them (supervised): {"messages", "tools", "parallel_tool_calls"} a line.

As `sft`, with tools as objects, and without what the API refuses: a line ends with words or a call of the assistant.
Left out: as `sft`.
"""

from __future__ import annotations

from collections.abc import Iterator

from env_builder.exports.conversations import functions
from env_builder.exports.exporter import Source
from env_builder.exports.lines import Left, Row, form, good, told


def _rows(source: Source, side: str, missed: Left) -> Iterator[Row]:
    tools = functions(source.tools)
    for episode in told(source, side, missed, good):
        last = max(place for place, message in enumerate(episode.messages) if message["role"] == "assistant")
        messages = episode.messages[:last + 1]
        yield {"messages": messages, **({"tools": tools, "parallel_tool_calls": False} if tools else {})}


EXPORTER = form("openai", _rows)
