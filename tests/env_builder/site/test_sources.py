"""Which source gives a place its value, learnt by counting: each has a place that only it gets right."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from env_builder.runtime.site.learnt import LearntSources
from env_builder.runtime.site.port import PortRequest
from env_builder.runtime.site.trees import Element, encode
from env_builder.runtime.site.visits import KIND, Place, SiteVisit, Value, arguments_of
from env_builder.site.learning import SourceLearner

TEXT: Place = "0"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass(frozen=True)
class VisitOfSession(SiteVisit):
    session: str = ""


def learnt(visits: Sequence[VisitOfSession]) -> LearntSources:
    sessions: dict[str, list[SiteVisit]] = defaultdict(list)
    for each in visits:
        sessions[each.session].append(each)
    return SourceLearner(sessions.values()).learnt()


def visit(session: str, minute: int, value: Value, url: str = "/box/1", *, user: str = "ann", route: str = "box",
          is_write: bool = False, arguments: Mapping[str, str] | None = None, kind: str = "200 page") -> VisitOfSession:
    return VisitOfSession(user, MONDAY + timedelta(minutes=minute), route, url, is_write, not is_write, arguments or {},
                     {KIND: kind, TEXT: value}, session=session)


def text(model: LearntSources, request: SiteVisit, *own: SiteVisit) -> Value:
    answer = model.answer(request, own)
    assert answer is not None
    return answer.values[TEXT]


def test_what_is_mostly_the_same_is_constant() -> None:
    model = learnt([visit(f"s{n}", n, "shop", f"/box/{n}") for n in range(4)])
    assert text(model, visit("new", 60, None, "/box/9")) == "shop"


def test_a_text_with_the_id_of_the_path_is_made_for_a_new_id() -> None:
    model = learnt([visit(f"s{n}", n, f"Box {n} of the store", f"/box/{n}", arguments={"box_1": f"{n}"})
                       for n in range(20, 24)])
    assert text(model, visit("new", 60, None, "/box/99", arguments={"box_1": "99"})) == "Box 99 of the store"


@pytest.mark.parametrize("day", ["2nd March 2026", "2 Mar 2026", "March 2, 2026", "2026-03-02", "02.03.2026"])
def test_the_day_is_written_as_pages_write_it(day: str) -> None:
    new = {"2nd March 2026": "21st April 2026", "2 Mar 2026": "21 Apr 2026", "March 2, 2026": "April 21, 2026",
           "2026-03-02": "2026-04-21", "02.03.2026": "21.04.2026"}[day]
    model = learnt([visit(f"s{n}", n, f"It is {day}") for n in range(4)]
                      + [visit(f"t{n}", 50 * 1440 + n, f"It is {new}") for n in range(4)])
    later = visit("new", 51 * 1440, None)
    assert later.at.day == 22
    assert text(model, later) == f"It is {new.replace('21st', '22nd').replace('21', '22')}"


def test_the_page_before_is_where_a_form_leads_back_to() -> None:
    training = []
    for number in range(4):
        training += [visit(f"s{number}", 10 * number, "page", f"/shelf/{number}", route=f"shelf{number}"),
                     visit(f"s{number}", 10 * number + 1, f"/shelf/{number}", "/add", route="add", is_write=True)]
    own = visit("new", 60, "page", "/shelf/77", route="shelf7")
    assert text(learnt(training), visit("new", 61, None, "/add", route="add", is_write=True), own) == "/shelf/77"


def test_a_form_leads_to_the_address_that_its_own_page_held_however_long() -> None:
    def login(session: str, minute: int, address: str) -> VisitOfSession:
        return replace(visit(session, minute, None, "/in", route="in"), values={KIND: "200 page", "1/value": address})

    training = []
    for number in range(5):
        training += [login(f"s{number}", 10 * number, f"/shelf/{number}"),
                     visit(f"s{number}", 10 * number + 1, f"/shelf/{number}", "/in", route="taken", is_write=True)]
    for long in ("/shelf/77?page=2", f"/shelf/77?title={'x' * 60}&page=2"):
        request = visit("new", 91, None, "/in", route="taken", is_write=True)
        assert text(learnt(training), request, login("new", 90, long)) == long


def test_what_changes_from_session_to_session_is_as_the_own_session_had_it() -> None:
    training = [visit(f"s{n}", 10 * n + look, f"basket {n}", f"/box/{look}") for n in range(6) for look in range(4)]
    own = visit("new", 90, "basket new", "/box/0")
    assert text(learnt(training), visit("new", 91, None, "/box/3"), own) == "basket new"


def test_what_users_see_of_themselves_is_as_the_same_user_had_it() -> None:
    training = [visit(f"{user}{n}", 10 * n + offset, user, user=user)
                for n in range(5) for offset, user in enumerate(("ann", "bea"))]
    assert text(learnt(training), visit("new", 90, None, user="ann")) == "ann"
    assert text(learnt(training), visit("new", 90, None, user="bea")) == "bea"


def test_what_changes_with_time_is_as_anybody_had_it_last_and_never_later_than_the_request() -> None:
    training = [visit(f"s{n}", 10 * n, f"price {n // 3}", user=f"user {n}") for n in range(12)]
    assert text(learnt(training), visit("new", 200, None, user="new")) == "price 3"
    assert text(learnt(training), visit("new", 35, None, user="new")) == "price 1"


def test_a_page_after_a_form_is_a_case_of_its_own() -> None:
    training = []
    for number in range(6):
        training += [visit(f"s{number}", 10 * number, "", "/box"),
                     visit(f"s{number}", 10 * number + 1, "/box", "/save", route="save", is_write=True),
                     visit(f"s{number}", 10 * number + 2, "Saved.", "/box"), visit(f"s{number}", 10 * number + 3, "", "/box")]
    model, first = learnt(training), visit("new", 90, "", "/box")
    saved = visit("new", 91, "/box", "/save", route="save", is_write=True)
    assert text(model, visit("new", 91, None, "/box"), first) == ""
    assert text(model, visit("new", 92, None, "/box"), first, saved) == "Saved."


def test_a_route_that_was_never_requested_has_no_answer() -> None:
    assert learnt([visit("s", 0, "x")]).answer(visit("new", 1, None, "/y", route="other"), []) is None


def test_of_several_kinds_of_answers_the_kind_is_predicted_first() -> None:
    training = [visit(f"s{n}", 10 * n, "x", f"/box/{n % 2}", kind=f"{404 if n % 2 else 200} page") for n in range(12)]
    answer = learnt(training).answer(visit("new", 300, None, "/box/1"), [])
    assert answer is not None
    assert answer.values[KIND] == "404 page"


def test_the_frame_of_all_pages_says_whose_session_it_is() -> None:
    pairs = [(user, route) for route in ("box", "shelf") for user in ("ann", "bea")]
    training = [visit(f"{user}{n}", 10 * n + at, f"{user} Smith", f"/{route}/{n}", user=user, route=route)
                for n in range(4) for at, (user, route) in enumerate(pairs)]
    own = visit("new", 90, "cid Smith", "/box/77", user="cid")
    assert text(learnt(training), visit("new", 91, None, "/shelf/8", user="cid", route="shelf"), own) == "cid Smith"


def written(session: str, minute: int, note: str, n_notes: int, user: str) -> list[VisitOfSession]:
    """Return a look at a page, a note that is written on it, and the page with the note."""
    notes = [f"note {session}{n}" for n in range(n_notes)]
    before, after = ('[' + ",".join(f'["li",{{}},["{each}"]]' for each in rows) + ']' for rows in (
        notes, [*notes, f"{user}: {note}"]))
    url, form = f"/box/{session}", {"form note": note}
    return [visit(session, minute, before, url, user=user),
            visit(session, minute + 1, None, url, user=user, route="write", is_write=True, arguments=form, kind="302 redirect"),
            visit(session, minute + 2, after, url, user=user)]


def test_a_row_that_a_form_adds_stands_behind_those_of_the_last_look() -> None:
    training = [each for n, user in enumerate(("ann", "bea", "cid", "dan", "eve", "fay"))
                for each in written(f"s{n}", 10 * n, f"word{n}", n % 3, user)]
    *own, after = written("new", 90, 'quite "new"', 2, "gus")
    expected = after.values[TEXT]
    assert text(learnt(training), visit("new", 92, None, "/box/new", user="gus"), *own) == (
        expected or "").replace('quite "new"', 'quite \\"new\\"')


def test_what_belongs_to_a_name_is_as_on_the_last_page_of_that_name() -> None:
    mails = {"Ann Lee": "ann@x.test", "Bea Fox": "bea@y.test", "Cid Ray": "cid@z.test"}
    training = []
    for n in range(12):
        name, mail = list(mails.items())[n % 3]
        page = visit(f"s{n}", 10 * n, name, f"/order/{n}", arguments={"query name": name})
        training.append(replace(page, values={**page.values, "1": mail}))
    answer = learnt(training).answer(visit("new", 500, None, "/order/88", arguments={"query name": "Bea Fox"}), [])
    assert answer is not None
    assert (answer.values[TEXT], answer.values["1"]) == ("Bea Fox", "bea@y.test")


def test_a_page_repeats_what_the_row_that_led_to_it_said() -> None:
    def listed(session: str, minute: int, number: int) -> list[VisitOfSession]:
        name = f"Person {session}"
        rows = f'[["tr",{{}},[["td",{{}},["{name}"]],["td",{{}},[["a",{{"href":"/order/{number}/"}},["open"]]]]]]]'
        return [visit(session, minute, rows, "/orders/", route="orders"), visit(session, minute + 1, name, f"/order/{number}/")]

    training = [each for n in range(5) for each in listed(f"s{n}", 10 * n, n)]
    rows, page = listed("new", 90, 77)
    assert text(learnt(training), replace(page, values={}), rows) == "Person new"


def test_two_forms_at_one_address_are_told_apart_by_the_choice_that_they_post() -> None:
    training = []
    for n in range(8):
        form = {"form action": "open" if n % 2 else "shut", "form note": f"note {n}"}
        training += [visit(f"s{n}", 10 * n, "", "/box"),
                     visit(f"s{n}", 10 * n + 1, "/box", "/box", route="act", is_write=True, arguments=form),
                     visit(f"s{n}", 10 * n + 2, "The box is open." if n % 2 else "The box is shut.", "/box")]
    model = learnt(training)
    for action in ("open", "shut"):
        own = visit("new", 90, "", "/box"), visit("new", 91, "/box", "/box", route="act", is_write=True,
                                                  arguments={"form action": action, "form note": "new"})
        assert text(model, visit("new", 92, None, "/box"), *own) == f"The box is {action}."


def test_a_request_for_something_that_nobody_met_has_an_answer_of_its_own() -> None:
    training = []
    for n in range(6):
        training += [visit(f"s{n}", 10 * n, "box 17", "/boxes/", route="boxes"),
                     visit(f"s{n}", 10 * n + 1, "none" if n % 2 else "box", f"/find?box={n}99" if n % 2 else "/find?box=17",
                           route="find", kind="404 page" if n % 2 else "200 page")]
    model, first = learnt(training), visit("new", 299, "box 17", "/boxes/", route="boxes")
    kinds = [model.answer(visit("new", 300, None, f"/find?box={box}", route="find"), [first]) for box in ("17", "555")]
    assert [each.values[KIND] for each in kinds if each is not None] == ["200 page", "404 page"]


def test_a_text_counts_the_rows_of_its_page() -> None:
    def counted(session: str, minute: int, n_rows: int, **options: str) -> VisitOfSession:
        rows = "[" + ",".join(f'["li",{{}},["row {session} {number}"]]' for number in range(n_rows)) + "]"
        page = visit(session, minute, f"{n_rows} boxes", "/boxes", **options)
        return replace(page, values={**page.values, "1": rows})

    training = [counted(f"s{n}", 10 * n, 3 + n) for n in range(8)]
    answer = learnt(training).answer(replace(visit("new", 500, None, "/boxes"), values={}), [])
    assert answer is not None
    assert len(json.loads(answer.values["1"] or "")) == 10
    assert answer.values[TEXT] == "10 boxes"


def test_a_list_shows_what_the_session_changed_on_the_page_of_a_row() -> None:
    def listed(session: str, minute: int, states: Mapping[int, str]) -> VisitOfSession:
        rows = ",".join(f'["li",{{}},[["a",{{"href":"/box/{number}"}},["box {number}"]]," {state}"]]'
                        for number, state in states.items())
        return visit(session, minute, f"[{rows}]", "/boxes", route="boxes")

    def changed(session: str, minute: int, states: dict[int, str], number: int) -> list[VisitOfSession]:
        after = {**states, number: f"shut by {session}"}
        return [listed(session, minute, states), visit(session, minute + 1, after[number], f"/box/{number}"),
                listed(session, minute + 2, after)]

    states = {17: "open", 18: "open", 19: "open"}
    training = [each for n in range(6) for each in changed(f"s{n}", 10 * n, states, 17 + n % 3)]
    *own, after = changed("new", 500, states, 18)
    answer = learnt(training).answer(replace(after, values={}, is_page=False), own)
    assert answer is not None
    assert json.loads(answer.values[TEXT] or "") == json.loads(after.values[TEXT] or "")


def test_an_address_lists_what_a_form_changed_of_a_thing_called_by_a_word_and_a_number() -> None:
    def posted(session: str, minute: int, number: str, changed: tuple[str, ...], where: Value) -> VisitOfSession:
        request = PortRequest("POST", f"/box{number}", (("level", "3"), ("place", "b")), changed)
        arguments = arguments_of(request, {"box_1": f"box{number}"})
        made = visit(session, minute, None, request.url, is_write=True, arguments=arguments)
        return replace(made, values={KIND: "302 redirect", TEXT: where})

    model = learnt([posted(f"s{n}", n, f"{n}", (name,), f"/box{n}?note=box%20{n}%20{name}%20saved")
                    for n, name in enumerate(["level", "place", "level", "level", "place"], 21)])
    assert text(model, posted("new", 90, "77", ("place",), None)) == "/box77?note=box%2077%20place%20saved"
    assert text(model, posted("new", 91, "78", ("place", "level"), None)) == "/box78?note=box%2078%20place%2C%20level%20saved"


def test_a_row_that_is_a_link_without_a_text_tells_nothing_and_breaks_nothing() -> None:
    rows = '[["tr", {}, [["a", {"href": "/box/7"}, []]]], ["tr", {}, [["a", {"href": "/box/8"}, ["Lens"]]]]]'
    model = learnt([each for n in range(4) for each in (
        visit(f"s{n}", n, rows, "/boxes", route="boxes"), visit(f"s{n}", n + 20, "Box", "/box/7", arguments={"box_1": "7"}))])
    assert text(model, visit("new", 60, None, "/box/7", arguments={"box_1": "7"})) == "Box"


@pytest.mark.parametrize(("listed", "link", "shown"), [
    ("/desk/boxes", "box/7", "/desk/box/7"), ("/desk/?page=all", "?page=box&amp;id=7", "/desk/?page=box&id=7"),
    ("/desk/?page=all", "/desk/?page=box&amp;id=7", "/desk/?page=box&id=7")])
def test_a_row_leads_where_its_link_does_on_its_page(listed: str, link: str, shown: str) -> None:
    def rows(words: dict[str, str]) -> str:
        return encode([Element("tr", {}, [Element("a", {"href": link.replace("&amp;", "&").replace("7", number)}, ["go"]),
                                          Element("td", {}, [word])]) for number, word in words.items()])

    words = {number: f"Lens {number} of glass" for number in ("7", "8", "9", "6")}
    training = [each for n, (number, word) in enumerate(words.items()) for each in (
        visit(f"s{n}", 10 * n, rows(words), listed, route="list"),
        visit(f"s{n}", 10 * n + 1, f"({word})", shown.replace("7", number)))]
    model, new = learnt(training), {"5": "Prism of ice"}
    own = visit("new", 90, rows(new), listed, route="list")
    assert text(model, visit("new", 91, None, shown.replace("7", "5")), own) == "(Prism of ice)"


def _adds(session: str, minute: int, location: Value, url: str, **arguments: str) -> VisitOfSession:
    return visit(session, minute, location, url, route=f"add {url.split('/')[1]}", is_write=True, kind="302 redirect",
                 arguments={"url": url, "path": url} | {f"form {name}": each for name, each in arguments.items()})


def test_a_form_makes_the_next_number_of_the_site_whoever_made_the_last() -> None:
    def made(box: int) -> str:
        return f"/box{box}?said=box%20{box}%20added%0Anote%20{box + 30}%20added"

    model = learnt([_adds(f"s{n}", 10 * n, made(n), "/boxes") for n in range(3, 12)])
    assert text(model, _adds("new", 201, None, "/boxes"), _adds("new", 200, made(12), "/boxes")) == made(13)
    assert text(model, _adds("new", 55, None, "/boxes")) == made(6), "what is made later does not count"


def test_a_form_makes_the_next_number_of_what_it_is_about() -> None:
    training = [_adds(f"s{box} {n}", 100 * n + box, f"/box/{box}#note:{n}", f"/box/{box}")
                for n in range(1, 5) for box in range(20, 20 + 2 * (6 - n), 2)]
    model = learnt(training)
    assert text(model, _adds("new", 900, None, "/box/20")) == "/box/20#note:5"
    assert text(model, _adds("new", 900, None, "/box/28")) == "/box/28#note:2"
    assert text(model, _adds("new", 900, None, "/box/88")) == "/box/88#note:1"


def test_a_choice_that_was_made_once_is_trusted_as_what_holds_for_all_choices() -> None:
    training = [_adds(f"s{n}", 10 * n, f"/box/{n}/done", f"/box/{n}", size=size)
                for n, size in zip(range(20, 39), ["small", "large", "huge"] * 6 + ["odd"], strict=True)]
    training.insert(-1, replace(training[0], session="s38", at=training[-1].at - timedelta(minutes=1)))
    sessions: dict[str, list[SiteVisit]] = defaultdict(list)
    for each in training:
        sessions[each.session].append(each)
    learner = SourceLearner(sessions.values())
    odd = [sources[0] for key, sources in learner.sources.items() if key.place == TEXT and "size=odd" in (key.case or "")]
    assert odd
    assert all(each.trust > 0.9 and each.source[0] == "pattern" for each in odd)


def test_a_choice_that_once_led_elsewhere_does_not_go_by_what_holds_for_all_choices() -> None:
    training = [_adds(f"s{n}", 10 * n, f"/box/{n}/{'lost' if size == 'odd' else 'done'}", f"/box/{n}", size=size)
                for n, size in zip(range(20, 40), ["small", "large"] * 9 + ["odd", "odd"], strict=True)]
    answer = learnt(training).answer(_adds("new", 900, None, "/box/77", size="odd"), [])
    assert answer is not None
    assert answer.values[TEXT] == "/box/77/lost"
