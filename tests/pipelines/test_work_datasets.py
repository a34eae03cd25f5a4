"""What people did in a company, as datasets of a run: the stages `company_rooms`, `demonstrations` and `datasets`."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.company import CompanyWorld
from extractors.apps.version import AppVersion
from extractors.work.events import find_events
from extractors.work.finding import CompanyWork
from extractors.work.shapes import ActShapes
from extractors.work.success import WorkOutcome
from pipelines.building.company_rooms import company_rooms
from pipelines.building.datasets import datasets, hold
from pipelines.building.export import Wanted, export
from pipelines.building.work_datasets import demonstrations
from pipelines.building.work_rows import item_rows
from pipelines.settings import Settings
from tests.env_builder.work.test_demonstrations import ACCOUNTS
from tests.env_builder.work.test_solving import orders
from tests.small_company import ADA, NOON, world_of
from warehouse.lock import writing
from warehouse.records import SPLITS, FieldValue, PersonAccount, Session, Turn, WorkItem, WorkItemRow, frame
from warehouse.store import Store

N_ORDERS = 8
Row = dict[str, Any]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run over eight orders, the last but two of which probably ended badly."""
    folder = tmp_path_factory.mktemp("mill") / "out"
    settings = Settings(logs=(), out=str(folder), privacy=False, image=False)
    folder.mkdir()
    versions = orders()
    events = find_events(versions, ACCOUNTS)
    items = [WorkItem(f"order {number}", tuple(event.ref for event in events if begin <= event.at < begin + 9_000_000_000), 1.0,
                      "send loaves", 0.2 if number == N_ORDERS - 3 else 0.9)
             for number, begin in ((number, (NOON + 9_000 * number) * 1_000_000) for number in range(N_ORDERS))]
    unknown = {item.item_id: WorkOutcome(item.success, [], []) for item in items}
    found = CompanyWork(events, items, ActShapes(events), {}, {item.item_id: {} for item in items}, unknown)
    whole = sorted([*world_of().versions, *versions], key=lambda version: version.at)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        store.replace("core.versions", frame(FieldValue, [FieldValue.model_validate({
            "position": place, "entity_class": each.entity_class, "entity_id": each.entity_id, "field": each.field,
            "value": json.dumps(each.value), "changed_at": each.at, "sequence": 0, "actor": getattr(each, "actor", None),
            "guessed_until": each.guessed_until, "record": getattr(each, "record", "")}) for place, each in enumerate(whole)]))
        store.replace("core.accounts", frame(PersonAccount, [
            PersonAccount(address=address, entity_class=kind, account=account)
            for address, own in ACCOUNTS.items() for kind, account in own.items()]))
        store.replace("mart.work_items", frame(WorkItemRow, item_rows(found)))
        sessions, turns = agents_calls(versions)
        store.replace("core.sessions", frame(Session, sessions))
        store.replace("core.turns", frame(Turn, turns))
        company_rooms(store, settings)
        demonstrations(store, settings)
        datasets(store, settings)
        assert hold(store, settings)
        store.publish()
    return folder


def agents_calls(versions: list[AppVersion]) -> tuple[list[Session], list[Turn]]:
    """Return a session of an agent that sent Ada's answers: it teaches how the product names what it sends."""
    world, turns = CompanyWorld(versions).at(2**61), list[Turn]()
    for place, key in enumerate(key for key in world.ids("mail") if world.values("mail", key)["sender"] == ADA):
        mail = world.values("mail", key)
        arguments = canonical({"to": mail["to"][0], "subject": mail["subject"], "body": mail["body"]})
        turns.append(Turn.model_validate(dict.fromkeys(Turn.model_fields) | {
            "turn_id": f"t{place}", "session_id": "s", "service": "main", "position": place, "kind": "call",
            "happened_at": datetime.fromtimestamp(mail["date"], UTC), "tool": "send_gmail_message", "arguments": arguments,
            "content": f"Email sent! Message ID: {hashlib.sha256(key.encode()).hexdigest()[:16]}"}))
    return [Session(session_id="s", source="main", service="main", started_at=None, ended_at=None, day=None, n_messages=0,
                    n_calls=len(turns), identity=ADA, format="test")], turns


def lines(folder: Path, form: str) -> dict[str, list[Row]]:
    return {split: [json.loads(line) for line in (folder / f"{form}.{split}.jsonl").read_text().splitlines()]
            for split in SPLITS}


def test_each_published_task_has_an_episode_on_its_side_that_begins_with_what_it_asks(out: Path) -> None:
    environment = Environment.load(out / "environments" / "company")
    sft = lines(out / "datasets" / "company", "sft")
    assert {task.task_id: task.split for task in environment.tasks} == {
        row["task_id"]: split for split, rows in sft.items() for row in rows}
    assert {split: len(rows) for split, rows in sft.items()} == {"train": 5, "validation": 0, "held_out": 2}
    asked = {task.task_id: task.goal for task in environment.tasks}
    names = {tool["name"] for tool in environment.tools}
    for row in (row for rows in sft.values() for row in rows):
        first = next(message for message in row["messages"] if message["role"] == "user")
        assert first["content"] == asked[row["task_id"]] and row["weight"] == 1.0
        calls = [call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls") or ()]
        assert calls[-1] == "send_gmail_message" and {*calls} <= names


def test_steps_have_rewards_and_observations_of_their_instant_and_name_their_acts(out: Path) -> None:
    steps = pl.concat([pl.read_parquet(out / "datasets" / "company" / f"trajectories.{split}.parquet") for split in SPLITS])
    with Store.published(out / "warehouse.duckdb") as store:
        stored = store.table("mart.work_steps")
        decided = dict(store.read("select subject, reason from mart.decisions where stage = 'demonstrations'").iter_rows())
    assert decided == {f"order {number}": "not_known_good" if number == N_ORDERS - 3 else "demonstration"
                       for number in range(N_ORDERS)}
    for rows in steps.partition_by("episode_id"):
        assert rows["reward"].to_list() == [0.0] * (rows.height - 1) + [1.0] and rows["label_source"].unique().to_list() == [
            "rubric"]
        number = int(rows["episode_id"][0].split()[1])
        seen = canonical(rows.filter(pl.col("kind") == "result")["observation"].to_list())
        assert f"pat{number}@far.example" in seen
        assert not any(f"pat{later}@far.example" in seen for later in range(number + 1, N_ORDERS)), "nothing of later shows"
    acts = {ref for refs in stored["refs"] for ref in refs}
    named = {name for names in steps.filter(pl.col("kind") == "result")["source_event_ids"] for name in names}
    assert acts & named and set(stored["person"]) == {ADA}


def test_an_export_of_the_environment_holds_its_tasks_episodes(out: Path, tmp_path: Path) -> None:
    export("datasets", out / "environments" / "company", tmp_path / "all", Wanted())
    assert lines(tmp_path / "all", "sft") == lines(out / "datasets" / "company", "sft")
    prompts = [row["task_id"] for rows in lines(tmp_path / "all", "grpo").values() for row in rows]
    assert sorted(prompts) == sorted(task.task_id for task in Environment.load(out / "environments" / "company").tasks)
