"""Play known solutions again after a randomised reset: by what was remembered of each click, and by reading the page.

In: an environment, a task, its known steps. Out: rewards. A clicker by heart types what was typed, and clicks what was clicked:
by its ref, its role and name, its path in the page, or its role and the text of its row. It is given the new login and
password, as no policy can do without. A reader does the same with this episode's names in the place of the recorded ones:
it looks up on the page what the goal names. Judges nothing by itself: an element that is not there ends the play. Used by
browser_tasks.py.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder import Environment

PERTURBATIONS = ("rebound", "shuffled")
_LINE = re.compile(r"""( *)- '?([a-z]+)(?: ("(?:[^"\\]|\\.)*"))?(.*)""")
_REF = re.compile(r"\[ref=(e\d+)\]")
_ROWS = frozenset({"article", "listitem", "row"})
Step = Mapping[str, Any]


class PageElement(NamedTuple):
    """An element of a snapshot."""

    ref: str
    role: str
    name: str
    path: tuple[tuple[str, int], ...]
    """Role, and place among its siblings of that role, from the outermost in."""
    row: str
    """All names and texts of the row around it; empty outside of rows."""
    place: int
    """Among the elements of its role and name."""


def elements_of(snapshot: str) -> Iterator[PageElement]:
    """Yield the elements of a snapshot, in its order."""
    stack: list[tuple[int, tuple[tuple[str, int], ...], Counter[str], int | None]] = [(-1, (), Counter(), None)]
    lines = snapshot.splitlines()
    places: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        indent, role = len(match[1]), match[2]
        while stack[-1][0] >= indent:
            stack.pop()
        _, path, counts, row = stack[-1]
        own = (*path, (role, counts[role]))
        counts[role] += 1
        stack.append((indent, own, Counter(), number if role in _ROWS else row))
        ref = _REF.search(match[4])
        if ref is not None:
            name, around = json.loads(match[3]) if match[3] else "", stack[-1][3]
            yield PageElement(ref[1], role, name, own, _row(lines, around) if around is not None else "", places[role, name])
            places[role, name] += 1


def _row(lines: Sequence[str], number: int) -> str:
    """Return what a row shows: its lines without refs and focus."""
    depth = len(lines[number]) - len(lines[number].lstrip())
    own = [lines[number]]
    for line in lines[number + 1:]:
        if len(line) - len(line.lstrip()) <= depth:
            break
        own.append(line)
    return "\n".join(_REF.sub("", line).replace("[active]", "").strip() for line in own)


class KnownClick(NamedTuple):
    """A known step, and the element that it is about."""

    tool: str
    arguments: Mapping[str, Any]
    element: PageElement | None


def known_clicks(environment: Environment, task_id: str, steps: Sequence[Step]) -> list[KnownClick]:
    """Play the known steps as recorded; return each with what it is about."""
    environment.reset(task_id)
    page: dict[str, PageElement] = {}
    clicks = []
    for step in steps:
        clicks.append(KnownClick(step["tool"], step["arguments"], page.get(step["arguments"].get("target", ""))))
        content = environment.call(step["tool"], step["arguments"]).content
        if step["tool"].startswith("browser_"):
            page = {each.ref: each for each in elements_of(content)}
    return clicks


Carry = Callable[[Any], Any]
Choose = Callable[[PageElement, Sequence[PageElement], Carry], "str | None"]


def by_ref(wanted: PageElement, page: Sequence[PageElement], carry: Carry) -> str | None:
    """Remember the ref."""
    return wanted.ref


def by_name(wanted: PageElement, page: Sequence[PageElement], carry: Carry) -> str | None:
    """Remember role, name and the place among those of that role and name."""
    return next((each.ref for each in page if (each.role, each.name, each.place) == (
        wanted.role, wanted.name, wanted.place)), None)


def by_path(wanted: PageElement, page: Sequence[PageElement], carry: Carry) -> str | None:
    """Remember the path in the page."""
    return next((each.ref for each in page if each.path == wanted.path), None)


def by_row(wanted: PageElement, page: Sequence[PageElement], carry: Carry) -> str | None:
    """Remember the text of the row; outside of rows role and name."""
    if not wanted.row:
        return by_name(wanted, page, carry)
    return next((each.ref for each in page if (each.role, each.row) == (wanted.role, wanted.row)), None)


