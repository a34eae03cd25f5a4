"""Make tools behave as in production: they take time, fail by themselves, sessions expire, and long lists come in pages.

In: rows of perturbations.jsonl, a seed, and the names that are switched on (none by default). Out, for the n-th step of an
episode: a failure in place of the answer, or None; a page in place of the whole list; and how long the tool takes. The same
seed, step and call give the same. Nobody waits: the journal notes the time, and the caller may sleep.

How a tool turns pages is data:

    argument, kind   what asks for the next page: `cursor` (a text of the page before), `page` (a number), `offset` (a position)
    start            number of the first page, 0 for an offset
    limit, size      argument that gives the length of a page (null: none), and its default length (null: the whole list)
    list             field that holds the list, null where the answer is the list itself
    next, end        field that holds the cursor (null: none), and its value on the last page: ["absent"] or ["is", value]
    of, shape        field of the last item that the cursor repeats; null: none does, and the cursor looks like `shape`:
                     characters as they are, and in lists such as others of their kind may stand for
    fields, order    other fields: `count` of the page, `total` of the whole, `echo` of the argument, `more`, `limit`, `same`;
                     and the order of all of them
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from .answers import parse
from .canonical import canonical
from .exchanges import NameClasses
from .habits import UserHabits, habits_of
from .records import Result, Task
from .relabelling import SWITCHES as RELABELLINGS
from .relabelling import Relabelling, Renaming
from .wordings import Wordings

SWITCHES = ("expiry", "faults", "fresh", "habits", "latency", "pages", "wordings", *RELABELLINGS)
"""`fresh` lets tools answer that draw names at random or read a clock: with names and times of this episode's own."""
USER = ""
"""The tool of the row that is of the user: its `wordings` and `habits`."""


