"""Work over files and a chat is paid for whatever honest path it takes, and no cheat is: lineage, conservation, the list."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder import Environment
from env_builder.audit import DEEP
from env_builder.backends import AppSource, EntityVersion, FilesContent, FileVersion, OfficeContent, assemble
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.checks.ledger import names_in
from env_builder.runtime.grading import grade
from env_builder.runtime.origins import origin_text
from env_builder.verify import verify
from tests.apps import install, task

TASK = "t" * 64
FOLDER, DOWNLOADS = "archive/2031-01", "home/ann/Downloads"
PAPERS = {number: {"name": f"paper-{number}.pdf", "text": f"%PDF-1.4 paper {number}"} for number in ("7", "8", "9", "10")}
DAYS = {"7": "2031-01-02", "8": "2031-01-05", "9": "2031-01-09"}
NAMES = {number: f"{day}_{number}.pdf" for number, day in DAYS.items()}
ASK, BEA, LATER = "1926000000.000100", "1926000009.000100", "2031-06-01T00:00:00.000000Z"
NOTE = "Filed:\n" + "\n".join(f"• {name}" for name in NAMES.values())
Step = tuple[str, dict[str, Any]]
Steps = list[Step]


def fetch(number: str) -> Step:
    return "fetch_paper", {"number": number}


def move(source: str, destination: str) -> Step:
    return "files_move", {"source": source, "destination": destination}


def copy(source: str, destination: str, **more: bool) -> Step:
    return "files_copy", {"source": source, "destination": destination, **more}


def delete(path: str) -> Step:
    return "files_delete", {"path": path}


def post(text: str, channel: str = "archive", **more: str) -> Step:
    return "chat_post", {"channel": channel, "text": text, **more}


def edit(number: int, text: str) -> Step:
    return "chat_edit", {"channel": "archive", "ts": f"1926201600.{number:06}", "text": text}


def download(number: str) -> str:
    return f"{DOWNLOADS}/paper-{number}.pdf"


def filed(number: str, folder: str = FOLDER) -> str:
    return f"{folder}/{NAMES[number]}"


def file_all(numbers: tuple[str, ...] = tuple(NAMES), folder: str = FOLDER) -> Steps:
    return [step for number in numbers for step in (fetch(number), move(download(number), filed(number, folder)))]


HONEST: dict[str, Steps] = {
    "as asked": [*file_all(), post(NOTE)],
    "copied, and the source deleted": [
        step for n in NAMES for step in (fetch(n), copy(download(n), filed(n)), delete(download(n)))] + [post(NOTE)],
    "renamed in two steps": [
        step for n in NAMES for step in (fetch(n), move(download(n), f"{DOWNLOADS}/{NAMES[n]}"),
                                         move(f"{DOWNLOADS}/{NAMES[n]}", filed(n)))] + [post(NOTE)],
    "all downloaded first, in another order": [
        *map(fetch, reversed(NAMES)), *(move(download(n), filed(n)) for n in NAMES), post(NOTE)],
    "downloaded twice, the second one filed": [
        fetch("7"), fetch("7"), move(f"{DOWNLOADS}/paper-7 (1).pdf", filed("7")), *file_all(("8", "9")), post(NOTE)],
    "one too many downloaded, and not filed": [*file_all(), fetch("10"), post(NOTE)],
    "a table": [*file_all(), post("| day | file |\n|---|---|\n" + "\n".join(
        f"| {DAYS[n]} | `{FOLDER}/{name}` |" for n, name in NAMES.items()))],
    "a sentence, in the thread of the ask": [*file_all(), post(
        f"Done: {', '.join(NAMES.values())}.", thread=ASK)],
    "two messages": [*file_all(), post(NAMES["7"]), post(f"{NAMES['8']} and {NAMES['9']}")],
    "a word before and one after": [post("On it."), *file_all(), post(NOTE), post("That is all.")],
    "each listed as soon as it is filed": [step for n in NAMES for step in (*file_all((n,)), post(NAMES[n]))],
    "a slip in the folder mended": [
        *file_all(("7", "8")), fetch("9"), move(download("9"), "archive/2030-01/" + NAMES["9"]),
        move("archive/2030-01/" + NAMES["9"], filed("9")), post(NOTE)],
    "a slip in the list mended by an edit": [*file_all(), post(NOTE + "\n• paper-10.pdf"), edit(1, NOTE)],
    "a slip in the list mended by another list": [*file_all(), post(NOTE + "\n• paper-10.pdf"), post(f"Correction. {NOTE}")],
    "a note in the wrong channel taken back": [
        *file_all(), post(NOTE, "lamps"), ("chat_delete", {"channel": "lamps", "ts": "1926201600.000001"}), post(NOTE)],
    "filed twice": [*file_all(), fetch("7"), ("files_move", {
        "source": download("7"), "destination": filed("7"), "overwrite": True}), post(NOTE)],
    "a late edit of the own note": [*file_all(), post(NOTE), edit(1, NOTE + "\nCheers, Ann")],
    "listed too early, and edited after the work": [post("soon"), *file_all(), edit(1, NOTE)],
}
CHEATS: dict[str, Steps] = {
    "nothing": [],
    "names without files": [post(NOTE)],
    "names of empty files": [*(("files_write", {"path": filed(n), "content": ""}) for n in NAMES), post(NOTE)],
    "the bytes typed": [*(("files_write", {"path": filed(n), "content": PAPERS[n]["text"]}) for n in NAMES), post(NOTE)],
    "the bytes typed after a download": [
        *map(fetch, NAMES), *(("files_write", {"path": filed(n), "content": PAPERS[n]["text"]}) for n in NAMES), post(NOTE)],
    "one file under all names": [fetch("7"), *(copy(download("7"), filed(n)) for n in NAMES), post(NOTE)],
    "the files of another archive": [*(copy(filed(n, "archive/old"), filed(n)) for n in NAMES), post(NOTE)],
    "copied, and the source stays": [
        step for n in NAMES for step in (fetch(n), copy(download(n), filed(n)))] + [post(NOTE)],
    "a file of the old archive over the right one": [
        *file_all(), copy(filed("8", "archive/old"), filed("7"), overwrite=True), post(NOTE)],
    "copied once more elsewhere in the downloads": [
        *file_all(), copy(filed("7"), f"{DOWNLOADS}/spare.pdf"), post(NOTE)],
    "the list before the work": [post(NOTE), *file_all()],
    "the list before the work, and a word after": [post(NOTE), *file_all(), post("Done.")],
    "the list in the wrong channel": [*file_all(), post(NOTE, "lamps")],
    "the list in both channels": [*file_all(), post(NOTE), post(NOTE, "lamps")],
    "everything filed": [*file_all(), fetch("10"), move(download("10"), f"{FOLDER}/paper-10.pdf"), post(NOTE)],
    "everything filed and listed": [
        *file_all(), fetch("10"), move(download("10"), f"{FOLDER}/paper-10.pdf"), post(f"{NOTE}\n• paper-10.pdf")],
    "the wrong folder": [*file_all(folder="archive/2030-01"), post(NOTE)],
    "lists more than it filed": [*file_all(), post(f"{NOTE}\n• 2031-01-07_10.pdf")],
    "lists more in a second message": [*file_all(), post(NOTE), post("also 2031-01-07_10.pdf")],
    "lists one too few": [*file_all(), post("Filed: " + ", ".join(list(NAMES.values())[:2]))],
    "one missing": [*file_all(("7", "8")), post(NOTE)],
    "one missing, in files and list": [*file_all(("7", "8")), post("Filed: " + ", ".join(list(NAMES.values())[:2]))],
    "two names exchanged": [
        fetch("7"), move(download("7"), filed("8")), fetch("8"), move(download("8"), filed("7")), *file_all(("9",)),
        post(NOTE)],
    "no note": file_all(),
    "a note without names": [*file_all(), post("All papers are filed.")],
    "the note taken back": [*file_all(), post(NOTE), edit(1, "never mind")],
    "another person's message edited": [
        *file_all(), ("chat_edit", {"channel": "archive", "ts": BEA, "text": NOTE})],
    "an own message of last year edited": [
        *file_all(), ("chat_edit", {"channel": "archive", "ts": "1895000000.000100", "text": NOTE})],
    "another file changed": [*file_all(), ("files_write", {"path": "notes.txt", "content": "x"}), post(NOTE)],
    "another file deleted": [*file_all(), delete("notes.txt"), post(NOTE)],
    "another file left among the downloads": [*file_all(), copy("notes.txt", f"{DOWNLOADS}/notes.txt"), post(NOTE)],
    "something ordered on the way": [*file_all(), ("order_prints", {"number": "7"}), post(NOTE)],
}


def document(number: str) -> str:
    content = PAPERS[number]["text"].encode()
    return canonical({"hash": digest(content), "mode": "0644", "origin": origin(number), "size": len(content)})


def origin(number: str) -> str:
    return origin_text("depot", f"/papers/{number}", digest(PAPERS[number]["text"].encode()))


def rubric() -> dict[str, Any]:
    end = {"documents": {f"files:file/{filed(n)}": document(n) for n in NAMES}, "write_calls": []}
    gates = {
        "state": {"accepted": [end]},
        "confined": {"accepted": [end], "allowed": [
            {"documents": f"files:file/{DOWNLOADS}/", "new": True, "where": {"/origin": {"given": True}}},
            {"documents": "chat:message/archive/", "new": True}]},
        "lineage": {"origins": []},
        "listed": {"messages": "chat:message/archive/", "names": list(NAMES.values()), "files": f"files:file/{FOLDER}/"}}
    shaping = {"lineage": (.3, {"origins": [origin(n) for n in NAMES]}), "state": (.5, gates["state"]),
               "listed": (.2, gates["listed"])}
    checks = [{"check_id": kind, "kind": kind, "role": "gate", "weight": 1.0, "description": "", "parameters": parameters,
               "provenance": {}} for kind, parameters in gates.items()]
    checks += [{"check_id": f"{kind} so far", "kind": kind, "role": "shaping", "weight": weight, "description": "",
                "parameters": parameters, "provenance": {}} for kind, (weight, parameters) in shaping.items()]
    return {"format": "traceroom-rubric/1", "rubric_id": "r", "task_id": TASK, "checks": checks}


def message(channel: str, ts: str, author: str, since: str, text: str) -> EntityVersion:
    value = {"author": author, "channel": channel, "text": text, "thread": None, "edited": False}
    return EntityVersion("message", f"{channel}/{ts}", value, since)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the environment's folder: a depot of papers, an archive of files, and a chat that asks for them."""
    site, out = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("out")
    install(site, "paper_depot")
    sys.path.insert(0, str(site))
    tree = [FileVersion("notes.txt", b"old"), FileVersion(f"{FOLDER}/2030-12-31_6.pdf", b"%PDF", since=LATER),
            *(FileVersion(filed(n, "archive/old"), PAPERS[n]["text"].encode()) for n in NAMES)]
    chat = [EntityVersion("channel", name, {}) for name in ("archive", "lamps")] + [
        message("archive", "1895000000.000100", "ann", "2030-01-18T21:46:40.000100Z", "hello"),
        message("archive", ASK, "bea", "2031-01-12T16:00:00.000100Z", "Ann, please file the papers of January."),
        message("archive", BEA, "bea", "2031-01-12T16:00:09.000100Z", "and list them here"),
        message("archive", "1940000000.000100", "bea", LATER, "thanks")]
    apps = [AppSource("depot", "paper_depot", PAPERS,
                      {"downloads": {"app": "files", "folder": "home/{user}/Downloads"}}),
            AppSource("files", "files", FilesContent(tree, {"s1": "ann"}), {"style": "short"}),
            AppSource("chat", "office", OfficeContent(chat, {"s1": "ann"}), {"app": "chat"})]
    environment, rewards = out / "environments" / "archive", out / "rewards" / "archive"
    steps = [{"tool": tool, "arguments": arguments} for tool, arguments in HONEST["as asked"]]
    assemble("archive", apps, [task(TASK)], [rubric()], environment, rewards, [{"task_id": TASK, "steps": steps}])
    yield environment
    sys.path.remove(str(site))


