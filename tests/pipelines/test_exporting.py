"""A split that leaks publishes nothing of its service but the report that says so."""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.exporting import datasets
from pipelines.settings import Settings
from warehouse.records import Leakage, Task, frame, frame_schema
from warehouse.store import Store


def test_a_split_that_leaks_stops_the_datasets_of_its_service(tmp_path: Path) -> None:
    settings = Settings(logs=(), out=str(tmp_path / "out"))
    Path(settings.out).mkdir()
    tasks, reports = [], []
    for service, leaks in (("tight", 0), ("leaky", 2)):
        row = dict.fromkeys(frame_schema(Task)) | {
            "task_id": service, "service": service, "family": "f", "slots": "{}", "goal": "g", "split": "train",
            "session_ids": [f"of {service}"], "good_session_ids": [], "ways": "[]", "asked_for": "[]", "told": "[]",
            "signature": "[]"}
        tasks.append(row)
        reports.append({"service": service, "report": json.dumps({"method": "component", "leaks": leaks})})
    with Store.open(settings.warehouse) as store:
        store.replace("mart.tasks", frame(Task, tasks))
        store.replace("mart.leakage", frame(Leakage, reports))
        datasets(store, settings)
        told = store.read("select subject, reason, detail from mart.verdicts where stage = 'datasets' and not kept").rows()
    files = {folder.name: sorted(path.name for path in folder.iterdir()) for folder in Path(settings.datasets).iterdir()}
    assert files["leaky"] == ["leakage.json"]
    assert {"README.md", "trajectories.train.parquet"} <= set(files["tight"])
    leaky = [detail for subject, reason, detail in told if (subject, reason) == ("of leaky", "leak")]
    assert leaky == ["2 things stand on several sides of the split of leaky; see its leakage.json"]