class Perturbations:
    """What an episode draws from."""

    def __init__(self, rows: Iterable[dict[str, Any]] = (), seed: int = 0, switches: Iterable[str] = ()) -> None:
        self._rows = {row["tool"]: row for row in rows}
        self.seed = seed
        self.switches = tuple(sorted(switches))
        texts = self._rows.get(USER, {}).get("wordings") if "wordings" in self.switches else None
        self._wordings = Wordings(texts) if texts else None
        unknown = sorted(set(self.switches) - set(SWITCHES))
        if unknown:
            raise ValueError(f"no perturbation {unknown[0]!r} to switch on; there are: {', '.join(SWITCHES)}")

    def switched(self, seed: int, switches: Iterable[str]) -> Perturbations:
        """Return the same tools, for another episode."""
        switches = tuple(switches)
        if seed == self.seed and switches == self.switches:
            return self
        return Perturbations(self._rows.values(), seed, switches)

    def answer(
        self, journal: list[dict[str, Any]], tool: str, arguments: dict[str, Any],
        call: Callable[[str, dict[str, Any]], Result],
    ) -> tuple[Result, dict[str, Any]]:
        """Return what `call` answers, or the failure that the call meets before; and what was sampled, for the journal."""
        step = len(journal)
        fault = self._fault(step, tool, arguments)
        expired = None if fault else self._expired(journal, tool, arguments)
        took = self._latency_ms(step, tool, arguments)
        result = fault or expired or call(tool, arguments)
        turning = None if fault or expired or "pages" not in self.switches else self._rows.get(tool, {}).get("pages")
        page = _page(turning, arguments, result, lambda others: call(tool, others), self.seed) if turning else None
        drawn = {**({"fault": True} if fault else {}), **({"expired": True} if expired else {}),
                 **({"paged": True} if page else {}), **({} if took is None else {"latency_ms": took})}
        return page or result, drawn

    def habits(self, task: Task) -> UserHabits | None:
        """Return what the task's user is like in this episode; None: as its script says."""
        rows = self._rows.get(USER, {}).get("habits") if "habits" in self.switches else None
        return habits_of(rows, task.family, self.seed, task.task_id) if rows else None

    def reworded(self, step: int, words: str, heard: str, request: str) -> str | None:
        """Return the user's words at this step of the journal as another person of the log words them, or as they are; None:
        the user waits. `heard`, `request`: as in `Wordings.reworded`."""
        if self._wordings is None:
            return words
        return self._wordings.reworded(words, heard, request, random.Random(canonical([self.seed, "wordings", step, words])))

    def _fault(self, step: int, tool: str, arguments: dict[str, Any]) -> Result | None:
        """Return the failure that this call meets, or None. Its tier is `induced`: the text is recorded, its time sampled."""
        row = self._rows.get(tool)
        if "faults" not in self.switches or row is None or not row["faults"]:
            return None
        draw = self._draw("fault", step, tool, arguments)
        return _failure(draw, row["faults"], arguments) if draw.random() < row["fault_rate"] else None

    def _expired(self, journal: list[dict[str, Any]], tool: str, arguments: dict[str, Any]) -> Result | None:
        """Return the refusal that this call meets because the session has expired since it was last renewed, or None.

        `journal`: the steps before it; those refused so have `expired`.
        """
        for renewing, row in self._rows.items() if "expiry" in self.switches else ():
            expiry = row.get("expiry")
            if expiry is None or tool not in expiry["tools"]:
                continue
            since = max((at for at, step in enumerate(journal) if step.get("tool") == renewing and (
                not step["is_error"] or step["tier"] == "unknown")), default=-1)  # where it worked, as far as anybody knows
            steps = [step for step in journal[since + 1:] if step.get("tool") in expiry["tools"]]
            life = sum(not step["is_error"] for step in steps)
            hazard = dict(map(tuple, expiry["hazards"])).get(life, expiry["beyond"])
            draw = self._draw("expiry", len(journal), tool, arguments)
            if any(step.get("expired") for step in steps) or draw.random() < hazard:
                return _failure(draw, expiry["messages"], arguments)
        return None

    def passes(self, tool: str, arguments: dict[str, Any], content: str) -> bool:
        """Is it a failure that passed by itself wherever it was seen? Then it says nothing of the call."""
        return any(_text(each["content"], arguments) == content for each in self._rows.get(tool, {}).get("faults", ()))

    @property
    def expiry(self) -> int | None:
        """Return the seed of when sessions of apps run out; None: they do not."""
        return self.seed if "expiry" in self.switches else None

    @property
    def layout(self) -> int | None:
        """Return the seed of how pages are laid out; None: as recorded."""
        return self.seed if "shuffled" in self.switches else None

    def relabelling(self, ids: frozenset[str], classes: NameClasses, files: Mapping[str, Path] | None = None) -> Relabelling:
        """Return what relabels the agent's view; `ids`: forms of the environment's ids; `classes`: names to exchange; `files`:
        hash -> where the bytes lie."""
        places = {tool: row["shuffled"] for tool, row in self._rows.items() if "shuffled" in row}
        renaming = Renaming(ids, self.seed, classes, files) if "rebound" in self.switches else Renaming(frozenset(), self.seed)
        return Relabelling(self.seed, renaming, places if "shuffled" in self.switches else {})

    def _latency_ms(self, step: int, tool: str, arguments: dict[str, Any]) -> float | None:
        """Milliseconds that this call takes, None where that is switched off or was never seen."""
        quantiles = self._rows.get(tool, {}).get("latency_ms")
        if "latency" not in self.switches or not quantiles:
            return None
        place = self._draw("latency", step, tool, arguments).random() * (len(quantiles) - 1)
        low = int(place)
        took: float = quantiles[low] + (place - low) * (quantiles[low + 1] - quantiles[low])
        return round(took, 3)

    def _draw(self, what: str, step: int, tool: str, arguments: dict[str, Any]) -> random.Random:
        return random.Random(canonical([self.seed, what, step, tool, arguments]))


