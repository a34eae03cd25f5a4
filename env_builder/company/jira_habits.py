"""How a company's Jira and its server behave, as recorded calls and changelogs show.

In: calls with their answers, the company's world. Out: conventions of the product `jira`:
`shown` (which parts of an issue the server shows by default), `comment_time` (`jira`: in Jira's own form), `categories` of
statuses, `transitions` (where no workflow was exported), `default_priorities`, `refused_transitions` and `refused_updates` (the
words of refusals, and the conditions that all refusals and no success meet), `changed_on_resolved` (fields that somebody
changed on a resolved issue), `locked_on_resolved` (fields that were changed, but never there), `rules` (`jira_rules.py`).
Sees: the state just before a call. Does not see: refusals that nobody met; that a rule changed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.company.jira_rules import learn_rules
from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.office.jira_issues import DEFAULT_FIELDS, ISSUE, NO_ISSUE, STATUS

_GET, _SEARCH, _MOVE, _UPDATE = "jira_get_issue", "jira_search", "jira_transition_issue", "jira_update_issue"
_STANDARD = frozenset({*DEFAULT_FIELDS, "id", "key", "issue_type", "comments", "browse_url"})
_COMPUTED = frozenset({"status", "resolution", "resolved", "updated", "watchers", "created", "links"})
_SEVERAL = 3
_JIRA_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+[+-]\d{4}")


def learn_jira(calls: Sequence[RecordedCall], world: CompanyWorld) -> dict[str, Any]:
    """Return what calls and changelogs teach of a company's Jira."""
    histories = _IssueHistories(world)
    own = [call for call in calls if call.tool.startswith("jira_")]
    answers = [(call, answer) for call in own if not call.is_error and (answer := _parsed(call.content)) is not None]
    learnt = {
        "shown": _shown(answers), "categories": _categories(answers), "default_priorities": _default_priorities(answers),
        "transitions": {} if _has_workflow(world) else _transitions(answers, histories),
        "refused_transitions": _refused_transitions(own, world, histories), "refused_updates": _refused_updates(own, histories),
        "changed_on_resolved": histories.changed_on_resolved(), "locked_on_resolved": histories.locked_on_resolved(),
        "rules": learn_rules(world),
    }
    if any(call.tool == "jira_add_comment" and _JIRA_TIME.fullmatch(str(answer.get("created")))
           for call, answer in answers if isinstance(answer, dict)):
        learnt["comment_time"] = "jira"
    return {name: value for name, value in learnt.items() if value}


Answers = Sequence[tuple[RecordedCall, Any]]


class _IssueHistories:
    """The values of every field of every issue over time."""

    def __init__(self, world: CompanyWorld) -> None:
        self._values: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
        for version in world.versions:
            if version.entity_class == ISSUE:
                self._values[version.entity_id, version.field].append((version.at, version.value))

    def before(self, key: str, field: str, at: int) -> Any:
        """Return the value of a field just before an instant."""
        values = self._values.get((key, field), [])
        index = bisect_left(values, at, key=lambda value: value[0])
        return values[index - 1][1] if index else None

    def facts(self, key: str, at: int) -> set[str]:
        """Return the conditions that an issue met just before an instant."""
        is_resolved = self.before(key, "resolution", at) is not None
        return {"always", "resolved" if is_resolved else "open", f"status {self.before(key, 'status', at)}"}

    def changes(self) -> Iterator[tuple[str, str, int]]:
        """Yield (key, field, instant) of every change after an issue's creation."""
        for (key, field), values in self._values.items():
            for (_, old), (at, new) in pairwise(values):
                if new != old:
                    yield key, field, at

    def changed_on_resolved(self) -> list[str]:
        """Return the fields that somebody changed on a resolved issue."""
        return sorted({field for field, is_resolved in self._edits() if is_resolved})

    def locked_on_resolved(self) -> list[str]:
        """Return the fields that were changed several times, but never on a resolved issue."""
        counts = Counter(self._edits())
        return sorted(field for (field, is_resolved), count in counts.items()
                      if not is_resolved and not counts[field, True] and count >= _SEVERAL)

    def _edits(self) -> list[tuple[str, bool]]:
        """Return field and whether the issue was resolved, of each change of a field that people set."""
        return [(field, "resolved" in self.facts(key, at)) for key, field, at in self.changes() if field not in _COMPUTED]


def _issues(answer: Any) -> Iterator[dict[str, Any]]:
    """Yield the issues that an answer shows."""
    if isinstance(answer, dict):
        for each in answer.get("issues") or [answer.get("issue") or answer]:
            if isinstance(each, dict) and "key" in each:
                yield each


