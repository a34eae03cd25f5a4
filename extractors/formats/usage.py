"""Token counts as providers state them, to ours: input_tokens, output_tokens, cached_tokens, reasoning_tokens.

Cached tokens are inside the input count here, as OpenAI, Gemini and OpenTelemetry count; Anthropic states them beside it, so
they are added. Does not see prices, audio tokens and tiers.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Row

_INPUT = ("input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count")
_OUTPUT = ("output_tokens", "completion_tokens", "candidatesTokenCount", "candidates_token_count")
_CACHED = ("cached_tokens", "cached_input_tokens", "cachedContentTokenCount", "cached_content_token_count")
_REASONING = ("reasoning_tokens", "reasoning_output_tokens", "thoughtsTokenCount", "thoughts_token_count")
_DETAILS = ("prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details")
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_OURS = {"input_tokens": _INPUT, "output_tokens": _OUTPUT, "cached_tokens": _CACHED, "reasoning_tokens": _REASONING}
_NAMES = {key: name for name, keys in _OURS.items() for key in keys}


def tokens(stated: Any) -> Row | None:
    """Token counts of one answer, None where `stated` holds none."""
    if not isinstance(stated, dict):
        return None
    places = [stated, *(stated[key] for key in _DETAILS if isinstance(stated.get(key), dict))]
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
    if "thoughtsTokenCount" in stated or "thoughts_token_count" in stated:   # Gemini counts thoughts beside its output
        found["output_tokens"] = found.get("output_tokens", 0) + found.get("reasoning_tokens", 0)
    return found or None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
