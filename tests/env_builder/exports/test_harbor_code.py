"""Tasks in a repository for Harbor: what the agent's container has, what is taken of it, and that code under test cannot pay
itself in the verifier's."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from env_builder.backends import AppSource, assemble
from env_builder.exports import harbor
from env_builder.exports.adapters import harbor_repository
from env_builder.exports.kit import Kit, kit_of
from env_builder.runtime.canonical import canonical
from env_builder.runtime.workspace.sandbox import LINK, WITHIN
from env_builder.runtime.workspace.trees import packed
from env_builder.shell import WorkspaceContent, WorkspaceStart
from tests.apps import START, task
from tests.workspaces import FIXED, TASK, UNITS, file, isolated, project, recipe, rubric, site, solution, tree
from warehouse.errors import InputError

NAME = f"code-{TASK[:16]}"


def made(folder: Path, known: dict[str, bytes], **recipe_fields: Any) -> Kit:
    """Return an environment of one task as a kit. `known`: files that the grader alone has."""
    began = {path: each for path, each in tree().items() if path != "tests/test_units.py"}
    starts = [WorkspaceStart("s1", "start", "start", START)]
    content = WorkspaceContent(recipe("process", **recipe_fields), {"start": began}, starts, site())
    room, grader = folder / "environments" / "code", folder / "rewards" / "code"
    steps = [{"tool": "write", "arguments": {"path": "measures/units.py", "content": FIXED}}]
    assemble("code", [AppSource("repository", "shell", content)], [task()], [rubric()], room, grader,
             [{"task_id": TASK, "steps": steps}],
             secrets={f"apps/repository/{name}": data for name, data in known.items()})
    return kit_of(room, grader)


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    row = {"task_id": TASK, "tests": "tests", "fail_to_pass": ["t"], "pass_to_pass": [], "known_lines": 1, "questions": None}
    return made(tmp_path, {"verify.jsonl": (canonical(row) + "\n").encode(),
                           "known.pack": packed({"tests": {"tests/test_units.py": file("the known test")}})})


def test_the_agents_container_has_the_tree_and_nothing_that_tells_the_solution(kit: Kit, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    harbor.EXPORTER.write(tmp_path / "out", kit)
    folder = tmp_path / "out" / NAME
    own = folder / "environment"
    agents = {path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file()}
    ours = {f"within/{path.name}" for path in WITHIN.iterdir() if path.is_file()}
    assert agents == {"Dockerfile", "harbor_repository.py", "start.pack", "site.pack", *ours}
    assert harbor_repository.unpacked(folder / "environment/start.pack", "start").keys() == {
        "measures/__init__.py", "measures/units.py", "measures/words.py", "README.md", "tests/test_words.py"}
    written = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    assert written["verifier"]["environment_mode"] == "separate" and written["agent"]["user"] == 10002
    assert [each["source"] for each in written["artifacts"]] == ["/changes/changes.json"]
    assert written["verifier"]["collect"][0]["user"] == "root"
    assert not {"solution", "room"} & {path.name for path in (folder / "environment").iterdir()}
    assert "-m pytest" in (folder / "instruction.md").read_text("utf-8")
    (tmp_path / "again").mkdir()
    harbor.EXPORTER.write(tmp_path / "again", kit)
    assert harbor.task_digest(tmp_path / "again" / NAME) == harbor.task_digest(folder)


@pytest.mark.parametrize(("fields", "why"), [
    ({"as_root": True}, "run as root"), ({"python": "3.9"}, r"need Python 3\.9"), ({"test": ["sh", "run.sh"]}, "base image")])
def test_what_cannot_be_graded_apart_is_refused(tmp_path: Path, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        harbor.EXPORTER.write(tmp_path, made(tmp_path, {}, **fields))


def test_what_the_agent_changed_is_taken_without_following_links(tmp_path: Path) -> None:
    pack, repository, out = tmp_path / "pack", tmp_path / "repo", tmp_path / "changes.json"
    began = {"kept": file("1\n"), "edited": file("1\n"), "gone": file("1\n"), "run": file("1\n", 0o100755),
             "deep/to": file("../kept", LINK), "folder/in": file("1\n"), ".git/config": file("x")}
    pack.write_bytes(packed({"start": began}))
    start = harbor_repository.unpacked(pack, "start")
    harbor_repository.lay(start, repository, os.getuid())
    harbor_repository.collect(start, repository, out)
    assert json.loads(out.read_text()) == {}
    (tmp_path / "secret").write_text("secret")
    (repository / "edited").write_bytes(b"2\xff")
    (repository / "gone").unlink()
    (repository / "run").chmod(0o644)
    (repository / "link").symlink_to(tmp_path / "secret")
    (repository / "folder" / "in").unlink()
    (repository / "folder").rmdir()
    (repository / "folder").symlink_to(tmp_path)
    (repository / ".git" / "hooks").write_text("x")
    os.mkfifo(repository / "pipe")
    harbor_repository.collect(start, repository, out)
    assert json.loads(out.read_text()) == {
        "edited": [0o100644, {"base64": "Mv8="}], "gone": None, "run": [0o100644, "1\n"], "folder/in": None,
        "link": [LINK, str(tmp_path / "secret")], "folder": [LINK, str(tmp_path)]}
    with (repository / "huge").open("wb") as huge:
        huge.truncate(harbor_repository.MOST_BYTES + 1)
    harbor_repository.collect(start, repository, out)
    assert json.loads(out.read_text()) == {}, "more than may be changed: nothing of it stays"


PAYING = """
import os, subprocess, sys
for place in ("/logs/verifier/reward.json", "/logs/verifier/reward.txt", "/logs/reward.json"):
    try:
        open(place, "w").write('{"reward": 1}')
    except OSError:
        pass