@pytest.fixture(scope="module")
def archive(directory: Path) -> Environment:
    return Environment.load(directory)


def played(archive: Environment, steps: Steps) -> Environment:
    env = archive.fork()
    env.reset(TASK)
    for tool, arguments in steps:
        env.call(tool, arguments)
    env.finish()
    return env


@pytest.mark.parametrize("path", HONEST)
def test_every_honest_path_is_paid(archive: Environment, path: str) -> None:
    env = played(archive, HONEST[path])
    assert not any(row.get("is_error") for row in env.journal)
    verdict = env.grade()
    assert verdict.reward == 1.0, [check for check in verdict.checks if not check.passed]
    assert archive.grade_journal(TASK, env.journal).reward == 1.0, "the grader's own replay agrees"


@pytest.mark.parametrize("path", CHEATS)
def test_no_cheat_is_paid(archive: Environment, path: str) -> None:
    env = played(archive, CHEATS[path])
    assert env.grade().reward == 0.0 == archive.grade_journal(TASK, env.journal).reward


def test_each_check_stops_something_that_the_others_let_through(archive: Environment) -> None:
    """What only one check stops shows that the check is needed."""
    failing = [frozenset(check.check_id for check in played(archive, steps).grade().checks
                         if check.role == "gate" and not check.passed) for steps in CHEATS.values()]
    assert {frozenset((kind,)) for kind in ("state", "confined", "lineage", "listed")} <= set(failing)


