"""Traces that name no session, to conversations: a turn whose history holds all that an earlier trace told goes on from it.

In: the generations of each trace. Out: for each trace, the trace that its conversation begins with. Sees equal histories whose
last part is telling. Does not see: two conversations that were word for word the same until one went on; the latest is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from extractors.formats.conversation import Generation
from extractors.formats.history import print_of
from extractors.formats.overlap import Print, is_telling


def stitched(traces: Mapping[str, Sequence[Generation]]) -> dict[str, str]:
    """By trace, the first trace of its conversation (itself, where nothing came before)."""
    ordered = sorted(((min(each.order for each in told), trace) for trace, told in traces.items() if told))
    ends: dict[int, str] = {}
    first: dict[str, str] = {}
    for _, trace in ordered:
        told = sorted(traces[trace], key=lambda each: each.order)
        before = _longest(ends, told[0])
        first[trace] = first[before] if before is not None else trace
        prints = _end(told[-1])
        if prints and is_telling(prints[-1]):
            ends[_key(prints)[-1]] = trace
    return first


def _longest(ends: Mapping[int, str], generation: Generation) -> str | None:
    """The trace whose end is the longest beginning of this history."""
    if not ends:
        return None
    prints = [each for link in generation.history.since(None) or () for each in link.prints]
    return next((ends[key] for key in reversed(_key(prints)) if key in ends), None)


def _end(generation: Generation) -> list[Print]:
    """All that was told when the generation had answered."""
    prints = [each for link in generation.history.since(None) or () for each in link.prints]
    answer = generation.answers[0] if generation.answers else []
    return prints + [print_of(part) for part in answer if part["kind"] != "reasoning"]


def _key(prints: list[Print]) -> list[int]:
    """A key of each beginning of the history."""
    keys, key = [], 0
    for each in prints:
        key = hash((key, each))
        keys.append(key)
    return keys
