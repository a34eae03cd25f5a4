"""Rollouts in the browser: what was kept, played again as it was, and beside another way with the first difference marked."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.browser import comparing
from pipelines.browser.library import Library, find_task
from pipelines.browser.trajectories import trajectory_of
from tests.browser import PHONE, browser, new_page, violations  # noqa: F401
from tests.command_line import process
from tests.pipelines.test_browser import HOSTILE, Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")
POLICY = f"""
WORDS = {HOSTILE!r}


def policy(observation):
    if observation.n_turns == 0:
        return WORDS[observation.attempt % len(WORDS)]
    if observation.n_turns == 1:
        return [{{"tool": "no_such_tool", "arguments": {{"text": WORDS[0]}}}},
                {{"tool": observation.tools[0]["name"], "arguments": {{}}}}]
    return None
"""


@pytest.fixture(scope="module")
def out(run_once: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run in which four policies played, one of them under perturbations."""
    folder = tmp_path_factory.mktemp("rolled")
    (folder / "policy.py").write_text(POLICY)
    out = Path(shutil.copytree(run_once[0], folder / "out"))
    room = next((out / "environments").iterdir())
    for told in (["oracle"], ["replay"], [f"script:{folder / 'policy.py'}"],
                 ["replay", "--seed", "3", "--perturbation", "rebound", "--perturbation", "faults"]):
        done = process("rollout", room, "--group", "2", "--policy", *told)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def server(out: Path) -> Iterator[Server]:
    started = Server(out)
    yield started
    started.stop()


def episodes(out: Path) -> list[dict[str, Any]]:
    (path,) = (out / "rollouts").glob("*/episodes.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_episode_plays_again_as_it_was_kept(out: Path) -> None:
    library, rooms, refused = Library(out), comparing.Replayer(), 0
    try:
        for about in episodes(out):
            found = find_task(library, about["task_id"])
            own = trajectory_of(library, found["room"], found, f"episode:{about['episode_id']}")
            _, play = rooms.play(found["room"], found["task_id"], own)
            steps = list(comparing.compared_steps(own, play))
            assert len(steps) == len(own.moves) and [step["differs"] for step in steps] == [False] * len(steps)
            assert {step["is_same_state"] for step in steps} == {True} and play["is_same_room"]
            assert play["grade"]["reward"] == about["reward"] == comparing.grade(own, play)["reward"]  # type: ignore[index]
            assert [step["kept"]["tier"] for step in steps if step["kind"] == "call"] == [
                step["tier"] for step in steps if step["kind"] == "call"]
            refused += sum(len(step["kept"]["refused"]) for step in steps) + len(own.about["rest"])
        assert refused == sum(about["n_refused"] for about in episodes(out)) > 0
    finally:
        library.close()


def compared(server: Server, about: dict[str, Any]) -> str:
    status, _, text = server.ask(f"/compare?id={about['task_id']}&with=episode:{about['episode_id']}")
    assert status == 200, text
    return text


def test_the_first_difference_to_a_rollout_is_marked_once(server: Server, out: Path) -> None:
    for about in episodes(out):
        text = compared(server, about)
        if about["policy"] == "oracle":
            assert "Both make the same moves and get the same answers." in text and 'id="first"' not in text
            assert "Both leave it the same." in text
        elif about["policy"].startswith("script"):
            assert text.count('id="first"') == text.count(">first difference<") == 1 and 'href="#first"' in text
            assert "never reached the environment" in text and "no_such_tool" in text
    worse = [about for about in episodes(out) if about["policy"].startswith("script") and about["reward"] == 0]
    assert worse and "does not hold" in compared(server, worse[0])


def test_rollouts_are_listed_by_policy_and_by_task(server: Server, out: Path) -> None:
    _, _, text = server.ask("/rollouts")
    told = episodes(out)
    assert all(f"<td>{name}</td>" in text for name in {about["policy"] for about in told} if name in ("oracle", "replay"))
    n = sum(about["policy"] == "replay" for about in told)
    assert f'<td>replay</td><td class="n">{n}</td>' in text
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="(/compare[^"]+)"', text)]
    assert len(links) == len({(about["policy"], about["task_id"]) for about in told})
    assert all(server.ask(link)[0] == 200 for link in links[:3])
    assert server.ask("/rollouts?id=nobody")[0] == 404 and server.ask("/rollouts?after=x")[0] == 400
    page = server.ask(f"/task?id={told[0]['task_id']}")[2]
    assert all(about["episode_id"] in page for about in told if about["task_id"] == told[0]["task_id"])


def test_what_a_policy_says_is_text(server: Server, out: Path) -> None:
    for about in [about for about in episodes(out) if about["policy"].startswith("script")][:4]:
        for text in (compared(server, about), server.ask(
                f"/replay?id={about['task_id']}&way=episode:{about['episode_id']}")[2]):
            assert "<script" not in text and "<img" not in text and "<svg" not in text and "\u202e" not in text