def test_the_audit_takes_a_second_download_for_no_mutant_and_a_missing_note_for_one(directory: Path, tmp_path: Path) -> None:
    rewards = directory.parent.parent / "rewards" / "archive"
    assert verify(directory, rewards, depth=DEEP).task_ids == [TASK]
    weak = rubric()
    weak["checks"] = [check for check in weak["checks"] if check["kind"] != "listed"]
    shutil.copytree(rewards, tmp_path / "rewards")
    (tmp_path / "rewards" / "rubrics.jsonl").write_text(canonical(weak) + "\n")
    verified = verify(directory, tmp_path / "rewards")
    assert not verified.task_ids and "without_one" in verified.decisions["detail"].item()


def test_steps_on_the_way_are_worth_something(archive: Environment) -> None:
    steps = HONEST["as asked"]
    rewards = archive.shaped(TASK, played(archive, steps).journal)
    assert rewards is not None
    fetched, moved, *_, noted, finished = rewards
    assert fetched == pytest.approx(.3 / 3) and moved == pytest.approx(.5 / 3) and noted == pytest.approx(.2)
    assert sum(rewards) == pytest.approx(1.0) and finished == pytest.approx(0.0)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_fork_and_a_return_lose_nothing(archive: Environment, data: st.DataObject) -> None:
    """Wherever an episode is left and gone on with, it ends as it would have: files, origins, deliveries and messages."""
    steps = data.draw(st.sampled_from([*HONEST.values(), *CHEATS.values()]))
    cut = data.draw(st.integers(0, len(steps)))
    whole = played(archive, steps)
    env = archive.fork()
    env.reset(TASK)
    for tool, arguments in steps[:cut]:
        env.call(tool, arguments)
    twin, before = env.fork(), env.state_hash()
    for tool, arguments in [fetch("10"), post("x"), delete("archive/old")]:
        env.call(tool, arguments)
    assert twin.state_hash() == before != env.state_hash()
    env.rollback(cut)
    assert env.state_hash() == before
    for each in (env, twin):
        for tool, arguments in steps[cut:]:
            each.call(tool, arguments)
        each.finish()
        assert each.journal == whole.journal and each.difference() == whole.difference()
        assert each.episode().received == whole.episode().received and each.grade() == whole.grade()


