"""A person of a company: the ids of all their accounts, and what is stored of them.

In: forms of a value that identifies the person, `core.accounts`. Out: the ids that go with it; and `core.versions` and
`core.accounts` without the rows that a later run would leave out too (`companies.without_forgotten`). Does not see: accounts
that the stage `apps` could not give to one person.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.building.companies import without_forgotten
from pipelines.erasing.remembered import Remembered
from warehouse.store import Store


def accounts_of(store: Store, forms: Iterable[str]) -> list[str]:
    """Return the address of a person and the ids of their accounts, if one of these forms is the address or such an id."""
    wanted = {form.strip().lower() for form in forms}
    rows = store.table("core.accounts")
    addresses = {address for address, _, account in rows.select("address", "entity_class", "account").iter_rows()
                 if address.lower() in wanted or (account.lower() in wanted and not account.isdecimal())}
    return list(dict.fromkeys(value for address, account in rows.select("address", "account").iter_rows()
                              if address in addresses for value in (address, account)))


def environments_of(store: Store) -> list[str]:
    """Return the names of the environments of the company."""
    return store.read("select distinct environment from mart.company_rooms order by all")["environment"].to_list()


def erase_versions(store: Store, forgotten: Remembered) -> None:
    """Delete what is stored of forgotten people's accounts."""
    for table, rows in without_forgotten(store, forgotten).items():
        store.replace(table, rows)