"""
STAYING = """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            for place in ("/logs/verifier/reward.json", "/repo/measures/units.py", "/tmp/x"):
                try:
                    open(place, "w").write('{"reward": 1}')
                except OSError:
                    pass
    os._exit(0)
"""
STEALING = """
import pathlib
for folder in ("/opt/traceroom", "/opt/traceroom/grader", "/changes", "/tests", "/logs"):
    try:
        if any(pathlib.Path(folder).iterdir()):
            FACTORS["km"] = 1000
    except OSError:
        pass
"""
CHEATS = {"it writes the reward": UNITS + PAYING, "a process stays and writes it": UNITS + STAYING,
          "it is right only where it can read what is not its own": FIXED.replace(', "km": 1000', "") + STEALING}


@pytest.fixture(scope="module")
def images(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Build the agent's and the verifier's image of a task with real known tests."""
    folder = tmp_path_factory.mktemp("harbor")
    own = project(folder / "project", tree(), solution(), isolated())
    secrets = {path.name: path.read_bytes() for path in (folder / "project/rewards/apps/repository").iterdir()}
    (folder / "out").mkdir()
    harbor.EXPORTER.write(folder / "out", made(folder, secrets))
    assert own.known["answers"]
    names = {}
    for side in ("environment", "tests"):
        names[side] = f"traceroom-harbor-code-{side}"
        docker("build", "-q", "--build-arg", f"BASE={base_image}", "-t", names[side], str(folder / "out" / NAME / side))
    yield names
    docker("rmi", "-f", *names.values())


def docker(*words: str, given: bytes | None = None) -> bytes:
    ran = subprocess.run(["docker", *words], input=given, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    return ran.stdout


def reward(images: dict[str, str], script: str) -> float | None:
    """Return what a task is worth after a script of the agent's, through both containers."""
    agent, verifier = (docker("run", "-d", "--network=none", images[side], "sleep", "600").decode().strip()
                       for side in ("environment", "tests"))
    try:
        docker("exec", "-i", "-u", "10002", "-w", "/repo", agent, "sh", given=script.encode())
        docker("exec", "-u", "0", agent, "python3", "-I", "-S", "-B", "/opt/traceroom/harbor_repository.py", "collect")
        reaching = "cat /opt/traceroom/harbor_repository.py || echo x > /changes/x"
        assert subprocess.run(["docker", "exec", "-u", "10002", agent, "sh", "-c", reaching], capture_output=True,
                              check=False).returncode, "the agent reads or writes what is not its own"
        changes = docker("exec", agent, "cat", "/changes/changes.json")
        docker("exec", verifier, "sh", "-c", "mkdir -p /changes /logs/verifier && chmod 777 /changes /logs/verifier")
        docker("exec", "-i", verifier, "sh", "-c", "cat > /changes/changes.json", given=changes)
        subprocess.run(["docker", "exec", verifier, "sh", "/tests/test.sh"], capture_output=True, check=False)
        shown = subprocess.run(["docker", "exec", verifier, "cat", "/logs/verifier/reward.json"], capture_output=True,
                               check=False)
        running = docker("exec", verifier, "sh", "-c", "for p in /proc/[0-9]*; do cat $p/cmdline 2>/dev/null; echo; done")
        assert running.count(b"sleep") == 1 and b"pytest" not in running
        return float(json.loads(shown.stdout)["reward"]) if shown.returncode == 0 else None
    finally:
        docker("rm", "-f", agent, verifier)


def writing(text: str) -> str:
    return f"cat > measures/units.py <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT\n"


@pytest.mark.slow
def test_the_known_solution_is_paid_and_nothing_is_not(images: dict[str, str]) -> None:
    assert reward(images, writing(FIXED)) == 1.0
    assert reward(images, "true") == 0.0
    tested = docker("run", "--rm", "--network=none", "-u", "10002", images["environment"], "sh", "-c",
                    "python3 -m pytest -q -c /traceroom/pytest.ini --rootdir=/repo -p traceroom_pytest -p no:cacheprovider")
    assert b"1 passed" in tested


@pytest.mark.slow
@pytest.mark.parametrize("cheat", sorted(CHEATS))
def test_code_under_test_cannot_pay_itself(images: dict[str, str], cheat: str) -> None:
    assert reward(images, writing(CHEATS[cheat])) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("script", [
    "(while true; do echo '{}' > /changes/changes.json; sleep 0.1; done) & true",
    "rm -rf tests measures; ln -s /opt/traceroom measures", "echo 'import os; os._exit(0)' > conftest.py",
    "mkfifo pipe; ln -s / root; printf 'x' > sitecustomize.py"])
def test_what_an_agent_leaves_in_its_container_pays_nothing(images: dict[str, str], script: str) -> None:
    assert reward(images, script) == 0.0
