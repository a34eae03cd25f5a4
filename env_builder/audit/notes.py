"""What plays saw of their room: each question that they put to it, and one digest of all its answers.

In: questions as the room and the attackers ask them (`Notes.add`), and later the room as it is then (`Sources`). Out: what a
later night asks again: where every answer is the same, so is all that was played.
Does not see: a question that is asked past `watched.py`; there a room that is watched has nothing else to ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from env_builder.audit.values import Plausible
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.programs import Programs
from env_builder.runtime.user import Said, ScriptedUser
from env_builder.runtime.world import Row, View, World

Question = tuple[Any, ...]
"""What is asked, and of what: plain values, lists as tuples."""
Written = dict[str, Any]
V = TypeVar("V")


class Sources(NamedTuple):
    """Whom plays ask."""

    world: World
    programs: Programs
    values: Plausible
    user: ScriptedUser


class Notes:
    """Questions of the plays of one task, in the order in which they were first asked."""

    def __init__(self) -> None:
        self._asked: dict[Question, int] = {}
        self.shown: Sequence[str] = ()
        """Words that the agent of the task was shown: `others` chooses among them."""
        self.words: set[str] = set()
        """Words that attackers heard: `fitting` and `named` choose among them."""

    def add(self, *question: Any, n: int = 0) -> None:
        """Note that it was asked; `n`: how many answers were taken, of those that are taken one by one."""
        self._asked[question] = max(n, self._asked.get(question, 0))

    def taken(self, answers: Iterable[V], *question: Any) -> Iterator[V]:
        """The answers, each noted as it is taken; so is the end, where it is reached."""
        n = 0
        for n, answer in enumerate(answers, 1):
            self.add(*question, n=n)
            yield answer
        self.add(*question, n=n + 1)

    def written(self, sources: Sources) -> Written:
        """The questions, and the digest of what `sources` answers."""
        views: dict[View, int] = {}
        questions = [_plain(question, n, views) for question, n in self._asked.items()]
        found: Written = {
            "views": [[view.instant, sorted(view.session_ids)] for view in views], "shown": list(self.shown),
            "words": sorted(self.words), "questions": questions}
        return found | {"answers": _digest(found, sources)}


def same(written: Mapping[str, Any], sources: Sources) -> bool:
    """Would `sources` answer all of it as it was answered then?"""
    return bool(_digest(written, sources) == written["answers"])


def _plain(question: Question, n: int, views: dict[View, int]) -> list[Any]:
    plain = [views.setdefault(each, len(views)) if isinstance(each, View) else each for each in question]
    return [*plain, n] if n else plain


def _digest(written: Mapping[str, Any], sources: Sources) -> str:
    return digest(canonical(list(_answers(written, sources))))


def _answers(written: Mapping[str, Any], sources: Sources) -> Iterable[Any]:
    views = [View(instant, frozenset(sessions)) for instant, sessions in written["views"]]
    heard = dict.fromkeys(written["words"])
    for kind, *told in written["questions"]:
        if kind in OF_A_VIEW:
            yield OF_A_VIEW[kind](sources, views[told[-1]], *told[:-1])
        elif kind == "others":
            tool, path, value, n = told
            yield list(islice(sources.values.others(tool, tuple(path), json.loads(value), written["shown"]), n))
        elif kind == "fitting":
            yield sources.values.fitting(told[0], tuple(told[1]), heard)
        elif kind == "named":
            yield sources.values.named(written["words"])
        else:
            yield PLAIN[kind](sources, *told)


def of_row(row: Row | None) -> Any:
    """What of an answer on record a play can see."""
    return None if row is None else [row["content"], row["is_error"], row["after"], row.get("effects", ())]


def _wanted(text: str) -> list[tuple[Any, ...]]:
    return [(tuple(path), *rest) for path, *rest in json.loads(text)]


def _rows(sources: Sources, kind: str, wanted: str) -> Any:
    return sources.world.table(kind, sources.programs.listing.get(kind, {})).found(_wanted(wanted))


def _parts(sources: Sources, kind: str, wanted: str) -> Any:
    return sources.world.implied(kind, sources.programs.making, sources.programs.bare).found(_wanted(wanted))


def _answer(sources: Sources, view: View, tool: str, key: str, after: Iterable[Sequence[str]]) -> Any:
    return of_row(sources.world.answer((tool, key), view, [list(act) for act in after]))


def _once(sources: Sources, tool: str, key: str, after: Iterable[Sequence[str]]) -> Any:
    return [of_row(row) for row in sources.world.told_once((tool, key), [list(act) for act in after])]


OF_A_VIEW: dict[str, Callable[..., Any]] = {
    "document": lambda sources, view, kind, key: sources.world.document((kind, key), view),
    "answer": _answer,
}
PLAIN: dict[str, Callable[..., Any]] = {
    "once": _once,
    "rows": _rows,
    "parts": _parts,
    "highest": lambda sources, kind, form, instant: sources.world.highest(kind, form, instant),
    "asked": lambda sources, tool: sources.world.asked.get(tool, []),
    "class": lambda sources, text: sources.values.class_of(text),
    "calls": lambda sources, tool, start, n: list(islice(sources.values.calls(tool, start), n)),
    "shapes": lambda sources, tool: sources.values.shapes(tool),
    "free": lambda sources, tool, place: sources.values.is_free(tool, tuple(place)),
    "optional": lambda sources, tool, name: sources.values.is_optional(tool, name),
    "reply": lambda sources, told, idle, at, text: sources.user.reply(Said(told, idle, at), text),
}
