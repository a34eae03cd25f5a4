"""OpenEnv's validator takes the exported package and its running server; its client plays episodes on that server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path[:] = [path for path in sys.path if Path(path) != Path(__file__).parent]  # this program has the package's name
from telling import EXPORTS, WORK, episodes, tell  # noqa: E402

MOST = 4
"""Tasks whose known solution and no-op are played."""
folder = WORK.resolve() / "package"
shutil.copytree(EXPORTS / "openenv", folder)
command = Path(sys.executable).with_name("openenv")


def validated(*words: str) -> dict:
    """Return the report of `openenv validate`."""
    done = subprocess.run([command, "validate", *words, "--json"], capture_output=True, text=True, check=False)
    start = done.stdout.find("{")
    assert start >= 0, done.stdout[-2000:] + done.stderr[-2000:]
    report: dict = json.JSONDecoder().raw_decode(done.stdout[start:])[0]
    return report


report = validated(str(folder), "--skip-build")
results = {each["check_id"]: each for each in report["results"]}
assert results["static.manifest"]["status"] == "pass", results["static.manifest"]
assert not [each for each in results.values() if each["status"] == "fail" and each["check_id"].startswith("static.")], results
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
url = f"http://127.0.0.1:{port}"
log = (WORK / "server.log").open("w")
server = subprocess.Popen(
    [sys.executable, "-m", "uvicorn", "server.app:app", "--port", str(port), "--log-level", "warning"],
    cwd=folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": ""})
try:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            break
        except OSError:
            assert server.poll() is None, (WORK / "server.log").read_text()
            time.sleep(0.2)
    running = validated("--url", url)
    criteria = running.get("criteria") or running.get("results")
    assert running.get("passed", True) and criteria, running

    sys.path.insert(0, str(WORK.resolve()))
    from package.client import OpenEnvClient
    from package.models import OpenEnvAction

    async def play(task_id: str, steps: list[dict]) -> float | None:
        """Return the reward of an episode over a WebSocket."""
        async with OpenEnvClient(base_url=url) as room:
            begun = await room.reset(task_id=task_id)
            assert begun.observation.messages and begun.observation.tools
            for step in steps:
                action = (OpenEnvAction(type="say", text=step["say"]) if "say" in step
                          else OpenEnvAction(tool_name=step["tool"], arguments=step["arguments"]))
                assert (await room.step(action)).reward is None
            done = await room.step(OpenEnvAction(type="finish"))
            assert done.done and (await room.state()).digest == kit["digest"]
            return done.reward

    kit = json.loads((folder / "kit.json").read_text("utf-8"))
    with (folder / "grader" / "solutions.jsonl").open(encoding="utf-8") as lines:
        solutions = {row["task_id"]: row["steps"] for row in list(map(json.loads, lines))[:MOST]}
    oracle = [asyncio.run(play(task_id, steps)) for task_id, steps in solutions.items()]
    noop = [asyncio.run(play(task_id, [])) for task_id in solutions]
    assert set(oracle) == {1.0} and set(noop) == {0.0}, (oracle, noop)
    rewards = {each["name"]: asyncio.run(play(each["task_id"], each["steps"])) for each in episodes()}
finally:
    server.terminate()
    server.wait()
    log.close()
tell(f"openenv validate: static; --url: {len(criteria)} criteria; {len(oracle)} known solutions and no-ops over WebSocket",
     digest=kit["digest"], rewards=rewards, oracle=1.0, noop=0.0)
