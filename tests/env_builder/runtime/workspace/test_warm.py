"""A run in a fork that has the runner loaded is as one in a process of its own, and sees nothing of others."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from env_builder.runtime.workspace.junit import outcomes
from env_builder.runtime.workspace.recipes import Recipe
from env_builder.runtime.workspace.sandbox import CommandLimits, CommandResult, Sandbox, SandboxUnavailable
from env_builder.runtime.workspace.trees import Tree, folders
from env_builder.runtime.workspace.warm import Loaded, WarmSandboxes, warm_sandboxes
from tests.workspaces import FIXED, needs_namespaces, project, solution, tree

SPY = """\
import json, os, pathlib, random, socket, sys
def seen(path):
    try: return sorted(os.listdir(path))
    except OSError as error: return type(error).__name__
def kill(number):
    try: os.kill(number, 9)
    except OSError as error: return type(error).__name__
pathlib.Path("/tmp/left").write_text("x") if not seen("/tmp") else None
report = {"tmp": seen("/tmp"), "trees": seen("/trees"), "layer": seen("/layer"), "user": os.getuid(), "argv": sys.argv[1:],
          "processes": [each for each in seen("/proc") if each.isdigit()], "files": seen("/proc/self/fd"),
          "rights": [line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff", "CapBnd"))],
          "variables": sorted(os.environ), "interfaces": [name for _, name in socket.if_nameindex()],
          "random": random.random(), "path": sys.path, "kept": sorted(set(sys.modules) & {"mark"}), "killed": kill(1)}
sys.modules["mark"] = sys
pathlib.Path("/repo/report.json").write_text(json.dumps(report))
"""
LIMITS = CommandLimits(seconds=30)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    needs_namespaces()
    return project(tmp_path_factory.mktemp("project"), tree(), solution(), "namespaces").recipe


@pytest.fixture
def warm() -> Iterator[WarmSandboxes]:
    made = WarmSandboxes(1)
    yield made
    made.end()


def loaded(recipe: Recipe, module: str = "pytest") -> Loaded:
    return Loaded(recipe.sandbox, module, tuple(sorted(recipe.environment.items())))


def run(warm: WarmSandboxes, recipe: Recipe, whole: Tree, limits: CommandLimits = LIMITS, **env: str) -> CommandResult:
    folder = folders.folder("empty", dict)
    return warm.run(loaded(recipe), folder, whole, recipe.command("/repo/.out")[3:], {**recipe.environment, **env}, limits)


def said(ran: CommandResult, whole: Tree) -> dict[str, str] | None:
    report = ran.changes.get(".out")
    return outcomes(report.content, whole) if report is not None else None


@pytest.mark.parametrize("whole", [tree(), tree(units=FIXED), tree(units="def ("), tree(units="import os\nos._exit(0)"),
                                   tree(test_words="import pytest\npytest.exit('no')")])
def test_a_run_in_a_fork_is_as_one_of_its_own(warm: WarmSandboxes, recipe: Recipe, whole: Tree) -> None:
    folder = folders.folder("empty", dict)
    own = recipe.run(folder, whole, recipe.command("/repo/.out"))
    for _ in range(2):
        ran = run(warm, recipe, whole)
        assert (said(ran, whole), ran.code, sorted(ran.changes)) == (said(own, whole), own.code, sorted(own.changes))


def test_runs_see_nothing_of_each_other_or_of_the_server(warm: WarmSandboxes, recipe: Recipe) -> None:
    reports = []
    whole = tree(test_words=SPY + "\ndef test(): pass\n")
    for _ in range(2):
        ran = run(warm, recipe, whole, TRACEROOM_ORDER="1")
        content = ran.changes["report.json"]
        assert content is not None
        reports.append(content.content)
    one, other = map(json.loads, reports)
    for report in (one, other):
        assert report["tmp"] == ["left"] and report["trees"] == [] and report["layer"] in ([], "PermissionError")
        assert report["user"] == 10002 and report["rights"] == ["0" * 16] * 3 and report["interfaces"] == ["lo"]
        assert len(report["processes"]) == 2 and report["killed"] in (None, "PermissionError") and "/repo" in report["path"]
        assert "TRACEROOM_ANSWERS" not in report["variables"] and len(report["files"]) < 16 and report["kept"] == []
    assert one["random"] != other["random"]


def test_a_run_that_never_ends_is_ended_and_the_next_is_made(warm: WarmSandboxes, recipe: Recipe) -> None:
    ran = run(warm, recipe, tree(units="while True: pass"), CommandLimits(seconds=1))
    assert ran.timed_out and said(ran, tree()) is None
    memory = run(warm, recipe, tree(units="x = bytearray(3 << 30)"))
    assert memory.code != 0
    assert said(run(warm, recipe, tree()), tree()) is not None


def test_a_server_that_ended_is_replaced(warm: WarmSandboxes, recipe: Recipe) -> None:
    assert run(warm, recipe, tree()).changes
    os.kill(warm._idle[0]._process.pid, signal.SIGKILL)
    with pytest.raises(SandboxUnavailable):
        run(warm, recipe, tree())
    assert said(run(warm, recipe, tree(units=FIXED)), tree()) is not None


def test_a_module_that_is_not_there_is_run_apart(warm: WarmSandboxes, recipe: Recipe) -> None:
    folder = folders.folder("empty", dict)
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match="nosuchmodule cannot be loaded in advance"):
            warm.run(loaded(recipe, "nosuchmodule"), folder, {}, [], recipe.environment, LIMITS)
    with pytest.raises(SandboxUnavailable):
        warm.run(loaded(recipe)._replace(sandbox=Sandbox("process")), folder, {}, [], recipe.environment, LIMITS)
    assert said(run(warm, recipe, tree()), tree()) is not None


def test_many_ask_at_once_and_other_recipes_take_turns(recipe: Recipe) -> None:
    warm = WarmSandboxes(2)
    others = {"OTHER": "1"}
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(run, warm, recipe, tree(units=FIXED), LIMITS, **(others if n % 3 == 0 else {})) for n in range(9)]
        assert {str(said(job.result(), tree())) for job in jobs} == {str(said(jobs[0].result(), tree()))}
    assert warm._n_servers == len(warm._idle) <= 2
    elsewhere = loaded(recipe)._replace(env=(("PYTHONPATH", "/repo"), ("X", "1")))
    assert warm.run(elsewhere, folders.folder("empty", dict), {}, ["--version"], recipe.environment, LIMITS).code == 0
    assert warm._n_servers == len(warm._idle) <= 2
    warm.end()
    assert warm._n_servers == 0


def test_a_fork_of_this_process_has_servers_of_its_own(recipe: Recipe) -> None:
    own = warm_sandboxes
    assert run(own, recipe, tree()).changes
    before = {server._process.pid for server in own._idle}
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ran = run(own, recipe, tree())
            os.write(write_end, b"1" if ran.changes and not before & {server._process.pid for server in own._idle} else b"0")
            own.end()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read_end, 1) == b"1" and run(own, recipe, tree()).changes
    assert Path("/proc", str(next(iter(before)))).exists()
