"""Users answer in the words of several people of the log, say the same by them, and the same again with the same seed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.perturbations import USER
from env_builder.runtime.user import HEARD, LEAVES, NO, STOCK, UNSURE, YES, agrees, granted, stated
from env_builder.runtime.wordings import Wordings
from env_builder.wordings import LEAST_PEOPLE, wordings
from tests.rooms import TASK, write_room

BANK: dict[str, list[list[Any]]] = {
    "answers": [["", 0.5]], "heard": [["ok", 3]], "leaves": [["bye then", 3]], "no": [["nope", 5]],
    "no_more": [["that's all", 4]], "tells": [["It's \0.", 3], ["\0", 9]], "yes": [["yes please", 7], ["Sure", 3]]}


def script(*turns: tuple[str, str, list[str]]) -> dict[str, Any]:
    return {"turns": [text for text, _, _ in turns],
            "script": [{"when": when, "heard": heard, "asks": {}, "tells": [], "learnt": []} for _, when, heard in turns]}


def mined(n_people: int, *turns: tuple[str, str, list[str]]) -> dict[str, list[list[Any]]]:
    rows = pl.DataFrame({"task_id": [f"t{n}" for n in range(4)], "script": [canonical(script(*turns))] * 4})
    return wordings(rows, {f"t{n}": f"person {min(n, n_people - 1)}" for n in range(4)})


def test_a_wording_counts_that_several_people_use() -> None:
    turns = (("Yes please", "confirmed", ["Shall I do it?"]), ("it's AB12!", "asked", ["Which number?"]),
             ("thanks", "unasked", ["Done."]))
    bank = mined(LEAST_PEOPLE, *turns)
    assert bank["yes"] == [["Yes please", 3]] and bank["tells"] == [["it's \0!", 3]] and bank["leaves"] == [["thanks", 3]]
    assert set(mined(LEAST_PEOPLE - 1, *turns)) <= {"answers"}, "the phrase of one or two people is theirs"


def test_no_consent_is_a_sign_of_having_heard() -> None:
    bank = mined(4, ("sure", "confirmed", ["Shall I?"]), ("sure", "unasked", ["I will look."]),
                 ("fine", "asked", ["Which one?"]), ("ok", "unasked", ["I will look."]), ("bye", "unasked", ["Goodbye."]))
    assert bank["heard"] == [["ok", 4]] and bank["yes"] == [["sure", 4]]


def test_nobodys_own_phrase_is_passed_on_but_what_is_made_of_common_ones() -> None:
    def told(text: str) -> dict[str, Any]:
        return script((text, "confirmed", ["Shall I book it?"]), ("thanks", "unasked", ["Done."]))

    texts = ["yes please", "yes please", "yes, yes please", "yes, thanks", "yes, thanks", "yes, thanks a bunch"]
    rows = pl.DataFrame({"task_id": list(map(str, range(6))), "script": [canonical(told(text)) for text in texts]})
    assert dict(wordings(rows, {})["yes"]) == {"yes please": 2, "yes, thanks": 2}, "one alone has 'a bunch' or ', yes'"


def test_a_question_is_answered_as_people_answered_it() -> None:
    bank = mined(4, ("I forgot my code", "asked", ["Your code, please?"]),
                 ("please proceed", "asked", ["Shall I proceed or do you require instructions?"]),
                 ("blue", "asked", ["Which?"]))
    assert bank["unsure to code"] == [["I forgot my code", 4]] and "unsure" not in bank
    assert bank["choice to instruction require"] == [["please proceed", 4]]
    users, draw = Wordings(bank), random.Random(1)
    assert users.reworded(UNSURE, "The code?", "I need a hand.", draw) == "I forgot my code"
    assert users.reworded(UNSURE, "The colour?", "I need a hand.", draw) == "I need a hand."
    assert users.reworded(NO, "Do you require instructions, or shall I proceed?", "", draw) == "please proceed"
    assert users.reworded(NO, "Shall I proceed with AB12 or do you require instructions?", "", draw) == NO, "facts: a plain no"


@given(st.sampled_from([*STOCK, "AB12", "It is AB12!", "My order is AB12 and I want a refund", f"{NO} It is AB12."]),
       st.sampled_from(["Shall I go ahead?", "Anything else?", "I will look."]), st.integers(0, 50))
def test_a_drawn_wording_says_the_same(words: str, heard: str, seed: int) -> None:
    bank = Wordings(BANK)
    drawn = bank.reworded(words, heard, "I need a hand with AB12.", random.Random(seed))
    assert drawn == bank.reworded(words, heard, "I need a hand with AB12.", random.Random(seed))
    if drawn is None:
        assert words == HEARD, "only a mere sign of having heard may be left out"
    elif words == UNSURE:
        assert drawn == "I need a hand with AB12."
    elif words == NO and heard == "Anything else?":
        assert drawn == "that's all"
    else:
        assert agrees(words, drawn) and stated(words) == stated(drawn) and granted(words) == granted(drawn)


def test_without_wordings_of_an_act_the_words_stay() -> None:
    for words in (YES, NO, HEARD, LEAVES, "It is AB12."):
        assert Wordings({}).reworded(words, "Well?", "", random.Random(1)) == words


def test_an_episode_is_replayed_with_its_words(tmp_path: Path) -> None:
    room = write_room(tmp_path / "house")
    (room / "perturbations.jsonl").write_text(canonical({"tool": USER, "wordings": BANK}) + "\n")
    environment = Environment.load_room(room)
    replies = set()
    for seed in range(6):
        environment.reset(TASK, seed=seed, perturbations=("wordings",))
        for words in ("Anything else?", "I will look.", "Shall I go ahead?", "I will look."):
            environment.say(words)
        twin = environment.replaying(TASK, seed, ("wordings",))
        assert [twin.say(row["content"]) for row in environment.journal] == [row["reply"] for row in environment.journal]
        replies |= {row["reply"] for row in environment.journal}
    assert not replies & {YES, NO, HEARD}, "stock words where the log has its own"
