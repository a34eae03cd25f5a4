"""Tasks whose family is served otherwise since a sentence of the instructions changed; no others."""

from __future__ import annotations

from env_builder.audit.reinstructed import Reinstructed, reinstructed
from env_builder.runtime import Environment
from env_builder.runtime.records import Task
from tests.env_builder.audit.test_outdated import environment, task, writes

OLD, NEW = "Close boxes when asked.", "Never close boxes."
CALLS, NONE = [{"tool": "close", "arguments": {"box": "b1"}}], [{"say": "I may not."}]


def hall(calls: str, said: str) -> tuple[Environment, dict[str, list[dict[str, object]]]]:
    """Return an environment of one task a letter, and their solutions. `calls`: `c` calls the tool; `said`: the instructions
    are the old ones (`o`) or the new ones (`n`)."""
    room = environment([writes("closed")], [writes("closed")])
    tasks: list[Task] = []
    for number, (_, text) in enumerate(zip(calls, said, strict=True)):
        instructions = f"You serve a hall.\n{OLD if text == 'o' else NEW}  Guest {number} calls."
        tasks.append(task(f"2026-03-01T08:{number:02}:00.000000Z")._replace(
            task_id=f"t{number:02}", opening=({"role": "system", "content": instructions}, {"role": "user", "content": "Hi"})))
    room.tasks = tuple(tasks)
    return room, {f"t{number:02}": CALLS if each == "c" else NONE for number, each in enumerate(calls)}


def test_tasks_of_before_are_found_where_their_family_is_refused_since() -> None:
    found = reinstructed(*hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12), [NEW, OLD])
    assert set(found) == {f"t{number:02}" for number in range(20)}
    assert found["t00"] == Reinstructed("close", "2026-03-01T08:20:00.000000Z", OLD, False, False)
    assert reinstructed(*hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12), [NEW])["t00"].is_said


def test_what_was_refused_and_is_done_since_is_found_too() -> None:
    found = reinstructed(*hall("--c" + "-" * 25 + "c" * 12, "o" * 28 + "n" * 12), [NEW])
    assert set(found) == {f"t{number:02}" for number in range(28)} - {"t02"} and found["t00"].is_called


def test_without_a_changed_sentence_or_enough_evidence_no_task_is_found() -> None:
    assert reinstructed(*hall("c" * 20 + "-" * 12, "o" * 32), [NEW]) == {}, "it says the same on both sides"
    assert reinstructed(*hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12), []) == {}, "no sentence changed"
    assert reinstructed(*hall("c" * 20 + "-" * 12, "o" * 25 + "n" * 7), [NEW]) == {}, "it changed elsewhere"
    assert reinstructed(*hall("c" * 20 + "-" * 9, "o" * 20 + "n" * 9), [NEW]) == {}, "few since"
    assert reinstructed(*hall("c-" * 10 + "-" * 12, "o" * 20 + "n" * 12), [NEW]) == {}, "half were refused before"
    assert reinstructed(*hall("c" * 20 + "c-" * 6, "o" * 20 + "n" * 12), [NEW]) == {}, "some are done since"
