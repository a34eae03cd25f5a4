"""What recorded calls of a wiki's server teach: the site's address, how text is shown, what a search tells of a page.

In: recorded calls of mcp-atlassian's `confluence_*` tools. Out: conventions of the product `confluence` (`office/confluence.py`
lists them), each left out where no answer shows it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.runtime.company import CompanyWorld

_ADDRESSES = (("cloud", re.compile(r"(.+)/spaces/[^/]+/pages/\d+")),
              ("server", re.compile(r"(.+)/pages/viewpage\.action\?pageId=\d+")))


def learn_confluence(calls: Sequence[RecordedCall], world: CompanyWorld) -> dict[str, Any]:
    """Return the conventions that recorded calls show."""
    sites: Counter[tuple[str, str]] = Counter()
    formats: Counter[str] = Counter()
    echoes: Counter[bool] = Counter()
    fields: Counter[tuple[str, ...]] = Counter()
    for call, answer in _answers(calls):
        if call.tool == "confluence_search":
            fields.update(tuple(row) for row in answer if isinstance(row, dict))
            continue
        page = answer.get("metadata") or answer.get("page") if isinstance(answer, dict) else None
        if not isinstance(page, dict):
            continue
        for kind, pattern in _ADDRESSES:
            if (match := pattern.fullmatch(str(page.get("url")))) is not None:
                sites[match[1], kind] += 1
        if isinstance(page.get("content"), dict) and "convert_to_markdown" not in call.arguments:
            formats[str(page["content"].get("format"))] += 1
        if "page" in answer and "include_content" not in call.arguments:
            echoes["content" in page] += 1
    conventions: dict[str, Any] = {}
    if sites:
        conventions["site"], conventions["urls"] = sites.most_common(1)[0][0]
    if formats:
        conventions["content"] = formats.most_common(1)[0][0]
    if echoes:
        conventions["echoes"] = echoes.most_common(1)[0][0]
    if fields:
        conventions["search_fields"] = list(fields.most_common(1)[0][0])
    return conventions


def _answers(calls: Sequence[RecordedCall]) -> Iterator[tuple[RecordedCall, Any]]:
    for call in calls:
        if call.tool.startswith("confluence_") and not call.is_error:
            try:
                yield call, json.loads(call.content)
            except ValueError:
                continue
