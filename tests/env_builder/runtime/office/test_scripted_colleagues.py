"""A script of colleagues over a desk: which acts ask, what comes of them, and what never comes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyDesk
from env_builder.runtime.office.colleagues import NOTHING_ASKED, AnswerProgress, Colleagues, renamed
from tests.small_company import NOON, desk_of, fields_of, world_of

ROOT, ASKED, ANSWERED = f"{NOON - 60}.000001", f"{NOON + 30}.000002", f"{NOON + 90}.500000"
WORLD = world_of(fields_of("chat", f"C1/{ROOT}", -60, channel="C1", ts=ROOT, user="U9", text="sacks please"),
                 fields_of("ticket", "T-1", -60, status="open"))

KEYS = st.from_regex(r"[A-Z]{1,3}-[0-9]{1,3}", fullmatch=True)


def change(kind: str, key: str, field: str, after: Any, **more: Any) -> dict[str, Any]:
    return {"class": kind, "id": key, "field": field, "is_new": True, "before": None, "after": after, **more}


def answer(ask: int, text: str, after: int = 0, **more: Any) -> dict[str, Any]:
    """Return an answer in the thread, a minute and some after its ask."""
    key = f"C1/{ANSWERED}"
    fields = {"channel": "C1", "ts": ANSWERED, "thread_ts": ROOT, "user": "U2", "text": text}
    return {"ask": ask, "person": "ben", "at": round(float(ANSWERED) * 1e6), "delay_s": 60.5 + after, "mentions": [],
            "follows": [], "changes": [change("chat", key, name, value) for name, value in fields.items()], **more}


def ask(**more: Any) -> dict[str, Any]:
    """Return an ask: a message of U1 in the thread that names U2."""
    where = {"channel": {"is": "C1"}, "thread_ts": {"is": ROOT}, "user": {"is": "U1"}}
    return {"record": {"class": "chat", "where": where}, "has": {}, "reaches": {"text": "U2"},
            "about": {"fields": ["text"], "words": [], "made": []}, "names": [[f"C1/{ASKED}", "$id"]], "after": [], **more}


STATUS = {**ask(), "record": {"class": "ticket", "id": "T-1"}, "has": {"status": {"is": "review"}}, "reaches": {}, "names": []}


def say(desk: CompanyDesk, text: str, thread: str = ROOT, user: str = "U1") -> None:
    stamp = f"{int(desk.now)}.000009"
    desk.write("chat", f"C1/{stamp}", channel="C1", ts=stamp, thread_ts=thread, user=user, text=text)
    desk.tick(True)


def texts(desk: CompanyDesk) -> list[str]:
    """Return what U2 wrote in the episode."""
    return [desk.value("chat", key, "text") for key in desk.own("chat") if desk.value("chat", key, "user") == "U2"]


def heard(script: Colleagues, desk: CompanyDesk, progress: AnswerProgress = NOTHING_ASKED, minutes: int = 5) -> AnswerProgress:
    return script.wait(desk, script.hear(desk, progress), minutes)


def test_only_the_person_who_is_named_in_the_thread_answers() -> None:
    script = Colleagues({"asks": [ask()], "answers": [answer(0, "fine")]})
    for text, thread, user in (("ok for you?", ROOT, "U1"), ("<@U2> ok?", "1.0", "U1"), ("<@U2> ok?", ROOT, "U3"),
                               ("<@U22> ok?", ROOT, "U1")):
        desk = desk_of(WORLD)
        say(desk, text, thread, user)
        heard(script, desk)
        assert texts(desk) == []
    desk = desk_of(WORLD)
    say(desk, "<@U2> ok?")
    progress = heard(script, desk)
    assert texts(desk) == ["fine"] and desk.now < NOON + 65
    key = next(key for key in desk.own("chat") if desk.value("chat", key, "user") == "U2")
    assert key == f"C1/{desk.value('chat', key, 'ts')}" != f"C1/{ANSWERED}"
    say(desk, "<@U2> ok?")
    heard(script, desk, progress)
    assert texts(desk) == ["fine"]   # once, however often it is asked


def test_a_change_of_a_record_asks_if_the_episode_made_it() -> None:
    script = Colleagues({"asks": [STATUS], "answers": [answer(0, "fine")]})
    desk = desk_of(world_of(fields_of("ticket", "T-1", -60, status="review")))
    heard(script, desk)
    assert texts(desk) == []   # it was so before
    for status in ("done", "review"):
        desk = desk_of(WORLD)
        desk.write("ticket", "T-1", status=status)
        heard(script, desk)
        assert texts(desk) == (["fine"] if status == "review" else [])


def test_what_follows_an_answer_needs_another_ask_after_it() -> None:
    script = Colleagues({"asks": [ask(), ask(after=[0])], "answers": [answer(0, "for whom?"), answer(1, "fine")]})
    desk = desk_of(WORLD)
    say(desk, "<@U2> ok?")
    progress = heard(script, desk)
    progress = heard(script, desk, progress)
    assert texts(desk) == ["for whom?"]
    say(desk, "<@U2> for Cleo")
    heard(script, desk, progress)
    assert texts(desk) == ["for whom?", "fine"]


def test_an_answer_that_mentions_what_was_not_made_waits_for_it_and_names_it_as_it_is_here() -> None:
    made = {"record": {"class": "ticket", "where": {"kind": {"is": "new"}}}, "names": [["T-7", "$id"]]}
    script = Colleagues({"asks": [ask()], "answers": [answer(0, "fine, T-7", mentions=[made])]})
    desk = desk_of(WORLD)
    say(desk, "<@U2> ok?")
    progress = heard(script, desk)
    assert texts(desk) == []
    desk.write("ticket", "T-12", kind="new")
    heard(script, desk, progress)
    assert texts(desk) == ["fine, T-12"]


def test_an_open_value_stays_open() -> None:
    row = answer(0, "fine")
    row["changes"].append(change("chat", f"C1/{ANSWERED}", "marks", None, is_open=True))
    desk = desk_of(WORLD)
    say(desk, "<@U2> ok?")
    heard(Colleagues({"asks": [ask()], "answers": [row]}), desk)
    key = next(key for key in desk.own("chat") if desk.value("chat", key, "user") == "U2")
    assert not desk.is_known("chat", key, "marks")


@given(st.dictionaries(KEYS, KEYS), st.lists(KEYS))
def test_names_are_replaced_whole_and_once(names: dict[str, str], words: list[str]) -> None:
    assert renamed(" ".join(words), names) == " ".join(names.get(word, word) for word in words)
