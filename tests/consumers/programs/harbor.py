"""Harbor lints the exported tasks, runs them in real containers (known solution, nothing, the episodes of the comparison, an
agent that breaks in), and names the same digests as dataset.toml."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path[:] = [path for path in sys.path if Path(path) != Path(__file__).parent]  # this program has the package's name
from telling import EXPORTS, WORK, episodes, tell  # noqa: E402

SMALL_BASE = "traceroom-base:bookworm"
LINTED = 8
THIEF = """\
#!/bin/sh
for path in /opt/traceroom/kit.json /opt/traceroom/room/world.jsonl /opt/traceroom/room/tasks.jsonl /journal/journal.json; do
    cat "$path" && echo "STOLEN $path"
done
echo '[]' > /journal/journal.json && echo "STOLEN the journal"
rm -f /run/room/tools.sock && echo "STOLEN the socket"
echo x > /tools/tools.py && echo "STOLEN the tools"
for process in /proc/[0-9]*; do
    [ -r "$process/environ" ] || { kill -9 "${process#/proc/}" && echo "STOLEN a process"; }
done
ls /tests /opt/traceroom && echo "STOLEN a folder"
python3 -c "import socket; socket.create_connection(('1.1.1.1', 53), 3)" && echo "STOLEN the network"
python3 /tools/tools.py list > /dev/null && echo "THE ROOM ANSWERS"
"""
source, tasks = EXPORTS / "harbor", WORK.resolve() / "tasks"
command = str(Path(sys.executable).with_name("harbor"))
settings = {**os.environ, "HARBOR_TELEMETRY": "off", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
if subprocess.run(["docker", "image", "inspect", SMALL_BASE], capture_output=True, check=False).returncode == 0:
    settings["HARBOR_BASE"] = SMALL_BASE
manifest = tomllib.loads((source / "dataset.toml").read_text("utf-8"))
names = {each["name"].partition("/")[2]: each["digest"] for each in manifest["tasks"]}


def run(*words: str) -> str:
    """Return what Harbor says."""
    done = subprocess.run([command, *words], env=settings, capture_output=True, text=True, check=False, cwd=WORK)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def trials(agent: str) -> dict[str, tuple[float, Path]]:
    """Reward and folder of each task's trial, played by one of Harbor's own agents."""
    jobs = WORK.resolve() / "jobs"
    run("run", "-p", str(tasks), "-a", agent, "-e", "harbor_docker:LocalDocker", "-o", str(jobs), "--job-name", agent,
        "-n", "2", "-y")
    found = {}
    for path in sorted((jobs / agent).glob("*/result.json")):
        result = json.loads(path.read_text("utf-8"))
        assert result["exception_info"] is None, result["exception_info"]
        found[Path(result["task_id"]["path"]).name] = (result["verifier_result"]["rewards"]["reward"], path.parent)
    assert set(found) == {path.name for path in tasks.iterdir()}, found
    return found


findings = json.loads(run("lint", "--select", "ALL", "--json", *(str(source / name) for name in sorted(names)[:LINTED])))
assert findings == [], findings
from harbor.publisher.packager import Packager  # noqa: E402

hashed = {name: Packager.compute_content_hash(source / name)[0] for name in names}
assert {name: f"sha256:{found.removeprefix('sha256:')}" for name, found in hashed.items()} == names

told = {each["name"]: each for each in episodes()}
for name, episode in told.items():
    shutil.copytree(next(source.glob(f"*-{episode['task_id'][:16]}")), tasks / name)
    (tasks / name / "solution" / "steps.json").unlink()
    (tasks / name / "solution" / "steps.json").write_text(json.dumps(episode["steps"]), "utf-8")
shutil.copytree(tasks / "good", tasks / "thief")
(tasks / "thief" / "solution" / "solve.sh").write_text(THIEF, "utf-8")
played = trials("oracle")
stolen = (played["thief"][1] / "agent" / "oracle.txt").read_text("utf-8")
assert "STOLEN" not in stolen and "THE ROOM ANSWERS" in stolen and played["thief"][0] == 0.0, stolen
for name in [*told, "thief"]:
    if name != "good":
        shutil.rmtree(tasks / name)
shutil.rmtree(WORK / "jobs" / "oracle")
noop = trials("nop")["good"][0]
assert (played["good"][0], noop) == (1.0, 0.0)
tell(f"lint (all rules): no finding; digests as Harbor's; in containers without a network: oracle 1, nop 0, {len(told)} "
     "episodes, and an agent that reads, kills and overwrites gets nothing", digest=manifest["metadata"]["traceroom"]["digest"],
     rewards={name: played[name][0] for name in told}, oracle=played["good"][0], noop=noop)