def test_a_rollout_that_was_killed_is_shown_as_far_as_it_came(out: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(out, tmp_path / "out"))
    (path,) = (folder / "rollouts").glob("*/trajectories.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:-40])
    (path.parent / "episodes.jsonl").unlink()
    server, lost = Server(folder), json.loads(lines[-1])["extra"]["traceroom"]
    try:
        text = server.ask("/rollouts")[2]
        counted = re.findall(r'<tr><td>[^<]+</td><td class="n">(\d+)</td><td class="n">\d+</td>', text)
        assert sum(map(int, counted)) == len(lines) - 1
        assert server.ask(f"/compare?id={lost['task_id']}&with=episode:{lost['episode_id']}")[0] == 404
    finally:
        server.stop()


def test_an_episode_of_an_earlier_build_says_so_and_stands_as_it_was(out: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(out, tmp_path / "out"))
    (path,) = (folder / "rollouts").glob("*/trajectories.jsonl")
    told = json.loads(path.read_text("utf-8").splitlines()[0])
    about = told["extra"]["traceroom"]
    about["content_digest"] = "0" * 64
    answers = [result for step in told["steps"] for result in (step.get("observation") or {}).get("results", ())]
    answers[0]["content"] = "it was answered so then"
    path.write_text(json.dumps(told, separators=(",", ":")) + "\n")
    server = Server(folder)
    try:
        text = server.ask(f"/compare?id={about['task_id']}&with=episode:{about['episode_id']}")[2]
        assert "an earlier build of this environment" in text and "it was answered so then" in text and ">other answer<" in text
        text = server.ask(f"/replay?id={about['task_id']}&way=episode:{about['episode_id']}")[2]
        assert "an earlier build of this environment" in text and ">differs<" in text
    finally:
        server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}], ids=["light", "dark", "phone"])
def test_the_way_to_the_first_difference_needs_no_pointer(
        browser: Browser, server: Server, out: Path, look: Any) -> None:  # noqa: F811
    said = list[str]()
    about = next(about for about in episodes(out) if about["policy"].startswith("script") and about["reward"] == 0)
    page = new_page(browser, said, **look)
    try:
        page.goto(f"http://127.0.0.1:{server.port}/rollouts")
        assert violations(page) == []
        page.goto(f"http://127.0.0.1:{server.port}/compare?id={about['task_id']}&with=episode:{about['episode_id']}")
        assert violations(page) == []
        link = page.get_by_role("link", name="Go there")
        for _ in range(40):
            if link.evaluate("link => link === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**#first")
        first = page.locator("#first")
        assert "first difference" in first.inner_text() and first.evaluate(
            "line => line.getBoundingClientRect().top >= 0 && line.getBoundingClientRect().top < innerHeight")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert said == []
    finally:
        page.context.close()


MOVES = st.one_of(
    st.builds(lambda text, reply: {"kind": "say", "content": text, "shown": reply},
              st.sampled_from("ab"), st.sampled_from("xy")),
    st.builds(lambda tool, n, answer: {"kind": "call", "tool": tool, "arguments": {"n": n}, "shown": answer},
              st.sampled_from("tu"), st.integers(0, 1), st.sampled_from(['{"a": 1}', "none"])))


@given(st.lists(MOVES, max_size=8), st.lists(MOVES, max_size=8))
def test_no_step_is_lost_beside_another(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    lines = comparing.lines(one, other)
    assert [line.first for line in lines if line.first is not None] == one
    assert [line.second for line in lines if line.second is not None] == other
    assert [line.place for line in lines] == list(range(1, len(lines) + 1))
    assert sum(line.is_first for line in lines) == (one != other)
    assert [line.kind for line in comparing.lines(one, one)] == ["same"] * len(one)
    backwards = comparing.lines(other, one)
    assert any(line.is_first for line in backwards) == any(line.is_first for line in lines)


def test_results_on_the_real_service_stand_beside_those_of_the_environment(out: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(out, tmp_path / "out"))
    told = [about for about in episodes(folder) if about["reward"] is not None]
    (name,) = {path.parent.name for path in (folder / "rollouts").glob("*/trajectories.jsonl")}
    server, matrix = Server(folder), tmp_path / "real.jsonl"
    real = [{"policy": about["policy"], "checkpoint_of": "mine", "step": int(about["policy"] == "oracle"),
             "task_id": about["task_id"], "seed": about["seed"], "attempt": about["attempt"],
             "place": "real", "success": int(about["policy"] == "oracle")} for about in told]
    matrix.write_text("".join(json.dumps(row) + "\n" for row in real))
    try:
        assert "No comparison is kept" in server.ask(f"/transfer?id={name}")[2]
        done = process("transfer", folder / "environments" / name, "--matrix", matrix, "--json")
        found = json.loads(done.stdout)
        assert found["n_pairs"] == len(told) and found["causes"], "replays succeed in the environment alone"
        page = server.ask(f"/transfer?id={name}")[2]
        assert f"{len(told)} pairs" in page and "not examined" in page and "another build" not in page
        assert found["tuning"][0]["n_checkpoints"] > 1 and "<h2>Tuning</h2>" in page
        assert all(f"/task?id={row['task_id']}" in page for row in found["tasks"])
        assert server.ask("/transfer?id=nobody")[0] == 404
        kept = folder / "transfer" / f"{name}.json"
        kept.write_text(json.dumps({**found, "content_digest": "earlier"}))
        assert "another build" in server.ask("/transfer")[2]
        kept.write_text("{")
        assert server.ask("/transfer")[0] == 400
    finally:
        server.stop()
