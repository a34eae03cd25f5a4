"""Sessions of pages, events of files and messages of a chat in; pieces of work out: who was asked what, did what, said what.

A piece of work is a page session with the message that asked for it (the last that names the person before the first write
call), what was posted and taken, what was downloaded and where it ended up, and what the person wrote in channels until soon
after. People are the same by their names, or by what stands before the @ of an address; a name that two people of one system
share that way joins nothing. Does not see: an ask by mail or in words without a name, work spread over several sessions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from env_builder.runtime.site.addresses import resolve
from env_builder.runtime.site.form_ledger import SESSION, UPDATE, FormLaws, FormLedger, Post, ShownForm, entity_of
from env_builder.runtime.site.routes import SiteRoute, SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.form_laws import accepted, form_before
from env_builder.site.recorded import PageSession, RecordedFile, RecordedRequest

_BEFORE, _AFTER = timedelta(hours=2), timedelta(minutes=15)
"""How long before a session its ask may stand, and how long after its last request it may still be written about."""
_ARRIVES = timedelta(seconds=60)
"""How soon after its request a downloaded file is there."""
_MADE, _MOVED = ("create",), ("rename", "copy")


class ChatMessage(NamedTuple):
    """A message of a chat."""

    message_id: str
    at: datetime
    channel: str | None
    author: str
    text: str
    thread: str | None
    """Of an answer: the id of the message that began the thread."""


class FileEvent(NamedTuple):
    """What happened to a file."""

    at: datetime
    user: str
    operation: str
    """create, rename, copy, delete, modify."""
    path: str
    to: str | None
    sha256: str | None


class SiteWrite(NamedTuple):
    """A form that was posted and taken."""

    request_index: int
    """Of the request in its session."""
    kind: str
    """The form's route, with what tells works of one route apart."""
    entity: tuple[str, ...]
    """Values of the path's varying segments."""
    values: Mapping[str, str]
    """Fields that count."""
    labels: frozenset[str]
    """What the page and the form call the entity."""
    choices: Mapping[str, str] = {}
    """What the form calls the values that were chosen in lists, by field."""
    is_update: bool = False


class Download(NamedTuple):
    """A file that was taken from the site."""

    request_index: int
    route: str
    entity: tuple[str, ...]
    file: RecordedFile
    saved: str | None
    """Path under which it arrived; None: no event tells."""
    sha256: str | None
    filed: str | None
    """Path where it ended, or where the same bytes were before; None: where it arrived, or it is gone."""
    offered: Mapping[tuple[str, ...], str]
    """Things of its kind that the last list before it led to, with the words of their rows."""


class PieceOfWork(NamedTuple):
    """What one person did in one sitting."""

    session: PageSession
    person: str | None
    ask: ChatMessage | None
    writes: tuple[SiteWrite, ...]
    downloads: tuple[Download, ...]
    filed: tuple[str, ...]
    """Paths of files that were brought to where they are at the end, however often they were moved."""
    last_filed_at: datetime | None
    notes: tuple[ChatMessage, ...]
    """What the person wrote in channels meanwhile."""
    replies: tuple[ChatMessage, ...]
    """What others answered to the ask or the notes."""
    files: tuple[FileEvent, ...]


def asked_values(pieces: Iterable[PieceOfWork]) -> dict[str, frozenset[str]]:
    """Return by kind of form and field the values that asks gave, letter by letter, and that were sent then."""
    values: dict[str, set[str]] = defaultdict(set)
    for piece in pieces:
        for write in piece.writes if piece.ask is not None else ():
            for name, value in write.values.items():
                if value and piece.ask is not None and value in piece.ask.text:
                    values[f"{write.kind} {name}"].add(value)
    return {field: frozenset(each) for field, each in sorted(values.items())}


