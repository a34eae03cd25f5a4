"""Programs as somebody writes them: the language in words for a model, and its reply as checked rules.

In: a model's text. Out: a `Draft`: rules of the kinds below, without guards. Every operator must be one of the language's; that
its operands fit shows when it is tried (`trials`).
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from env_builder.runtime import expressions
from env_builder.runtime.expressions import OPERATORS
from env_builder.world.documents import STYLES

MOST_RULES = 8

_RULES = """\
A program says what a tool answers and what it changes, as JSON: rules that are tried in order, the first that can answer does.

{"rule": "value", "value": e, "style": s}
    answers the value of the expression e. s says how it is written: null for a bare text, else
    {"separators": [", ", ": "], "ensure_ascii": true} with the separators and the escaping of the tool's JSON
{"rule": "text", "pieces": [p, …], "form": "plain", "numbers": ["as_given"]}
    answers a sentence; each p is a text, or an expression over the arguments whose value is written there. form: "plain", or
    "json" where values are escaped as inside a JSON string; numbers: "as_given", "whole" or "float"
{"rule": "document", "class": c, "argument": a, "before": "", "after": ""}
    answers the thing of class c that the argument a names, as JSON, between two texts
{"rule": "write", "class": c, "argument": a, "before": "", "after": "", "fields": {field: e, …},
 "order": [field, …], "style": s}
    changes the thing of class c that the argument a names to one with these fields, and answers it; a field that stays is
    ["before", field]; order: the fields that are new

"""


def _expression(value: Any) -> Any:
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        raise ValueError(f"an expression is a list that begins with an operator, not {json.dumps(value)[:60]}")
    if value[0] not in OPERATORS:
        raise ValueError(f"no operator {value[0]!r}; there are: {', '.join(sorted(OPERATORS))}")
    return value


Expression = Annotated[Any, AfterValidator(_expression)]


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Style(_Rule):
    """How JSON is written."""

    separators: tuple[str, str] = STYLES[0]["separators"]
    ensure_ascii: bool = True


class Value(_Rule):
    """Answers the value of an expression."""

    rule: Literal["value"]
    value: Expression
    style: Style | None = None


class Text(_Rule):
    """Answers a sentence."""

    rule: Literal["text"]
    pieces: list[str | Expression] = Field(min_length=1)
    form: Literal["plain", "json", "json_ascii"] = "plain"
    numbers: list[Literal["as_given", "whole", "float"]] = Field(default=["as_given"], min_length=1)


class Document(_Rule):
    """Answers a thing as it is."""

    rule: Literal["document"]
    entity_class: str = Field(alias="class")
    argument: str
    before: str = ""
    after: str = ""


class Write(_Rule):
    """Changes a thing, and answers it."""

    rule: Literal["write"]
    entity_class: str = Field(alias="class")
    argument: str
    before: str = ""
    after: str = ""
    fields: dict[str, Expression] = Field(min_length=1)
    order: list[str] = Field(default_factory=list)
    style: Style = Style()


class Draft(_Rule):
    """A model's reply."""

    rules: list[Annotated[Value | Text | Document | Write, Field(discriminator="rule")]] = Field(max_length=MOST_RULES)

    def unguarded(self) -> list[dict[str, Any]]:
        """The rules as the interpreter takes them, held back by no guard."""
        return [_open(rule.model_dump(by_alias=True)) for rule in self.rules]


def _open(rule: dict[str, Any]) -> dict[str, Any]:
    if rule["rule"] == "write":
        return {**rule, "when": None, "also": []}
    return {**rule, "when": None} if rule["rule"] in ("text", "value") else rule


def draft(reply: str) -> Draft:
    """The program in a model's reply, also where words or a fence stand around it. Raises ValueError."""
    begin, end = reply.find("{"), reply.rfind("}")
    return Draft.model_validate(json.loads(reply[begin:end + 1]))


def language() -> str:
    """The language in words."""
    return _RULES + (expressions.__doc__ or "")
