"""Row changes give what no page showed; forms of a server's log make what was seen before them unknown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from env_builder.runtime.site.evidence import RowVersion, SiteEvidence, UnseenWrite
from env_builder.runtime.site.model import InducedPages
from env_builder.runtime.site.port import PortAnswer, PortRequest
from env_builder.runtime.site.trees import Element
from env_builder.runtime.site.visits import KIND, SiteVisit
from env_builder.site.learning import RecordedAnswer, SourceLearner, write_site
from env_builder.site.parsing import parse
from env_builder.site.witnessing import changed_rows, unseen_writes
from extractors.privacy.credentials import is_credential

BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)
SIZES = ["tiny", "small", "large", "huge", "vast", "plain"]


def page(text: str) -> Element:
    return parse(f"<html><body><h1>Box</h1><p>{text}</p></body></html>")


def recorded(number: int, minute: int, text: str, url: str | None = None) -> RecordedAnswer:
    return RecordedAnswer(f"s{number}-{minute}", "ann", BEGIN + timedelta(minutes=minute),
                          PortRequest("GET", url or f"/box/{number}", None), PortAnswer(200, "recorded", page=page(text)))


def rows(n: int) -> SiteEvidence:
    return SiteEvidence([RowVersion(BEGIN - timedelta(minutes=1), "boxes", f"{number}", {
        "id": number, "size": SIZES[number % 6], "code": f"B-{number * 7}", "colour": "red"}) for number in range(10, 10 + n)])


def written(folder: Path, answers: Sequence[RecordedAnswer], evidence: SiteEvidence | None) -> InducedPages:
    write_site(folder, answers, {each.request.url: "/box/{box}" for each in answers} | {"/box/39": "/box/{box}"}, evidence)
    return InducedPages.load(folder)


def answered(pages: InducedPages, number: int, minute: int) -> tuple[str, bool]:
    """Return the page's text, and whether it is known."""
    answer = pages.answer(PortRequest("GET", f"/box/{number}", None), "ann", BEGIN + timedelta(minutes=minute), [])
    assert answer is not None and answer[0].page is not None
    return " ".join(child for each in answer[0].page.elements() if each.tag == "p" for child in each.children
                    if isinstance(child, str)), not answer[0].unknown


def test_a_row_gives_what_no_page_showed(tmp_path: Path) -> None:
    answers = [recorded(number, number, f"{SIZES[number % 6]}, B-{number * 7}") for number in range(10, 30)]
    text, is_known = answered(written(tmp_path / "rows", answers, rows(30)), 39, 90)
    assert (text, is_known) == (f"{SIZES[39 % 6]}, B-{39 * 7}", True)
    kept = json.loads((tmp_path / "rows" / "evidence.json").read_text("utf-8"))[0]
    assert {name for *_, values in kept for name in values} == {"id", "size", "code"}   # nothing shows the colour
    text, is_known = answered(written(tmp_path / "none", answers, None), 39, 90)
    assert not is_known and "B-273" not in text
    assert not (tmp_path / "none" / "evidence.json").exists()


def test_a_row_is_as_it_was_before_the_session_began(tmp_path: Path) -> None:
    answers = [recorded(number, number, f"{SIZES[number % 6]}, B-{number * 7}") for number in range(10, 30)]
    later = RowVersion(BEGIN + timedelta(minutes=80), "boxes", "39", {"id": 39, "size": "tiny", "code": "B-0"})
    evidence = SiteEvidence([*rows(30).versions, later])
    pages = written(tmp_path, answers, evidence)
    assert answered(pages, 39, 79)[0] == f"{SIZES[39 % 6]}, B-273"
    assert answered(pages, 39, 81)[0] == "tiny, B-0"


def test_a_form_that_nobody_recorded_makes_its_page_unknown(tmp_path: Path) -> None:
    def text(number: int, turn: int) -> str:
        return f"{SIZES[number % 6]} {'new' if number == 14 and turn > 1 else 'old'} {number}"

    answers = [recorded(number, 20 * turn + number, text(number, turn)) for turn in range(5) for number in range(10, 18)]
    unseen = [UnseenWrite(BEGIN + timedelta(minutes=minute), path) for minute, path in ((45, "/box/14"), (190, "/box/12"))]
    pages = written(tmp_path / "log", answers, SiteEvidence((), unseen))
    assert answered(pages, 12, 189) == (f"{SIZES[0]} old 12", True)
    assert not answered(pages, 12, 191)[1]
    assert answered(pages, 13, 191) == (f"{SIZES[1]} old 13", True)
    # without the log nothing says why a page was something else, so no page can be relied on as much
    assert not answered(written(tmp_path / "none", answers, None), 13, 191)[1]


def access(minute: float, tool: str, status: int = 302) -> dict[str, Any]:
    return {"happened_at": BEGIN + timedelta(minutes=minute), "tool": tool, "value": json.dumps({"status": status})}


def test_forms_of_a_server_s_log_are_unseen_unless_they_were_recorded() -> None:
    log = [access(1, "POST /box/12"), access(1.1, "POST /box/12"), access(2, "GET /box/12", 200), access(3, "POST /box/9", 500),
           access(4, "DELETE /box/7", 204)]
    own = [(BEGIN + timedelta(seconds=57), "POST", "/box/12?next=1")]
    assert unseen_writes(log, own) == [UnseenWrite(BEGIN + timedelta(minutes=1.1), "/box/12"),
                                       UnseenWrite(BEGIN + timedelta(minutes=4), "/box/7")]


def test_rows_are_whole_and_hold_no_secret() -> None:
    def change(minute: int, before: Any, after: Any) -> dict[str, Any]:
        return {"happened_at": BEGIN + timedelta(minutes=minute), "table_name": "people", "key": None,
                "before": json.dumps(before), "after": json.dumps(after)}

    versions = changed_rows([change(1, None, {"id": 3, "name": "Ann", "password": "x", "reset_token": "y"}),
                             change(2, {"id": 3}, {"id": 3, "name": "Anne"}), change(3, {"id": 3}, None)],
                            is_credential)
    assert [each.values for each in versions] == [{"id": 3, "name": "Ann"}, {"id": 3, "name": "Anne"}, None]
    assert SiteEvidence.of(json.loads(json.dumps(SiteEvidence(versions).plain()))).versions == versions


def test_the_next_number_of_a_table_is_where_a_form_leads() -> None:
    evidence = SiteEvidence([RowVersion(BEGIN + timedelta(minutes=10 * number), "boxes", f"{100 + 3 * number}", {
        "id": 100 + 3 * number, "size": "small"}) for number in range(12)])
    sessions = [[SiteVisit("ann", BEGIN + timedelta(minutes=10 * number + 5), "add", "/add", True, False, {}, {
        KIND: "302 redirect", "location": f"/made/box {101 + 3 * number}"})] for number in range(10)]
    model = SourceLearner(sessions, 0, evidence).learnt()
    request = SiteVisit("ann", BEGIN + timedelta(minutes=115), "add", "/add", True, False, {}, {})
    answer = model.answer(request, [])
    assert answer is not None and answer.values["location"] == "/made/box 134"