class SiteWork:
    """All work of a site."""

    def __init__(self, routes: SiteRoutes, laws: FormLaws, messages: Iterable[ChatMessage] = (),
                 files: Iterable[FileEvent] = ()) -> None:
        self._routes = routes
        self._laws = laws
        self._messages = sorted(messages)
        self._files = sorted(files, key=lambda each: (each.at, each.path))

    def pieces(self, sessions: Sequence[PageSession]) -> list[PieceOfWork]:
        """Return a piece of work for each session, in their order."""
        people = _People([each.user for each in sessions], [each.author for each in self._messages],
                         [each.user for each in self._files])
        pieces = []
        times = defaultdict[str | None, list[tuple[datetime, datetime]]](list)
        for session in sessions:
            times[people.person(session.user)].append((session.requests[0].at, session.requests[-1].at))
        for session in sessions:
            begins, ends = session.requests[0].at, session.requests[-1].at
            others = times[people.person(session.user)]
            since = max((end for _, end in others if end < begins), default=begins - _BEFORE)
            until = min((begin for begin, _ in others if begin > ends), default=ends + _AFTER)
            pieces.append(self._piece(session, people, max(since, begins - _BEFORE), min(until, ends + _AFTER)))
        return pieces

    def _piece(self, session: PageSession, people: _People, since: datetime, until: datetime) -> PieceOfWork:
        """`since`, `until`: between which instants asks and files and notes are of this session."""
        begins, person = session.requests[0].at, people.person(session.user)
        writes = tuple(self._writes(session))
        first = session.requests[writes[0].request_index].at if writes else session.requests[-1].at
        ask = self._ask(person, people, since, first) if person else None
        own = [each for each in self._files if person and people.person(each.user) == person and begins <= each.at <= until]
        notes = [each for each in self._messages if person and people.person(each.author) == person
                 and begins <= each.at <= until]
        roots = {each.message_id for each in [*notes, *([ask] if ask else [])]}
        replies = [each for each in self._messages if each.thread in roots and people.person(each.author) != person]
        ended, filed_at = _ended(own)
        return PieceOfWork(session, person, ask, writes, tuple(self._downloads(session, own, ended)),
                           tuple(sorted(path for path, origin in ended.items() if path != origin)), filed_at,
                           tuple(notes), tuple(replies), tuple(own))

    def _ask(self, person: str, people: _People, since: datetime, until: datetime) -> ChatMessage | None:
        """Return the last message that names the person, by somebody else."""
        names = "|".join(re.escape(name) for name in sorted(people.names(person), reverse=True))
        named = re.compile(rf"@(?:{names})\b|^\W*(?:(?:hi|hey|hello|dear) )?(?i:{names})\b *[,:;–—-]")
        return next((each for each in reversed(self._messages) if since <= each.at <= until and each.thread is None
                     and people.person(each.author) != person and named.search(each.text)), None)

    def _writes(self, session: PageSession) -> Iterator[SiteWrite]:
        for index, request in enumerate(session.requests):
            route = self._routes.route(request.method, request.url) if request.method == "POST" else None
            if route is None or not accepted(session, index):
                continue
            law = self._laws.law(route.path, request.form or ())
            if law is not None and law.effect == SESSION:
                continue
            address = self._routes.entity(route, request.url)
            entity = entity_of(law, address, request.form or ())
            shown = form_before(session, index)
            texts = FormLedger(self._laws).posted(Post(route.path, address, request.form or (), shown)).documents()
            apart = law.constants if law is not None and law.effect != UPDATE else {}
            kind = " ".join([route.path, *(f"{name}={value}" for name, value in sorted(apart.items()))])
            for values in texts:
                yield SiteWrite(index, kind, entity, values, _labels(session, index, shown), _choices(session, index, values),
                                law is not None and law.effect == UPDATE)

    def _downloads(self, session: PageSession, files: Sequence[FileEvent], ended: Mapping[str, str]) -> Iterator[Download]:
        final = {origin: path for path, origin in ended.items()}
        there = _paths_of([each for each in self._files if each.at < session.requests[0].at])
        waiting = [each for each in files if each.operation in _MADE]
        for index, request in enumerate(session.requests):
            route = self._routes.route(request.method, request.url) if request.file is not None else None
            if route is None or request.file is None:
                continue
            arrived = next((each for each in waiting if _is_arrival(each, request, request.file)), None)
            if arrived is not None:
                waiting.remove(arrived)
            saved = arrived.path if arrived else None
            sha256, end = arrived.sha256 if arrived else None, final.get(saved) if saved else None
            filed = end if end != saved else there.get(sha256) if sha256 else None
            yield Download(index, route.path, self._routes.entity(route, request.url), request.file, saved,
                           sha256, filed, self._offered(session, index, route))

    def _offered(self, session: PageSession, index: int, route: SiteRoute) -> dict[tuple[str, ...], str]:
        """Return the entities to which the last list leads that leads to this one: those of whose path the route goes on."""
        own = self._routes.entity(route, session.requests[index].url)
        for earlier in range(index - 1, -1, -1):
            page = session.page(earlier)
            if page is None or _is_about(self._routes, session.requests[earlier], own):
                continue
            rows = _rows(page, partial(self._thing, route, session.requests[earlier].url))
            if own in rows:
                return rows
        return {}

    def _thing(self, route: SiteRoute, base: str, url: str) -> tuple[str, ...] | None:
        address = resolve(f"https://site.invalid{base}", url)   # the host does not matter
        url = address.target if address is not None else ""
        target = self._routes.route("GET", url) if url else None
        if target is None or "{" not in target.path or not route.path.startswith(target.path.rstrip("/") + "/"):
            return None
        return self._routes.entity(target, url)


