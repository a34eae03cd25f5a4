"""Token counts as providers state them, to ours: input_tokens, output_tokens, cached_tokens, reasoning_tokens.

Cached tokens are inside the input count here, as OpenAI, Gemini and OpenTelemetry count; Anthropic states them beside it, so
they are added. Does not see prices, audio tokens and tiers.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Row
from extractors.formats.gemini_names import snake_case

_OURS = {
    "input_tokens": ("input_tokens", "prompt_tokens", "promptTokenCount"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidatesTokenCount"),
    "cached_tokens": ("cached_tokens", "cached_input_tokens", "cachedContentTokenCount"),
    "reasoning_tokens": ("reasoning_tokens", "reasoning_output_tokens", "thoughtsTokenCount"),
}
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_NAMES = {key: name for name, keys in _OURS.items() for each in keys for key in (each, snake_case(each))}
_THOUGHTS = ("thoughtsTokenCount", snake_case("thoughtsTokenCount"))


def tokens(stated: Any) -> Row | None:
    """Token counts of one answer, None where `stated` holds none."""
    if not isinstance(stated, dict):
        return None
    places = [stated, *(value for key, value in stated.items() if isinstance(value, dict) and key.endswith("_details"))]
    found: Row = {}
    for place in places:
        for key in place:
            if key in _NAMES and _is_count(place[key]):
                found.setdefault(_NAMES[key], place[key])
    beside = [stated[key] for key in _BESIDE if _is_count(stated.get(key))]
    if beside and "input_tokens" in found:
        found["input_tokens"] += sum(beside)
        if _is_count(stated.get(_BESIDE[0])):
            found["cached_tokens"] = stated[_BESIDE[0]]
    if not stated.keys().isdisjoint(_THOUGHTS):   # Gemini counts thoughts beside its output
        found["output_tokens"] = found.get("output_tokens", 0) + found.get("reasoning_tokens", 0)
    return found or None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
