"""A theatre's store of props with tools of another shape than the boatyard's: pages, flat filters, joined names, history."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.env_builder.company.boatyard import PEOPLE, RefusedCall, RowEngine

COLUMNS = {"PROP": {"prop_id": "integer", "label": "text", "shelf": "text", "value": "real", "state": "text",
                    "revision": "integer", "changed_by": "text"},
           "SHELF": {"code": "text", "room": "text"},
           "LOAN": {"show": "text", "prop_id": "integer", "nights": "integer"},
           "HISTORY": {"entry": "integer", "prop_id": "integer", "what": "text"}}
KEYS = {"PROP": ["prop_id"], "SHELF": ["code"], "LOAN": ["show", "prop_id"], "HISTORY": ["entry"]}


class PropStore(RowEngine):
    """The engine."""

    def __init__(self, n_props: int = 30) -> None:
        super().__init__(COLUMNS, KEYS, "store.")
        rng = Random(5)
        for code, room in (("A1", "cellar"), ("B2", "attic"), ("C3", "hall")):
            self.write("SHELF", code, code=code, room=room)
        for number in range(1, n_props + 1):
            self.write("PROP", str(number), prop_id=number, label=f"Prop {number}", shelf=rng.choice(("A1", "B2", "C3")),
                       value=float(rng.randint(1, 50)), state=rng.choice(("ready", "broken")), revision=1, changed_by="7")
            self.write("LOAN", f"Hamlet/{number}", show="Hamlet", prop_id=number, nights=number % 7)

    def _seek(self, person: str, shelf: str | None = None, min_value: float = 0, page: int = 1, page_size: int = 5) -> str:
        rows = [row for row in self.tables["PROP"].values()
                if shelf in (None, row["shelf"]) and row["value"] >= min_value]
        shown = rows[(page - 1) * page_size:page * page_size]
        return json.dumps({"total": len(rows), "more": page * page_size < len(rows), "data": [
            {"id": row["prop_id"], "label": row["label"], "room": self.tables["SHELF"][row["shelf"]]["room"]}
            for row in shown]}, indent=2)

    def _show(self, person: str, kind: str, key: str) -> str:
        rows = self.tables[kind.upper()]
        if key not in rows:
            raise RefusedCall(json.dumps({"error": f"{kind} {key} does not exist"}))
        extra = {"loans": [{"show": loan["show"], "nights": loan["nights"]} for loan in self.tables["LOAN"].values()
                           if loan["prop_id"] == rows[key]["prop_id"]]} if kind == "prop" else {}
        return json.dumps({**rows[key], **extra})

    def _change(self, person: str, prop: int, fields: dict[str, Any]) -> str:
        row = self.tables["PROP"][str(prop)]
        is_moved = fields.get("shelf", row["shelf"]) != row["shelf"]
        self.write("PROP", str(prop), **fields, revision=row["revision"] + 1, changed_by=PEOPLE[person]["staff"])
        if is_moved:
            entry = len(self.tables["HISTORY"]) + 1
            self.write("HISTORY", str(entry), entry=entry, prop_id=prop, what=f"moved to {fields['shelf']}")
        return f"Prop #{prop} is at revision {row['revision']}."


def played(seed: int, n_rounds: int = 60) -> PropStore:
    """Return a store after some work."""
    rng, store = Random(seed), PropStore()
    for _ in range(n_rounds):
        person = rng.choice(list(PEOPLE))
        number = rng.randint(1, 30)
        store.ask(person, "store.seek", shelf=rng.choice(("A1", "B2", "C3")), min_value=rng.randint(0, 20),
                  **rng.choice(({}, {"page": rng.randint(1, 2)}, {"page_size": rng.randint(2, 4)})))
        store.ask(person, "store.show", kind="prop", key=str(number))
        store.ask(person, "store.show", kind="loan", key=f"Hamlet/{number}")
        store.ask(person, "store.show", kind="shelf", key=rng.choice(("A1", "B2", "C3")))
        if rng.random() < 0.3:
            store.ask(person, "store.show", kind="prop", key=str(number + 100))
        fields = rng.choice(({"state": rng.choice(("ready", "broken"))}, {"shelf": rng.choice(("A1", "B2", "C3"))},
                             {"value": float(rng.randint(1, 50))}))
        store.ask(person, "store.change", prop=number, fields=fields)
    return store
