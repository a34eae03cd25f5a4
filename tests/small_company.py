"""A small made-up company of three people, for tests of the tools of office products."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from env_builder.company.content import CompanyContent, company_content
from env_builder.runtime.company import CompanyDesk, CompanyWorld, DeskStart, FieldVersion, PersonSight
from env_builder.runtime.company.desk import Undecided
from env_builder.runtime.office.tools import OfficeTool

NOON = 1772452800
"""2026-03-02T12:00:00Z, in seconds."""
ADA, BEN, CLEO = "ada@mill.example", "ben@mill.example", "cleo@mill.example"
NEVER = 2**62


def fields_of(entity_class: str, entity_id: str, at: float, guessed_until: int = 0, **fields: Any) -> list[FieldVersion]:
    """Return versions of a record's fields; `at` in seconds from noon."""
    return [
        FieldVersion(entity_class, entity_id, name, value, round((NOON + at) * 1e6), None, guessed_until)
        for name, value in fields.items()
    ]


def versions_at(entity_class: str, entity_id: str, at: float, **fields: Any) -> list[FieldVersion]:
    """Return versions of a record's fields; `at` in seconds since 1970."""
    return fields_of(entity_class, entity_id, at - NOON, **fields)


def mail_of(key: str, at: float, sender: str, to: list[str], subject: str, body: str = "", **more: Any) -> list[FieldVersion]:
    """Return a mail and its places: SENT with the sender, with labels that are not known elsewhere."""
    values = {"name": "", "cc": [], "attach": None, "references": [], "thread": key, **more}
    versions = fields_of("mail", key, at, sender=sender, to=to, subject=subject, body=body, date=float(NOON + at), **values)
    versions += fields_of("mailbox", f"{sender}|{key}", at, labels=["SENT"]) if sender in (ADA, BEN, CLEO) else []
    for owner in to:
        if owner in (ADA, BEN, CLEO) and owner != sender:
            versions += fields_of("mailbox", f"{owner}|{key}", at, NEVER, labels=["INBOX"])
    return versions


def world_of(*parts: list[FieldVersion]) -> CompanyWorld:
    """Return a world with a directory of the three, and more versions."""
    people = [
        fields_of("person", address, -1e6, name=name, dept=dept, title=title, email=address)
        for address, name, dept, title in (
            (ADA, "Ada Roe", "Flour", "Miller"),
            (BEN, "Ben Poe", "Sacks", "Head of Sacks"),
            (CLEO, "Cleo Toe", "Sacks", "Sack Manager"),
        )
    ]
    return CompanyWorld([version for part in (*people, *parts) for version in part])


def desk_of(
    world: CompanyWorld, address: str = ADA, at: float = 0, conventions: Mapping[str, Any] | None = None
) -> CompanyDesk:
    """Return somebody's desk at so many seconds from noon."""
    state = world.at(round((NOON + at) * 1e6))
    accounts = {each: {"person": each} for each in (ADA, BEN, CLEO)}
    return CompanyDesk(DeskStart(state, address, accounts, PersonSight(state, address), conventions or {}))


def is_open(tools: Mapping[str, OfficeTool], desk: CompanyDesk, tool: str, **arguments: Any) -> bool:
    """Return whether a tool leaves a call undecided."""
    try:
        tools[tool].answer(desk, arguments)
    except Undecided:
        return True
    return False


def sheets_of(key: str, at: float, name: str, owner: str, readers: list[str], **tabs: list[list[str]]) -> list[FieldVersion]:
    """Return a workbook with its tabs."""
    cells = {f"!{tab}": rows for tab, rows in tabs.items()}
    return fields_of("sheet", key, at, name=name, owner=owner, readers=readers, modified=float(NOON + at), **cells)


def content_of(*parts: list[FieldVersion]) -> CompanyContent:
    """Return the content of the company's app, with the products that its records are of."""
    return company_content(world_of(*parts).versions, [], {each: {"person": each} for each in (ADA, BEN, CLEO)}, {})


def instant_at(at: float = 0) -> str:
    """Return the ISO instant so many seconds from noon."""
    return datetime.fromtimestamp(NOON + at, UTC).isoformat()
