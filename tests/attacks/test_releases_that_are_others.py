"""A registry that answers with other contents: swapped, cut, longer, of another release; a pull takes nothing of it."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.lying import release_of
from tests.attacks.report import Report
from warehouse.errors import TraceroomError

FILES = {
    "environments/hall/tasks.jsonl": b'{"task_id": "1"}\n',
    "rewards/hall/rubrics.jsonl": b"{}\n",
    "datasets/a": b"a" * 5_000,
}


def attack(folder: Path, share: float) -> Report:
    """Change each stored file in each way, then pull, list and read."""
    problems, n_tried = [], 0
    changes = {
        "cut": lambda data: data[:-1],
        "longer": lambda data: data + b"\n",
        "empty": lambda data: b"",
        "other": lambda data: b"x" * len(data),
        "a bit": lambda data: bytes([data[0] ^ 1]) + data[1:] if data else b"x",
        "twice": lambda data: data + data,
    }
    stored = sorted(
        str(each.relative_to(folder / "whole/registry")) for each in _registry(folder / "whole").rglob("*") if each.is_file()
    )
    for number, name in enumerate(
        name
        for name in stored
        if not name.startswith(".") and "/environments" not in name and "/rewards" not in name and "/datasets" not in name
    ):
        for way, change in changes.items():
            n_tried += 1
            where = folder / f"{number}{way}"
            registry, release = release_of(where, FILES)
            path = (
                where / "registry" / name.replace("r-" + name.partition("r-")[2][:16], release)
                if name.startswith("r-")
                else where / "registry" / name
            )
            data = path.read_bytes()
            path.chmod(0o600)
            path.unlink()
            path.write_bytes(change(data))
            try:
                pulled = registry.fetch(release, where / "pulled")
                same = all((pulled / each).read_bytes() == content for each, content in FILES.items())
                problems += [] if same else [f"{name}, {way}: another content is pulled"]
                problems += [f"{name}, {way}: it is pulled"] if "objects" in name or "files.jsonl" in name else []
            except TraceroomError:
                pass
            problems += (
                [f"{name}, {way}: something is left"]
                if (where / "pulled").exists() and not any((where / "pulled").iterdir())
                else []
            )
    return Report(n_tried, tuple(problems))


def _registry(where: Path) -> Path:
    release_of(where, FILES)
    return where / "registry"


def test_another_content_is_not_pulled(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
