"""What an online exporter takes: a built environment, its room and its grader, and what may go out of it.

In: the two directories that a run publishes, or those that `pipelines/cutting.py` made of some sides of the split alone.
Out: a `Kit`, and `lay`, which puts it into what is exported: `room/` and `grader/` verbatim, `kit.json`, and adapter
modules, copied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import rows_of
from warehouse.errors import EnvironmentBroken

ADAPTERS = Path(__file__).parent / "adapters"
PLAY = "play.py"
ABOUT = "kit.json"
Row = dict[str, Any]


class Kit(NamedTuple):
    """A built environment, as online exporters take it."""

    name: str
    """Of the environment."""
    room: Path
    """The room's side, as `environments/NAME` is laid out, with its runtime."""
    grader: Path
    """The grader's side, as `rewards/NAME`."""
    digest: str
    """Content digest of what is exported: the same in every consumer's export of the same selection."""
    tasks: list[Row]
    """Rows of tasks.jsonl, by task_id, each with its `split`."""
    tools: list[Row]
    """MCP descriptors."""
    figures: Row
    """What the published environment says of its fidelity and audit."""


def kit_of(room: Path, grader: Path) -> Kit:
    """The kit of two directories as they stand; EnvironmentBroken where they are none, or not of each other."""
    try:
        manifest = json.loads((room / "manifest.json").read_text("utf-8"))
        rewards = json.loads((grader / "rewards.json").read_text("utf-8"))
        tasks, tools = list(rows_of(room / "tasks.jsonl")), list(rows_of(room / "tools.jsonl"))
        fidelity = {row["tool"]: row.get("support", {}) for row in rows_of(room / "behaviour.jsonl")}
        audit = grader / "audit.json"
        audited = json.loads(audit.read_text("utf-8")) if audit.is_file() else {}
    except (OSError, ValueError) as error:
        raise EnvironmentBroken(str(error), str(room), "build it again with traceroom run") from error
    content, graded = manifest["content_digest"], rewards["rewards_digest"]
    if rewards.get("content_digest", content) != content:
        raise EnvironmentBroken("its rewards are of another room", str(grader), "build it again with traceroom run")
    figures = {
        "content_digest": content, "rewards_digest": graded, "n_tools": len(tools),
        "n_tasks": dict(sorted(Counter(row["split"] for row in tasks).items())), "fidelity": fidelity,
        "coverage": manifest.get("coverage", {}), "audit": audited, "privacy": manifest.get("privacy")}
    return Kit(manifest["name"], room, grader, digest(canonical([content, graded])), tasks, tools, figures)


def lay(kit: Kit, out: Path, modules: Iterable[str | Path] = (PLAY,), documents: Mapping[str, str] | None = None) -> list[Path]:
    """Put a kit into the folder `out`: `room/`, `grader/`, `kit.json`, adapter modules and further texts, by their paths.

    `modules`: names of files of `adapters/`, or paths of other modules; each is copied verbatim. Gives the files, sorted.
    """
    files = {f"{side}/{path.relative_to(folder).as_posix()}": path.read_bytes()
             for side, folder in (("room", kit.room), ("grader", kit.grader)) for path in files_of(folder)}
    files[ABOUT] = about(kit)
    for module in modules:
        path = ADAPTERS / module if isinstance(module, str) else module
        files[path.name] = path.read_bytes()
    files |= {path: text.encode() for path, text in (documents or {}).items()}
    return put(out, files)


def about(kit: Kit) -> bytes:
    """The text of `kit.json`: name, digest, figures."""
    told = {"name": kit.name, "digest": kit.digest, "figures": kit.figures}
    return (json.dumps(told, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


def files_of(folder: Path) -> list[Path]:
    """The files of a directory that belong to it, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def put(out: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files by their paths below `out`, in order; gives them."""
    for name, data in sorted(files.items()):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [out / name for name in sorted(files)]


def module_name(kit: Kit) -> str:
    """The environment's name as a Python package may be called."""
    plain = "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in kit.name.lower())
    return f"traceroom_{plain}"
