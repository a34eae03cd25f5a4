"""Unpaired good and bad behaviour, as KTO takes it (Ethayarajh et al. 2024): one row an act of the policy.

A row is {"prompt": messages before the act, "completion": [the act], "label": is the session good?, "tools", "weight",
"episode_id", "task_id", "turn_idx"}. The completion holds what the policy wrote alone, so that no loss falls on what tools
answered. Left out, with a verdict: sessions that are neither known good nor more likely failed than not, and what no chat
format can tell.

Does not see: which act of a bad session was the mistake; every act of it has the session's label.
"""

from __future__ import annotations

from collections.abc import Iterator

from env_builder.exports.conversations import acts, dumps, functions
from env_builder.exports.exporter import Source
from env_builder.exports.lines import Left, Row, form, labelled, told


def _rows(source: Source, side: str, missed: Left) -> Iterator[Row]:
    tools = dumps(functions(source.tools))
    for episode in told(source, side, missed, labelled):
        about = episode.about
        for place in acts(episode.messages):
            yield {"prompt": episode.messages[:place], "completion": [episode.messages[place]], "label": about["good"],
                   "tools": tools, "weight": about["weight"], "episode_id": about["session_id"],
                   "task_id": about["task_id"], "turn_idx": episode.turns[place]}


EXPORTER = form("kto", _rows)
