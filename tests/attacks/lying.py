"""Releases that a lying registry would make: whatever they hold, their ids and digests are right."""

from __future__ import annotations

import shutil
from pathlib import Path

from env_builder.runtime.canonical import canonical, digest
from pipelines.releases.registry import FORMAT, Registry, object_of, release_id


def release_of(folder: Path, files: dict[str, bytes]) -> tuple[Registry, str]:
    """Return a registry below a folder, and the id of its release of these unchecked files (path -> content)."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "beside").mkdir(parents=True)
    root = folder / "registry"
    lines = "".join(
        canonical({"path": path, "sha256": digest(content), "n_bytes": len(content)}) + "\n"
        for path, content in sorted(files.items())
    ).encode()
    manifest = canonical({"format": FORMAT, "files": digest(lines), "figures": {}, "predecessor": None}).encode()
    release = release_id(manifest)
    for name, content in {
        **{object_of(digest(content)): content for content in files.values()},
        f"{release}/manifest.json": manifest,
        f"{release}/files.jsonl": lines,
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Registry(str(root)), release
