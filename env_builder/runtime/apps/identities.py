"""Who the agent is in an app: whom the task names, else by the sessions that it begins together with.

In: identities.jsonl of the app's folder, rows {"session_id", "user"}, and the option `user` of its row in the manifest. Out:
the user of an episode. Sessions of several users tell nothing: then it is the option's user, and without one `AGENT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..files import rows_of
from . import Start

AGENT = "agent"
"""Name of a user that nothing is on record of."""
IDENTITIES = "identities.jsonl"


class SessionUsers:
    """The users of sessions."""

    def __init__(self, users: Mapping[str, str], otherwise: str = AGENT) -> None:
        """`users`: session -> user."""
        self._users, self._otherwise = users, otherwise

    @classmethod
    def of_app(cls, folder: Path, row: Mapping[str, Any]) -> SessionUsers:
        """Read the users of an app from its folder and its row in the manifest."""
        path = folder / IDENTITIES
        users = {each["session_id"]: each["user"] for each in rows_of(path)} if path.exists() else {}
        return cls(users, row.get("user", AGENT))

    def user_of(self, start: Start) -> str:
        """Return the user of an episode."""
        if start.user is not None:
            return start.user
        users = {self._users[session] for session in start.session_ids if session in self._users}
        return str(users.pop() if len(users) == 1 else self._otherwise)
