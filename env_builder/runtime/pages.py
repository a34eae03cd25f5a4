"""Long listings in pages, as the real tool gives them, where the room would give the whole.

In: how a tool turns pages, a call, and a way to ask the room. Out: the page, or None where the answer stands as it is. How a
tool turns pages, as data:

    argument, kind   what asks for the next page: `cursor` (a text of the page before), `page` (a number), `offset` (a position)
    start            number of the first page, 0 for an offset
    limit, size      argument that says how long a page is (null: none), and its length where nothing says it (null: whole)
    list             field that holds the list, null where the answer is the list itself
    next, end        field that holds the cursor (null: none), and its value on the last page: ["absent"] or ["is", value]
    of, shape        field of the last item that the cursor repeats, null: none does, and it looks like `shape`:
                     signs as they are, and in lists such as others of their kind may stand for
    fields, order    other fields: `count` of the page, `total` of the whole, `echo` of the argument, `more`, `limit`, `same`;
                     and the order of all of them
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from typing import Any

from .answers import parse
from .canonical import canonical
from .records import Result

Turning = dict[str, Any]
TRIES = 20
"""Draws for each cursor: short shapes give some twice."""
STYLES: tuple[dict[str, Any], ...] = tuple(
    {"separators": separators, "ensure_ascii": ascii_only, "indent": indent}
    for separators in ((", ", ": "), (",", ":"), (",", ": ")) for ascii_only in (True, False) for indent in (None, 2, 4))


def page(turning: Turning, arguments: dict[str, Any], result: Result, ask: Callable[[dict[str, Any]], Result],
         seed: int) -> Result | None:
    """The page of a listing that the call asks for; None where `result` stands. `ask`: the room, with other arguments."""
    name, limit_name = turning["argument"], turning["limit"]
    limit = arguments.get(limit_name, turning["size"]) if limit_name else turning["size"]
    stands = result.tier != "unknown" if result.is_error else name in arguments
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1 or stands:
        return None
    plain = {key: value for key, value in arguments.items() if key not in (name, limit_name)}
    tried = [{**plain, limit_name: arguments[limit_name]}] if limit_name in arguments and name in arguments else []
    asked = (ask(each) for each in (*tried, plain)) if result.is_error else iter((result,))
    whole = next((found for found in asked if not found.is_error), None)
    value = None if whole is None else parse(whole.content)
    items = _items(turning, value)
    style = None if whole is None else next((one for one in STYLES if json.dumps(value, **one) == whole.content), None)
    if items is None or style is None:
        return None
    cursors = _cursors(turning, items, plain, seed)
    at = _position(turning, arguments, limit, cursors)
    if at is None or at >= max(1, len(items)) or (at == 0 and len(items) <= limit and not result.is_error):
        return None
    made = _page(turning, value, items, at, limit, arguments, cursors)
    return None if made is None else Result(json.dumps(made, **style), False, "induced")


def _items(turning: Turning, value: Any) -> list[Any] | None:
    """The list, where it is all that there is: a page of it is left alone."""
    if turning["list"] is None:
        return value if isinstance(value, list) else None
    items = value.get(turning["list"]) if isinstance(value, dict) else None
    if not isinstance(items, list):
        return None
    more = [field for field, how in turning["fields"].items() if how == "more" and value.get(field)]
    total = [field for field, how in turning["fields"].items() if how == "total" and value.get(field, len(items)) != len(items)]
    goes_on = turning["next"] is not None and value.get(turning["next"]) not in (None, "", False)
    return None if more or total or goes_on else items


def _cursors(turning: Turning, items: list[Any], plain: dict[str, Any], seed: int) -> list[Any]:
    """What asks for the page that begins at each place; no two are the same, unless their shape has no more to give."""
    if turning["kind"] != "cursor":
        return [None] * (len(items) + 1)
    if turning["of"] is not None:
        return [None, *(item.get(turning["of"]) if isinstance(item, dict) else None for item in items)]
    draw, found = random.Random(canonical([seed, "cursor", plain])), dict[str, None]()
    for _ in range(TRIES * len(items)):
        found.setdefault("".join(sign if isinstance(sign, str) else _alike(draw, sign[0]) for sign in turning["shape"]))
        if len(found) == len(items):
            break
    return [None, *found, *[None] * (len(items) - len(found))]


def _alike(draw: random.Random, sign: str) -> str:
    kinds = (string.digits, string.ascii_lowercase, string.ascii_uppercase)
    return next((draw.choice(kind) for kind in kinds if sign in kind), sign)


def _position(turning: Turning, arguments: dict[str, Any], limit: int, cursors: list[Any]) -> int | None:
    given = arguments.get(turning["argument"])
    if given is None:
        return 0
    if turning["kind"] == "cursor":
        return next((at for at, cursor in enumerate(cursors) if cursor is not None and cursor == given), None)
    if isinstance(given, bool) or not isinstance(given, int) or given < turning["start"]:
        return None
    return (given - turning["start"]) * limit if turning["kind"] == "page" else given


def _page(turning: Turning, value: Any, items: list[Any], at: int, limit: int, arguments: dict[str, Any],
          cursors: list[Any]) -> Any:
    """The page as JSON value, None where a field of it has no meaning that is known."""
    part, is_last = items[at:at + limit], at + limit >= len(items)
    if turning["list"] is None:
        return part
    found = {**value, turning["list"]: part}
    says = {"count": len(part), "total": len(items), "echo": arguments.get(turning["argument"], turning["start"]),
            "more": not is_last, "limit": limit}
    for field, how in turning["fields"].items():
        if how in says:
            found[field] = says[how]
    if turning["next"] is not None:
        found.pop(turning["next"], None)
        end = turning["end"]
        if not is_last:
            found[turning["next"]] = cursors[at + limit]
        elif end[0] == "is":
            found[turning["next"]] = end[1]
    if not set(found) <= set(turning["order"]):
        return None
    return {field: found[field] for field in turning["order"] if field in found}
