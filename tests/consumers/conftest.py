"""What the tests of consumers share: one task set exported once for all workers, and the notes of what ran."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from env_builder.exports import Kit, RoomExporter, export_room, registered
from pipelines.building.cut import cut
from pipelines.building.datasets import FOR_TRAINING
from tests.command_line import called
from tests.consumers.consumers import CONSUMERS, Consumer
from tests.consumers.episodes import episodes
from tests.consumers.hostile import episode, hostile

Export = Callable[[Consumer], Path]


@pytest.fixture(scope="session")
def kit(sample_run: Path, sample_environment: Path) -> Kit:
    """Return the sample's environment, cut for training."""
    with FileLock(sample_run.parent / "consumers.lock"):
        return cut(sample_environment, FOR_TRAINING)


@pytest.fixture(scope="session")
def export(sample_run: Path, sample_environment: Path, kit: Kit) -> Export:
    """Folder with the exports that a consumer reads, each made once: of the sample's environment cut for training, and in
    `hostile/` of a room with awkward tools where the consumer takes a room."""
    folder = sample_run.parent / "consumers"

    def exported(consumer: Consumer) -> Path:
        with FileLock(sample_run.parent / "consumers.lock"):
            if not folder.exists():
                folder.mkdir()
                (folder / "episodes.json").write_text(json.dumps(episodes(kit)), "utf-8")
            for name in consumer.exports:
                if not (folder / f"{name}.done").exists():
                    done = called("export", name, sample_environment, "--to", folder / name)
                    assert done.returncode == 0, done.stderr
                    if isinstance(registered().get(name), RoomExporter):
                        odd = hostile(folder / "hostile" / f"{name}.built")
                        export_room(name, folder / "hostile" / name, odd)
                        (folder / "hostile" / "episodes.json").write_text(json.dumps([episode()]), "utf-8")
                    (folder / f"{name}.done").touch()
        return folder

    return exported


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Write down what ran, where TRACEROOM_CONSUMERS_NOTES names a folder (`just consumers` does)."""
    folder = os.environ.get("TRACEROOM_CONSUMERS_NOTES")

    def write(consumer: Consumer, **row: object) -> None:
        if folder:
            (Path(folder) / f"{consumer.name}.json").write_text(json.dumps({"consumer": consumer.name, **row}), "utf-8")

    return write


def chosen() -> list[Consumer]:
    """Return the consumers that this run is about: those that CI must run, all with TRACEROOM_CONSUMERS=all."""
    return [consumer for consumer in CONSUMERS if consumer.required or os.environ.get("TRACEROOM_CONSUMERS") == "all"]
