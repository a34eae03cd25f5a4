"""The directory of a company's people, as Google's Admin SDK or Microsoft Graph list users.

Sees: addresses, names, departments and titles as of the export. Does not see, and says so: when somebody was suspended.
Does not see that a title or department was another one before: directories list no changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.apps.version import BEGINNING, NEVER_KNOWN, AppRow, AppVersion, CompanyApp, ExportFile, bad_row

PERSON = "person"


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file lists users of a directory."""
    head = file.content[:8000]
    return file.name.endswith(".json") and (
        b'"primaryEmail"' in head or b'"userPrincipalName"' in head or b'admin#directory#user' in head)


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of people, by address."""
    for file in files:
        try:
            content = file.json()
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        rows = content.get("users") or content.get("value") or [] if isinstance(content, dict) else content
        for index, row in enumerate(rows):
            try:
                yield from _person(row, f"{file.path}#{index}")
            except (KeyError, TypeError, AttributeError) as error:
                yield bad_row(file, str(index), error)


def _person(row: dict[str, Any], record: str) -> Iterator[AppVersion]:
    address = str(row.get("primaryEmail") or row.get("mail") or row["userPrincipalName"]).lower()
    work = (row.get("organizations") or [{}])[0]
    name = row["name"].get("fullName") if isinstance(row.get("name"), dict) else row.get("displayName")
    enabled = not row.get("suspended", False) and row.get("accountEnabled", True)
    fields = {"name": name, "dept": work.get("department") or row.get("department"), "email": address,
              "title": work.get("title") or row.get("jobTitle")}
    for field, value in fields.items():
        yield AppVersion(PERSON, address, field, value, BEGINNING, record=record)
    yield AppVersion(PERSON, address, "active", enabled, BEGINNING, guessed_until=BEGINNING if enabled else NEVER_KNOWN,
                     record=record)


APP = CompanyApp("directory", claims, read, rank=12, advice=(
    (PERSON, "active", "Google Admin reports API: SUSPEND_USER; Microsoft Entra audit log"),
))
