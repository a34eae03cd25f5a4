"""A registry whose lists are none: what is current, its pins, promotions, manifests and tombstones; each gives one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.lying import release_of
from tests.attacks.report import Report
from tests.command_line import called

CONTENTS = (b"", b"\n\n", b"{", b"[]", b"null", b"../../../etc", b"/etc/passwd\n", b"r-\n", b"\xff\xfe", b"1", b'"x"', b"{}",
    b"[" * 50_000,
            json.dumps({"paper": "../../x"}).encode(), json.dumps({"paper": 5, "to": {}}).encode(), b"r-0000000000000000",
            b"a" * 1_000_000)


def attack(folder: Path, share: float) -> Report:
    """Put each content in each place, and run the commands that read a registry."""
    problems, n_tried = [], 0
    registry, release = release_of(folder, {"environments/hall/tasks.jsonl": b"{}\n", "manifest": b"{}"})
    registry.promote(release, None, "", "Ada")
    registry.pin("paper", release)
    for name in ("current", "pins.json", "promotions.jsonl", f"{release}/manifest.json", f"{release}/files.jsonl",
        f"{release}/withdrawn.json"):
        path = folder / "registry" / name
        before = path.read_bytes() if path.exists() else None
        for content in CONTENTS if share >= 0.1 else CONTENTS[::4]:
            path.unlink(missing_ok=True)
            path.write_bytes(content)
            for command in (("releases",), ("pull", "current", "--to", folder / "pulled"), ("gc", "--dry-run"), ("diff",
                "current", "paper")):
                n_tried += 1
                done = called(*command, "--registry", folder / "registry")
                if "mistake in Traceroom" in done.stderr or "Traceback" in done.stderr:
                    problems.append(f"{name} = {content[:20]!r}, {command[0]}: {done.stderr[-400:]}")
        path.unlink()
        if before is not None:
            path.write_bytes(before)
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_a_registry_that_lies_gets_one_sentence(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
