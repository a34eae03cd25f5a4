"""Packages that hold environment and grader for one program: trainers (TRL, SkyRL-Gym, verl, ART, Agent Lightning, Tinker's
cookbook), evaluators (Inspect, verifiers).

In: a kit. A trainer gets a package with its adapter, and the prompts of each split as JSON lines or Parquet beside it. An
evaluator gets an installable package with its adapter; for the verifiers library (0.4.0, `verifiers.v1`) also the criteria of
each check that asks a judge, as its RubricJudge takes them. What verl's configuration sets (`config.yaml` and the two files
that it names) is YAML as JSON is; a tool's schema there keeps what verl's type can say, the whole one is in its description and
in the prompt of the agent loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder.exports import kit as kits
from env_builder.exports.adapters.play import functions
from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import Kit, Row
from env_builder.runtime.canonical import canonical
from env_builder.runtime.checks import kind_of
from env_builder.runtime.files import rows_of
from warehouse.records import Decision, empty

INSPECT_VERSION = "0.3.285"
VERIFIERS_VERSION = "0.4.0"
LONGEST_ANSWER = 1_000_000
"""Characters of a tool's answer that verl may show: all of them."""


class Trainer(NamedTuple):
    """A trainer's export: its adapter, its rows, its page."""

    consumer: str
    modules: tuple[str, ...]
    row: Callable[[Kit, Row, int], Row]
    run: str
    parquet: bool = True
    files: Callable[[Kit], Mapping[str, bytes]] = lambda kit: {}
    """What else stands beside the package."""

    def write(self, out: Path, kit: Kit) -> Exported:
        """Write the package, its page, its rows and its files."""
        package = out / kits.package_of(kit)
        kits.lay(kit, package, ("__init__.py", kits.PLAY, *self.modules))
        paths = [package, *kits.put_page(kit, out, self.consumer, self.run)]
        for split, tasks in kits.tasks_by_split(kit):
            rows = [self.row(kit, task, index) for index, task in enumerate(tasks)]
            if self.parquet:
                paths.append(out / f"{split}.parquet")
                pl.DataFrame(rows).write_parquet(paths[-1])
            else:
                paths += kits.put_lines(out, f"{split}.jsonl", rows)
        return Exported(sorted(paths + kits.put(out, self.files(kit))), empty(Decision))


def _scenario(kit: Kit, task: Row, _: int) -> Row:
    return {"seed": 0, **kits.origin_of(kit, task)}


def _trl_row(kit: Kit, task: Row, _: int) -> Row:
    return {"prompt": kits.prompt_of(task), "seed": 0, **kits.origin_of(kit, task)}


def _skyrl_row(kit: Kit, task: Row, index: int) -> Row:
    return {
        "data_source": f"traceroom/{kit.name}", "prompt": kits.prompt_of(task), "env_class": kits.package_of(kit),
        "reward_spec": {"method": "rule", "ground_truth": task["task_id"]},
        "extra_info": {"index": index, "seed": 0, **kits.origin_of(kit, task)}}


def _verl_row(kit: Kit, task: Row, index: int) -> Row:
    return {
        "data_source": f"traceroom/{kit.name}", "prompt": kits.prompt_of(task), "ability": "agent",
        "agent_name": kits.package_of(kit),
        "reward_model": {"style": "rule", "ground_truth": task["task_id"]},
        "extra_info": {"index": index, "seed": 0, "need_tools_kwargs": False, **kits.origin_of(kit, task)}}


