"""An episode as a conversation with a chat model: the model's choices in, tools' answers and the user's words out.

In: an episode of `play.py` and a function that asks the model, by messages of OpenAI's chat completions. Out: the whole
conversation, each turn of the model as the choice that its endpoint gave, token log-probabilities and all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from . import play

Row = dict[str, Any]
Ask = Callable[[list[Row]], Awaitable[Any]]
"""The model: the messages so far in, a choice of the endpoint out (`message.content`, `message.tool_calls`)."""


class Unscored(ValueError):
    """An episode whose reward nobody knows: it is no 0, and no trainer may count it."""


async def converse(episode: play.KitEpisode, ask: Ask) -> list[Any]:
    """Play an episode to its end; return its messages, those of the model as choices."""
    turns: list[Any] = list(episode.messages)
    while episode.ended is None:
        choice = await ask([turn if isinstance(turn, dict) else message_of(turn) for turn in turns])
        calls = choice.message.tool_calls or []
        taken = episode.take(play.words_of(choice.message.content or ""),
                             [(call.function.name, call.function.arguments) for call in calls])
        turns.append(choice)
        turns += [{"role": "tool", "tool_call_id": call.id, "content": answer}
                  for call, answer in zip(calls, taken.answers, strict=True)]
        if taken.reply is not None:
            turns.append({"role": "user", "content": taken.reply})
    return turns


def message_of(choice: Any) -> Row:
    """Return the model's turn as a message to send back."""
    calls = [{"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}
             for call in choice.message.tool_calls or []]
    return {"role": "assistant", "content": choice.message.content or "", **({"tool_calls": calls} if calls else {})}


def scored(episode: play.KitEpisode) -> float:
    """Return the reward of an episode that has ended; Unscored if it is unknown."""
    reward = episode.reward()
    if reward is None:
        raise Unscored(f"task {episode.task_id} is unscored: an answer that is unknown, or a judge that was not asked, could "
                       "change the reward")
    return float(reward)
