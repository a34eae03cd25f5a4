"""Requests in stock phrases: greetings, small talk and answers around them make no other request."""

from __future__ import annotations

from typing import Any

from extractors.tasks.phrases import requests_by_phrase
from extractors.tasks.requests import find_requests, same_request
from tests.extractors.tasks.test_tasks import frames

Steps = list[tuple[Any, ...]]


def talk(*said: str) -> Steps:
    return [step for text in said for step in (("user", text), ("assistant", "And?"))]


SESSIONS: dict[str, Steps] = {
    "a0": talk("Please paint wall 12 blue", "I am person P-1001"),
    "a1": talk("Good morning, are you there?", "Anyway, please paint wall 12 blue!", "I am person P-1001"),
    "a2": talk("My dog says hi. So, please paint wall 12 blue", "I am person P-10019", "Sorry, person P-1001"),
    "b0": talk("Please paint wall 13 blue", "I am person P-1001"),
    "b1": talk("Hello, please paint wall 13 blue 🙏", "I am person P-1001"),
    "c0": talk("Please paint wall 12 blue", "I am person P-2002"),
    "d0": talk("Please paint wall 12 blue. Also, please scrub floor 3", "I am person P-1001"),
    "e0": talk("please scrub floor 3", "I am person P-1001"), "e1": talk("please scrub floor 3", "I am person P-1001"),
    "e2": talk("please scrub floor 4", "I am person P-3003")}


def grouped(sessions: dict[str, Steps]) -> set[tuple[str, ...]]:
    requests, _ = find_requests(*frames(*sessions.items()))
    groups: dict[str, list[str]] = {}
    for session_id, request in same_request(requests).sort("session_id").iter_rows():
        groups.setdefault(request, []).append(session_id)
    return {tuple(group) for group in groups.values()}


def test_the_same_of_the_same_entities_is_one_request() -> None:
    assert grouped(SESSIONS) == {("a0", "a1", "a2"), ("b0", "b1"), ("c0",), ("d0",), ("e0", "e1"), ("e2",)}


def test_the_order_of_sessions_does_not_matter() -> None:
    assert grouped(dict(reversed(SESSIONS.items()))) == grouped(SESSIONS)


def test_paraphrases_are_no_phrases() -> None:
    texts = ("I want wall 12 in blue", "could wall 12 become blue", "blue is what wall 12 needs", "wall 12: blue, please now")
    requests, _ = find_requests(*frames(*((f"s{n}", talk(text)) for n, text in enumerate(texts))))
    assert requests_by_phrase(requests) is None
