"""What a person of a company could see at an instant.

In: a state of the world and a person's address. Out: whether the person could see a record.
Sees: members of channels, mailboxes, guests of events, who may read files, projects and spaces (as groups: departments, or
`managers` if a title says head, lead, director or chief; or manager, where it is the department's only one and no other leads
it: a product manager leads no people). Where the members or readers of that instant are not known,
the last ones on record decide: that is the export's only word on rights.
Does not see: rights inside products that the exports do not hold; records without any rights are for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .world import CompanyState

_LEADS = re.compile(r"\b(head|lead|director|chief|vp|president|ceo|cto|cfo|coo)\b", re.IGNORECASE)
_MANAGES = re.compile(r"\bmanager\b", re.IGNORECASE)


class PersonSight:
    """What one person could see. Errors: LookupError if no record has the address.

    `is_stranger`: it is somebody of whom nothing is on record, who sees what everybody may see."""

    def __init__(self, state: CompanyState, address: str, is_stranger: bool = False) -> None:
        self.address = address.strip().lower()
        self._state, self._is_stranger = state, is_stranger
        self._later: dict[int, PersonSight] = {}
        self._visible: dict[str, tuple[str, ...]] = {}
        self.memory: dict[str, Any] = {}
        """What tools computed of the beginning alone, by name (`CompanyDesk.of_start`)."""
        self.accounts = {key for key in state.ids("slack_user")
                         if str(state.guess("slack_user", key, "email") or "").lower() == self.address}
        is_known = self.accounts or state.exists("person", self.address) or self._has_mailbox()
        if not is_known and not is_stranger:
            raise LookupError(f"no account, mailbox or entry of a directory has the address {address!r}")
        self.groups = {self._department(self.address)}
        if self._leads():
            self.groups.add("managers")
        places = [key for key in state.ids("mailbox") if key.partition("|")[0].lower() == self.address]
        self._visible["mailbox"] = tuple(places)
        self._mails = {key.partition("|")[2] for key in places}
        self._channels = {key for key in state.ids("slack_channel") if self._is_in_channel(key)}
        self._rules: dict[str, Callable[[str], bool]] = {
            "mail": lambda key: key in self._mails,
            "mailbox": lambda key: key.partition("|")[0].lower() == self.address,
            "slack_channel": lambda key: key in self._channels,
            "slack": lambda key: key.partition("/")[0] in self._channels,
            "cal": self._is_guest,
            "sheet": lambda key: self._may_read("sheet", key, own="owner"),
            "jira": self._sees_issue,
            "jira_project": lambda key: self._may_read("jira_project", key),
            "jira_comment": lambda key: self._sees_issue(str(self._state.guess("jira_comment", key, "key"))),
            "wiki_space": lambda key: self._may_read("wiki_space", key),
            "wiki": self._sees_page,
            "wiki_comment": lambda key: self._sees_page(str(self._state.guess("wiki_comment", key, "page"))),
        }
        guess = state.guess
        self._readers_of: dict[str, Callable[[str], Any]] = {
            "sheet": lambda key: guess("sheet", key, "readers"),
            "jira": lambda key: guess("jira_project", str(guess("jira", key, "project")), "readers"),
            "wiki": lambda key: guess("wiki_space", str(guess("wiki", key, "space")), "readers"),
            "jira_project": lambda key: guess("jira_project", key, "readers"),
            "wiki_space": lambda key: guess("wiki_space", key, "readers"),
        }

    def at(self, state: CompanyState) -> PersonSight:
        """Return what the person can see in another state of the same episodes; computed once."""
        later = self._later.get(state.instant)
        if later is None:
            later = self._later[state.instant] = PersonSight(state, self.address, self._is_stranger)
            later._later = self._later
        return later

    def sees(self, entity_class: str, entity_id: str) -> bool:
        """Return whether the person could see a record."""
        rule = self._rules.get(entity_class)
        return rule is None or rule(entity_id)

    def is_open(self, entity_class: str, entity_id: str) -> bool:
        """Return whether it depends on groups that the person is in, of which no directory tells, if the person could see a
        record."""
        if self._state.exists("person", self.address):
            return False
        readers = self._readers_of.get(entity_class)
        return readers is not None and any("@" not in str(name) for name in readers(entity_id) or ())

    def visible(self, entity_class: str) -> tuple[str, ...]:
        """Return the ids of the records of a class that the person could see, oldest first; computed once."""
        keys = self._visible.get(entity_class)
        if keys is None:
            keys = self._visible[entity_class] = tuple(key for key in self._state.ids(entity_class)
                                                       if self.sees(entity_class, key))
        return keys

    def _department(self, address: str) -> str:
        return str(self._state.guess("person", address, "dept") or "").lower()

    def _title(self, address: str) -> str:
        return str(self._state.guess("person", address, "title") or "")

    def _leads(self) -> bool:
        title, department = self._title(self.address), self._department(self.address)
        if _LEADS.search(title) or not _MANAGES.search(title):
            return _LEADS.search(title) is not None
        others = [self._title(key) for key in self._state.ids("person")
                  if key != self.address and self._department(key) == department]
        return not any(_LEADS.search(other) or _MANAGES.search(other) for other in others)

    def _has_mailbox(self) -> bool:
        return any(key.partition("|")[0].lower() == self.address for key in self._state.ids("mailbox"))

    def _is_in_channel(self, key: str) -> bool:
        if not self._state.guess("slack_channel", key, "private"):
            return True
        return not self.accounts.isdisjoint(self._state.guess("slack_channel", key, "members") or ())

    def _is_guest(self, key: str) -> bool:
        guests = self._state.guess("cal", key, "attendees") or {}
        return self.address in guests or self._state.guess("cal", key, "organizer") == self.address

    def _may_read(self, entity_class: str, key: str, own: str = "") -> bool:
        readers: Iterable[Any] | None = self._state.guess(entity_class, key, "readers")
        if not readers or (own and self._state.guess(entity_class, key, own) == self.address):
            return True
        names = {str(reader).lower() for reader in readers}
        return self.address in names or "anyone" in names or not self.groups.isdisjoint(names)

    def _sees_issue(self, key: str) -> bool:
        return self._may_read("jira_project", str(self._state.guess("jira", key, "project")))

    def _sees_page(self, key: str) -> bool:
        return self._may_read("wiki_space", str(self._state.guess("wiki", key, "space")))
