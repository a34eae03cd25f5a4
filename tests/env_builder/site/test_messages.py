"""What a form did is said once, in a box that all pages have: after whichever form, on whichever page, and not again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from env_builder.runtime.site.model import InducedPages
from env_builder.runtime.site.port import PortAnswer, PortRequest
from env_builder.runtime.site.visits import SiteVisit
from env_builder.site.learning import RecordedAnswer, write_site
from env_builder.site.parsing import parse

BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
BOX = '<div id="notes" class="area">{}</div>'
SAVED, HELLO = '<p class="ok">Saved as {}.</p>', '<b class="hello">Hello again</b>'
PATHS = {path: path for path in ("/in", "/shelf", "/boxes", "/help", "/old")} | {f"/box/{n}": "/box/{box}" for n in range(20)}


class Desk:
    """Sessions of people who come in, look around, and save boxes."""

    def __init__(self, box: str = BOX) -> None:
        self.box = box
        self.answers: list[RecordedAnswer] = []

    def get(self, session: int, url: str, message: str = "") -> None:
        page = parse(f"<html><body>{self.box.format(message)}<h1>{url.split('/')[1]}</h1></body></html>")
        self._add(session, PortRequest("GET", url, None), PortAnswer(200, "recorded", page=page))

    def post(self, session: int, url: str, location: str, **form: str) -> None:
        self._add(session, PortRequest("POST", url, tuple(form.items())), PortAnswer(302, "recorded", location=location))

    def _add(self, session: int, request: PortRequest, answer: PortAnswer) -> None:
        at = BEGIN + timedelta(hours=session, seconds=len(self.answers))
        self.answers.append(RecordedAnswer(f"s{session}", "ann", at, request, answer))


def recorded(box: str = BOX) -> list[RecordedAnswer]:
    desk = Desk(box)
    for n in range(8):
        desk.post(n, "/in", "/shelf", name="ann")
        desk.get(n, "/shelf", HELLO)   # always after a login
        desk.get(n, "/boxes")
        desk.get(n, "/help")
        desk.get(n, f"/box/{n}")
        desk.post(n, f"/box/{n}", f"/box/{n}", name=f"b{n}xy")
        desk.get(n, f"/box/{n}", SAVED.format(f"b{n}xy"))
        desk.get(n, "/old")
    return desk.answers


def shown(pages: InducedPages, *requests: PortRequest) -> Iterator[str]:
    """Yield what the box says on each page."""
    own: list[SiteVisit] = []
    for number, request in enumerate(requests):
        answered = pages.answer(request, "ann", BEGIN + timedelta(days=3, seconds=number), own)
        assert answered is not None
        own.append(answered[1])
        if answered[0].page is not None:
            box = next(each for each in answered[0].page.elements() if each.attributes.get("class") == "area")
            assert not answered[0].unknown
            yield "".join(child for each in box.elements() for child in each.children if isinstance(child, str))


def written(folder: Path, answers: list[RecordedAnswer]) -> InducedPages:
    write_site(folder, answers, PATHS)
    return InducedPages.load(folder)


def get(url: str) -> PortRequest:
    return PortRequest("GET", url, None)


def test_a_message_is_said_once_and_on_any_page(tmp_path: Path) -> None:
    pages = written(tmp_path, recorded())
    login, save = PortRequest("POST", "/in", (("name", "ann"),)), PortRequest("POST", "/box/3", (("name", "lamp"),))
    assert list(shown(pages, login, get("/shelf"), get("/shelf"))) == ["Hello again", ""]
    assert list(shown(pages, login, get("/help"), get("/boxes"), get("/shelf"))) == ["Hello again", "", ""]
    assert list(shown(pages, login, get("/boxes"), save, get("/old"), get("/help"))) == ["Hello again", "Saved as lamp.", ""]


def test_a_box_without_an_id_stays_as_its_own_route_has_it(tmp_path: Path) -> None:
    pages = written(tmp_path, recorded('<div class="area">{}</div>'))
    login = PortRequest("POST", "/in", (("name", "ann"),))
    assert list(shown(pages, login, get("/shelf"), get("/help"))) == ["Hello again", ""]
    assert list(shown(pages, login, get("/help"))) == [""]