def _rows(page: Element, entity_of: Callable[[str], tuple[str, ...] | None]) -> dict[tuple[str, ...], str]:
    """Return the entities that a page leads to, each with the words of the largest part that leads to it alone."""
    rows: dict[tuple[str, ...], str] = {}

    def visit(element: Element) -> tuple[set[tuple[str, ...]], str]:
        entities: set[tuple[str, ...]] = set()
        words = []
        if element.tag == "a" and (entity := entity_of(element.attributes.get("href", ""))) is not None:
            entities.add(entity)
        for child in element.children:
            if isinstance(child, Element):
                below, text = visit(child)
                entities |= below
                words.append(text)
            else:
                words.append(child)
        text = " ".join(" ".join(words).split())
        if len(entities) == 1:
            rows[next(iter(entities))] = text
        return entities, text

    visit(page)
    return rows


def _is_about(routes: SiteRoutes, request: RecordedRequest, own: tuple[str, ...]) -> bool:
    """Return whether a page is that of the entity itself, not of a list with it."""
    route = routes.route(request.method, request.url)
    return route is not None and bool(set(own) & set(routes.entity(route, request.url)))


def _is_arrival(event: FileEvent, request: RecordedRequest, file: RecordedFile) -> bool:
    name = event.path.replace("\\", "/").rpartition("/")[2]
    stem, _, ending = file.name.rpartition(".")
    is_named = name == file.name or bool(re.fullmatch(rf"{re.escape(stem)} ?\(\d+\)\.{re.escape(ending)}", name))
    return is_named and request.at <= event.at <= request.at + _ARRIVES


def _paths_of(files: Sequence[FileEvent]) -> dict[str, str]:
    """Return where the bytes of each hash lie after these events, somewhere else than where they arrived."""
    hashes = {event.path: event.sha256 for event in files if event.operation in _MADE and event.sha256}
    paths = {}
    for path, origin in _ended(files)[0].items():
        sha256 = hashes.get(origin)
        if sha256 is not None and path != origin:
            paths[sha256] = path
    return paths


def _ended(files: Sequence[FileEvent]) -> tuple[dict[str, str], datetime | None]:
    """Return the path of each file at the end -> the path under which it arrived, and when the last was moved or made."""
    origins: dict[str, str] = {}
    last = None
    for event in files:
        if event.operation in _MADE:
            origins[event.path] = event.path
        elif event.operation in _MOVED and event.to and event.path in origins:
            origins[event.to] = origins[event.path] if event.operation == "copy" else origins.pop(event.path)
        elif event.operation == "delete":
            origins.pop(event.path, None)
        if event.operation in (*_MADE, *_MOVED):
            last = event.at
    return origins, last


def _labels(session: PageSession, index: int, shown: ShownForm | None) -> frozenset[str]:
    """Return what the page before a post and its form call the entity: headings, titles, values that the form shows."""
    page = next((page for earlier in range(index - 1, -1, -1) if (page := session.page(earlier)) is not None), None)
    labels = {" ".join("".join(child for child in element.children if isinstance(child, str)).split())
              for element in (page.elements() if page is not None else ()) if element.tag in ("h1", "h2", "h3")}
    if shown is not None:
        labels.update(value for name in shown.visible for value in shown.values.get(name, ()))
    return frozenset(label for label in labels if len(label) >= 3)


def _choices(session: PageSession, index: int, values: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the options that were chosen, by field, as the last page before calls them."""
    page = next((page for earlier in range(index - 1, -1, -1) if (page := session.page(earlier)) is not None), None)
    called: dict[str, str] = {}
    for element in page.elements() if page is not None else ():
        name = element.attributes.get("name", "")
        if element.tag == "select" and name in values:
            for option in element.elements():
                text = " ".join("".join(child for child in option.children if isinstance(child, str)).split())
                if option.tag == "option" and text and option.attributes.get("value", text) == values[name]:
                    called.setdefault(name, text)
    return called


class _People:
    """Names of people in several systems."""

    def __init__(self, *systems: Iterable[str | None]) -> None:
        forms = [{name for name in system if name} for system in systems]
        shared = {person for names in forms for person, n in Counter(map(_local, names)).items() if n > 1}
        self._of = {name: _local(name) for names in forms for name in names if _local(name) not in shared}
        self._of |= {name: name.casefold() for names in forms for name in names if _local(name) in shared}

    def person(self, name: str | None) -> str | None:
        return self._of.get(name) if name else None

    def names(self, person: str) -> set[str]:
        """Return all names of a person, and what stands for them in a mention."""
        return {name for name, each in self._of.items() if each == person} | {person}


def _local(name: str) -> str:
    return name.partition("@")[0].casefold()
