"""Results that name their calls by another numbering than the calls do: which call each answers.

In: the rows of one session in order, as columns. Out: of such a result, the id of its call. Some clients log the id of the item
with the call (`fc_…`) and the id of the call with its result (`call_…`), so no id of either is found among the other's.
Sees: calls and results that follow each other without a message between, as many of the one as of the other, none of whose ids
is found on the other side, and whose ids begin with different words. They are paired in their order. Does not see: results
out of order; anything less certain stays apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_WORD = re.compile(r"[A-Za-z]+(?=[_-])")


def renumbered(rows: list[int], columns: dict[str, list[Any]]) -> dict[int, str]:
    """Return the id of its call for each row of a result that states another."""
    kinds, call_ids = columns["kind"], columns["call_id"]
    called = {call_ids[row] for row in rows if kinds[row] == "call"}
    answered = {call_ids[row] for row in rows if kinds[row] == "result"}
    if answered <= called:
        return {}
    ids: dict[int, str] = {}
    for calls, results in _blocks(rows, kinds):
        calls = [row for row in calls if call_ids[row] is not None and call_ids[row] not in answered]
        results = [row for row in results if call_ids[row] is not None and call_ids[row] not in called]
        if len(calls) == len(results) and all(_differ(call_ids[call], call_ids[result])
                                              for call, result in zip(calls, results, strict=True)):
            ids.update((result, call_ids[call]) for call, result in zip(calls, results, strict=True))
    return ids


def _blocks(rows: list[int], kinds: list[str]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the calls and the results of each stretch of calls that results follow."""
    calls: list[int] = []
    results: list[int] = []
    for row in rows:
        if kinds[row] != "result" and results:
            yield calls, results
            calls, results = [], []
        if kinds[row] == "call":
            calls.append(row)
        elif kinds[row] == "result":
            results.append(row)
        else:
            calls = []
    yield calls, results


def _differ(call_id: str, result_id: str) -> bool:
    """Return whether both ids begin with a word, and not with the same."""
    words = _WORD.match(call_id), _WORD.match(result_id)
    return words[0] is not None and words[1] is not None and words[0][0].lower() != words[1][0].lower()
