"""Links planted in a registry's folder: to files of this machine, to other releases, and in circles; none is pulled or
followed."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tests.attacks.logs import files_below
from tests.attacks.lying import release_of
from tests.attacks.report import Report
from warehouse.errors import TraceroomError


def attack(folder: Path, share: float) -> Report:
    """Replace a content, a list, the current release and whole folders by links."""
    victim = folder / "victim"
    victim.mkdir()
    (victim / "secret").write_text("what only this machine knows")
    problems = []
    places = ("objects", "object", "release", "current", "pins.json", "files")
    for place in places:
        where = folder / place
        registry, release = release_of(where, {"environments/hall/tasks.jsonl": b"{}\n"})
        registry.promote(release, None, "", "Ada")
        stored = next(path for path in (where / "registry/objects").rglob("*") if path.is_file())
        target = {
            "objects": where / "registry/objects",
            "object": stored,
            "release": where / "registry" / release,
            "files": where / "registry" / release / "files.jsonl",
        }.get(place, where / "registry" / place)
        if target.exists():
            target.rename(where / "moved")
        target.symlink_to(victim if target.suffix == "" and place in ("objects", "release") else victim / "secret")
        before = files_below(victim)
        with contextlib.suppress(TraceroomError, OSError, ValueError):
            registry.fetch(release, where / "pulled")
        with contextlib.suppress(TraceroomError, OSError, ValueError):
            list(registry.verify(registry.ids()))
        with contextlib.suppress(TraceroomError, OSError, ValueError):
            registry.pin("mine", release)
        with contextlib.suppress(TraceroomError, OSError, ValueError):
            registry.promote(release, registry.current(), "x", "x")
        with contextlib.suppress(TraceroomError, OSError, ValueError):
            registry.withdraw(release, "x", None, "x")
        pulled = (
            "".join(path.read_text() for path in (where / "pulled").rglob("*") if path.is_file())
            if (where / "pulled").exists()
            else ""
        )
        problems += [f"{place}: the secret is pulled"] if "what only this machine knows" in pulled else []
        problems += [f"{place}: the victim's files are {files_below(victim)}"] if files_below(victim) != before else []
        problems += (
            [f"{place}: the secret is changed"] if (victim / "secret").read_text() != "what only this machine knows" else []
        )
    return Report(len(places), tuple(problems))


def test_no_link_in_a_registry_is_followed_out(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
