"""The scripted user of a many-turn task: the session's own later words, in order, and nothing else.

In: what the user said after the opening. Out: one of these texts for each word of the agent, then None.
Sees: how often the agent has spoken. Does not see: what the agent said, so an agent that asks other questions than
the recorded one gets answers to the recorded ones; it never invents.
"""

from __future__ import annotations

from typing import NamedTuple


class ScriptedUser(NamedTuple):
    """A user who says `turns` in order; immutable, so that forks share it and keep only their own index."""

    turns: tuple[str, ...]
    """What the user says after the opening."""

    def reply(self, index: int, text: str) -> tuple[int, str | None]:
        """The next index and the user's answer to `text`: turn `index`, or None once nothing is left to say.

        `text` is what the agent said; the script does not depend on it.
        """
        if 0 <= index < len(self.turns):
            return index + 1, self.turns[index]
        return index, None
