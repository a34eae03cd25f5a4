"""One person over all systems of a company.

In: a state of the company's world, usually the last one. Out: `CompanyPerson`s, each with the ids of the accounts that are
this person's. Sees: equal addresses; equal full names; logins made from a name (an initial and the other name, both names) or
from an address. A name or a login counts where exactly one person fits it, and exactly one account of that kind fits the
person; where two fit, it abstains. Does not see: nicknames, first names alone; accounts that no record names; that two people
of one name are two where no address tells them apart.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from env_builder.runtime.company import CompanyState

_LISTED = {"person": ("name", "email"), "slack_user": ("real_name", "email"), "jira_user": ("display_name", "email"),
           "wiki_user": ("display_name", "email")}
"""Class of accounts -> fields of the full name and of the address."""
_NAMED_BY = {"gh": ("author", "assignee"), "gh_comment": ("author",), "gh_review": ("author",)}
"""Class of records -> fields that hold logins."""
LOGIN = "login"
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_LETTERS = re.compile(r"[^a-z]+")
_SUFFIX = re.compile(r"(?:[-_.](?:dev|gh|work|bot|hq|io|co|eng|x))+$|\d+$")


class CompanyPerson(NamedTuple):
    """A person, by the address that identifies them."""

    address: str
    name: str
    accounts: dict[str, str]
    """Class of accounts -> id; `login` for the code host, a table's name for rows with an address."""


class _Account(NamedTuple):
    kind: str
    key: str
    name: str
    address: str


def find_people(state: CompanyState) -> list[CompanyPerson]:
    """Return the people of a company, by address."""
    accounts = _accounts(state)
    names: dict[str, str] = {}
    owned: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for account in accounts:
        if account.address:
            owned[account.address][account.kind].add(account.key)
            names[account.address] = names.get(account.address) or account.name
    _join_names(accounts, names, owned)
    _join_logins(_logins(state), names, owned)
    return [CompanyPerson(address, names[address], {kind: next(iter(keys)) for kind, keys in sorted(owned[address].items())
                                                    if len(keys) == 1})
            for address in sorted(owned)]


def _accounts(state: CompanyState) -> list[_Account]:
    accounts = []
    for kind, (name, address) in _LISTED.items():
        for key in state.ids(kind):
            accounts.append(_Account(kind, key, str(state.guess(kind, key, name) or ""),
                                     str(state.guess(kind, key, address) or "").strip().lower()))
    accounts += _rows_of_people(state)
    inside = {account.address.rpartition("@")[2] for account in accounts if account.kind == "person" and account.address}
    if inside:   # a directory says who belongs to the company: customers' rows are no people of it
        accounts = [each for each in accounts if not each.address or each.address.rpartition("@")[2] in inside]
    return accounts


def _rows_of_people(state: CompanyState) -> list[_Account]:
    """Return the rows of tables in which a row has one address, and no two rows the same: a row is somebody's account there."""
    tables: dict[str, list[_Account]] = defaultdict(list)
    for key in state.ids("db"):
        texts = {field: value.strip() for field, value in state.values("db", key).items() if isinstance(value, str)}
        addresses = {value.lower() for value in texts.values() if _ADDRESS.fullmatch(value)}
        if len(addresses) == 1:
            table, _, own = key.partition("/")
            name = next((value for field, value in texts.items() if "name" in field.lower()), "")
            tables[table].append(_Account(table, own, name, addresses.pop()))
    return [account for rows in tables.values() if len({row.address for row in rows}) == len(rows) for account in rows]


def _join_names(accounts: list[_Account], names: dict[str, str], owned: dict[str, dict[str, set[str]]]) -> None:
    """Give accounts without an address to the one person of their name."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for address, name in names.items():
        if name:
            by_name[" ".join(words_of(name))].append(address)
    claims: dict[tuple[str, str], list[str]] = defaultdict(list)
    for account in accounts:
        people = by_name.get(" ".join(words_of(account.name)), []) if not account.address and account.name else []
        people = [address for address in people if account.kind not in owned[address]]
        if len(people) == 1:
            claims[people[0], account.kind].append(account.key)
    for (address, kind), keys in claims.items():
        if len(keys) == 1:
            owned[address][kind].add(keys[0])


def _logins(state: CompanyState) -> list[str]:
    logins = {state.guess(kind, key, field) for kind, fields in _NAMED_BY.items() for key in state.ids(kind)
              for field in fields}
    logins |= {version.actor for version in state.world.versions
               if version.entity_class in _NAMED_BY and version.at <= state.instant}
    return sorted(login for login in logins if isinstance(login, str) and login)


def _join_logins(logins: Iterable[str], names: dict[str, str], owned: dict[str, dict[str, set[str]]]) -> None:
    """Give each login to the one person whose name or address makes it, if it is that person's only one."""
    made: dict[str, set[str]] = defaultdict(set)
    strength: dict[tuple[str, str], int] = {}
    for address, name in names.items():
        for rank, shape in _shapes(name, address):
            made[shape].add(address)
            strength[shape, address] = min(rank, strength.get((shape, address), rank))
    claims: dict[str, list[str]] = defaultdict(list)
    for login in logins:
        people: set[str] = set()
        for shape in dict.fromkeys((_plain(login), _plain(_SUFFIX.sub("", login.lower())))):
            fitting = made.get(shape, set())
            best = min((strength[shape, address] for address in fitting), default=0)
            people |= {address for address in fitting if strength[shape, address] == best}
        if len(people) == 1:
            claims[people.pop()].append(login)
    for address, keys in claims.items():
        if len(keys) == 1:
            owned[address][LOGIN].add(keys[0])


def words_of(name: str) -> list[str]:
    """Return the words of a name in small letters without accents."""
    folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return [word for word in re.split(r"[^a-z]+", folded) if word]


def _plain(text: str) -> str:
    return _LETTERS.sub("", "".join(words_of(text)))


def _shapes(name: str, address: str) -> list[tuple[int, str]]:
    """Return what logins a name and an address make, the surest (0) first."""
    shapes = [(0, _plain(address.partition("@")[0]))]
    words = words_of(name)
    if len(words) > 1:
        first, last = words[0], words[-1]
        shapes += [(0, "".join(pair)) for pair in itertools.permutations((first, last))]
        shapes += [(1, first[0] + last), (1, last + first[0]), (1, first + last[0])]
    return [(rank, shape) for rank, shape in shapes if len(shape) > 2]
