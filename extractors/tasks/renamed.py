"""What persons call families, in the place of what was made up or written.

In: goals, names, and corrections of families. Out: names, and a verdict on each correction. A kind of request that is called
otherwise is called so in families of several kinds too, unless these have a person's name of their own.
Sees: ids of families and of kinds. Does not see: whether a name fits.
"""

from __future__ import annotations

import json

import polars as pl

from extractors.tasks.names import Names, families_of
from warehouse.records import FamilyName, Verdict, frame

STAGE = "names"
MOST_FAMILIES = 20
"""Families that a verdict names."""


def renamed(goals: pl.DataFrame, names: Names, corrections: pl.DataFrame) -> tuple[Names, pl.DataFrame]:
    """(names, frame of `Verdict`: what each correction of a family came to)."""
    said = {row["subject"]: row for row in corrections.sort("correction_id").to_dicts()}
    rows = {row["family"]: FamilyName(**row) for row in names.families.to_dicts()}
    kinds = {name: row for name, row in rows.items() if row.kinds == [name]}
    own = {name: _called(row, said[name]) for name, row in rows.items() if name in said}
    if own:
        together = {row["family"]: FamilyName(**row) for row in families_of(goals, kinds | {
            name: row for name, row in own.items() if name in kinds}).to_dicts()}
        touched = {name for name, row in rows.items() if own.keys() & set(row.kinds)}
        rows |= {name: together[name] for name in touched if name in together} | own
    verdicts = [_verdict(row, subject in rows, sorted(rows)) for subject, row in sorted(said.items())]
    return names._replace(families=frame(FamilyName, list(rows.values())).sort("service", "family")), frame(Verdict, verdicts)


def _called(row: FamilyName, said: dict[str, str]) -> FamilyName:
    return row.model_copy(update={"name": " ".join(json.loads(said["value"]).split()), "written_by": said["author"]})


def _verdict(said: dict[str, str], is_there: bool, families: list[str]) -> Verdict:
    detail = (f"{said['author']} calls family {said['subject']} {said['value']}: {said['why']}" if is_there else
              f"{said['author']} named family {said['subject']!r}, which is not there; there are: "
              f"{', '.join(families[:MOST_FAMILIES])}.")
    return Verdict(stage=STAGE, subject=said["correction_id"], kept=is_there,
                   reason="name_corrected" if is_there else "no_such_family", detail=detail)
