"""Join events of a user interface with calls that do a person's work again: which element was clicked, typed into or chosen.

In: events with an address and an xpath (`ui_events`, rrweb), and what was played of a session, with the instants of its
requests. Out: for each call the event that it does again, if one tells it: by the same person, on the page of the same address,
between the request before and its own, of the same act; of typing and choosing the last one with the value that the call has.
An event without a person is joined where one session alone was open at that instant. Sees: clicks, typing, choices, ticks.
Does not see: events whose clock differs from that of the requests by more than a second, and never keeps what was typed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from env_builder.runtime.site.session import one_form
from env_builder.site.played_work import PlayedWork
from env_builder.site.playing import PlayedCall
from env_builder.site.ports import SitePorts, port_of
from env_builder.site.recorded import PageSession

_ACTS = {"browser_click": (("click", "check"), ("submit",)), "browser_type": (("type", "input", "change"),),
         "browser_select_option": (("select", "change"),), "browser_press_key": (("key",), ("submit",), ("click",))}
"""Tool -> names of what a person does with it, the surest first."""
_KEPT = ("xpath", "tag", "id", "name", "type", "text", "href")
_LATE = timedelta(seconds=1)
"""How much later than the request that it made an event may be written."""
_ADDRESS = re.compile(r"(?m)^- Page URL: (\S+)")


class UiEvent(NamedTuple):
    """What somebody did to an element."""

    at: datetime
    act: str
    person: str | None
    path: str
    """Path and query of the page."""
    value: str | None
    """What was typed or chosen; only compared."""
    element: Mapping[str, Any]


def ui_events(rows: Iterable[Mapping[str, Any]], host: str, sites: SitePorts | None = None) -> list[UiEvent]:
    """Return the events of a host, in order. `rows`: of `core.events`, with an xpath among their arguments; `sites`: which
    ports of a host are one site."""
    sites = sites or SitePorts(())
    events = []
    for row in rows:
        facts = json.loads(row["arguments"] or "{}")
        url = facts.get("url")
        match = re.match(r"\w+://([^/?#:]+)(?::\d+)?([^#]*)", url) if isinstance(url, str) else None
        if match is None or sites.named(match[1], port_of(url)) != host or row["happened_at"] is None or not facts.get("xpath"):
            continue
        element = {name: facts[name] for name in _KEPT if facts.get(name) not in (None, "")}
        value = facts.get("value")
        events.append(UiEvent(row["happened_at"], str(row["tool"]).casefold(), row["name"], one_form(match[2] or "/"),
                              None if value is None else str(value), element))
    return sorted(events, key=lambda each: (each.at, each.act, str(each.element)))


class UiElements:
    """The events of a site, by what they may be joined with."""

    def __init__(self, events: Sequence[UiEvent], sessions: Iterable[PageSession]) -> None:
        self._events = list(events)
        self._instants = [event.at for event in events]
        self._open = [(session.requests[0].at, session.requests[-1].at, session.session_id) for session in sessions]

    def elements(self, work: PlayedWork) -> list[dict[str, Any] | None]:
        """Return what each call of a piece of work was done to; None where no event tells."""
        instants = sorted({request.at for request in work.piece.session.requests})
        return [self._element(work, call, instants) for call in work.calls]

    def _element(self, work: PlayedWork, call: PlayedCall, instants: Sequence[datetime]) -> dict[str, Any] | None:
        acts, address = _ACTS.get(call.tool, ()), _ADDRESS.search(call.observation)
        if not acts or address is None:
            return None
        place = bisect_right(instants, call.at) - 2
        since = instants[place] if place >= 0 else call.at - 60 * _LATE
        path = one_form(re.sub(r"^\w+://[^/?#]+|#.*$", "", address[1]) or "/")
        last = bisect_right(self._instants, call.at + _LATE)
        own = [event for event in reversed(self._events[bisect_right(self._instants, since):last])
               if event.path == path and self._is_of(work, event) and _has_value(work, call, event)]
        event = next((event for names in acts for event in own if event.act in names), None)
        return None if event is None else {"act": event.act, "at": event.at.isoformat(), **event.element}

    def _is_of(self, work: PlayedWork, event: UiEvent) -> bool:
        if event.person is not None:
            person = work.piece.person
            return person is not None and event.person.partition("@")[0].casefold() == person.partition("@")[0].casefold()
        open_then = [name for begin, end, name in self._open if begin - 60 * _LATE <= event.at <= end + _LATE]
        return open_then == [work.piece.session.session_id]


def _has_value(work: PlayedWork, call: PlayedCall, event: UiEvent) -> bool:
    """Return whether an event may have typed what a call types; a recorder hides passwords, which no form has on record."""
    text = call.arguments.get("text") if call.tool == "browser_type" else None
    if text is None or event.value == text:
        return True
    recorded = {value for request in work.piece.session.requests for _, value in request.form or ()}
    return event.element.get("type") == "password" and text not in recorded
