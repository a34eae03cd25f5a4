"""What passes between an episode's agent and its user and room: words, in which guise, and how much is written and shown.

In: the agent's words. Out: the user's, by the task's script (user.py); the tokens so far, estimated where nobody reports them;
words, calls and answers in the names that the agent sees (guises.py).
A token is taken for a quarter of the characters that the agent wrote (words, names and arguments of calls) and was shown
(opening, answers, the user's words), each once. Does not see: what the agent thought, the descriptors of the tools, what a
model reads anew at each step, and its tokenizer: whoever runs the model knows better and says so (`used`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .guises import Guise
from .records import Result, Task
from .relevance import leaves
from .renaming import forms
from .user import Said, ScriptedUser, reworded
from .world import World

CHARACTERS = 4
"""Characters of a token, on average: English under the usual tokenizers of byte pairs."""
NOBODY = ScriptedUser({"turns": []})


class Talking(ABC):
    """The talk of an episode; `Environment` is one, and has the journal."""

    tools: list[dict[str, Any]]
    _world: World
    _forms: list[frozenset[str]]
    """The forms of the world's ids, once they were gone through; shared by all forks."""
    _journal: list[dict[str, Any]]
    _reword: Callable[[str], str] | None = None
    _users: dict[str, tuple[Task, ScriptedUser]]
    """By task, made once and shared by all episodes and forks."""
    _guise: Guise | None = None
    _user: ScriptedUser
    _turn: Said
    _signs: int
    """Characters that the agent wrote and was shown."""

    def say(self, text: str) -> str | None:
        """Tell the user something; the user's answer, or None where the user waits, has no more to say or has left."""
        if not self._open():
            return None
        self._mark()
        if self._guise is not None:
            text = str(self._guise.meant(text))
        self._turn, reply = self._user.reply(self._turn, text)
        if self._reword is not None and reply is not None:
            reply = reworded(self._reword, reply, text)
        self._signs += len(text) + len(reply or "")
        self._journal.append({"kind": "say", "content": text, "reply": reply})
        return self._guise.text(reply) if self._guise is not None and reply is not None else reply

    def reword(self, ask: Callable[[str], str] | None) -> None:
        """From now on let a model say the user's words in its own, in every episode; None: the script's words again.

        Taken only where it states the same facts, names, yes or no (`user.agrees`); else the script's words are said.
        """
        self._reword = ask

    @property
    def user_left(self) -> bool:
        """Has the user left, so that nothing will be answered any more?"""
        return self._turn.idle < 0

    @property
    def tokens(self) -> int:
        """Tokens that the agent wrote and was shown: as `used` last reported, and estimated since."""
        return -(-self._signs // CHARACTERS)

    def used(self, tokens: int) -> None:
        """Whoever runs the model knows better: so many tokens were written and shown up to here."""
        self._signs = CHARACTERS * tokens

    def carried(self, steps: Any) -> Any:
        """Steps that are written in the room's own names, as an agent has to make them in this episode."""
        return self._guise.carried(steps) if self._guise else steps

    def _in_guise(self, guise: Guise, tool: str, arguments: Any) -> Result:
        """The answer to an agent that sees other names and orders than the room's own."""
        self._guise = None
        try:
            meant = guise.meant(arguments)
            return guise.shown(tool, meant, self.call(tool, meant))
        finally:
            self._guise = guise

    def _ids(self) -> frozenset[str]:
        """Forms of the world's ids."""
        if not self._forms:
            asked = (value for keys in self._world.asked.values() for key in keys for value in leaves(json.loads(key)))
            self._forms.append(forms((key for _, key in self._world.facts), asked, self.tools))
        return self._forms[0]

    def _talk(self, task: Task | None) -> None:
        """Begin the talk of an episode."""
        known, user = self._users.get(task.task_id, (None, NOBODY)) if task else (None, NOBODY)
        if task is not None and known is not task:
            user = ScriptedUser(task.user, task.opening)
            self._users[task.task_id] = (task, user)
        self._user = user
        self._turn = Said()
        self._signs = sum(len(message["content"]) for message in task.opening) if task else 0

    @abstractmethod
    def call(self, tool: str, arguments: Any) -> Result:
        """The tool's answer."""

    @abstractmethod
    def _open(self) -> bool:
        """May the agent still act?"""

    @abstractmethod
    def _mark(self) -> None:
        """Note how it is before a step."""