class Reader:
    """Looks for role, name and row in this episode's names, and knows which words of the site lead to one page."""

    def __init__(self, synonyms: Iterable[Sequence[str]] = ()) -> None:
        self._synonyms = [frozenset(each) for each in synonyms]

    def __call__(self, wanted: PageElement, page: Sequence[PageElement], carry: Carry) -> str | None:
        """Return the ref of what is meant."""
        name = carry(wanted.name)
        names = {name}.union(*(each for each in self._synonyms if name in each and wanted.role == "link"))
        return _read(wanted, [each for each in page if each.role == wanted.role and each.name in names], carry(wanted.row))


def _read(wanted: PageElement, alike: Sequence[PageElement], row: str) -> str | None:
    in_row = [each for each in alike if each.row == row]
    chosen = in_row or alike
    if len(chosen) > 1:
        chosen = [each for each in chosen if each.place == wanted.place] or chosen
    return chosen[0].ref if chosen else None


MOST_LOGINS = 20
"""Logins of a play that loses them again and again."""
CLICKERS: dict[str, Choose] = {"refs": by_ref, "names": by_name, "paths": by_path, "rows": by_row}


def reward_of(environment: Environment, task_id: str, clicks: Sequence[KnownClick], choose: Choose, seed: int,
              perturbations: Sequence[str] = PERTURBATIONS) -> float | None:
    """Return what a play is worth after a randomised reset."""
    return play_of(environment, task_id, clicks, choose, seed, perturbations)[0]


def play_of(environment: Environment, task_id: str, clicks: Sequence[KnownClick], choose: Choose, seed: int,
            perturbations: Sequence[str] = PERTURBATIONS) -> tuple[float | None, int]:
    """Return what a play is worth, and how often it logged in again: a reader does where a page asks for it."""
    goal = environment.reset(task_id, seed=seed, perturbations=perturbations).messages[0]["content"]
    given = {number for number, click in enumerate(clicks) if click.tool == "browser_type" and (
        f"with the password {environment.carried(click.arguments['text'])}." in goal)}
    play = _ClickPlay(environment, choose)
    for place, click in enumerate(clicks):
        if not play.make(click, is_given=not given.isdisjoint((place, place + 1))):
            break
        login = login_of_play(clicks[:place + 1])
        while login and isinstance(choose, Reader) and play.asks_for_login and play.n_logins < MOST_LOGINS:
            play.n_logins += 1
            if not all(play.make(each, is_given=True) for each in login):
                break
            play.leave_login()
    environment.finish()
    return environment.grade().reward, play.n_logins


def login_of_play(clicks: Sequence[KnownClick]) -> Sequence[KnownClick]:
    """Return the steps of the first login, the name, the password and what sends them; none before all were made."""
    place = next((place for place, click in enumerate(clicks) if click.element is not None and "text" in click.arguments
                  and "password" in click.element.name.lower()), None)
    return () if place is None or place + 2 > len(clicks) else clicks[place - 1:place + 2]


class _ClickPlay:
    """A play of known steps, as far as it has come."""

    def __init__(self, environment: Environment, choose: Choose) -> None:
        self.n_logins = 0
        self._environment = environment
        self._choose = choose
        self._carry: Carry = environment.carried if isinstance(choose, Reader) else _unchanged
        self._page: list[PageElement] = []
        self._content = ""

    @property
    def asks_for_login(self) -> bool:
        """Return whether the page has a field for a password."""
        return any(each.role == "textbox" and "password" in each.name.lower() for each in self._page)

    def leave_login(self) -> None:
        """Go back where the login gave a file: then the page stays."""
        if "Downloaded file" in self._content:
            self._show(self._environment.call("browser_navigate_back", {}).content)

    def _show(self, content: str) -> None:
        self._content = content
        self._page = list(elements_of(content))

    def make(self, click: KnownClick, is_given: bool) -> bool:
        """Make a step; return whether what it is about is on the page. `is_given`: the goal says what is typed."""
        arguments = {**self._carry(dict(click.arguments))}
        if "target" in arguments:
            ref = self._choose(click.element, self._page, self._carry) if click.element is not None else None
            if ref is None:
                return False
            arguments["target"] = ref
            if "text" in arguments and is_given:
                arguments["text"] = self._environment.carried(click.arguments["text"])
        content = self._environment.call(click.tool, arguments).content
        if click.tool.startswith("browser_"):
            self._show(content)
        return True


def _unchanged(value: Any) -> Any:
    return value
