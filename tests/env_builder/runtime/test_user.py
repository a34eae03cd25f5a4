"""The scripted user on mined tasks: the recorded agent hears the record; any other hears no fact that is not due."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime import Environment
from env_builder.runtime.records import Task
from env_builder.runtime.user import (
    HEARD,
    LEAVES,
    NO,
    STOCK,
    UNSURE,
    YES,
    ScriptedUser,
    UserProgress,
    agrees,
    opens,
    question,
    stated,
    telling,
)

WORDS = st.text(alphabet="ab ?", min_size=1, max_size=4).filter(str.strip)


def row(*lines: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a `user` row whose turns are lines {"says", "heard", …}."""
    plain = {"when": "asked", "asks": {}, "tells": [], "learnt": []}
    return {"turns": [line["says"] for line in lines], "after": [], "asks": {}, "wants": [], "seen": [], "patience": 4,
            "script": [plain | {name: value for name, value in line.items() if name != "says"} for line in lines], **more}


@given(st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=3), WORDS), max_size=6), st.lists(WORDS, max_size=2))
def test_the_recorded_agent_hears_the_record(talk: list[tuple[list[str], str]], after: list[str]) -> None:
    user = ScriptedUser(row(*({"says": says, "heard": heard} for heard, says in talk), after=after))
    said, answers = UserProgress(), []
    for heard in [*(heard for heard, _ in talk), after]:
        for word in heard:
            said, answer = user.reply(said, word)
            answers.append(answer)
    assert answers == [answer for heard, says in talk for answer in [*[None] * (len(heard) - 1), says]] + [None] * len(after)


def test_what_nobody_was_told_before_comes_with_the_answer_next_to_it() -> None:
    user = ScriptedUser(row(*({"says": says, "heard": heard} for says, heard in (
        ("a", []), ("b", ["one"]), ("c", []), ("d", ["two"])))))
    said, first = user.reply(UserProgress(), "one")
    assert (first, user.reply(said, "two")[1]) == ("a\nb\nc", "d")
    user = ScriptedUser(row({"says": "a", "heard": []}, {"says": "b", "heard": []}, after=["one", "two"]))
    said, first = user.reply(UserProgress(), "one")
    assert (first, user.reply(said, "two")[1]) == ("a\nb", None)


@given(st.lists(st.text(), max_size=6), st.lists(st.text(), max_size=9))
def test_words_alone_are_said_in_order(turns: list[str], words: list[str]) -> None:
    user, said, heard = ScriptedUser({"turns": turns}), UserProgress(), []
    for word in words:
        said, reply = user.reply(said, word)
        heard.append(reply)
    assert heard == (turns + [None] * len(words))[:len(words)]


SHIPS = row(
    {"says": "It's ann@example.com, zip 20566.", "heard": ["Your email or zip?"], "asks": {"email": 1.0, "zip": 1.0},
     "tells": [["number", "20566"]]},
    {"says": "yes please", "heard": ["Ship #W5911118 to Elm, yes/no?"], "when": "confirmed", "asks": {"ship": 1.0, "elm": 1.0}},
    {"says": "The second, K67C4W.", "heard": ["Z7GOZK or K67C4W?"], "asks": {"which": 1.0}, "learnt": [["id", "k67c4w"]]},
    {"says": "And 2 bags, please.", "heard": ["Done."], "when": "unasked", "tells": [["count", "2 bag"]]},
    {"says": "Thanks, bye", "heard": ["Done too."], "when": "unasked"},
    asks={"order": 1.0}, wants=[["id", "w5911118"], ["count", "2 bag"]], seen=[["id", "w2222222"]])
OPENING = [{"role": "system", "content": "Be kind to #W3333333."}, {"role": "user", "content": "Hi! Send #W5911118 to Elm."}]


def replies(*words: str) -> list[str | None]:
    """Return what the user above says to these words of an agent."""
    user, said, heard = ScriptedUser(SHIPS, OPENING), UserProgress(), []
    for word in words:
        said, reply = user.reply(said, word)
        heard.append(reply)
    return heard


def test_answers_what_it_is_asked_and_only_that() -> None:
    told = "It's ann@example.com, zip 20566."
    assert replies("What is your zip?", "Your e-mail, please.", "Which order?") == [told, told, "Hi! Send #W5911118 to Elm."]
    assert replies("Which colour?", "Let me look.", "What is the weather like?") == [UNSURE, HEARD, UNSURE]
    assert replies("How can I help you?", "Good. I sent it.") == [told, "And 2 bags, please."]
    assert replies("K67C4W or Z7GOZK, which one?") == ["The second, K67C4W."]


def test_confirms_what_it_wants_and_corrects_what_differs() -> None:
    assert replies("Shall I ship #W5911118 to Elm?", "Once more: ship to Elm, yes/no?") == ["yes please", YES]
    assert replies("Shall I ship #W2222229 to Elm?") == [f"{NO} Send #W5911118 to Elm."]
    assert replies("I have sent #W9999999.") == [f"{NO} Send #W5911118 to Elm."]
    assert replies("I have sent #W5911118, as I did #W9999999.", "I have seen #W2222222.") == [HEARD, HEARD]
    assert replies("Do you want a colour?", "You want 3 bags, yes/no?") == [NO, NO], "what was not told is not told to correct"
    assert replies("Before I make any changes here: shall I go ahead?", "Are you sure?") == ["yes please", YES]


