"""verl: a package with tools, agent loop and reward function (adapters/verl_room.py), how to set them, and rows as Parquet.

What is set (`config.yaml`, and the two files that it names) is YAML as JSON is. A tool's schema there keeps what verl's type
can say; the whole one is in its description and in the prompt of the agent loop.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from env_builder.exports.adapters.play import functions
from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import Kit, Row, put
from env_builder.exports.training import lay_package, origin_of, package_of, prompt_of, put_page, sides
from warehouse.records import Verdict, empty

LONGEST_ANSWER = 1_000_000
"""Characters of a tool's answer that verl may show: all of them."""

RUN = """\
`config.yaml` is what to set in verl's configuration, with this folder on PYTHONPATH: tools, the agent loop (verl's tool agent
with a user who answers), the reward function of `{package}`, and the rows.
"""


def _write(out: Path, kit: Kit) -> Exported:
    paths = lay_package(kit, out, "turns.py", "verl_room.py") + put_page(kit, out, "verl", RUN)
    for side, tasks in sides(kit):
        paths.append(out / f"{side}.parquet")
        pl.DataFrame([_row(kit, task, index) for index, task in enumerate(tasks)]).write_parquet(paths[-1])
    module = f"{package_of(kit)}.verl_room"
    tools = [{"class_name": f"{module}.RoomTool", "config": {"type": "native"}, "tool_schema": _told(tool)}
             for tool in functions(kit.tools)]
    loops = [{"name": package_of(kit), "_target_": f"{module}.RoomAgentLoop"}]
    paths += put(out, {"tools.yaml": _text({"tools": tools}), "agent_loop.yaml": _text(loops),
                       "config.yaml": _text(_configuration(kit, module))})
    return Exported(sorted(paths), empty(Verdict))


def _row(kit: Kit, task: Row, index: int) -> Row:
    origin = origin_of(kit, task)
    return {
        "data_source": f"traceroom/{kit.name}", "prompt": prompt_of(task), "ability": "agent", "agent_name": package_of(kit),
        "reward_model": {"style": "rule", "ground_truth": task["task_id"]},
        "extra_info": {"index": index, "seed": 0, "need_tools_kwargs": False, **origin}}


def _configuration(kit: Kit, module: str) -> Row:
    files = {f"{name}_files": f"{side}.parquet" for side, name in (("train", "train"), ("validation", "val"))
             if side in dict(sides(kit))}
    return {
        "data": {**files, "return_raw_chat": True, "tool_config_path": "tools.yaml"},
        "actor_rollout_ref": {"rollout": {
            "multi_turn": {"enable": True, "tool_config_path": "tools.yaml", "format": "hermes",
                           "max_tool_response_length": LONGEST_ANSWER},
            "agent": {"agent_loop_config_path": "agent_loop.yaml", "default_agent_loop": package_of(kit)}}},
        "reward": {"custom_reward_function": {"path": f"pkg://{module}", "name": "compute_score"}}}


def _told(tool: Row) -> Row:
    """A tool as verl's own type can hold it; what it cannot stands in the description."""
    function = tool["function"]
    schema = function["parameters"]
    properties = {name: _property(each) for name, each in (schema.get("properties") or {}).items()}
    return {"type": "function", "function": {
        "name": function["name"], "description": _plain(function["description"]),
        "parameters": {"type": "object", "properties": properties, "required": list(schema.get("required") or [])}}}


def _property(schema: Any) -> Row:
    if not isinstance(schema, dict):
        return {"type": "string"}
    described = str(schema.get("description") or "")
    if set(schema) - {"type", "description", "enum"}:
        described = f"{described} JSON schema: {json.dumps(schema, ensure_ascii=False, sort_keys=True)}".strip()
    told = {"type": schema.get("type") or "string", **({"description": _plain(described)} if described else {})}
    return told | ({"enum": schema["enum"]} if "enum" in schema else {})


def _plain(text: str) -> str:
    """Text in which OmegaConf finds nothing to fill in."""
    return text.replace("${", "$ {")


def _text(document: Any) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


EXPORTER = RoomExporter("verl", _write)
