"""NeMo Gym: a resources server (adapters/nemo_gym_room.py) with its configuration and manifest, and rows as JSON lines.

`resources_servers/<package>/` is laid out as NeMo Gym's own servers are: app.py, configs/, data/, requirements.txt.
Configuration and manifest are YAML as JSON is. The licence of the rows is for whoever owns the log to say: TBD.
"""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.exports import kit as kits
from env_builder.exports.adapters import play
from env_builder.exports.exporter import Exported, RoomExporter
from warehouse.records import Decision, empty

KINDS = {"train": "train", "validation": "validation", "held_out": "benchmark"}
"""NeMo Gym's word for a split."""
GYM = "nemo-gym>=0.4.0"
RUN = """\
Copy `resources_servers/{package}` among NeMo Gym's own servers and name its `configs/{package}.yaml`. Its rows are in `data/`;
what licence they have is for whoever owns the log to say (`TBD` in the configuration).
"""


def _write(out: Path, kit: kits.Kit) -> Exported:
    name, by_split = kits.package_of(kit), kits.tasks_by_split(kit)
    folder = out / "resources_servers" / name
    datasets = [{"name": split, "type": KINDS[split], "license": "TBD",
                 "jsonl_fpath": f"resources_servers/{name}/data/{split}.jsonl"} for split, _ in by_split]
    server = {"entrypoint": "app.py", "domain": "agent", "verified": False,
              "description": f"{kit.name}: tasks from logs, in a room rebuilt from them, digest {kit.digest}"}
    agent = {"entrypoint": "app.py", "datasets": datasets,
             "resources_server": {"type": "resources_servers", "name": f"{name}_resources_server"},
             "model_server": {"type": "responses_api_models", "name": "policy_model"}}
    configuration = {f"{name}_resources_server": {"resources_servers": {name: server}},
                     f"{name}_simple_agent": {"responses_api_agents": {"simple_agent": agent}}}
    manifest = {
        "name": name, "version": "1.0.0", "kind": "environment", "integration_profile": "custom-gym-verifier",
        "domain": "agent", "description": f"Tasks of {kit.name} mined from logs; digest {kit.digest}", "modality": "text",
        "licensing": "unknown", "authors": [], "reward": {"range": [0, 1], "higher_is_better": True}, "determinism": "seeded",
        "resources_server": name, "agent_server": "simple_agent",
        "datasets": [{key: value for key, value in row.items() if key != "license"} for row in datasets],
        "grading_mode": "state", "session_model": "episode", "state": "per_session", "lifecycle": "active"}
    documents = {f"configs/{name}.yaml": configuration, "manifest.yaml": manifest}
    kits.lay(kit, folder, ("__init__.py", kits.PLAY, "nemo_gym_room.py"), {
        "app.py": (kits.ADAPTERS / "nemo_gym_app.py").read_text("utf-8"), "requirements.txt": f"{GYM}\n",
        **{path: json.dumps(document, indent=1, ensure_ascii=False) + "\n" for path, document in documents.items()}})
    tools = [{"type": "function", "strict": False, **tool["function"]}
             for tool in play.routes_of(play.functions(kit.tools), kit.tasks).functions]
    for split, tasks in by_split:
        kits.put_lines(folder, f"data/{split}.jsonl", ({
            "responses_create_params": {"input": kits.prompt_of(task), "tools": tools, "parallel_tool_calls": False},
            "agent_ref": {"type": "responses_api_agents", "name": f"{name}_simple_agent"},
            "verifier_metadata": {"seed": 0, **kits.origin_of(kit, task)}} for task in tasks))
    return Exported([*kits.put_page(kit, out, "NeMo Gym", RUN), folder], empty(Decision))


EXPORTER = RoomExporter("nemo_gym", _write)
