"""A form that a site refuses is answered as refused ones were; where none is on record, what it gets is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.site.form_ledger import FormLaws
from env_builder.runtime.site.model import InducedPages
from env_builder.runtime.site.port import PortAnswer, PortRequest
from env_builder.runtime.site.session import SiteAccess, SiteSession
from env_builder.runtime.site.trees import render
from env_builder.runtime.site.visits import GIVEN, arguments_of, chosen
from env_builder.site.learning import RecordedAnswer, write_site
from env_builder.site.parsing import collapse, parse

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
Pairs = tuple[tuple[str, str], ...]
SAVE, LOOK = ("save", "Save"), ("look", "Look first")


def page(title: str, message: str) -> PortAnswer:
    return PortAnswer(200, "recorded", page=collapse(parse(
        f"<p>{message}</p><form method=post action=/note><input name=title value='{title}'><input name=text>"
        "<button name=save value=Save>Save</button><button name=look value='Look first'>Look</button></form>")))


def sent(title: str, text: str, button: tuple[str, str]) -> Pairs:
    return ("title", title), ("text", text), button


def answer(form: Pairs) -> PortAnswer:
    values = dict(form)
    if "look" in values:
        return page(values["title"], "So it will look")
    return PortAnswer(302, "recorded", "/notes") if values["text"] else page(values["title"], "A text is needed")


def notes(n_refused: int, n_looked: int) -> Iterator[RecordedAnswer]:
    """Yield the requests of ten sessions: a form, which some first send without a text or have a look at, and a list."""
    for number in range(10):
        title, at = f"title{number}", MONDAY + timedelta(hours=number)
        forms = [sent(title, "", SAVE)] * (number < n_refused) + [sent(title, f"text{number}", LOOK)] * (number < n_looked)
        asked = [(PortRequest("GET", "/note"), page("", "Write")),
                 *((PortRequest("POST", "/note", form), answer(form)) for form in [*forms, sent(title, f"text{number}", SAVE)]),
                 (PortRequest("GET", "/notes"), PortAnswer(200, "recorded", page=collapse(parse("<h1>Notes</h1>"))))]
        for minute, (request, answered) in enumerate(asked):
            yield RecordedAnswer(f"s{number}", "ann", at + timedelta(minutes=minute), request, answered)


@cache
def site(n_refused: int, n_looked: int) -> InducedPages:
    with TemporaryDirectory() as folder:
        write_site(Path(folder), list(notes(n_refused, n_looked)), {"/note": "/note", "/notes": "/notes"})
        return InducedPages.load(Path(folder))


def play(pages: InducedPages, *forms: Pairs) -> tuple[SiteSession, PortAnswer]:
    """Send forms after a look at the page; return the session and the last answer."""
    access, start = SiteAccess({}, {}, {}, frozenset()), MONDAY + timedelta(days=2)
    session = SiteSession(pages, FormLaws(), access, {}, start, lambda url: None)
    session.ask(PortRequest("GET", "/note"))
    return session, [session.ask(PortRequest("POST", "/note", form)) for form in forms][-1]


def test_what_other_forms_lacked_that_were_refused_is_refused_with_what_was_typed() -> None:
    session, answered = play(site(3, 0), sent("mine", "", SAVE))
    assert (answered.status, answered.tier) == (200, "induced") and answered.page is not None
    assert "A text is needed" in render(answered.page) and 'value="mine"' in render(answered.page)
    assert session.ledger.is_empty, "nothing was changed"
    assert session.ask(PortRequest("POST", "/note", sent("mine", "now", SAVE))).location == "/notes"
    assert not session.ledger.is_empty


def test_the_button_decides() -> None:
    session, answered = play(site(3, 6), sent("mine", "some", LOOK))
    assert answered.page is not None and "So it will look" in render(answered.page)
    assert session.ledger.is_empty
    assert play(site(3, 6), sent("mine", "some", SAVE))[1].location == "/notes"
    _, refused = play(site(3, 6), sent("mine", "", SAVE))
    assert refused.page is not None and "A text is needed" in render(refused.page)


@pytest.mark.parametrize("form", [sent("mine", "", SAVE), sent("mine", "some", LOOK), (("title", "mine"), SAVE)],
                         ids=["empty", "a button that nobody pressed", "left out"])
def test_what_nobody_sent_may_be_refused(form: Pairs) -> None:
    session, answered = play(site(0, 0), form)
    assert answered.tier == "unknown" and session.is_unknown


@pytest.mark.parametrize(("usual", "text", "is_known"), [
    ("1{}", "77", True), ("1{}", "seven", False), ("2026-03-1{}", "2026-04-01", True), ("2026-03-1{}", "soon", False),
    ("a{}@x.example", "bea", False), ("note{}", "77", True)])
def test_what_was_always_a_number_a_day_or_an_address_may_not_be_another_text(
        usual: str, text: str, is_known: bool, tmp_path: Path) -> None:
    answers = [RecordedAnswer(f"s{number}", "ann", MONDAY + timedelta(hours=number), PortRequest(
        "POST", "/note", sent(f"title{number}", usual.format(number), SAVE)), PortAnswer(302, "recorded", "/notes"))
               for number in range(8)]
    write_site(tmp_path, answers, {"/note": "/note"})
    _, answered = play(InducedPages.load(tmp_path), sent("mine", text, SAVE))
    assert answered.tier == ("induced" if is_known else "unknown")


def test_one_session_that_was_refused_does_not_make_its_form_accepted() -> None:
    assert play(site(1, 0), sent("mine", "", SAVE))[1].tier == "unknown"


@given(title=st.text("abcxyz ", min_size=1).filter(str.strip), text=st.text("abcxyz "), n_refused=st.sampled_from([0, 3]))
def test_a_whole_form_is_never_held_to_be_refused(title: str, text: str, n_refused: int) -> None:
    _, answered = play(site(n_refused, 0), sent(title, text, SAVE))
    is_whole = bool(text.strip())
    assert (answered.location == "/notes" and answered.tier == "induced") or not is_whole
    assert is_whole or answered.tier == ("unknown" if not n_refused else "induced")


@given(values=st.lists(st.sampled_from(["", " ", "a", "12"])))
def test_a_field_is_given_if_anything_was_sent_under_its_name(values: list[str]) -> None:
    arguments = arguments_of(PortRequest("POST", "/note", tuple(("x", value) for value in values)), {})
    assert bool(chosen(arguments, f"form x{GIVEN}")) == (any(value.strip() for value in values) or len(values) > 1)
