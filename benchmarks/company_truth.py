"""The hidden truth about a company's world, for the benchmark alone: every field at any instant, what work brought about."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

from pipelines.inspection.company import instant_of

_WITHIN_S = {"mail": 1.0, "cal": 1.0, "file": 1.0}
"""Products whose exports have whole seconds."""
_MS = 0.0015
_PEOPLE = {"jira": "account", "jira_comment": "account", "wiki": "account", "wiki_comment": "account", "gh": "login",
           "gh_comment": "login"}
"""Class -> which id of a person its exports have, where the truth has the person."""
_NOT_PEOPLE = ("automation",)


class CompanyTruth:
    """Changes of all fields, pieces of work, people."""

    def __init__(self, folder: Path) -> None:
        changes = [json.loads(line) for line in (folder / "changes.jsonl").read_text("utf-8").splitlines()]
        self._changes = [(instant_of(at), app, key, field, value) for at, app, key, field, value, *_ in changes]
        self._instants = [change[0] for change in self._changes]
        self.items = [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]
        people = [json.loads(line) for line in (folder / "people.jsonl").read_text("utf-8").splitlines()]
        self._person = {kind: {person[kind]: person["person"] for person in people if person.get(kind)}
                        for kind in ("account", "login", "slack", "mail")}
        self._mail_of = {person["person"]: person["mail"] for person in people}
        self.fields_of: dict[str, set[str]] = defaultdict(set)
        for _, app, _, field, _ in self._changes:
            self.fields_of[app].add(field)

    def at(self, instant: int) -> dict[tuple[str, str], dict[str, Any]]:
        """Return every field of every record that existed; people of the directory by address."""
        state: dict[tuple[str, str], dict[str, Any]] = {}
        for _, app, key, field, value in self._changes[:bisect_right(self._instants, instant)]:
            state.setdefault((app, self._mail_of.get(key, key) if app == "person" else key), {})[field] = value
        return {key: fields for key, fields in state.items() if not fields.get("deleted") or "user" not in fields}

    def translate(self, app: str, field: str, value: Any) -> Any:
        """Return a value with people as the truth names them."""
        kind = _PEOPLE.get(app)
        if kind is None:
            return value
        if isinstance(value, list):
            return [self.translate(app, field, each) for each in value]
        return self._person[kind].get(value, value) if isinstance(value, str) else value

    def meets(self, app: str, field: str, wanted: Any, value: Any) -> bool:
        """Return whether a field has what a piece of work intends."""
        if value is None:
            return False
        if field.endswith("~"):
            return all(str(word) in str(value) for word in wanted)
        if field.endswith("+"):
            return wanted in value
        if isinstance(wanted, dict):
            rows = [[str(cell) for cell in row] for row in value if any(wanted["row_with"] in str(cell) for cell in row)]
            return any(all(any(str(word) in cell for cell in row) for word in wanted["has"]) for row in rows)
        return same_value(app, field, wanted, value, self)


def same_value(app: str, field: str, true: Any, value: Any, truth: CompanyTruth) -> bool:
    """Return whether a value is the true one: instants as exact as the export has them, people by their ids."""
    value = truth.translate(app, field, value)
    if isinstance(true, bool) or isinstance(value, bool):
        return bool(true is value)
    if isinstance(true, (int, float)) and isinstance(value, (int, float)):
        is_instant = true > 1e9
        return abs(true - value) <= (_WITHIN_S.get(app, _MS) if is_instant else 0)
    if app == "jira" and field in ("labels", "watchers"):
        return sorted(true or ()) == sorted(value or ())
    return bool(true == value)
