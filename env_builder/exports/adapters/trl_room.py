"""An environment of TRL's GRPOTrainer: its tools are methods, with types and docstrings made from their schemas.

    from traceroom_NAME.trl_room import TrlEnvironment, reward
    GRPOTrainer(model=…, environment_factory=TrlEnvironment, reward_funcs=reward, train_dataset=…)      # of rows of train.jsonl

The trainer plays until the model writes without a call; `reward` says these last words to the user and grades. To be answered
by the user before that, the model calls the tool that speaks (`ROUTES.speak`). Words beside a call are nobody's. None (NaN to
the trainer, not in the mean): the reward is unknown. `GradedTrlEnvironment` owns its reward (no last words), for those who mix
environments.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from keyword import iskeyword
from pathlib import Path
from types import GenericAlias, NoneType
from typing import Any, Literal, Union

from . import play

KIT = play.open(Path(__file__).parent)
ROUTES = play.routes_of(KIT.tools, KIT.tasks, taken=("reset", "get_reward"))
"""Tools by the names of methods, among them the one that speaks."""
_SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool, "null": NoneType}
_KEPT = frozenset({"type", "description", "enum"})
"""Words of a schema that types and docstrings say; others are told as text."""


class TrlEnvironment:
    """One episode at a time; the trainer makes as many as it has rollouts and resets them."""

    _episode: play.KitEpisode | None = None

    def reset(self, task_id: str, seed: int = 0, **row: Any) -> None:
        """Begin the task of a row of the dataset; what is to be seen stands in the row's prompt."""
        self._episode = KIT.begin(task_id, seed)

    def _graded(self, words: str = "") -> float | None:
        episode = self._playing()
        if words.strip() and episode.ended is None:
            episode.say(words)
        episode.finish()
        return episode.reward()

    def _playing(self) -> play.KitEpisode:
        if self._episode is None:
            raise ValueError("no episode has begun: reset it to a task first")
        return self._episode


class GradedTrlEnvironment(TrlEnvironment):
    """An environment that grades itself, when the trainer asks it to."""

    def get_reward(self) -> float | None:
        """Return the reward of the episode so far."""
        return self._graded()


def reward(completions: list[list[dict[str, Any]]], environments: list[TrlEnvironment], **row: Any) -> list[float | None]:
    """Say each completion's last words, end the episode and grade it."""
    return [each._graded(_last_words(completion)) for completion, each in zip(completions, environments, strict=True)]


def _last_words(completion: list[dict[str, Any]]) -> str:
    last = completion[-1] if completion else {}
    if last.get("role") != "assistant" or last.get("tool_calls"):
        return ""
    content = last.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _method(name: str, function: dict[str, Any]) -> Callable[..., str]:
    """Return a tool's method: signature, types and Google docstring from the schema; arguments are passed on unchanged."""
    schema = function["parameters"]
    properties, required = schema.get("properties"), frozenset(map(str, schema.get("required") or ()))
    properties = properties if isinstance(properties, dict) else {}
    called: dict[str, str] = {}
    for each in properties:
        called[_free(each, called)] = each

    def method(self: TrlEnvironment, **arguments: Any) -> str:
        given = {called.get(argument, argument): value for argument, value in arguments.items()}
        return ROUTES.call(self._playing(), name, given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        inspect.Parameter(own, keyword, default=inspect.Parameter.empty if each in required else None,
                          annotation=_type(properties[each])) for own, each in called.items()]
    method.__name__ = method.__qualname__ = name
    method.__annotations__ = {own: _type(properties[each]) for own, each in called.items()} | {"return": str}
    method.__dict__["__signature__"] = inspect.Signature(parameters, return_annotation=str)
    lines = [f"    {own}: {_about(properties[each])}" for own, each in called.items()]
    method.__doc__ = "\n".join([_plain(function.get("description") or name), *(["", "Args:", *lines] if lines else [])])
    return method


def _free(name: str, taken: Any) -> str:
    """Return a name that is valid for a parameter and for a docstring's reader, and not taken."""
    name = "".join(sign if f"a{sign}".isidentifier() and re.fullmatch(r"\w", sign) else "_" for sign in name)
    name = name if name.isidentifier() and not name.startswith("_") else f"p{name}"
    while name in taken or name in ("self", "return") or iskeyword(name):
        name += "_"
    return name


def _type(schema: Any) -> Any:
    """Return the Python type that a trainer makes the same schema of; Any if a text would not stay a text."""
    if not isinstance(schema, dict) or _is_loose(schema):
        return Any
    options = schema.get("enum")
    if isinstance(options, list) and options and all(type(option) in (str, int, bool, NoneType) for option in options):
        return Literal[tuple(options)]
    several = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(several, list) and several:
        return Union[tuple(map(_type, several))]  # noqa: UP007  made of a list
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(_type(schema | {"type": each}) for each in kind)] if kind else Any  # noqa: UP007
    if kind == "array":
        return GenericAlias(list, (_type(schema["items"]),)) if isinstance(schema.get("items"), dict) else list
    return dict if kind == "object" else _SCALARS.get(str(kind), Any)


def _is_loose(schema: Any) -> bool:
    """May it be a text or something else? A trainer that is told so makes a number of the text "7"."""
    kinds = _kinds(schema)
    return "string" in kinds and len(kinds) > 1


def _kinds(schema: Any) -> set[str]:
    """Return the types that a schema names."""
    if not isinstance(schema, dict):
        return set()
    named, options = schema.get("type"), schema.get("enum")
    kinds = {each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)}
    kinds |= {"string" if isinstance(option, str) else "other" for option in options} if isinstance(options, list) else set()
    several = schema.get("anyOf") or schema.get("oneOf")
    return kinds.union(*map(_kinds, several)) if isinstance(several, list) else kinds


def _about(schema: Any) -> str:
    """Return an argument's description on one line, and what else its schema says."""
    if not isinstance(schema, dict):
        return "any value"
    text = _plain(str(schema.get("description") or schema.get("type") or "a value"))
    more = {word: value for word, value in schema.items() if word not in _KEPT}
    if _is_loose(schema) or (more and more != {"items": {"type": more.get("items", {}).get("type")}}):
        text += f" JSON schema: {_plain(json.dumps(schema, ensure_ascii=False, sort_keys=True))}"
    return re.sub(r"\((choices)", r"( \1", text, flags=re.IGNORECASE)


def _plain(text: str) -> str:
    """Text on one line, without the words at which a docstring's parts are told apart."""
    return re.sub(r"(Args|Returns|Raises):", r"\1 -", " ".join(text.split())) or "-"


for _tool in ROUTES.functions:
    setattr(TrlEnvironment, _tool["function"]["name"], _method(_tool["function"]["name"], _tool["function"]))
