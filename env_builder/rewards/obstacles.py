"""Why a task cannot be offered to an agent, however good its reward: sessions that are no example of what an agent could do.

In: tasks, witnesses and turns. Out: cases without such sessions, and for each task that has no other the reason with a hint.

- `runs_programs`: the session's tools run programs or edit files (`commands.py`); no environment here can do that.
- `step_of_another_person`: the session's user changed something at no moment that the log tells (`events.py`).
- `value_from_nowhere`: a value that the session writes is in no place that an agent can read (`origins.py`).

Does not see: another person's step that the log takes for the agent's.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from env_builder.events import events_by
from env_builder.rewards.commands import sessions_that_run_programs
from env_builder.rewards.conduct import RewardCase
from env_builder.rewards.loose import FreeText
from env_builder.rewards.origins import NOWHERE, UsualValues, ValueOrigin, origins_of
from env_builder.rewards.witness import Witness
from env_builder.world.calls import USER
from warehouse.records import Check

MOST_VALUES = 50
"""Values that a check names the origin of."""
Reason = tuple[str, str]
"""(reason, detail with a hint)."""
NO_FREE_TEXT = FreeText({}, [])


class Obstacles:
    """What keeps sessions from being examples."""

    def __init__(
        self, tasks: pl.DataFrame, by_session: Mapping[str, Witness], turns: pl.DataFrame, free: Mapping[str, FreeText],
        reads: Mapping[str, frozenset[str]],
    ) -> None:
        self._goals = dict(tasks.select("task_id", "goal").iter_rows())
        self._services = dict(tasks.select("task_id", "service").iter_rows())
        self._free, self._reads = free, reads
        self._running = sessions_that_run_programs(turns)
        self._by_user = self._unplaced(turns)
        sessions: dict[str, list[tuple[str, Witness]]] = {}
        for task_id, service, names in tasks.select("task_id", "service", "session_ids").iter_rows():
            own = ((task_id, by_session[name]) for name in names if name in by_session)
            sessions.setdefault(service, []).extend(own)
        self._usual = {service: UsualValues(own, free.get(service, NO_FREE_TEXT).statements)
                       for service, own in sessions.items()}
        self._origins: dict[tuple[str, str], list[ValueOrigin]] = {}

    def removed(self, cases: list[RewardCase]) -> tuple[list[RewardCase], dict[str, Reason]]:
        """Return the cases without good sessions that have an obstacle, and the reasons of those that have no other."""
        kept, reasons = [], {}
        for case in cases:
            own = {one.session_id: self._reason(case.task_id, one) for one in case.good}
            good = [one for one in case.good if own[one.session_id] is None]
            first = next((reason for reason in own.values() if reason), None)
            if first and not good:
                reasons[case.task_id] = first
            kept.append(case._replace(good=good))
        return kept, reasons

    def origins(self, task_id: str, session: Witness) -> list[ValueOrigin]:
        """Return where the values come from that a session of a task writes; free text left out."""
        where = (task_id, session.session_id)
        if where not in self._origins:
            self._origins[where] = self._origins_of(task_id, session)
        return self._origins[where]

    def _origins_of(self, task_id: str, session: Witness) -> list[ValueOrigin]:
        service = self._services[task_id]
        free, usual = self._free.get(service, NO_FREE_TEXT), self._usual.get(service, UsualValues([]))
        acting = [call for call in session.calls if not call.failed and self._acts(service, call.tool)]
        return [each for each in origins_of(session, self._goals.get(task_id) or "", acting, usual)
                if each.argument not in free.ignored_arguments.get(each.tool, ())]

    def _acts(self, service: str, tool: str) -> bool:
        """Whether a tool may change something that a reward wants, as far as anybody knows."""
        free = self._free.get(service, NO_FREE_TEXT)
        return tool not in {*self._reads.get(service, ()), *free.looks, *free.presumed, *free.ignored_tools}

    def _unplaced(self, turns: pl.DataFrame) -> dict[str, str]:
        """Return session -> a tool that its user called at no clear moment, and that may change something."""
        by_agent = pl.when(pl.col("kind") == "call").then(pl.col("requestor").fill_null("assistant") != USER).otherwise(
            pl.col("role") == "assistant").fill_null(False)
        services = dict(turns.select("session_id", "service").iter_rows())
        ordered = turns.sort("session_id", "position").with_columns(by_agent.alias("by_agent"))
        found = {name: [tool for tool in events.unplaced if self._acts(services[name], tool)]
                 for name, events in events_by("session_id", ordered).items()}
        return {name: min(tools) for name, tools in sorted(found.items()) if tools}

    def _reason(self, task_id: str, session: Witness) -> Reason | None:
        name = session.session_id
        if name in self._running:
            return "runs_programs", (f"{name} runs programs or edits files with {self._running[name]}: no environment "
                                     "can repeat that; hint: leave out these tools, or the service.")
        if name in self._by_user:
            return "step_of_another_person", (f"In {name} the user calls {self._by_user[name]}, and nothing tells after what; "
                                              "hint: log the words with which the user reports the step.")
        unknown = next((each for each in self.origins(task_id, session) if each.source == NOWHERE), None)
        if unknown is None:
            return None
        return "value_from_nowhere", (f"{name} gives {unknown.value[:80]!r} to {unknown.argument} of {unknown.tool}: neither "
                                      "goal, user nor an earlier answer states it; hint: log where agents learn it.")


def with_origins(checks: list[Check], origins: list[ValueOrigin]) -> list[Check]:
    """Return checks in which those of the end state say where an agent learns its values."""
    values = [each._asdict() for each in origins[:MOST_VALUES]]
    return [each.model_copy(update={"provenance": each.provenance | {"values": values}})
            if each.kind == "state" and values else each for each in checks]
