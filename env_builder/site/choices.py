"""What a browser shows before a call, and what could be acted on there: the choices that a person had.

In: the state of a site's app, a call. Out: the page's snapshot as the tools show it, and its interactive items with the one
that the call acts on. Sees: links, buttons and fields, and what the page itself makes focusable. Does not see: elements that
only a script makes clickable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.runtime.apps.site import SiteState
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.browser_report import report
from env_builder.runtime.site.roles import is_disabled, is_focusable


class PageItem(NamedTuple):
    """Something on a page that can be acted on."""

    ref: str
    role: str
    name: str
    is_target: bool
    """Whether the call acts on it."""


def observed(site: SiteState) -> str:
    """Return the page as `browser_snapshot` answers; asking so changes nothing."""
    return report(site.shelf, site.browser.snapshot(), (), site.browser.lines())


def page_items(browser: SiteBrowser, tool: str, arguments: Mapping[str, Any]) -> Iterator[PageItem]:
    """Yield the interactive items of the page that is shown, in the page's order."""
    page = browser.page
    if page is None:
        return
    view, flat = browser.view(page), browser.view(page).page
    target = page.focus if tool == "browser_press_key" else None
    if tool.startswith("browser_") and isinstance(arguments.get("target"), str):
        target = page.refs.number(arguments["target"])
    for number, node in view.nodes.items():
        if number == target or (is_focusable(flat, number) and not is_disabled(flat, number)):
            yield PageItem(page.refs.ref(number), node.role, node.name, number == target)
