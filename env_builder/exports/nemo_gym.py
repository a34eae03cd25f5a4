"""NeMo Gym: a resources server (adapters/nemo_gym_room.py) with its configuration and manifest, and rows as JSON lines.

`resources_servers/<package>/` is laid out as NeMo Gym's own servers are: app.py, configs/, data/, requirements.txt.
Configuration and manifest are YAML as JSON is. The licence of the rows is for whoever owns the log to say: TBD.
"""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.exports.adapters import routes
from env_builder.exports.adapters.play import functions
from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import ADAPTERS, PLAY, Kit, Row, lay
from env_builder.exports.training import origin_of, package_of, prompt_of, put_lines, put_page, sides
from warehouse.records import Verdict, empty

KINDS = {"train": "train", "validation": "validation", "held_out": "benchmark"}
"""NeMo Gym's word for a side."""
GYM = "nemo-gym>=0.4.0"
RUN = """\
Copy `resources_servers/{package}` among NeMo Gym's own servers and name its `configs/{package}.yaml`. Its rows are in `data/`;
what licence they have is for whoever owns the log to say (`TBD` in the configuration).
"""


def _write(out: Path, kit: Kit) -> Exported:
    folder = out / "resources_servers" / package_of(kit)
    lay(kit, folder, ("__init__.py", PLAY, "routes.py", "nemo_gym_room.py"), {
        "app.py": (ADAPTERS / "nemo_gym_app.py").read_text("utf-8"), "requirements.txt": f"{GYM}\n",
        f"configs/{package_of(kit)}.yaml": _text(_configuration(kit)), "manifest.yaml": _text(_manifest(kit))})
    tools = [{"type": "function", "strict": False, **tool["function"]}
             for tool in routes.of(functions(kit.tools), kit.tasks).functions]
    for side, tasks in sides(kit):
        put_lines(folder, f"data/{side}.jsonl", (_row(kit, task, tools) for task in tasks))
    return Exported([*put_page(kit, out, "NeMo Gym", RUN), folder], empty(Verdict))


def _row(kit: Kit, task: Row, tools: list[Row]) -> Row:
    return {
        "responses_create_params": {"input": prompt_of(task), "tools": tools, "parallel_tool_calls": False},
        "agent_ref": {"type": "responses_api_agents", "name": f"{package_of(kit)}_simple_agent"},
        "verifier_metadata": {"seed": 0, **origin_of(kit, task)}}


def _datasets(kit: Kit) -> list[Row]:
    return [{"name": side, "type": KINDS[side], "license": "TBD",
             "jsonl_fpath": f"resources_servers/{package_of(kit)}/data/{side}.jsonl"} for side, _ in sides(kit)]


def _configuration(kit: Kit) -> Row:
    name = package_of(kit)
    server = {"entrypoint": "app.py", "domain": "agent", "verified": False,
              "description": f"{kit.name}: tasks from logs, in a room rebuilt from them, digest {kit.digest}"}
    agent = {"entrypoint": "app.py", "datasets": _datasets(kit),
             "resources_server": {"type": "resources_servers", "name": f"{name}_resources_server"},
             "model_server": {"type": "responses_api_models", "name": "policy_model"}}
    return {f"{name}_resources_server": {"resources_servers": {name: server}},
            f"{name}_simple_agent": {"responses_api_agents": {"simple_agent": agent}}}


def _manifest(kit: Kit) -> Row:
    return {
        "name": package_of(kit), "version": "1.0.0", "kind": "environment", "integration_profile": "custom-gym-verifier",
        "domain": "agent", "description": f"Tasks of {kit.name} mined from logs; digest {kit.digest}", "modality": "text",
        "licensing": "unknown", "authors": [], "reward": {"range": [0, 1], "higher_is_better": True}, "determinism": "seeded",
        "resources_server": package_of(kit), "agent_server": "simple_agent", "datasets": [
            {"name": row["name"], "type": row["type"], "jsonl_fpath": row["jsonl_fpath"]} for row in _datasets(kit)],
        "grading_mode": "state", "session_model": "episode", "state": "per_session", "lifecycle": "active"}


def _text(document: Row) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


EXPORTER = RoomExporter("nemo_gym", _write)
