"""The small agent of the learning benchmark learns what it is shown, by gradients that are right, and copies what it saw."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import learning_policy
import learning_training
import ope
from learning_phrases import Phrases
from learning_sight import Episode

TOOLS = [
    {"name": "find", "parameters": {"properties": {"mail": {"type": "string"}}, "required": ["mail"], "type": "object"}},
    {"name": "send", "parameters": {
        "properties": {"parts": {"type": "array", "items": {"type": "string"}}, "to": {"type": "string"}},
        "required": ["parts", "to"], "type": "object"}}]


def session(place: int, good: bool = True) -> learning_training.Session:
    """Somebody asks for two of three parts; a bad agent sends what was not asked for."""
    parts = [{"label": label, "id": f"p{place}{number}"} for number, label in enumerate(("wheel", "chain", "bell"))]
    asked = [parts[place % 3], parts[(place + 1) % 3]]
    sent = [part["id"] for part in (asked if good else parts[:1])]
    calls = [("find", {"mail": f"u{place}@example.org"}, json.dumps({"owner": f"o{place}", "parts": parts})),
             ("send", {"parts": sent, "to": f"o{place}"}, "sent")]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Please send me the {asked[0]['label']} and the {asked[1]['label']}."},
        {"role": "assistant", "content": "What is your address?"},
        {"role": "user", "content": f"It is u{place}@example.org."}]
    for tool, arguments, answer in calls:
        messages += [{"role": "assistant", "tool_calls": [{"function": {"name": tool, "arguments": json.dumps(arguments)}}]},
                     {"role": "tool", "content": answer}]
    messages.append({"role": "assistant", "content": f"I sent it to o{place}."})
    return learning_training.Session(messages, TOOLS, 0.9 if good else 0.1)


@pytest.fixture(scope="module")
def learnt() -> learning_policy.Policy:
    sessions = [session(place) for place in range(30)]
    policy = learning_policy.Policy(learning_training.lexicon_of(sessions))
    told = [(1.0, learning_training.choices_of(one, policy)) for one in sessions]
    learning_training.fitted(policy, told, 6, 0.3, 0)
    return policy


def test_it_does_as_it_was_shown_with_values_it_never_saw(learnt: learning_policy.Policy) -> None:
    episode, shown = Episode(TOOLS), session(77)
    done: list[tuple[str, dict[str, Any]]] = []
    answers = iter([message["content"] for message in shown.messages if message["role"] == "tool"])
    episode.hear(shown.messages[0]["content"])
    while (act := learnt.act(episode, None)[0]) != "end" and len(done) < 9:
        given: dict[str, Any] = {}
        for slot in learning_policy.slots_of(act, episode, learnt.lexicon.phrases):
            given[slot.name] = learnt.fill(slot, episode, {}, None)[0]
        done.append((act, given))
        episode.do(act, act if act in ("find", "send") else None, given)
        if act in ("find", "send"):
            episode.answered(act, next(answers))
        elif len(done) == 1:
            episode.hear(shown.messages[2]["content"])
    assert [act for act, _ in done] == ["say: What is your", "find", "send", "say: I sent it"]
    assert done[1][1] == {"mail": "u77@example.org"}
    assert done[2][1]["to"] == "o77" and sorted(done[2][1]["parts"]) == ["p770", "p772"]
    assert learnt.lexicon.phrases.by_name["say: I sent it"].said(["o77"]) == "I sent it to o77."


@pytest.mark.parametrize("kind", ["act", "pick", "set"])
def test_gradients_are_those_of_the_likelihood(learnt: learning_policy.Policy, kind: str) -> None:
    choice = next(one for one in learning_training.choices_of(session(5), learnt) if one.kind == kind and len(one.rows) > 1)
    policy, step = learnt.copy(), 1e-5
    weights: Any = policy.acting if kind == "act" else policy.filling
    left = policy.residuals(choice)
    row = int(choice.rows[-1])
    if kind == "act":
        wanted, place = left[choice.chosen[0]], (row, int(choice.chosen[0]))
    else:
        spread = np.repeat(left, np.diff(np.append(choice.starts, len(choice.rows))))
        wanted, place = spread[choice.rows == row].sum(), (row,)
    before = policy.likelihood([choice])
    weights[place] += step
    assert (policy.likelihood([choice]) - before) / step == pytest.approx(wanted, abs=1e-4)


def test_bad_sessions_push_away(learnt: learning_policy.Policy) -> None:
    policy = learnt.copy()
    told = [(one.reward, learning_training.choices_of(one, policy)) for place in range(12)
            for one in (session(place), session(place + 1, good=False))]
    good = [choices for chance, choices in told if chance > 0.5]
    bad = [choices for chance, choices in told if chance < 0.5]
    def gap() -> float:
        return sum(map(policy.likelihood, good)) - sum(map(policy.likelihood, bad))

    before = gap()
    learning_training.contrasted(policy, told, 2, 0.05, 0.5, 0)
    assert gap() > before


def test_phrases_have_gaps_where_utterances_differ() -> None:
    phrases = Phrases([f"To confirm: ship {n} to {n} Oak Street. Shall I?" for n in range(20)] + ["Hm."])
    [phrase] = phrases.by_name.values()
    gaps = phrase.gaps_of("To confirm: ship 7 to 9 Oak Street. Shall I?")
    assert gaps == ["7", "9"] and phrase.said(gaps) == "To confirm: ship 7 to 9 Oak Street. Shall I?"
    assert phrases.name_of("Hm.") is None and phrase.gaps_of("To confirm: nothing") is None


def test_the_twenty_policies_are_policies() -> None:
    found = ope.policies()
    assert len(found) == len({policy.name for policy in found}) == 20
    assert all(sum(policy.chances) == pytest.approx(1.0) and min(policy.chances) >= 0 for policy in found)
    assert ope._ranks([3.0, 1.0, 3.0]) == [1.5, 0.0, 1.5]
