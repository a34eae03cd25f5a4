"""Each consumer takes its export as it is: its program runs in an interpreter of its own (docs/consumers.md)."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from env_builder.exports import Kit, RoomExporter, named, registered
from tests.conftest import lacking
from tests.consumers.conftest import Export, chosen
from tests.consumers.consumers import CONSUMERS, MUST_RUN, PROGRAMS, SHARED, Consumer
from tests.consumers.episodes import rewarded
from tests.consumers.interpreters import Lacking, interpreter
from tests.consumers.table import COLUMNS, rows

VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


@pytest.mark.slow
@pytest.mark.parametrize("consumer", chosen(), ids=lambda consumer: consumer.name)
def test_a_consumer_takes_its_export_as_it_is(
    consumer: Consumer, export: Export, kit: Kit, tmp_path: Path, note: Callable[..., None], request: pytest.FixtureRequest
) -> None:
    if consumer.docker:
        request.getfixturevalue("base_image")
    try:
        python = interpreter(consumer)
    except Lacking as error:
        note(consumer, version=None, ran=str(error), seconds=None, decision="skipped")
        lacking(f"{consumer.name} cannot be had: {error}")
    folder = export(consumer)
    version = subprocess.run([python, "-c", VERSION, consumer.package], capture_output=True, text=True, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": str(SHARED)}
    begun = time.monotonic()
    done = subprocess.run(
        [python, "-P", PROGRAMS / f"{consumer.name}.py", folder, tmp_path], cwd=tmp_path, capture_output=True, text=True,
        env=environment, check=False)
    seconds = round(time.monotonic() - begun, 1)
    ran = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"ran": "it refused"}
    decision = "passes" if done.returncode == 0 else "fails"
    note(consumer, version=version.stdout.strip(), ran=ran["ran"], seconds=seconds, decision=decision)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    told = json.loads((folder / "episodes.json").read_text("utf-8"))
    if any(isinstance(named(exporter), RoomExporter) for exporter in consumer.exports if exporter in registered()):
        assert ran["digest"] == kit.digest
        assert ran["rewards"] == {each["name"]: rewarded(kit, each) for each in told}


@pytest.mark.slow
def test_the_episodes_of_the_comparison_tell_right_from_wrong(export: Export, kit: Kit) -> None:
    folder = export(CONSUMERS[0]._replace(exports=()))
    told = json.loads((folder / "episodes.json").read_text("utf-8"))
    assert {each["name"]: rewarded(kit, each) for each in told} == {"good": 1.0, "bad": 0.0, "attacker": 0.0}


def test_every_consumer_has_a_program_and_a_row_in_the_table() -> None:
    names = [consumer.name for consumer in CONSUMERS]
    assert [name for name in names if not (PROGRAMS / f"{name}.py").is_file()] == []
    assert {consumer.name for consumer in CONSUMERS if consumer.required} >= MUST_RUN
    table = rows()
    assert [row["consumer"] for row in table] == sorted(names), "write the table anew: just consumers"
    for row in table:
        assert set(row) == set(COLUMNS) and row["decision"] == "passes", row
