"""A boatyard's own system with tools of its own, as an engine that records its calls and row changes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.runtime.company import CompanyWorld, FieldVersion

BEGIN = 1_700_000_000_000_000
PEOPLE = {"ada@yard.example": {"staff": "7"}, "ben@yard.example": {"staff": "9"}}
COLUMNS = {"boats": {"name": "text", "rate": "real", "jobs_open": "integer", "billed": "real", "grade": "text"},
           "jobs": {"number": "text", "boat": "text", "hours": "integer", "cost": "real", "state": "text", "opened_by": "text"},
           "parts": {"id": "text", "job": "text", "code": "text", "pieces": "integer"}}
KEYS = {"boats": "name", "jobs": "number", "parts": "id"}
LARGE = 500.0


class RefusedCall(Exception):
    """The engine's words of a refusal."""


class RowEngine:
    """Tables that log their changes, and tools that log their calls."""

    def __init__(self, columns: dict[str, dict[str, str]], keys: dict[str, list[str]], prefix: str) -> None:
        self.tables: dict[str, dict[str, dict[str, Any]]] = {table: {} for table in columns}
        self.versions: list[FieldVersion] = []
        self.calls: list[RecordedCall] = []
        self.now = BEGIN
        self._prefix = prefix
        self._n_changes = 0
        for table, types in columns.items():
            self.versions += [FieldVersion("db_table", table, "columns", types, 0),
                              FieldVersion("db_table", table, "key", keys[table], 0)]

    def world(self) -> CompanyWorld:
        """Return the world of all changes."""
        return CompanyWorld(self.versions)

    def write(self, table: str, key: str, **values: Any) -> None:
        """Write columns of a row and log those that changed."""
        self._n_changes += 1
        row = self.tables[table].setdefault(key, {})
        record, identifier = f"log#{self._n_changes}", f"{table}/{key}"
        self.versions.append(FieldVersion("db", identifier, "$present", True, self.now, record=record))
        for column, value in values.items():
            if row.get(column, self) != value:
                self.versions.append(FieldVersion("db", identifier, column, value, self.now, record=record))
        row.update(values)

    def ask(self, person: str, tool: str, **arguments: Any) -> tuple[str, bool]:
        """Call a tool and record the call."""
        self.now += 60_000_000
        answer, is_error = self.answer(person, tool, arguments)
        self.calls.append(RecordedCall(self.now, person, tool, arguments, answer, is_error))
        return answer, is_error

    def answer(self, person: str, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Answer a call: (text, whether it is an error)."""
        try:
            return str(getattr(self, f"_{tool.removeprefix(self._prefix)}")(person, **arguments)), False
        except RefusedCall as refused:
            return str(refused), True


class Boatyard(RowEngine):
    """A yard with jobs on boats."""

    def __init__(self, n_boats: int = 8) -> None:
        super().__init__(COLUMNS, {table: [key] for table, key in KEYS.items()}, "yard_")
        for number in range(n_boats):
            self.write("boats", f"Boat {number}", name=f"Boat {number}", rate=20.0 + 5 * number, jobs_open=0, billed=0.0,
                       grade="small")
        self.write("jobs", "J-0001", number="J-0001", boat="Boat 0", hours=2, cost=40.0, state="open", opened_by="7")

    def _row(self, table: str, key: str) -> dict[str, Any]:
        if key not in self.tables[table]:
            raise RefusedCall(f"No {key} on file.")
        return self.tables[table][key]

    def _lookup(self, person: str, entity: str, number: str) -> str:
        return json.dumps({"entity": entity, "record": self._row(entity + "s", number)})

    def _list(self, person: str, entity: str, domain: list[list[Any]], limit: int = 4) -> str:
        tests = {"=": lambda one, two: one == two, ">=": lambda one, two: one >= two}
        rows = [row for row in self.tables[entity + "s"].values()
                if all(tests[word](row[column], value) for column, word, value in domain)]
        return json.dumps({"items": rows[:limit], "count": len(rows)})

    def _open(self, person: str, boat: str, hours: int, parts: list[dict[str, Any]]) -> str:
        number = f"J-{len(self.tables['jobs']) + 1:04}"
        self.write("jobs", number, number=number, boat=boat, hours=hours, cost=hours * self._row("boats", boat)["rate"],
                   state="open", opened_by=PEOPLE[person]["staff"])
        for position, part in enumerate(parts, start=1):
            key = f"{number}-{position}"
            self.write("parts", key, id=key, job=number, code=part["code"], pieces=part["pieces"])
        self._count(boat)
        return f"Opened {number} for {boat} ({hours} h)."

    def _close(self, person: str, number: str) -> str:
        job = self._row("jobs", number)
        if job["state"] == "done":
            raise RefusedCall(f"{number} is done already.")
        self.write("jobs", number, state="done")
        boat = self.tables["boats"][job["boat"]]
        billed = boat["billed"] + job["cost"]
        self.write("boats", job["boat"], billed=billed, **({"grade": "large"} if billed >= LARGE else {}))
        self._count(job["boat"])
        return json.dumps({"number": number, "state": job["state"], "cost": job["cost"]})

    def _hours(self, person: str, number: str, hours: int) -> str:
        job = self._row("jobs", number)
        self.write("jobs", number, hours=hours)
        self.write("jobs", number, cost=hours * self.tables["boats"][job["boat"]]["rate"])
        return json.dumps({"entity": "job", "record": job})

    def _count(self, boat: str) -> None:
        self.write("boats", boat, jobs_open=len([job for job in self.tables["jobs"].values() if job["boat"] == boat]))


def worked(seed: int, n_rounds: int = 40) -> Boatyard:
    """Return a boatyard after some work."""
    rng, yard = Random(seed), Boatyard()
    people = list(PEOPLE)
    for _ in range(n_rounds):
        person, boat = rng.choice(people), rng.choice(list(yard.tables["boats"]))
        parts = [{"code": rng.choice("ABC"), "pieces": rng.randint(1, 5)} for _ in range(rng.randint(1, 3))]
        yard.ask(person, "yard_open", boat=boat, hours=rng.randint(1, 9), parts=parts)
        number = rng.choice(list(yard.tables["jobs"]))
        yard.ask(person, "yard_lookup", entity="job", number=number)
        yard.ask(person, "yard_lookup", entity="boat", number=boat)
        yard.ask(person, "yard_list", entity="job", domain=[["boat", "=", boat], ["hours", ">=", rng.randint(1, 5)]],
                 **({"limit": rng.randint(1, 6)} if rng.random() < 0.5 else {}))
        if rng.random() < 0.8:
            yard.ask(person, "yard_hours", number=number, hours=rng.randint(1, 9))
        yard.ask(person, "yard_close", number=rng.choice(list(yard.tables["jobs"])))
        yard.ask(person, "yard_lookup", entity="job", number=f"J-9{rng.randint(100, 999)}")
    return yard
