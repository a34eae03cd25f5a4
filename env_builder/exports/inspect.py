"""Environments for Inspect: a task with its scorer, as a file to run and as a package to install.

In: a kit. Out: pyproject.toml, README.md and the package: the adapter (`adapters/inspect_room.py`) and the kit.
"""

from __future__ import annotations

from pathlib import Path

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import PLAY, Kit, lay, module_name
from env_builder.exports.pages import pyproject, readme
from warehouse.records import Verdict, empty

VERSION = "0.3.285"
RUN = """\
    pip install inspect-ai=={version}
    inspect eval {package}/inspect_room.py --model …        # -T split=validation: one side of the split

Installed (`pip install .`) it is `inspect eval {package}/room`. A sample's score is the reward; one that nobody can
score is unscored. Look at samples' errors and scores: a run whose samples all failed may be called a success.
"""


def _write(out: Path, kit: Kit) -> Exported:
    package = module_name(kit)
    paths = lay(kit, out / package, [PLAY, "inspect_room.py"], {"__init__.py": ""})
    pages = {
        "pyproject.toml": pyproject(kit, [f"inspect-ai=={VERSION}"], {"inspect_ai": {package: f"{package}.inspect_room"}}),
        "README.md": readme(kit, "Inspect", RUN.format(package=package, version=VERSION))}
    for path, text in sorted(pages.items()):
        (out / path).write_text(text, "utf-8", newline="\n")
    return Exported(sorted([*(out / path for path in pages), *paths]), empty(Verdict))


EXPORTER = RoomExporter("inspect", _write)