def test_leaves_where_nothing_new_is_asked_for() -> None:
    assert replies(*["Which colour?"] * 6) == [UNSURE] * 3 + ["Thanks, bye", None, None]


def test_a_paraphrase_must_state_just_the_facts() -> None:
    words = "Yes, I'm Ann Lee and I want 2 bags on May 5th."
    assert agrees(words, "Yes! On May 5th, 2 bags please, for Ann Lee.")
    for other in (
        "Yes! 3 bags on May 5th for Ann Lee.", "I'm Ann Lee and I want 2 bags on May 5th.", "", "Yes, 2 bags on May 5th.",
        "Yes, I'm Ann Lee from Paris and I want 2 bags on May 5th.", "Yes, I'm Ann Lee, 2 bags on May 5th, 2 tags.",
    ):
        assert not agrees(words, other)


def agents(rooms: list[Environment], seed: int) -> Iterator[tuple[Environment, Task, list[str]]]:
    """Agents that ask for anything, of anybody, in any order, and state wrong facts."""
    draw = random.Random(seed)
    tasks = [(room, task) for room in rooms for task in room.tasks if task.user_turns]
    heard = [words for _, task in tasks for one in task.user["script"] for words in one["heard"]]
    asked = [word for _, task in tasks for one in task.user["script"] for word in one["asks"]]
    facts = sorted({value for _, task in tasks for _, value in (*task.user["wants"], *task.user["seen"])})

    def words() -> str:
        wrong = "".join(draw.choice("0123456789") if sign.isdigit() else sign for sign in draw.choice(facts))
        return draw.choice((
            draw.choice(heard), f"What is your {draw.choice(asked)}?", f"Could you tell me {' '.join(draw.sample(asked, 3))}?",
            f"I have done it for {wrong}.", f"Shall I go on with {wrong}? Please confirm (yes/no).", "How can I help?", "Done.",
            f"Is it {draw.choice(facts)} or {draw.choice(facts)}?", draw.choice(heard) + f" And {wrong}?", "", "😀?", "?" * 50))

    while True:
        yield *draw.choice(tasks), [words() for _ in range(draw.randint(1, 14))]


def hold(rooms: list[Environment], n: int, seed: int) -> None:
    """Play `n` episodes: no fact is invented, and none is told that was not asked for and is not its turn."""
    for (env, task, words), _ in zip(agents(rooms, seed), range(n), strict=False):
        env.reset(task.task_id)
        script, told = task.user["script"], set()
        before = [message["content"] for message in task.opening if message["role"] == "user"]
        for word in words:
            reply = env.say(word)
            due = {place for place, one in enumerate(script) if place in told or is_due(task, place, told, word)}
            may = stated("\n".join([*before, *(task.user_turns[place] for place in due)]))
            if reply is None:
                continue
            assert stated(reply) <= may, (task.task_id, word, reply)
            left = "".join(reply.split()).removeprefix("".join(NO.split()))
            said = ["".join(text.split()) for text in (*before, *(task.user_turns[place] for place in due))]
            assert reply in STOCK or any(left in text or text in left for text in said), "all words are the user's own"
            told |= {place for place in due if task.user_turns[place] in reply}


def is_due(task: Task, place: int, told: set[int], word: str) -> bool:
    """May an agent's word bring this turn? Said apart from how the user finds it."""
    script = task.user["script"]
    one, asked = script[place], question(word)
    if word in one["heard"] or (not one["tells"] and not one["learnt"]):
        return True
    if one["learnt"] and stated(word).isdisjoint((kind, value) for kind, value in one["learnt"]):
        return False
    earlier = all(each in told or not script[each]["tells"] or script[each]["learnt"] for each in range(place))
    return (bool(asked) and (not telling(asked).isdisjoint(one["asks"]) or bool(one["learnt"]) or opens(asked))) or (
        one["when"] == "unasked" and earlier)


@pytest.fixture(scope="module")
def rooms(sample_run: Path) -> list[Environment]:
    kinds = (sample_run / kind for kind in ("environments", "unverified"))
    return [Environment.load_room(path) for kind in kinds for path in sorted(kind.iterdir())]


def test_no_fact_is_invented_and_none_is_told_early(rooms: list[Environment]) -> None:
    hold(rooms, 300, seed=1)


@pytest.mark.slow
def test_no_fact_is_invented_or_told_early_in_ten_thousand_episodes(rooms: list[Environment]) -> None:
    hold(rooms, 10_000, seed=2)


def test_known_solutions_hear_the_record(sample_environment: Path) -> None:
    env = Environment.load(sample_environment)
    rewards = sample_environment.parent.parent / "rewards" / sample_environment.name
    solutions = {one["task_id"]: one["steps"] for one in map(json.loads, (rewards / "solutions.jsonl").open(encoding="utf-8"))}
    for task in env.tasks:
        env.reset(task.task_id)
        heard = [reply for step in solutions[task.task_id] if "say" in step and (reply := env.say(step["say"])) is not None]
        if task.derived_from is None:
            assert "\n".join(task.user_turns).startswith("\n".join(heard)) and (heard or not task.user_turns)
        assert LEAVES not in heard
