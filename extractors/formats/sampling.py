"""How an answer was sampled from its model, as logs state it: parameters, tokens, their log-probabilities, token counts.

In: requests, settings and answers in any provider's words. Out: fields of an event's `usage`, in the names of `NAMES` and
`_OURS`; what a log does not state stays away, and nothing is a default of ours. Cached tokens are inside the input count, as
OpenAI, Gemini and OpenTelemetry count; Anthropic states them apart, so they are added. Gemini's names (camelCase over REST,
snake_case in Python's dumps) are known by the former.
Does not see: what a server sets where a request is silent; prices, audio tokens and tiers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from extractors.formats.format import Row
from extractors.formats.otlp_span import plain
from extractors.formats.values import objects_in, parsed_json

_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """Return a name in camelCase as Python writes it."""
    return _HUMP.sub(r"_\1", name).lower()


NAMES: dict[str, tuple[str, ...]] = {
    "temperature": ("temperature",), "top_p": ("top_p",), "top_k": ("top_k",), "min_p": ("min_p",),
    "max_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "max_tokens_to_sample"),
    "stop_sequences": ("stop_sequences", "stop", "chat.stop_sequences"), "seed": ("seed", "random_seed"),
    "n": ("n", "num_choices", "candidate_count", "choice.count"), "frequency_penalty": ("frequency_penalty",),
    "presence_penalty": ("presence_penalty",), "repetition_penalty": ("repetition_penalty",), "logit_bias": ("logit_bias",),
    "reasoning_effort": ("reasoning_effort", "reasoning.effort", "reasoning.level", "effort"), "tool_choice": ("tool_choice",),
}
"""Ours, and what providers and tracing systems call it (in camelCase too)."""
_PARAMETER_NAMES = {name: ours for ours, names in NAMES.items() for name in names}
_PREFIXES = ("gen_ai.request.", "gen_ai.openai.request.", "openai.request.", "llm.request.", "ai.settings.", "llm.", "ls_")
"""That attributes of spans and metadata of runs put before a name."""
_INSIDE = ("generation_config", "inference_config", "sampling_params", "sampling_parameters", "model_kwargs")
"""Objects of a request that hold parameters; `config` and the like are for the reader to open."""
_OWN = ("prompt_token_ids", "completion_token_ids", "logprobs")


def sampling(*places: Any) -> Row:
    """Return {"sampling": parameters} as the first place that states each says; {} where none is stated."""
    parameters: Row = {}
    for place in places:
        if isinstance(place, dict):
            _read(place, parameters)
    return {"sampling": parameters} if parameters else {}


def parameters_of(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a span's attributes, those that state a parameter."""
    return {key: value for key, value in attributes.items() if key.startswith(_PREFIXES) and _name(key) is not None}


def _read(place: Row, parameters: Row) -> None:
    inside = []
    for key, value in place.items():
        if value is None or not isinstance(key, str):
            continue
        ours = _name(key)
        if ours is not None and ours not in parameters and (parsed := _value(ours, value)) is not None:
            parameters[ours] = parsed
        elif ours is None and isinstance(value, dict):
            if snake_case(key) in _INSIDE:
                inside.append(value)
            elif key == "reasoning" and isinstance(value.get("effort"), str):
                parameters.setdefault("reasoning_effort", value["effort"])
    for each in inside:
        _read(each, parameters)


@lru_cache(4096)
def _name(key: str) -> str | None:
    key = key.removeprefix(next(filter(key.startswith, _PREFIXES), ""))
    return _PARAMETER_NAMES.get(key) or _PARAMETER_NAMES.get(snake_case(key))


def _value(ours: str, value: Any) -> Any:
    """Return a value as its parameter takes it, None where it is none."""
    if ours == "stop_sequences":
        value = _texts(value)
        return value if isinstance(value, list) and value and all(isinstance(each, str) for each in value) else None
    if ours in ("tool_choice", "reasoning_effort"):
        return value if isinstance(value, str | dict) and value and (ours == "tool_choice" or isinstance(value, str)) else None
    if ours == "logit_bias":
        return value if isinstance(value, dict) and value else None
    number = _number(value)
    return None if ours == "max_tokens" and number is not None and number < 0 else number


def _texts(value: Any) -> Any:
    """Return a list of texts that one text, or JSON text of a list (Langfuse; an OTLP value too), stands for."""
    if not isinstance(value, str) or not value:
        return value
    if value[0] not in "[{n":
        return [value]
    inner = parsed_json(value, [value])
    return plain(inner) if isinstance(inner, dict) else inner


