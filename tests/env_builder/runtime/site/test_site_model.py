"""A site that was learnt and written answers out of its files, and what it answers is what it goes on from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.site.form_ledger import FormLaws
from env_builder.runtime.site.model import InducedPages
from env_builder.runtime.site.port import PortAnswer, PortRequest
from env_builder.runtime.site.session import SiteAccess, SiteSession
from env_builder.runtime.site.trees import render
from env_builder.runtime.site.visits import SiteVisit
from env_builder.site.learning import RecordedAnswer, write_site
from env_builder.site.parsing import collapse, parse

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
PAGE = ('<h1>Box {box}</h1><p>It is {at:%H:%M}.</p><form><input name="csrf" value="[secret]"><input name="note">'
        '</form><p>{note}</p>')


def session(number: int, box: int) -> list[RecordedAnswer]:
    """Return a look at a box, a note that is written, and a look at the box with it."""
    name, note = f"s{number}", f"note{number}"

    def recorded(minute: int, method: str, url: str, answer: PortAnswer) -> RecordedAnswer:
        form = (("note", note),) if method == "POST" else None
        at = MONDAY + timedelta(hours=number, minutes=minute)
        return RecordedAnswer(name, "ann", at, PortRequest(method, url, form), answer)

    def page(minute: int, text: str) -> PortAnswer:
        at = MONDAY + timedelta(hours=number, minutes=minute)
        return PortAnswer(200, "recorded", page=collapse(parse(PAGE.format(box=box, at=at, note=text))))

    return [recorded(0, "GET", f"/box/{box}", page(0, "empty")),
            recorded(1, "POST", f"/box/{box}", PortAnswer(302, "recorded", f"/box/{box}")),
            recorded(2, "GET", f"/box/{box}", page(2, f"Wrote {note}."))]


def write(folder: Path) -> InducedPages:
    answers = [each for number in range(6) for each in session(number, 17 + number)]
    write_site(folder, answers, {f"/box/{17 + number}": "/box/{box_1}" for number in range(6)})
    return InducedPages.load(folder)


def test_a_written_site_answers_a_box_that_nobody_opened_and_the_note_after_it(tmp_path: Path) -> None:
    pages, at = write(tmp_path), MONDAY + timedelta(days=2, minutes=41)
    own: list[SiteVisit] = []
    look = PortRequest("GET", "/box/88")
    requests = [look, PortRequest("POST", "/box/88", (("note", "hello"),)), look]
    answers = []
    for request in requests:
        answered = pages.answer(request, "bea", at, own)
        assert answered is not None
        answers.append(answered[0])
        own.append(answered[1])
    first, posted, second = answers
    assert first.page is not None
    assert second.page is not None
    assert "<h1>Box 88</h1><p>It is 09:41.</p>" in render(first.page)
    assert (posted.status, posted.location) == (302, "/box/88")
    assert "<p>Wrote hello.</p>" in render(second.page)
    assert "[secret]" not in render(second.page)
    assert pages.answer(PortRequest("GET", "/doors/1"), "bea", at, own) is None


def test_the_same_answers_make_the_same_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name)
    assert all(file.read_bytes() == (tmp_path / "b" / file.name).read_bytes() for file in (tmp_path / "a").iterdir())


@given(method=st.sampled_from(("GET", "POST", "x")), url=st.one_of(
    st.text(max_size=30), st.sampled_from(("//[", "http://[", "/box/[", "/box/%ff?=&&a", "/box/17?note=[1]"))),
       form=st.none() | st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=3).map(tuple))
def test_no_request_breaks_a_site(method: str, url: str, form: tuple[tuple[str, str], ...] | None, site: InducedPages) -> None:
    own: list[SiteVisit] = []
    for _ in range(2):
        answered = site.answer(PortRequest(method, url, form), "ann", MONDAY + timedelta(days=3), own)
        own += [answered[1]] if answered is not None else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> InducedPages:
    return write(tmp_path_factory.mktemp("site"))


def test_texts_that_look_like_rows_are_texts(tmp_path: Path) -> None:
    texts = ["[Draft] of a long text without end", '["a","b"]', "[1, 2, 3, 4, 5, 6, 7, 8, 9]", "[[[]]]", '[["li",{},3]]']
    answers = []
    for number, text in enumerate(texts * 2):
        page = collapse(parse(f"<h1>{text}</h1><a href='http://['>x</a>" + "<ul><li><a href='/17'>one</a></ul>" * (number % 2)))
        request, at = PortRequest("GET", f"/text/{number % 5}"), MONDAY + timedelta(hours=number)
        answers.append(RecordedAnswer(f"s{number}", "ann", at, request, PortAnswer(200, "recorded", page=page)))
    write_site(tmp_path, answers, {f"/text/{number}": "/text/{text_1}" for number in range(5)})
    pages = InducedPages.load(tmp_path)
    for number in range(5):
        answered = pages.answer(PortRequest("GET", f"/text/{number}"), "ann", MONDAY + timedelta(days=3), [])
        assert answered is not None
        assert answered[0].page is not None
        assert "<h1" in render(answered[0].page)


def shelf(number: int, query: str, n_boxes: int) -> RecordedAnswer:
    """Return a look at a shelf."""
    boxes = "".join(f'<li><a href="/box/{box}">box {box}</a></li>' for box in range(number, number + n_boxes))
    page = collapse(parse(f'<h1>Shelf</h1><p>for ann</p><ul>{boxes}</ul><form><input name="word" value="{query[5:]}"></form>'))
    return RecordedAnswer(f"s{number}", "ann", MONDAY + timedelta(hours=number), PortRequest("GET", f"/shelf?{query}"),
                          PortAnswer(200, "recorded", page=page))


def test_a_query_with_a_new_name_gets_the_likest_page_without_what_that_had_once(tmp_path: Path) -> None:
    pages = [shelf(number, f"word=w{number % 3}", 1 + number % 3) for number in range(9)]
    write_site(tmp_path, [*pages, shelf(9, "page=2", 2)], {"/shelf": "/shelf", "/box": "/box"})
    site, at = InducedPages.load(tmp_path), MONDAY + timedelta(days=2)
    answered = site.answer(PortRequest("GET", "/shelf?word=axe&sort=up"), "ann", at, [])
    assert answered is not None
    answer, visit = answered
    assert answer.page is not None
    assert (answer.status, answer.tier, visit.route) == (200, "unknown", "GET /shelf?word")
    html = render(answer.page)
    assert "<h1>Shelf</h1><p>for ann</p>" in html
    assert '<ul data-unknown="rows">' in html
    assert 'value="axe"' in html
    assert site.answer(PortRequest("POST", "/shelf?word=axe&sort=up", ()), "ann", at, []) is None
    assert site.answer(PortRequest("GET", "/shelves?word=axe"), "ann", at, []) is None


def test_what_others_did_after_the_start_of_an_episode_is_not_known_in_it(tmp_path: Path) -> None:
    pages, at = write(tmp_path), MONDAY + timedelta(days=2)
    look = PortRequest("GET", "/box/19")
    early = pages.answer(look, "bea", at, [], until=MONDAY)
    late = pages.answer(look, "bea", at, [], until=at)
    assert early is not None
    assert late is not None
    assert early[0].page is not None
    assert late[0].page is not None
    assert "note2" not in render(early[0].page)


def logins(number: int) -> list[RecordedAnswer]:
    """Return a login with a wrong password, in every second session, and one with the right one."""
    name, user = f"s{number}", f"user{number}"
    form = (("name", user), ("password", "[secret]"), ("csrf", "[secret]"))
    field = '<form method="post" action="/in"><input name="name" value="{value}"><input name="password" type="password"></form>'
    asked = PortAnswer(200, "recorded", page=collapse(parse(field.format(value=""))))
    refused = PortAnswer(200, "recorded", page=collapse(parse(
        f"<p>No such name and password.</p>{field.format(value=user)}")))
    answers = [("GET", asked), *([("POST", refused)] if number % 2 else []), ("POST", PortAnswer(302, "recorded", "/home"))]
    return [RecordedAnswer(name, user, MONDAY + timedelta(hours=number, minutes=minute),
                           PortRequest(method, "/in", form if method == "POST" else None), answer)
            for minute, (method, answer) in enumerate(answers)]


@pytest.mark.parametrize("n_sessions, is_recorded", [(6, True), (1, False)])
def test_a_wrong_password_is_answered_as_wrong_ones_were(n_sessions: int, is_recorded: bool, tmp_path: Path) -> None:
    write_site(tmp_path, [each for number in range(n_sessions) for each in logins(number)], {"/in": "/in"})
    access = SiteAccess({"zoe": "right"}, {"zoe": "zoe"}, {}, frozenset({"/in"}), frozenset({"password"}), frozenset({"/in"}))
    session = SiteSession(InducedPages.load(tmp_path), FormLaws(), access, {}, MONDAY + timedelta(days=2), lambda url: None)
    shown = session.ask(PortRequest("GET", "/in"))
    answers = [session.ask(PortRequest("POST", "/in", (("name", name), ("password", password), ("csrf", "x"))))
               for name, password in (("zoe", "wrong"), ("nobody", "wrong"), ("zoe", "right"))]
    assert shown.page is not None and answers[0].page is not None
    assert ("No such name" in render(answers[0].page)) == is_recorded
    assert 'type="password"' in render(answers[0].page) and "user1" not in render(answers[0].page)
    assert 'value="zoe"' in render(answers[0].page) or not is_recorded
    assert answers[1].page is not None and ('value="nobody"' in render(answers[1].page)) == is_recorded
    assert answers[2].location == "/home"