def _verl_files(kit: Kit) -> dict[str, bytes]:
    module = f"{kits.package_of(kit)}.verl_room"
    splits = [split for split, _ in kits.tasks_by_split(kit)]
    # without rows to validate on, verl would look for those of its own example
    files = {name: f"{split if split in splits else splits[0]}.parquet"
             for name, split in (("train_files", "train"), ("val_files", "validation"))}
    tools = [{"class_name": f"{module}.KitTool", "config": {"type": "native"}, "tool_schema": _verl_tool(tool)}
             for tool in functions(kit.tools)]
    configuration = {
        "data": {**files, "return_raw_chat": True, "tool_config_path": "tools.yaml"},
        "actor_rollout_ref": {"rollout": {
            "multi_turn": {"enable": True, "tool_config_path": "tools.yaml", "format": "hermes",
                           "max_tool_response_length": LONGEST_ANSWER},
            "agent": {"agent_loop_config_path": "agent_loop.yaml", "default_agent_loop": kits.package_of(kit)}}},
        "reward": {"custom_reward_function": {"path": f"pkg://{module}", "name": "compute_score"}}}
    documents = {"tools.yaml": {"tools": tools}, "config.yaml": configuration,
                 "agent_loop.yaml": [{"name": kits.package_of(kit), "_target_": f"{module}.KitAgentLoop"}]}
    return {name: (json.dumps(each, indent=1, ensure_ascii=False) + "\n").encode() for name, each in documents.items()}


def _verl_tool(tool: Row) -> Row:
    """Return a tool as verl's own type can hold it; what it cannot stands in the description."""
    function = tool["function"]
    schema = function["parameters"]
    properties = {name: _verl_property(each) for name, each in (schema.get("properties") or {}).items()}
    return {"type": "function", "function": {
        "name": function["name"], "description": _plain(function["description"]),
        "parameters": {"type": "object", "properties": properties, "required": list(schema.get("required") or [])}}}


def _verl_property(schema: Any) -> Row:
    if not isinstance(schema, dict):
        return {"type": "string"}
    described = str(schema.get("description") or "")
    if set(schema) - {"type", "description", "enum"}:
        described = f"{described} JSON schema: {json.dumps(schema, ensure_ascii=False, sort_keys=True)}".strip()
    own = {"type": schema.get("type") or "string", **({"description": _plain(described)} if described else {})}
    return own | ({"enum": schema["enum"]} if "enum" in schema else {})


def _plain(text: str) -> str:
    """Text in which OmegaConf finds nothing to fill in."""
    return text.replace("${", "$ {")


def _installable(kit: Kit, out: Path, consumer: str, run: str, modules: list[str], documents: Mapping[str, str], needs: str,
                 points: Mapping[str, Mapping[str, str]] | None = None) -> Exported:
    """Return an evaluator's package: the adapter and the kit, pyproject.toml and README.md around them."""
    package = kits.module_name(kit)
    paths = kits.lay(kit, out / package, [kits.PLAY, *modules], documents)
    wheel = f"]\npackages = [{json.dumps(package)}]"
    pages = {"pyproject.toml": kits.pyproject(kit, package.replace("_", "-"), needs, wheel, points),
             "README.md": kits.readme(kit, consumer, run)}
    return Exported(sorted([*paths, *kits.put(out, {path: text.encode() for path, text in pages.items()})]), empty(Decision))


def _inspect(out: Path, kit: Kit) -> Exported:
    package = kits.module_name(kit)
    return _installable(
        kit, out, "Inspect", INSPECT_RUN.format(package=package, version=INSPECT_VERSION), ["inspect_room.py"],
        {"__init__.py": ""}, f"inspect-ai=={INSPECT_VERSION}", {"inspect_ai": {package: f"{package}.inspect_room"}})


def _verifiers(out: Path, kit: Kit) -> Exported:
    package = kits.module_name(kit)
    init = (kits.ADAPTERS / "verifiers_package.py").read_text("utf-8")
    files: dict[str, str] = {}
    for rubric in rows_of(kit.grader / "rubrics.jsonl"):
        for check in _judges(rubric["checks"]):
            key = check.get("check_id") or len(files)
            criteria = {"criteria": check["parameters"]["criteria"]}
            files[f"criteria/{rubric['task_id'][:16]}-{key}.json"] = canonical(criteria) + "\n"
    return _installable(
        kit, out, "verifiers", VERIFIERS_RUN.format(name=package.replace("_", "-"), package=package),
        ["verifiers_taskset.py"], {"__init__.py": init, **files}, f"verifiers=={VERIFIERS_VERSION}")


