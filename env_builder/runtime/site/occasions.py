"""Let one entity of a site have happened on another day, in the episodes of some tasks: on its pages, in lists, in its files.

In: rows {"tasks", "entity" (what varies in the paths of its pages), "from", "to" (ISO days)}. Out: a port before a session's,
whose pages show the other day where they are about the entity, and in the largest parts that lead to that entity alone; and the
bytes of its files. A time that stands behind the day becomes the last minute of the day. Sees: ISO days, and days with English
months in words. Does not see: days in numbers with other marks, other things that happened to the entity on another day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import urljoin

from ..clock import MONTHS
from ..documents import rewritten
from .port import PortAnswer, PortRequest, SitePort
from .trees import Element

PathOf = Callable[[str, str], "tuple[str, tuple[str, ...]] | None"]
"""Method and url -> template of the path, and what varies in it."""
_MOST_PAGES = 1024
_TIME = (r"(?P<before>,?\s+(?:at\s+)?|T)(?:(?P<hour>\d{1,2})(?P<minutes>:\d{2})?(?P<seconds>:\d{2}(?:\.\d+)?)?"
         r"(?P<half>\s*[ap]\.?m\b\.?)?|(?P<word>noon|midnight))(?![\d:])")


class MovedDay(NamedTuple):
    """A day that shows as another one."""

    before: date
    after: date

    def shown(self, text: str) -> str:
        """Return a text with the other day, and the last minute of it where a time follows."""
        if str(self.before.year) not in text:
            return text
        for pattern, written in self._forms():
            text = "".join(_replaced(re.compile(rf"(?i){pattern}(?:{_TIME})?"), written, text))
        return text

    def _forms(self) -> list[tuple[str, Callable[[re.Match[str]], str]]]:
        """Return how the day may be written, and how the other one is then."""
        one, other = self.before, self.after
        month = MONTHS[one.month - 1]
        name = rf"(?P<month>{month}|{month[:4]}|{month[:3]})\b(?P<dot>\.?)"
        day = rf"(?<!\d)0?{one.day}(?P<ending>st|nd|rd|th)?"

        def month_of(match: re.Match[str]) -> str:
            own = match["month"]
            text = MONTHS[other.month - 1] if len(own) == len(month) else MONTHS[other.month - 1][:len(own)]
            return (text.upper() if own.isupper() else text.lower() if own.islower() else text) + match["dot"]

        def day_of(match: re.Match[str]) -> str:
            return f"{other.day}{_ending(other.day) if match['ending'] else ''}"

        return [
            (rf"(?<!\d){one.isoformat()}(?!\d)", lambda match: other.isoformat()),
            (rf"{day}(?P<gap>\s+){name}(?P<mark>,?\s+){one.year}(?!\d)",
             lambda match: f"{day_of(match)}{match['gap']}{month_of(match)}{match['mark']}{other.year}"),
            (rf"(?<!\w){name}(?P<gap>\s+){day}(?P<mark>,?\s+){one.year}(?!\d)",
             lambda match: f"{month_of(match)}{match['gap']}{day_of(match)}{match['mark']}{other.year}")]


def _replaced(pattern: re.Pattern[str], written: Callable[[re.Match[str]], str], text: str) -> Iterator[str]:
    """Yield the parts of a text with each day that matches in its new form."""
    end = 0
    for match in pattern.finditer(text):
        yield text[end:match.start()]
        yield written(match) + _last_minute(match)
        end = match.end()
    yield text[end:]


def _last_minute(match: re.Match[str]) -> str:
    """Return what follows the day: 23:59 in the place of a time, written as that is."""
    if match["before"] is None:
        return ""
    half = match["half"]
    if not (match["minutes"] or half or match["word"]):
        return match[0][match.start("before") - match.start():]
    if half or match["word"]:
        return f"{match['before']}11:59{re.sub('a', 'p', re.sub('A', 'P', half)) if half else ' p.m.'}"
    return f"{match['before']}23:59{':59' if match['seconds'] else ''}"


def _ending(day: int) -> str:
    return "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


class Occasion(NamedTuple):
    """An entity that happened on another day."""

    entity: tuple[str, ...]
    day: MovedDay

    def is_about(self, values: Iterable[str]) -> bool:
        """Return whether a path with such values is one of the entity's."""
        return bool(self.entity) and set(self.entity) <= set(values)


