"""Tasks that stopped being true: their known solution asks a tool whose rules of today answer otherwise.

In: an environment, tasks, and their known solutions. Out: by task, the first call that is answered otherwise today, and since
when. A task's tools answer by the rules that were in force at its start. Where a tool has later versions (`behaviour`), each
call of the solution is also put to the rules of the last one, in the state before the call: the answer counts as another one if
it is a refusal where there was none (or none where there was one), says other words, or shows or leaves other values. Names and
times that no one could foretell are drawn alike for both. A tool that works no more (`gone`) answers every call otherwise.
Does not see: a rule that the agent kept without asking a tool; calls that the rules of today do not answer;
another order of fields or other words around a record, which say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.answers import parse
from env_builder.runtime.apps import Start
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.apps.worlds import WorldsApp
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.joints import joined
from env_builder.runtime.programs import Ready, answer, shown_by
from env_builder.runtime.records import Task, ToolAnswer

ON_RECORD = ("recorded", "bound", "always")
"""Rules that say what was answered then, and nothing of what would be answered today."""

GUARDED = ("write", "create", "text", "value", "answer")
"""Rules that answer where all values are such as they met; a version of a day has met few."""


class OutdatedCall(NamedTuple):
    """A call of a known solution that is answered otherwise today."""

    tool: str
    since: str
    """ISO instant from which the tool's last version holds."""
    then: str
    """What the task's environment answers."""
    now: str
    """What the tool's last version answers; "" if that is not known: the tool, or its refusal, is gone."""


def changed_tools(environment: Environment) -> dict[str, str]:
    """Return tool -> instant from which its last version holds, of those that have several."""
    changes: dict[str, str] = {}
    for app in _apps(environment):
        for tool, program in app.programs.items():
            if program.has_versions:
                changes[tool] = max(changes.get(tool, ""), program.versions[-1][0])
    return changes


def outdated(
    environment: Environment, tasks: Iterable[Task], solutions: Mapping[str, Sequence[Mapping[str, Any]]],
    gone: Mapping[str, str] = MappingProxyType({}), refusals: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> dict[str, OutdatedCall]:
    """Return, by task, the first call of its known solution that is answered otherwise today. `gone`: tool -> instant of the
    last call of it that worked, of tools that work no more; `refusals`: (tool, words) -> instant of the last refusal in words
    that the tool uses no more."""
    changes = changed_tools(environment)
    calls: dict[str, OutdatedCall] = {}
    for (tool, _), at in refusals.items():
        changes[tool] = max(changes.get(tool, ""), at)
    for task in tasks if changes or gone else ():
        steps = [*task.prefix, *solutions.get(task.task_id, ())]
        begins, tools = task.starts_at, [step.get("tool", "") for step in steps]
        if begins is None:
            continue
        first = next((OutdatedCall(tool, gone[tool], "", "") for tool in tools if begins <= gone.get(tool, "")), None)
        if first is None and any(begins <= changes.get(tool, "") for tool in tools):
            first = _first(environment, task, steps, refusals)
        if first is not None:
            calls[task.task_id] = first
    return calls


def _apps(environment: Environment) -> list[RecordsApp]:
    apps: list[RecordsApp] = []
    for app in environment.apps:
        if isinstance(app, WorldsApp):
            apps += [app.common, *(world.app for world in app.worlds)]
        elif isinstance(app, RecordsApp):
            apps.append(app)
    return apps


def _app_of(environment: Environment, task: Task) -> RecordsApp | None:
    """Return the app that answers by programs, of a service of several worlds that of the task's sessions."""
    sessions = frozenset(task.session_ids)
    for app in environment.apps:
        if isinstance(app, WorldsApp):
            return next((world.app for world in app.worlds if sessions <= world.session_ids), app.common)
        if isinstance(app, RecordsApp):
            return app
    return None


def _first(
    environment: Environment, task: Task, steps: Iterable[Mapping[str, Any]], refusals: Mapping[tuple[str, str], str]
) -> OutdatedCall | None:
    app = _app_of(environment, task)
    if app is None:
        return None
    state = app.reset(Start(task.starts_at, frozenset(task.session_ids), 0))
    for step in steps:
        program = app.programs.get(step.get("tool", ""))
        if program is None or not isinstance(step["arguments"], dict):
            continue
        before = state.fork()
        got = state.call(program["tool"], step["arguments"])
        last = refusals.get((program["tool"], got.content))
        if got.is_error and last is not None and str(task.starts_at) <= last:
            return OutdatedCall(program["tool"], last, got.content, "")
        then = program.at(task.starts_at)
        if then is not program and (now := _otherwise(program, then, step["arguments"], before, got.content, got.is_error)):
            return OutdatedCall(program["tool"], program.versions[-1][0], got.content, now)
    return None


def _otherwise(
    program: Ready, then: Ready, arguments: dict[str, Any], state: EpisodeState, content: str, is_error: bool
) -> str | None:
    """Return what the last version answers, if that is something else than the answer of then (`content`)."""
    now = _answered(program, arguments, state)
    if now is None:
        return _reworded(program, then, content) if is_error else None
    if now.is_error == is_error and _stated(program, arguments, now.content) == _stated(then, arguments, content):
        return None
    ruled = _answered(then, arguments, state)
    if ruled is None:
        draws = any("volatile" in rule or rule.get("stamps") for rule in program["rules"])
        return None if draws else now.content
    return None if _meant(then, arguments, ruled) == _meant(program, arguments, now) else now.content


def _reworded(program: Ready, then: Ready, content: str) -> str | None:
    """Return the words of the last version for a refusal that it has in other words, on the same conditions."""
    old, new = list(_refusals(then)), list(_refusals(program))
    conditions = [when for words, when in old if words == content]
    if any(words == content for words, _ in new):
        return None
    return next((words for words, when in new if when in conditions), None)


def _refusals(program: Ready) -> Iterator[tuple[str, Any]]:
    """Yield the words of refusals, without those that tell values of the call, and their conditions."""
    for rule in program["rules"]:
        for message in rule["messages"] if rule["rule"] in ("refuse", "check") else ():
            pieces = message["pieces"] if "pieces" in message else [message["content"]]
            if all(isinstance(piece, str) for piece in pieces):
                yield "".join(pieces), message["when"]


def _answered(program: Ready, arguments: dict[str, Any], state: EpisodeState) -> ToolAnswer | None:
    """Return what the rules alone answer, in a state that this leaves as it is, also to values that they never met."""
    rules = Ready({**program, "rules": [rule | {"when": None} if rule["rule"] in GUARDED else rule
                                        for rule in program["rules"] if rule["rule"] not in ON_RECORD]})
    arguments = joined(arguments, rules.joint)
    return answer(rules, canonical(arguments), arguments, state.fork())


def _stated(program: Ready, arguments: dict[str, Any], content: str) -> Any:
    """Return what an answer says: the record that it shows, another value, or its words."""
    shown = shown_by(program, arguments, content)
    value = parse(shown[0][1] if shown else content)
    return content if value is None else value


def _meant(program: Ready, arguments: dict[str, Any], reply: ToolAnswer) -> Any:
    """Return what an answer says, and what it leaves behind."""
    return (reply.is_error, _stated(program, arguments, reply.content),
            sorted((name, canonical(parse(text) or text)) for name, text in reply.documents))