def _judges(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the checks that ask a judge, those inside others too."""
    asking: list[dict[str, Any]] = []
    for check in checks:
        kind = kind_of(check["kind"])
        asking += [check] if kind.asks_model else _judges(kind.nested(check["parameters"]))
    return asking


TRL_RUN = """\
    from {package}.trl_room import TrlEnvironment, reward        # with this folder on PYTHONPATH
    rows = load_dataset("json", data_files="train.jsonl", split="train")
    GRPOTrainer(model=…, environment_factory=TrlEnvironment, reward_funcs=reward, train_dataset=rows)

Tools are methods of `TrlEnvironment`; the model's chat template must be one that TRL can read calls from.
"""
SKYRL_RUN = """\
    from {package} import skyrl_room                   # with this folder on PYTHONPATH
    skyrl_room.register()

The rows (`train.parquet` …) name the environment as `env_class`. The model writes calls as
`<tool_call>{{"name": …, "arguments": {{…}}}}</tool_call>`.
"""
VERL_RUN = """\
`config.yaml` is what to set in verl's configuration, with this folder on PYTHONPATH: tools, the agent loop (verl's tool agent
with a user who answers), the reward function of `{package}`, and the rows.
"""
ART_RUN = """\
    from {package} import art_room                     # with this folder on PYTHONPATH
    groups = await art.gather_trajectory_groups(
        (art_room.group(model, scenario["task_id"], n=8) for scenario in art_room.scenarios("train")), max_exceptions=0.1)
    await backend.train(model, groups)

An unscored episode raises; ART leaves it out of its group, as often as `max_exceptions` allows.
"""
LIGHTNING_RUN = """\
    from {package}.lightning_room import KitAgent      # with this folder on PYTHONPATH
    rows = [json.loads(line) for line in open("train.jsonl")]
    agl.Trainer(algorithm=…, n_runners=8).fit(KitAgent(), train_dataset=rows)

The model is the resource `main_llm`. An unscored episode emits no reward.
"""
TINKER_RUN = """\
    from {package}.tinker_room import KitDatasetBuilder         # with this folder on PYTHONPATH
    builder = KitDatasetBuilder(model_name_for_tokenizer=…, renderer_name=…, batch_size=16, group_size=8)
    config = tinker_cookbook.rl.train.Config(dataset_builder=builder, rollout_error_tolerance=True, …)

An unscored episode raises; with `rollout_error_tolerance` the cookbook leaves it out of its group.
"""
INSPECT_RUN = """\
    pip install inspect-ai=={version}
    inspect eval {package}/inspect_room.py --model …        # -T split=validation: one side of the split

Installed (`pip install .`) it is `inspect eval {package}/room`. A sample's score is the reward; one that nobody can
score is unscored. Look at samples' errors and scores: a run whose samples all failed may be called a success.
"""
VERIFIERS_RUN = """\
    pip install .
    vf-validate {name}                 # the known solution is worth 1, doing nothing is not
    vf-eval {name} -n 3

Criteria of judges are in `{package}/criteria/`, a file a task and check, for `--env.taskset.task.judges` (`id = "rubric"`).
"""
TRL = RoomExporter("trl", Trainer("TRL", ("trl_room.py",), _trl_row, TRL_RUN, parquet=False).write)
SKYRL = RoomExporter("skyrl", Trainer("SkyRL-Gym", ("skyrl_room.py",), _skyrl_row, SKYRL_RUN).write)
VERL = RoomExporter("verl", Trainer("verl", ("verl_room.py",), _verl_row, VERL_RUN, files=_verl_files).write)
ART = RoomExporter("art", Trainer("ART", ("chat_room.py", "art_room.py"), _scenario, ART_RUN, parquet=False).write, True)
LIGHTNING = RoomExporter("agentlightning", Trainer(
    "Agent Lightning", ("chat_room.py", "lightning_room.py"), _scenario, LIGHTNING_RUN, parquet=False).write, True)
TINKER = RoomExporter("tinker", Trainer(
    "Tinker's cookbook", ("chat_room.py", "tinker_room.py"), _scenario, TINKER_RUN, parquet=False).write, True)
INSPECT = RoomExporter("inspect", _inspect)
VERIFIERS = RoomExporter("verifiers", _verifiers, True)
