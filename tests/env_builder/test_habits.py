"""Habits are fitted where enough people show them, drawn by seed, and never add or change a fact or a recorded reply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.habits import LEAST_SESSIONS, habits
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.habits import ALL, COMMON, UserHabits, habits_of
from env_builder.runtime.perturbations import USER
from env_builder.runtime.user import LEAVES, NO, UNSURE, ScriptedUser, UserProgress, agrees, stated, typed
from env_builder.users import Talk
from tests.rooms import TASK, write_room

ROW: dict[str, Any] = {
    "leaves": [[1, 0.5], [3, 1.0]], "volunteers": {"zip": 1.0, "name": 0.0}, "aside": {NO: 1.0, UNSURE: 1.0},
    "typing": {"styles": [[True, True, 1]], "typos": 0.5}}
CALM = UserHabits("s", None, frozenset(), {}, False, False, 0.0)


def talk(name: str, *, volunteers: bool = False, n_idle: int = 0) -> Talk:
    opening = f"I am {name}, zip {name}55." if volunteers else f"I am {name}."
    turns = [f"zip {name}55", *["hm"] * n_idle]
    heard = [["Which zip?"], *[["Still looking."]] * n_idle, []]
    return Talk([opening], turns, heard, [(1, "zip", f"{name}55".casefold())], [])


def fitted(n: int, **kind: Any) -> dict[str, dict[str, Any]]:
    talks = {f"t{at}": talk(f"Ann{at}", **kind) for at in range(n)}
    return habits(talks, dict.fromkeys(talks, "f"), {}, [])


def user_of(**line: Any) -> ScriptedUser:
    lines = [{"says": "It is red.", "asks": {"colour": 1.0}, "tells": [["argument", "colour"]]},
             {"says": "My zip is 20566.", "asks": {"zip": 1.0}, "tells": [["argument", "zip"], ["number", "20566"]]},
             {"says": "By the way, I moved.", "when": "unasked", "tells": [["argument", "home"]]}]
    base = {"heard": [], "when": "asked", "asks": {}, "tells": [], "learnt": []}
    return ScriptedUser({"turns": [one["says"] for one in lines], "script": [{**base, **one} for one in lines], "patience": 9,
                         **line})


def test_nothing_is_fitted_to_a_few_people() -> None:
    assert fitted(LEAST_SESSIONS - 1) == {}
    rows = fitted(LEAST_SESSIONS)
    assert set(rows) == {ALL, "f"} and rows["f"]["volunteers"] == {"zip": 0.0}
    assert fitted(LEAST_SESSIONS, volunteers=True)["f"]["volunteers"] == {"zip": 1.0}
    one = {f"t{at}": talk("Ann") for at in range(LEAST_SESSIONS)}
    assert habits(one, {}, dict.fromkeys(one, "Ann"), []) == {}, "the habits of one person are theirs"


def test_patience_is_what_unserved_people_showed() -> None:
    assert fitted(LEAST_SESSIONS, n_idle=2)["f"]["leaves"] == [[2, 1.0]]
    talks = {f"t{at}": talk(f"Ann{at}", n_idle=2) for at in range(LEAST_SESSIONS)}
    assert habits(talks, {}, {}, talks)[ALL]["leaves"] == [], "they were served, not out of patience"


def test_a_user_leaves_when_its_patience_ends() -> None:
    user, progress, replies = user_of(), UserProgress(), []
    for _ in range(3):
        progress, reply = user.reply(progress, "Which weather?", CALM._replace(patience=2))
        replies.append(reply)
    assert replies == [UNSURE, LEAVES, None]


def test_a_value_comes_unasked_where_people_volunteer_it() -> None:
    user = user_of()
    _, reply = user.reply(UserProgress(), "What colour?", CALM)
    assert reply == "It is red."
    progress, reply = user.reply(UserProgress(), "What colour?", CALM._replace(volunteers=frozenset({"zip"})))
    assert reply == "It is red.\nMy zip is 20566." and progress.spoken == 0b11


def test_a_question_without_an_answer_gets_what_the_user_has_to_tell() -> None:
    told = UserProgress(0b11)
    assert user_of().reply(told, "Which weather?", CALM)[1] == UNSURE
    progress, reply = user_of().reply(told, "Which weather?", CALM._replace(aside={UNSURE: 1.0}))
    assert reply == "By the way, I moved." and progress.spoken == 0b111


@given(st.text(max_size=60), st.lists(st.sampled_from(sorted(COMMON)), max_size=8), st.integers(0, 99))
def test_typing_changes_no_fact(text: str, common: list[str], seed: int) -> None:
    words = " ".join([text, *common, "AB-12, 20566."])
    hasty = CALM._replace(seed=str(seed), small=True, unmarked=True, typos=0.5)
    written = typed(hasty, words, UserProgress(), "?")
    assert written == typed(hasty, words, UserProgress(), "?")
    assert written == words or agrees(words, written)
    assert stated(written) == stated(words) and "AB-12, 20566" in written


def test_habits_are_drawn_by_seed_and_family() -> None:
    rows = {ALL: ROW, "f": {**ROW, "leaves": [], "aside": {}}}
    assert habits_of({}, "f", 1, "t") is None
    assert habits_of(rows, "f", 1, "t") == habits_of(rows, "f", 1, "t")
    drawn = [habits_of(rows, "other", seed, "t") for seed in range(20)]
    assert {one.patience for one in drawn if one} == {2, 3} and {one.volunteers for one in drawn if one} == {frozenset({"zip"})}
    family = habits_of(rows, "f", 1, "t")
    assert family is not None and family.patience is None and family.aside == {}


def test_an_episode_is_replayed_with_its_habits(tmp_path: Path) -> None:
    room = write_room(tmp_path / "house")
    (room / "perturbations.jsonl").write_text(canonical({"tool": USER, "habits": {ALL: ROW}}) + "\n")
    environment = Environment.load_room(room)
    for seed in range(3):
        environment.reset(TASK, seed=seed, perturbations=("habits",))
        assert environment.say("Which door?") == "the seventh, please"
        twin = environment.replaying(TASK, seed, ("habits",))
        assert [twin.say(row["content"]) for row in environment.journal] == [row["reply"] for row in environment.journal]
    environment.reset(TASK, seed=1)
    assert environment.say("Which door?") == "The seventh, please."
