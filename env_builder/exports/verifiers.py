"""Environments for the verifiers library (0.4.0, `verifiers.v1`) and what is built on it: an installable taskset package.

In: a kit. Out: pyproject.toml, README.md and the package: the adapter (`adapters/verifiers_taskset.py`), the kit, and of each
task whose rubric asks a judge the judge's criteria, as the library's RubricJudge takes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import ADAPTERS, PLAY, Kit, lay, module_name
from env_builder.exports.pages import pyproject, readme
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from warehouse.records import Verdict, empty

VERSION = "0.4.0"
RUN = """\
    pip install .
    vf-validate {name}                 # the known solution is worth 1, doing nothing is not
    vf-eval {name} -n 3

Criteria of judges are in `{package}/criteria/`, a file a task and check, for `--env.taskset.task.judges` (`id = "rubric"`).
"""


def _write(out: Path, kit: Kit) -> Exported:
    package = module_name(kit)
    name = package.replace("_", "-")
    init = (ADAPTERS / "verifiers_package.py").read_text("utf-8")
    paths = lay(kit, out / package, [PLAY, "verifiers_taskset.py"], {"__init__.py": init, **_criteria(kit)})
    pages = {
        "pyproject.toml": pyproject(kit, [f"verifiers=={VERSION}"]),
        "README.md": readme(kit, "verifiers", RUN.format(name=name, package=package))}
    for path, text in sorted(pages.items()):
        (out / path).write_text(text, "utf-8", newline="\n")
    return Exported(sorted([*(out / path for path in pages), *paths]), empty(Verdict))


def _criteria(kit: Kit) -> dict[str, str]:
    """Texts of RubricJudge's files by their paths."""
    found: dict[str, str] = {}
    for rubric in rows_of(kit.grader / "rubrics.jsonl"):
        for check in _judges(rubric["checks"]):
            key = check.get("check_id") or len(found)
            criteria = {"criteria": check["parameters"]["criteria"]}
            found[f"criteria/{rubric['task_id'][:16]}-{key}.json"] = canonical(criteria) + "\n"
    return found


def _judges(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks that ask a judge, those inside others too."""
    return [judge for check in checks for judge in (
        [check] if check["kind"] == "judge" else _judges(check["parameters"].get("checks", [])) if check["kind"] == "combine"
        else [])]


EXPORTER = RoomExporter("verifiers", _write)