def _number(value: Any) -> float | int | None:
    """Return a finite number; tables and attributes may hold it as text."""
    if isinstance(value, str):
        try:
            value = float(value) if not value.isdecimal() else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 2**63 and math.isfinite(value) else None


def drawn(prompt: Any, completion: Any, logprobs: Any) -> Row:
    """Return the tokens of one answer as far as they are stated: `prompt_token_ids`, `completion_token_ids`, `logprobs`.

    Log-probabilities are a list of numbers, or of OpenAI's objects (`content` may hold it). What is no such list is not stated.
    """
    if isinstance(logprobs, dict):
        logprobs = logprobs.get("content")
    if isinstance(logprobs, list) and any(isinstance(each, dict) for each in logprobs):
        logprobs = [each.get("logprob") if isinstance(each, dict) else None for each in logprobs]
    stated = {"prompt_token_ids": prompt, "completion_token_ids": completion, "logprobs": logprobs}
    kinds = {"logprobs": (int, float)}
    return {name: values for name, values in stated.items() if isinstance(values, list) and values and all(
        isinstance(each, kinds.get(name, int)) and not isinstance(each, bool) for each in values)}


def of_completion(response: Any) -> Row:
    """Return the tokens of the first candidate of a chat completion (vLLM's names for their ids), {} where it is none."""
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    if first is None:
        return {}
    prompt = response.get("prompt_token_ids")
    return drawn(prompt if prompt is not None else first.get("prompt_token_ids"), first.get("token_ids"), first.get("logprobs"))


def of_items(items: Any) -> Row:
    """Return the tokens of an answer made of items (OpenAI Responses): NeMo Gym's, or log-probabilities of an item's texts.

    They count where one item states them: of several, none says what the whole answer was.
    """
    stated = []
    for item in objects_in(items):
        own = drawn(item.get("prompt_token_ids"), item.get("generation_token_ids"), item.get("generation_log_probs"))
        texts = [drawn(None, None, each.get("logprobs")) for each in objects_in(item.get("content"))]
        stated.append(own or (texts[0] if len(texts) == 1 else {}))
    stated = [tokens for tokens in stated if tokens]
    return stated[0] if len(stated) == 1 else {}


def counts(usage: Row | None) -> Row:
    """Return the token counts of a usage, without how the answer was drawn."""
    return {key: value for key, value in (usage or {}).items() if key not in (*_OWN, "sampling")}


def laid(usage: Row | None, kinds: Iterable[str]) -> list[Row | None]:
    """Return what each part of an answer states: the counts go with the first, its tokens with the first that is a turn (a
    thought is none), the parameters with all that are."""
    kinds = list(kinds)
    if not usage:
        return [None] * len(kinds)
    own = {key: value for key, value in usage.items() if key in _OWN}
    shared = {key: value for key, value in usage.items() if key == "sampling"}
    turns = [i for i, kind in enumerate(kinds) if kind in ("message", "call")] or [0]
    return [{**(counts(usage) if i == 0 else {}), **(own if i == turns[0] else {}), **(shared if i in turns else {})} or None
            for i in range(len(kinds))]


_OURS = {
    "input_tokens": ("input_tokens", "prompt_tokens", "promptTokenCount"),
    "output_tokens": ("output_tokens", "completion_tokens", "candidatesTokenCount"),
    "cached_tokens": ("cached_tokens", "cached_input_tokens", "cachedContentTokenCount"),
    "reasoning_tokens": ("reasoning_tokens", "reasoning_output_tokens", "thoughtsTokenCount"),
}
_ADDED = ("cache_read_input_tokens", "cache_creation_input_tokens")
_NAMES = {key: name for name, keys in _OURS.items() for each in keys for key in (each, snake_case(each))}
_THOUGHTS = ("thoughtsTokenCount", snake_case("thoughtsTokenCount"))


def tokens(stated: Any) -> Row | None:
    """Token counts of one answer, None where `stated` holds none."""
    if not isinstance(stated, dict):
        return None
    places = [stated, *(value for key, value in stated.items() if isinstance(value, dict) and key.endswith("_details"))]
    usage: Row = {}
    for place in places:
        for key in place:
            if key in _NAMES and _is_count(place[key]):
                usage.setdefault(_NAMES[key], place[key])
    added = [stated[key] for key in _ADDED if _is_count(stated.get(key))]
    if added and "input_tokens" in usage:
        usage["input_tokens"] += sum(added)
        if _is_count(stated.get(_ADDED[0])):
            usage["cached_tokens"] = stated[_ADDED[0]]
    if not stated.keys().isdisjoint(_THOUGHTS):   # Gemini counts thoughts separately from its output
        usage["output_tokens"] = usage.get("output_tokens", 0) + usage.get("reasoning_tokens", 0)
    return usage or None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
