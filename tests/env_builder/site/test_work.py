"""Who was asked what, did what and said what; and which pieces of work did what they were asked."""

from __future__ import annotations

from env_builder.runtime.site.form_ledger import FormLaws
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.site.agreement import WorkKinds, WorkVerdict
from env_builder.site.app import LearntSite
from env_builder.site.recorded import page_sessions
from env_builder.site.work import ChatMessage, FileEvent, PieceOfWork, SiteWork
from extractors.routes import templates
from tests.env_builder.site.cards import CardSite, Recorder


def learnt(recorder: Recorder) -> LearntSite:
    sessions = page_sessions(recorder.events)
    paths = templates([request.path for session in sessions for request in session.requests])
    return LearntSite(sessions, {path: template for path, (template, _) in paths.items()})


def pieces(recorder: Recorder) -> list[PieceOfWork]:
    site = learnt(recorder)
    messages = [ChatMessage(str(index), *each) for index, each in enumerate(recorder.messages)]
    return SiteWork(SiteRoutes(site.templates), FormLaws(site.law_rows), messages,
                    [FileEvent(*each) for each in recorder.files]).pieces(site.sessions)


def verdicts(recorder: Recorder) -> list[WorkVerdict]:
    return WorkKinds(pieces(recorder)).verdicts()


def comments(recorder: Recorder, n: int = 6) -> None:
    """Let people comment as they are asked to."""
    for number in range(101, 101 + n):
        recorder.sit_down("ivo" if number % 2 else "rut", f"please comment on card {number}: lens {number} is dull")
        recorder.change(number, "comment", text=f"lens {number} is dull")


def sheets(recorder: Recorder, n: int = 6, month: str = "January 2026") -> None:
    for number in range(101, 101 + n):
        recorder.sit_down("ivo", f"file the sheets of {month} and list them, card {number}")
        recorder.ask("GET", f"/cards/?title={recorder.site.cards[number]['title']}")
        recorder.ask("GET", f"/cards/{number}/")
        recorder.ask("GET", f"/cards/{number}/sheet")
        recorder.move(f"sheet-{number}.pdf", f"/srv/2026-01/{number}.pdf")
        recorder.say(f"Filed in 2026-01: {number}.pdf")


def test_laws_of_forms_are_learnt() -> None:
    recorder = Recorder(CardSite())
    comments(recorder)
    for number in range(101, 107):
        recorder.sit_down("ivo")
        recorder.change(number, "edit", title="Torch", level="high")
    laws = {(law["route"], law["constants"].get("work")): law for law in learnt(recorder).law_rows}
    assert laws["/cards/{cards_1}/", "comment"]["effect"] == "append"
    assert laws["/cards/{cards_1}/", "edit"]["effect"] == "update"
    assert laws["/cards/{cards_1}/", "edit"]["visible"] == ["level", "title"]
    assert [law["effect"] for (route, _), law in laws.items() if route == "/login/"] == ["session"]


def test_work_is_joined_with_its_ask_its_files_and_its_notes() -> None:
    recorder = Recorder(CardSite())
    sheets(recorder)
    work = pieces(recorder)
    assert [piece.person for piece in work] == ["ivo"] * 6
    assert all(piece.ask is not None and f"card {101 + index}" in piece.ask.text for index, piece in enumerate(work))
    assert [piece.filed for piece in work] == [(f"/srv/2026-01/{101 + index}.pdf",) for index in range(6)]
    assert [each.filed for piece in work for each in piece.downloads] == [f"/srv/2026-01/{101 + n}.pdf" for n in range(6)]
    assert [len(piece.notes) for piece in work] == [1] * 6


def test_all_that_did_as_asked_is_right() -> None:
    recorder = Recorder(CardSite())
    comments(recorder)
    assert [verdict.is_right for verdict in verdicts(recorder)] == [True] * 6


def test_the_wrong_thing_and_the_wrong_words_are_wrong() -> None:
    recorder = Recorder(CardSite())
    comments(recorder)
    recorder.sit_down("rut", "please comment on card 103: lens 103 is gone")
    recorder.change(104, "comment", text="lens 103 is gone")
    recorder.sit_down("ivo", "please comment on card 105: lens 105 is bent")
    recorder.change(105, "comment", text="lens 105 is fine")
    entity, words = verdicts(recorder)[-2:]
    assert entity.is_right is False and [law[-1] for law in entity.broken] == ["entity"]
    assert words.is_right is False and [law[-1] for law in words.broken] == ["text"]


def test_work_that_was_never_done_is_wrong() -> None:
    recorder = Recorder(CardSite())
    comments(recorder)
    recorder.sit_down("rut", "please comment on card 102: lens 102 is off")
    recorder.ask("GET", "/cards/102/")
    recorder.ask("POST", "/cards/102/", (("work", "comment"), ("text", "")))
    assert verdicts(recorder)[-1].is_right is False


def test_the_wrong_folder_and_a_list_that_lies_are_wrong() -> None:
    recorder = Recorder(CardSite())
    sheets(recorder)
    for folder, listed in (("2026-02", "102.pdf"), ("2026-01", "103.pdf")):
        recorder.sit_down("ivo", "file the sheets of January 2026 and list them, card 102")
        recorder.ask("GET", "/cards/?title=Lamp 1122")
        recorder.ask("GET", "/cards/102/")
        recorder.ask("GET", "/cards/102/sheet")
        recorder.move("sheet-102.pdf", f"/srv/{folder}/102.pdf")
        recorder.say(f"Filed in 2026-01: {listed}")
    folder_verdict, list_verdict = verdicts(recorder)[-2:]
    assert folder_verdict.broken == (("month", "folder"),) and list_verdict.broken == (("listed",),)
    assert [verdict.is_right for verdict in verdicts(recorder)[:6]] == [True] * 6


def test_a_complaint_without_a_broken_law_leaves_it_open() -> None:
    recorder = Recorder(CardSite())
    comments(recorder)
    recorder.reply("this is wrong, look again")
    assert [verdict.is_right for verdict in verdicts(recorder)] == [True] * 5 + [None]


def test_nothing_is_judged_without_an_ask_or_with_too_few_of_a_kind() -> None:
    recorder = Recorder(CardSite())
    comments(recorder, 3)
    recorder.sit_down("rut")
    recorder.change(101, "comment", text="nobody asked")
    assert [verdict.is_right for verdict in verdicts(recorder)] == [None] * 4
