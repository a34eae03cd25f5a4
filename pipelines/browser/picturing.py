"""Play a trajectory of a site again in Chromium, and take a picture after each call of a browser's tool.

In: an environment at a task's start, twice, and moves. The first answers without a window, as the replay does; what a call acts
on is found there, and in Chromium by its role, name and place. Chromium asks the second, with the site's recorded style sheets
and without scripts. Out: a picture for each move that shows a page. Where Chromium cannot follow, as a script would have to
open something, this and all later pictures are drawn from the pages of the first, as their frames show them.
Sees: the same seed and perturbations. Does not see: downloads, pictures and scripts of the site, which the logs do not hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.apps.site import SiteApp, SiteState
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.site.chromium import ChromiumBrowser, ChromiumHost
from pipelines.browser.framed import framed
from pipelines.playing import Move

Arguments = Mapping[str, Any]


class StepPicture(NamedTuple):
    """What a page looked like after a move."""

    png: str
    """In base64."""
    is_drawn: bool
    """Drawn from the environment's page: Chromium could not make the move, or one before it."""


def pictures(shown: Environment, served: Environment, moves: Sequence[Move],
             sheets: Mapping[str, str]) -> list[StepPicture | None]:
    """Return a picture for each move. `shown`, `served`: the same start. Errors: `Unavailable` without a Chromium."""
    site = next((app for app in shown.apps if isinstance(app, SiteApp)), None)
    if site is None:
        return [None] * len(moves)
    files = {path: ("text/css", text.encode("utf-8", "replace")) for path, text in sheets.items()}
    with ChromiumHost() as host:
        browser = host.open(site_state(served).port, site.origin, files=files, scripts=False)
        try:
            play = _PicturedPlay(shown, host, browser, sheets)
            return [play.make(move) for move in moves]
        finally:
            browser.close()


def site_state(environment: Environment) -> SiteState:
    """Return the state of the site in an episode."""
    state = environment._state
    return next(each for each in getattr(state, "states", [state]) if isinstance(each, SiteState))


class _PicturedPlay:
    """A trajectory, as far as it was played in both."""

    def __init__(self, shown: Environment, host: ChromiumHost, browser: ChromiumBrowser, sheets: Mapping[str, str]) -> None:
        self._shown = shown
        self._host = host
        self._browser = browser
        self._sheets = sheets
        self._follows = True

    def make(self, move: Move) -> StepPicture | None:
        """Make a move in both, and return what is shown then."""
        tool, arguments = move.get("tool"), move.get("arguments")
        if tool is None:
            self._shown.say(move["say"])
            return None
        own = site_state(self._shown).browser
        if not tool.startswith("browser_") or not isinstance(arguments, dict):
            self._shown.call(tool, arguments)
            return None
        done = self._browser.call(tool, by_name(own, arguments)) if self._follows else None
        answer = self._shown.call(tool, arguments)
        page = site_state(self._shown).browser.page
        if done is not None and done.is_error and not answer.is_error:
            self._follows = False
        picture = self._browser.call("browser_take_screenshot", {}) if self._follows else None
        if picture is not None and not picture.is_error:
            return StepPicture(picture.content, False)
        if page is None:
            return None
        return StepPicture(self._host.draw(framed(page, own.view(page), self._sheets).html), True)


def by_name(browser: SiteBrowser, arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of a call, with role, name and place in the stead of refs."""
    changed = dict(arguments)
    if isinstance(changed.get("fields"), list):
        changed["fields"] = [by_name(browser, each) if isinstance(each, dict) else each for each in changed["fields"]]
    page, target = browser.page, changed.get("target")
    number = page.refs.number(target) if page is not None and isinstance(target, str) else None
    if page is None or number is None or number not in browser.view(page).nodes:
        return changed
    view = browser.view(page)
    node = view.nodes[number]
    selector = f"role={node.role}" + (f"[name={json.dumps(node.name, ensure_ascii=False)}]" if node.name else "")
    return {**changed, "target": f"{selector} >> nth={(view.select(selector) or [number]).index(number)}"}
