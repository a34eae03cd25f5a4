"""What a person of a company could see at an instant.

In: a state of the world and a person's address. Out: whether the person could see a record.
Sees: members of channels, mailboxes, guests of events, who may read files, projects and spaces (as groups: departments, or
`managers` if a title says head, lead, manager, director or chief). Where the members or readers of that instant are not known,
the last ones on record decide: that is the export's only word on rights.
Does not see: rights inside products that the exports do not hold; records without any rights are for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .world import CompanyState

_LEADS = re.compile(r"\b(head|lead|manager|director|chief|vp|president|ceo|cto|cfo|coo)\b", re.IGNORECASE)


class PersonSight:
    """What one person could see. Errors: LookupError if no record has the address."""

    def __init__(self, state: CompanyState, address: str) -> None:
        self.address = address.strip().lower()
        self._state = state
        self.accounts = {key for key in state.ids("slack_user")
                         if str(state.guess("slack_user", key, "email") or "").lower() == self.address}
        if not self.accounts and not state.exists("person", self.address) and not self._has_mailbox():
            raise LookupError(f"no account, mailbox or entry of a directory has the address {address!r}")
        title = str(state.guess("person", self.address, "title") or "")
        self.groups = {str(state.guess("person", self.address, "dept") or "").lower()}
        if _LEADS.search(title):
            self.groups.add("managers")
        self._mails = {key.partition("|")[2] for key in state.ids("mailbox") if key.partition("|")[0].lower() == self.address}
        self._channels = {key for key in state.ids("slack_channel") if self._is_in_channel(key)}
        self._rules: dict[str, Callable[[str], bool]] = {
            "mail": lambda key: key in self._mails,
            "mailbox": lambda key: key.partition("|")[0].lower() == self.address,
            "slack_channel": lambda key: key in self._channels,
            "slack": lambda key: key.partition("/")[0] in self._channels,
            "cal": self._is_guest,
            "sheet": lambda key: self._may_read("sheet", key, own="owner"),
            "jira": self._sees_issue,
            "jira_comment": lambda key: self._sees_issue(str(self._state.guess("jira_comment", key, "key"))),
            "wiki_space": lambda key: self._may_read("wiki_space", key),
            "wiki": self._sees_page,
            "wiki_comment": lambda key: self._sees_page(str(self._state.guess("wiki_comment", key, "page"))),
        }

    def sees(self, entity_class: str, entity_id: str) -> bool:
        """Return whether the person could see a record."""
        rule = self._rules.get(entity_class)
        return rule is None or rule(entity_id)

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
