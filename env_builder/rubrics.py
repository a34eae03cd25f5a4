"""The rubric's document at the builder's side: held to its published schema before it is written, and when it is read.

In: documents as docs/rubric.schema.json describes them. Out: the same, or `InputError`. Sees: the shape, by a full validator of
JSON Schema, and what the kinds themselves refuse. Does not see: whether a check makes sense for its task (`verify.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from env_builder.runtime.checks import OWN
from env_builder.runtime.rubrics import Rubric, schema
from warehouse.errors import InputError

SCHEMA = "rubric.schema.json"
"""Name of the schema's file, in docs/ and beside rewards."""


def validated(document: dict[str, Any], where: str = "") -> dict[str, Any]:
    """The document itself. InputError where the schema or a kind refuses it: `where`, then what, and the mend."""
    mend = "see docs/rewards.md and docs/rubric.schema.json"
    error = _error("", document)
    for check in [] if error else document["checks"]:
        if error is None and check["kind"] in OWN:
            error = _error(check["kind"], check["parameters"])
    if error is not None:
        said = error.message if len(error.message) <= 200 else f"{error.message[:197]}…"
        raise InputError(f"this is no rubric ({error.json_path}: {said})", where, mend)
    try:
        Rubric.read(document)
    except ValueError as refused:
        raise InputError(f"this is no rubric ({refused})", where, mend) from refused
    return document


def _error(kind: str, value: Any) -> ValidationError | None:
    validator = _validator(kind)
    return None if validator.is_valid(value) else best_match(validator.iter_errors(value))


@cache
def _validator(kind: str) -> Draft202012Validator:
    """Of the document without what the kinds say of parameters, or of one kind's parameters: a check meets its kind's alone."""
    whole = schema()
    checks = {name: value for name, value in whole["properties"]["checks"]["items"].items() if name != "allOf"}
    plain = {**whole, "properties": {**whole["properties"], "checks": {"type": "array", "items": checks}}}
    return Draft202012Validator({**whole["$defs"][kind], "$defs": whole["$defs"]} if kind else plain)