class Occasions:
    """Those of each task."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], path_of: PathOf) -> None:
        self._path_of = path_of
        self._of_task: dict[str, list[Occasion]] = {}
        self._pages: dict[tuple[str, int, str], tuple[Element, Element]] = {}
        for row in rows:
            day = MovedDay(date.fromisoformat(row["from"]), date.fromisoformat(row["to"]))
            for task_id in row["tasks"]:
                self._of_task.setdefault(task_id, []).append(Occasion(tuple(row["entity"]), day))

    def of(self, task_id: str | None) -> tuple[Occasion, ...]:
        """Return what is otherwise in the episodes of a task."""
        return tuple(self._of_task.get(task_id or "", ()))

    def page(self, task_id: str, page: Element, url: str) -> Element:
        """Return a page as a task shows it; the same object for the same page."""
        key = task_id, id(page), url
        kept = self._pages.get(key)
        if kept is None or kept[0] is not page:
            if len(self._pages) >= _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
            shown = page
            for occasion in self.of(task_id):
                values = self._values(url)
                part, leads, others = self._below(shown, occasion, url)
                is_alone = occasion.is_about(values) or (leads and not others)
                shown = _moved(shown, occasion.day) if is_alone else part
            kept = self._pages[key] = page, shown
        return kept[1]

    def content(self, task_id: str | None, content: bytes, url: str) -> bytes:
        """Return the bytes of a file at an address as a task has them; as recorded where they cannot be rewritten."""
        for occasion in self.of(task_id):
            if occasion.is_about(self._values(url)):
                content = rewritten(content, occasion.day.shown) or content
        return content

    def _values(self, url: str) -> tuple[str, ...]:
        route = self._path_of("GET", url)
        return route[1] if route is not None else ()

    def _below(self, element: Element, occasion: Occasion, url: str) -> tuple[Element, bool, bool]:
        """Return an element with the largest parts that lead to the entity alone changed; whether it leads there, and
        elsewhere to anything that has an id."""
        leads = others = False
        if element.tag == "a" and "href" in element.attributes:
            values = self._values(urljoin(url, element.attributes["href"]))
            leads, others = occasion.is_about(values), bool(values) and not occasion.is_about(values)
        below = [self._below(child, occasion, url) if isinstance(child, Element) else None for child in element.children]
        leads |= any(each[1] for each in below if each is not None)
        others |= any(each[2] for each in below if each is not None)
        if not leads or not others:
            return element, leads, others
        children: list[Element | str] = []
        for child, each in zip(element.children, below, strict=True):
            if each is None or not isinstance(child, Element) or not each[1]:
                children.append(child)
            else:
                children.append(each[0] if each[2] else _moved(child, occasion.day))
        return Element(element.tag, element.attributes, children), leads, others


def _moved(element: Element, day: MovedDay) -> Element:
    """Return an element with another day in all its texts; itself where nothing changes."""
    children: list[Element | str] = [
        day.shown(child) if isinstance(child, str) else _moved(child, day) for child in element.children]
    attributes = {name: day.shown(value) if name in ("value", "title", "datetime", "aria-label") else value
                  for name, value in element.attributes.items()}
    if attributes == element.attributes and all(
            one is other or (isinstance(one, str) and one == other)
            for one, other in zip(children, element.children, strict=True)):
        return element
    return Element(element.tag, attributes, children)


class OccasionSite(SitePort):
    """A site as the episodes of a task show it."""

    def __init__(self, site: SitePort, occasions: Occasions, task_id: str) -> None:
        self._site = site
        self._occasions = occasions
        self._task_id = task_id

    def ask(self, request: PortRequest) -> PortAnswer:
        answer = self._site.ask(request)
        if answer.page is None:
            return answer
        return answer._replace(page=self._occasions.page(self._task_id, answer.page, request.url))