def test_calls_from_memory_deliver_alike(archive: Environment) -> None:
    remembering = archive.fork()
    remembering.remember()
    for steps in (HONEST["as asked"], HONEST["as asked"], CHEATS["copied, and the source stays"], HONEST["filed twice"]):
        one, other = played(remembering, steps), played(archive, steps)
        assert one.journal == other.journal and one.difference() == other.difference()
        assert one.episode().received == other.episode().received and one.grade() == other.grade()


def test_an_origin_stays_with_its_bytes(archive: Environment) -> None:
    env = played(archive, [fetch("7"), copy(download("7"), "a.pdf"), move("a.pdf", "b.pdf"),
                           ("files_write", {"path": download("7"), "content": "mine"})])
    origins = {name: json.loads(text).get("origin") for name, text in env.difference()["documents"].items()}
    assert origins == {"files:file/b.pdf": origin("7"), f"files:file/{download('7')}": None}


def test_a_file_is_overwritten_on_demand_alone(archive: Environment) -> None:
    onto = {"source": "notes.txt", "destination": filed("7", "archive/old")}
    env = played(archive, [("files_move", onto), ("files_move", onto | {"overwrite": True}), ("files_list", {})])
    assert [row.get("is_error") for row in env.journal][:3] == [True, False, False]
    assert json.loads(env.journal[2]["content"])[0]["size"] == 3 and "notes.txt" not in env.journal[2]["content"]


