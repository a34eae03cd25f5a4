"""What an episode of a server begins with: by the command line, and, where that leaves the task open, by who begins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from pipelines.resources import Ask
from warehouse.errors import InputError, Missing


class Rollout(NamedTuple):
    """What an episode begins with."""

    task_id: str | None = None
    seed: int = 0
    conditions: tuple[str, ...] = ()
    bindings: Mapping[str, str] = MappingProxyType({})
    """Tool -> source of the real thing that answers what is not on record."""
    ask: Ask | None = None
    """The model that answers what would be `unknown`."""

    def about(self, environment: str) -> dict[str, Any]:
        """What a grader must know of it, beside the journal."""
        return {"environment": environment, "task_id": self.task_id, "seed": self.seed, "conditions": list(self.conditions),
                "bindings": dict(self.bindings), "ask": self.ask is not None}

    def asked(self, query: str, task_ids: Sequence[str]) -> Rollout:
        """This one as the query of a URL asks for it: `task` (id, or how one begins), `seed`, `conditions` (commas between).

        InputError where the server was started for one task, or a value is none; Missing where no task has that id.
        """
        told = {name: values[-1] for name, values in parse_qs(query).items()}
        told = {name: value for name, value in told.items() if name in ("task", "seed", "conditions")}
        if not told:
            return self
        if self.task_id is not None:
            raise InputError("this server plays one task", self.task_id, "start it without --task to let sessions choose")
        task_id, seed = None, told.get("seed", str(self.seed))
        if "task" in told:
            found = [each for each in task_ids if each.startswith(told["task"])]
            if len(found) != 1:
                raise Missing.named("task", told["task"], task_ids)
            task_id = found[0]
        if not seed.isdecimal():
            raise InputError("the seed is no whole number", seed)
        on = tuple(name for name in told["conditions"].split(",") if name) if "conditions" in told else self.conditions
        return self._replace(task_id=task_id, seed=int(seed), conditions=on)
