"""Conditions that tell the acts after which a slot changed from those after which it did not.

In: the rows around both. Out: conditions (`runtime.office.formulas`) that are right for all of them: a list of values of the
column whose write is the event; else of another column; else the least number of a column. Where several columns of one kind
tell them apart, all are kept, and a desk takes what they agree on.
"""

from __future__ import annotations

from typing import Any

from env_builder.runtime.office.formulas import Formula, RowScope

MOST_VALUES, MOST_CONDITIONS = 6, 3
_NAMES = ("new", "old", "target", "after")


def condition_of(changed: list[RowScope], unchanged: list[RowScope], trigger: str, written: str) -> list[Any]:
    """Return conditions that hold in `changed` and not in `unchanged`; empty: there is none.

    `trigger`: the column whose write is the event; `written`: the slot's own column, which after the act says nothing."""
    if trigger:
        own = _listed(["column", "new", trigger], changed, unchanged)
        if own is not None:
            return [own]
    columns = [["column", name, column] for name in _NAMES for column in changed[0].rows.get(name, ())
               if (name, column) != ("after", written)]
    conditions = [condition for formula in columns if (condition := _listed(formula, changed, unchanged)) is not None]
    if not conditions:
        conditions = [condition for name in ("after", "new", "target", "old") for formula in columns if formula[1] == name
                 if (condition := _least(formula, changed, unchanged)) is not None]
    return conditions[:MOST_CONDITIONS]


def _listed(formula: Formula, changed: list[RowScope], unchanged: list[RowScope]) -> list[Any] | None:
    yes, no = _values(formula, changed), _values(formula, unchanged)
    if any(not isinstance(value, (str, bool)) and value is not None for value in (*yes, *no)):
        return None
    if len(yes) > MOST_VALUES or set(yes) & set(no) or len(no) > 4 * MOST_VALUES:
        return None
    if len(changed) > len(yes) or len(yes) == 1:
        return ["in", formula, yes, no]
    return None


def _least(formula: Formula, changed: list[RowScope], unchanged: list[RowScope]) -> list[Any] | None:
    yes, no = _values(formula, changed), _values(formula, unchanged)
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in (*yes, *no)):
        return None
    if min(yes) > max(no):
        return ["at_least", formula, max(no), min(yes)]
    if max(yes) < min(no):
        return ["at_least", ["minus", ["constant", 0], formula], -min(no), -max(yes)]
    return None


def _values(formula: Formula, scopes: list[RowScope]) -> list[Any]:
    return list(dict.fromkeys(scope.rows.get(formula[1], {}).get(formula[2]) for scope in scopes))