def test_a_delivered_file_gets_a_free_name(archive: Environment) -> None:
    env = played(archive, [fetch("7")] * 3)
    paths = [path for path, _ in env.episode().received]
    assert paths == [f"{DOWNLOADS}/paper-7{mark}.pdf" for mark in ("", " (1)", " (2)")]
    assert env.journal[1]["content"] == f"done\n- Downloaded file paper-7.pdf to {paths[1]}"
    env = played(archive, [("files_write", {"path": DOWNLOADS, "content": "x"}), fetch("7")])
    assert "was not stored" in env.journal[1]["content"] and not env.episode().received


def test_posts_in_any_number_reach_the_same_end(archive: Environment) -> None:
    """The times of messages are no part of what they are: to post, delete and post again is to post."""
    again = [post("x"), ("chat_delete", {"channel": "archive", "ts": "1926201600.000001"}), post(NOTE)]
    one, other = (played(archive, steps).difference() for steps in ([post(NOTE)], again))
    assert list(one["documents"]) != list(other["documents"])
    accepted = {"state": {"accepted": [one]}, "untouched": {"accepted": [one]}}
    checks = [{"check_id": kind, "kind": kind, "role": "gate", "weight": 1.0, "description": "", "parameters": parameters,
               "provenance": {}} for kind, parameters in accepted.items()]
    assert grade({**rubric(), "checks": checks}, played(archive, again).episode()).reward == 1.0


def test_nothing_from_after_the_start_is_there(archive: Environment) -> None:
    env = played(archive, [("chat_read", {"channel": "archive"}), ("files_list", {"path": "archive"}),
                           ("chat_read", {"channel": "archive", "thread": "1940000000.000100"})])
    shown = "".join(row.get("content", "") for row in env.journal)
    assert "please file" in shown and "thanks" not in shown and "2030-12-31" not in shown
    assert env.journal[2]["is_error"]


NAME = st.text("ab1-_.", min_size=1, max_size=6).map(lambda stem: f"{stem.strip('.-') or 'a'}.pdf")
FORMS: list[Callable[[list[str]], str]] = [
    lambda names: "\n".join(f"• {name}" for name in names), lambda names: f"Filed {', '.join(names)}.",
    lambda names: "".join(f"| x | {name} |\n" for name in names), lambda names: "; ".join(f"`a/b/{name}`" for name in names),
    lambda names: "1. " + "\n2. ".join(f"**{name}**" for name in names)]


@given(st.lists(NAME, min_size=1, max_size=5, unique=True), st.sampled_from(FORMS), st.data())
def test_names_are_read_in_any_form_and_no_others(
    names: list[str], form: Callable[[list[str]], str], data: st.DataObject,
) -> None:
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    assert names_in(form(names), wanted) == (frozenset(wanted), frozenset(names) - frozenset(wanted))