def _shown(answers: Answers) -> dict[str, Any]:
    names: dict[str, set[str]] = defaultdict(set)
    written: set[str] = set()
    for call, answer in answers:
        for issue in _issues(answer):
            written |= issue.keys()
            if call.tool in (_GET, _SEARCH) and not {"fields", "expand", "include"} & call.arguments.keys():
                names[call.tool] |= issue.keys()
    if not written:
        return {}
    is_all = any(own - _STANDARD for own in names.values())
    shown: dict[str, Any] = {"browse_url": "browse_url" in written}
    if names:
        shown[_GET] = {"all": is_all, "comments": True}
        shown[_SEARCH] = {"all": is_all, "comments": "comments" in names[_SEARCH]}
    return shown


def _categories(answers: Answers) -> dict[str, list[Any]]:
    return {status["name"]: [status["category"], status.get("color") or None] for _, answer in answers
            for issue in _issues(answer) if isinstance(status := issue.get("status"), dict) and status.get("category")}


def _default_priorities(answers: Answers) -> dict[str, Any]:
    shown: dict[str, set[Any]] = defaultdict(set)
    for call, answer in answers:
        if call.tool != "jira_create_issue" or "priority" in str(call.arguments.get("additional_fields") or "").lower():
            continue
        for issue in _issues(answer):
            name = f"{call.arguments.get('project_key')} {(issue.get('issue_type') or {}).get('name')}"
            shown[name].add((issue.get("priority") or {}).get("name"))
    all_values = {value for values in shown.values() for value in values}
    certain = {name: next(iter(values)) for name, values in sorted(shown.items()) if len(values) == 1}
    return certain | ({"": next(iter(all_values))} if len(all_values) == 1 else {})


def _has_workflow(world: CompanyWorld) -> bool:
    return any("transitions" in world.slots[STATUS, name] for name in world.ids.get(STATUS, ()))


def _transitions(answers: Answers, histories: _IssueHistories) -> dict[str, Any]:
    """Return status -> its transitions, where all answers agree."""
    shown: dict[str, list[Any]] = defaultdict(list)
    for call, answer in answers:
        status = histories.before(_key(call), "status", call.at + 1)
        if call.tool == "jira_get_transitions" and status is not None and isinstance(answer, list):
            shown[status].append(answer)
    return {status: lists[0] for status, lists in sorted(shown.items()) if all(each == lists[0] for each in lists)}


def _refusals(calls: Iterable[RecordedCall], tool: str) -> Iterator[RecordedCall]:
    return (call for call in calls if call.tool == tool and call.is_error and NO_ISSUE not in call.content)


def _refused_transitions(calls: Sequence[RecordedCall], world: CompanyWorld, histories: _IssueHistories) -> list[str]:
    """Return the words of refused transitions, the most frequent ones first."""
    targets: dict[str, str] = {}
    for version in world.versions:
        if version.entity_class == STATUS and version.field == "transitions" and isinstance(version.value, list):
            targets |= {str(step["id"]): str(step["to"]) for step in version.value}
    templates: Counter[str] = Counter()
    for call in _refusals(calls, _MOVE):
        number = str(call.arguments.get("transition_id"))
        slots = {"key": _key(call), "status": histories.before(_key(call), "status", call.at), "to": targets.get(number),
                 "transition": number}
        filled = {name: value for name, value in slots.items() if value}
        if len(set(filled.values())) == len(filled):
            templates[_template(call.content, filled)] += 1
    return [template for template, _ in templates.most_common()]


def _template(text: str, slots: dict[str, str]) -> str:
    """Return a text with the values of slots replaced by their names, the longest value first."""
    for name, value in sorted(slots.items(), key=lambda slot: -len(slot[1])):
        text = re.sub(rf"(?<![\w{{-]){re.escape(value)}(?![\w}}-])", f"{{{name}}}", text)
    return text


def _refused_updates(calls: Sequence[RecordedCall], histories: _IssueHistories) -> list[dict[str, Any]]:
    """Return field, words and conditions of refused changes of a single field."""
    refused: dict[tuple[str, str], list[set[str]]] = defaultdict(list)
    accepted: dict[str, list[set[str]]] = defaultdict(list)
    for key, field, at in histories.changes():
        accepted[field].append(histories.facts(key, at))
    for call in _refusals(calls, _UPDATE):
        given = _parsed(call.arguments.get("fields"))
        if isinstance(given, dict) and len(given) == 1:
            slots = {"key": _key(call), "status": str(histories.before(_key(call), "status", call.at))}
            refused[next(iter(given)).lower(), _template(call.content, slots)].append(histories.facts(_key(call), call.at))
    rules = []
    for (field, text), states in sorted(refused.items()):
        conditions = set.intersection(*states).difference(*accepted[field])
        if conditions:
            rules.append({"field": field, "text": text, "conditions": sorted(conditions)})
    return rules


def _key(call: RecordedCall) -> str:
    return str(call.arguments.get("issue_key"))


def _parsed(content: Any) -> Any:
    if not isinstance(content, str):
        return content
    try:
        return json.loads(content)
    except ValueError:
        return None
