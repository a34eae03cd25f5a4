"""One person over all systems."""

from __future__ import annotations

from env_builder.people import find_people
from env_builder.runtime.company import CompanyWorld, FieldVersion

_ACCOUNTS = (
    ("person", "ada.berg@e.org", {"name": "Ada Berg", "email": "ada.berg@e.org"}),
    ("person", "k@e.org", {"name": "Kim Ålund", "email": "k@e.org"}),
    ("person", "al@e.org", {"name": "Alf Berg", "email": "al@e.org"}),
    ("slack_user", "U1", {"real_name": "Addie", "email": "Ada.Berg@e.org"}),
    ("jira_user", "a1", {"display_name": "Ada Berg", "email": None}),
    ("jira_user", "a2", {"display_name": "Kim Alund", "email": None}),
    ("db", "staff/7", {"name": "Kim", "email": "k@e.org"}),
    ("db", "clients/9", {"name": "Ada Berg", "email": "ada@elsewhere.org"}),
    ("gh", "r#1", {"author": "kalund-dev"}),
    ("gh", "r#2", {"author": "aberg"}),
)


def people_of(*more: tuple[str, str, dict[str, str | None]]) -> dict[str, dict[str, str]]:
    versions = [FieldVersion(kind, key, field, value, 1) for kind, key, fields in (*_ACCOUNTS, *more)
                for field, value in fields.items()]
    return {person.address: person.accounts for person in find_people(CompanyWorld(versions).at(5))}


def test_accounts_join_by_address_name_and_login() -> None:
    people = people_of()
    assert people["ada.berg@e.org"] == {"person": "ada.berg@e.org", "slack_user": "U1", "jira_user": "a1"}
    assert people["k@e.org"] == {"person": "k@e.org", "jira_user": "a2", "staff": "7", "login": "kalund-dev"}


def test_a_login_or_a_name_that_fits_two_people_is_nobodys() -> None:
    assert "login" not in people_of()["ada.berg@e.org"] and "login" not in people_of()["al@e.org"]   # aberg
    namesake = ("person", "ada2@e.org", {"name": "Ada Berg", "email": "ada2@e.org"})
    assert "jira_user" not in people_of(namesake)["ada.berg@e.org"]
    twin = ("jira_user", "a3", {"display_name": "Kim Ålund", "email": None})
    assert "jira_user" not in people_of(twin)["k@e.org"]


def test_customers_are_no_people_of_the_company() -> None:
    assert "ada@elsewhere.org" not in people_of()