def _failure(draw: random.Random, messages: list[dict[str, Any]], arguments: dict[str, Any]) -> Result:
    parts = draw.choices([each["content"] for each in messages], [each["share"] for each in messages])[0]
    return Result(_text(parts, arguments), True, "induced")


def _text(parts: list[Any], arguments: dict[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else str(arguments.get(part[0], "")) for part in parts)


Turning = dict[str, Any]
TRIES = 20
"""Draws for each cursor: short shapes give some twice."""
STYLES: tuple[dict[str, Any], ...] = tuple(
    {"separators": separators, "ensure_ascii": ascii_only, "indent": indent}
    for separators in ((", ", ": "), (",", ":"), (",", ": ")) for ascii_only in (True, False) for indent in (None, 2, 4))


def _page(turning: Turning, arguments: dict[str, Any], result: Result, ask: Callable[[dict[str, Any]], Result],
          seed: int) -> Result | None:
    """Return the page of a list that the call asks for; None to keep `result`. `ask`: the tool, with other arguments."""
    name, limit_name = turning["argument"], turning["limit"]
    limit = arguments.get(limit_name, turning["size"]) if limit_name else turning["size"]
    stands = result.tier != "unknown" if result.is_error else name in arguments
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1 or stands:
        return None
    plain = {key: value for key, value in arguments.items() if key not in (name, limit_name)}
    tried = [{**plain, limit_name: arguments[limit_name]}] if limit_name in arguments and name in arguments else []
    results = (ask(each) for each in (*tried, plain)) if result.is_error else iter((result,))
    whole = next((answered for answered in results if not answered.is_error), None)
    value = None if whole is None else parse(whole.content)
    items = _items(turning, value)
    style = None if whole is None else next((one for one in STYLES if json.dumps(value, **one) == whole.content), None)
    if items is None or style is None:
        return None
    cursors = _cursors(turning, items, plain, seed)
    at = _position(turning, arguments, limit, cursors)
    if at is None or at >= max(1, len(items)) or (at == 0 and len(items) <= limit and not result.is_error):
        return None
    made = _part(turning, value, items, at, limit, arguments, cursors)
    return None if made is None else Result(json.dumps(made, **style), False, "induced")


def _items(turning: Turning, value: Any) -> list[Any] | None:
    """Return the list if it is whole: a page of it is not paged again."""
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
    """Return what asks for the page that begins at each place; no two are the same, unless their shape allows no more."""
    if turning["kind"] != "cursor":
        return [None] * (len(items) + 1)
    if turning["of"] is not None:
        return [None, *(item.get(turning["of"]) if isinstance(item, dict) else None for item in items)]
    draw, cursors = random.Random(canonical([seed, "cursor", plain])), dict[str, None]()
    for _ in range(TRIES * len(items)):
        cursors.setdefault("".join(sign if isinstance(sign, str) else _alike(draw, sign[0]) for sign in turning["shape"]))
        if len(cursors) == len(items):
            break
    return [None, *cursors, *[None] * (len(items) - len(cursors))]


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


def _part(turning: Turning, value: Any, items: list[Any], at: int, limit: int, arguments: dict[str, Any],
          cursors: list[Any]) -> Any:
    """Return the page as JSON value, None if a field of it has no known meaning."""
    part, is_last = items[at:at + limit], at + limit >= len(items)
    if turning["list"] is None:
        return part
    answer = {**value, turning["list"]: part}
    says = {"count": len(part), "total": len(items), "echo": arguments.get(turning["argument"], turning["start"]),
            "more": not is_last, "limit": limit}
    for field, how in turning["fields"].items():
        if how in says:
            answer[field] = says[how]
    if turning["next"] is not None:
        answer.pop(turning["next"], None)
        end = turning["end"]
        if not is_last:
            answer[turning["next"]] = cursors[at + limit]
        elif end[0] == "is":
            answer[turning["next"]] = end[1]
    if not set(answer) <= set(turning["order"]):
        return None
    return {field: answer[field] for field in turning["order"] if field in answer}
