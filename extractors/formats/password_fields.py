"""Values that were sent for a page's password fields, under whatever name the page gives them.

In: events of one recording, pages and requests. Out: the same, with a mark in place of what a form sent for a field that a page
of the recording declares as `type=password`. Does not see: a field that a script made and no page of the recording holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Any

from extractors.formats.format import Row
from extractors.formats.values import dumped, object_of, parsed_json
from extractors.privacy.credentials import SECRET

_TAG = re.compile(r"(?is)<input\b[^<>]{0,4000}>")
_IS_PASSWORD = re.compile(r"(?i)\btype\s*=\s*[\"']?password\b")
_NAME = re.compile(r"(?i)\s(?:name|id)\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s\"'>]+))")


def cut_password_fields(rows: Iterable[Row]) -> None:
    """Cut what was sent for a password's field out of the requests among the events."""
    rows = list(rows)
    names = {name for row in rows if row["kind"] in ("page", "request") for name in _password_names(row.get("value"))}
    for row in rows if names else ():
        if row["kind"] == "request" and (arguments := object_of(parsed_json(row.get("arguments") or ""))):
            row["arguments"] = dumped({name: _cut(value, names) for name, value in arguments.items()})


def _password_names(value: Any) -> set[str]:
    if not isinstance(value, str) or "password" not in value.lower():
        return set()
    body = object_of(parsed_json(value)).get("body")
    tags = [tag for tag in _TAG.findall(body) if _IS_PASSWORD.search(tag)] if isinstance(body, str) else []
    return {unescape(next(filter(None, match))) for tag in tags for match in _NAME.findall(tag)}


def _cut(value: Any, names: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: (SECRET if each else each) if name in names else _cut(each, names) for name, each in value.items()}
