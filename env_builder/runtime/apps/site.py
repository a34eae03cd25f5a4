"""Answer a browser's tools over a site as of an instant: the kind `site`.

In: files of `env_builder.site.app`: routes, templates, sources and visits of the site, laws of its forms (form_laws.jsonl), who
may log in (access.json), what the sessions of tasks were answered (recorded_answers.jsonl), files (downloads.jsonl, blobs/).
Out: an app whose tools are those of a browser. Its documents are what forms changed (`site/form_ledger.py`); a file that is
downloaded goes to the app that the manifest's `downloads` names. An unknown answer is a page that says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ..canonical import canonical, digest
from ..exchanges import NameClasses, words_of
from ..files import rows_of
from ..origins import origin_text
from ..records import Result
from ..site.browser import SiteBrowser
from ..site.browser_tools import WINDOWLESS
from ..site.expiry import SiteExpiry
from ..site.form_ledger import FormLaws
from ..site.layout import ArrangedSite, LayoutRules, PageLayout
from ..site.model import InducedPages
from ..site.occasions import Occasions, OccasionSite
from ..site.port import Delivery, SitePort
from ..site.session import SiteAccess, SiteSession, one_form
from ..site.shown_pages import ViewShelf
from ..site.snapshot import SPOKEN
from ..site.styling import Styles
from ..site.trees import Element, decode
from . import App, AppState, DeliveringState, DownloadFolder, FileDelivery, Name, Start

WRITES = frozenset({"browser_click", "browser_type", "browser_press_key", "browser_handle_dialog"})
"""Tools that may send a form."""
MOST_LAYOUTS = 64
"""Seeds whose pages are kept."""
_NO_EXPIRY = {"why_not": "the environment was built before logins could run out"}
_NO_CLOCK = datetime(2100, 1, 1, tzinfo=UTC)


class SiteApp(App):
    """A site and the browser in front of it."""

    def __init__(self, name: str, folder: Path, row: Mapping[str, Any]) -> None:
        self.name = name
        self.answers = frozenset(WINDOWLESS)
        self.writes = self.explained = WRITES
        self.downloads = DownloadFolder(**row["downloads"]) if row.get("downloads") else None
        self.origin: str = row["origin"]
        self.application: SitePort | None = None
        """What answers the next episodes instead of all that was recorded and induced (`env_builder.site.application`)."""
        self.pages = InducedPages.load(folder)
        self.laws = FormLaws(rows_of(folder / "form_laws.jsonl"))
        plain = json.loads((folder / "access.json").read_text("utf-8"))
        self.access = SiteAccess(plain["passwords"], plain["users"], plain["login_pages"], frozenset(plain["login_routes"]),
                                 frozenset(plain["login_fields"]), frozenset(plain["login_only"]),
                                 plain.get("login_posts", {}), _refusals(plain.get("refusals", {})))
        self._expiry: Mapping[str, Any] = plain.get("expiry", _NO_EXPIRY)
        self._styles = json.loads((folder / "styles.json").read_text("utf-8"))
        self.shelf = ViewShelf(Styles(self._styles))
        self._shelves = {(1280, 720): self.shelf}
        layout = folder / "layout.jsonl"
        self._layout_rules = LayoutRules(rows_of(layout) if layout.exists() else ())
        self._layouts: dict[int, PageLayout] = {}
        self._recorded: dict[str, dict[tuple[str, str], int]] = {}
        for each in rows_of(folder / "recorded_answers.jsonl"):
            self._recorded.setdefault(each["session_id"], {})[each["state"], each["question"]] = each["visit"]
        occasions = folder / "occasions.jsonl"
        self.occasions = Occasions(rows_of(occasions) if occasions.exists() else (), self.pages.path_of)
        names = folder / "names.json"
        self._classes = NameClasses.from_row(json.loads(names.read_text("utf-8")) if names.exists() else {},
                                             self.access.passwords.values())
        self._blobs = folder / "blobs"
        self._downloads: dict[str, list[Mapping[str, Any]]] = {}
        for each in rows_of(folder / "downloads.jsonl"):
            self._downloads.setdefault(one_form(each["url"]), []).append(each)

    def reset(self, start: Start) -> SiteState:
        at = datetime.fromisoformat(start.instant) if start.instant else _NO_CLOCK
        recorded = self._recorded.get(next(iter(start.session_ids)), {}) if len(start.session_ids) == 1 else {}
        expiry = SiteExpiry.of(self._expiry, start.expiry) if start.expiry is not None else None
        session = SiteSession(self.pages, self.laws, self.access, recorded, at, partial(self.file, start), self.application,
                              expiry)
        task_id = start.task_id if self.occasions.of(start.task_id) else None
        if start.layout is None:
            return SiteState(self, session, None, start.seed or 0, None, task_id)
        return SiteState(self, session, None, start.layout, self._layout(start.layout), task_id)

    def _layout(self, seed: int) -> PageLayout:
        """Return how a seed lays out pages, the same for all its episodes."""
        if seed not in self._layouts:
            if len(self._layouts) >= MOST_LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[seed] = PageLayout(self._layout_rules, seed)
        return self._layouts[seed]

    def shelf_of(self, layout: PageLayout | None) -> ViewShelf:
        """Return the views of pages in the viewport of a layout, shared by all episodes."""
        if layout is None:
            return self.shelf
        if layout.viewport not in self._shelves:
            self._shelves[layout.viewport] = ViewShelf(Styles(self._styles, *layout.viewport))
        return self._shelves[layout.viewport]

    def carried(self, state: AppState, value: Any) -> Any:
        return state.carried(value) if isinstance(state, SiteState) else value

    def file(self, start: Start, url: str) -> bytes | None:
        """Return what is downloaded at an address: by a session that the task begins with, else the last before the start."""
        rows = self._downloads.get(one_form(url), ())
        chosen = [row for row in rows if row["session_id"] in start.session_ids] or [
            row for row in rows if start.instant is None or row["at"] < start.instant]
        content = (self._blobs / chosen[-1]["sha256"]).read_bytes() if chosen else None
        return self.occasions.content(start.task_id, content, url) if content is not None else None

    def stored_files(self) -> Mapping[str, Path]:
        return {path.name: path for path in sorted(self._blobs.glob("*"))}

    def name_classes(self, tools: Iterable[Mapping[str, Any]]) -> NameClasses:
        """Return names of what pages are about, words of their titles, logins, years, and the passwords of this environment."""
        spoken = words_of(canonical(list(tools))) | SPOKEN
        return self._classes._replace(words=tuple(
            tuple(word for word in each if word not in spoken) for each in self._classes.words))


class SiteState(DeliveringState):
    """One episode of a site."""

    __slots__ = ("_app", "_browser", "_delivered", "_harmless", "_layout", "_session", "_task_id")

    def __init__(self, app: SiteApp, session: SiteSession, browser: SiteBrowser | None, seed: int,
                 layout: PageLayout | None = None, task_id: str | None = None) -> None:
        """`task_id`: of a task in which something of the site happened at another time."""
        self._app = app
        self._layout = layout
        self._task_id = task_id
        self._session = session
        self._delivered: list[FileDelivery] = []
        self._harmless: frozenset[tuple[str, str]] = frozenset()
        """Calls without a known answer that sent no form."""
        self._browser = browser or SiteBrowser(self._port(session), app.origin, seed=seed, deliver=self._deliver,
                                               wait=session.wait, shelf=app.shelf_of(layout))

    @property
    def browser(self) -> SiteBrowser:
        """The browser, for hosts and players."""
        return self._browser

    @property
    def port(self) -> SitePort:
        """What the browser asks, for another browser over the same episode."""
        return self._port(self._session)

    def _port(self, session: SiteSession) -> SitePort:
        """Return what the browser asks: the session, or a site that changes its pages for the task, and lays them out."""
        site: SitePort = session
        if self._task_id is not None:
            site = OccasionSite(site, self._app.occasions, self._task_id)
        return site if self._layout is None else ArrangedSite(site, self._layout, self._app.pages.path_of)

    @property
    def shelf(self) -> ViewShelf:
        """The views of the site's pages."""
        return self._app.shelf_of(self._layout)

    def carried(self, value: Any) -> Any:
        """Return arguments with the refs of this episode in the place of those that known solutions have."""
        page = self._browser.page
        if page is None or not isinstance(value, dict):
            return value
        if isinstance(value.get("fields"), list):
            value = {**value, "fields": [self.carried(each) for each in value["fields"]]}
        target, recorded = value.get("target"), page.recorded_refs or page.refs
        number = recorded.number(target) if isinstance(target, str) else None
        places = self._layout.places(page.tree) if self._layout is not None and number is not None else None
        if number is None or (places is not None and number >= len(places)):
            return value
        return {**value, "target": page.refs.ref(number if places is None else places[number])}

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        before = self._session.snapshot()
        self._delivered = []
        result = self._browser.call(tool, arguments)
        if result.is_error:
            self._session.restore(before)
        elif result.tier == "unknown" and not self._session.is_unknown:
            self._harmless |= {(tool, key or canonical(arguments))}
        return result

    def deliveries(self) -> Sequence[FileDelivery]:
        return self._delivered

    def _deliver(self, file: Delivery, url: str) -> str | None:
        path = one_form(url.partition("://")[2].partition("/")[2])
        origin = origin_text(self._app.name, f"/{path.lstrip('/')}", None if file.content is None else digest(file.content))
        self._delivered.append(FileDelivery(file.name, file.content, origin))
        return None

    def snapshot(self) -> Any:
        return self._session.snapshot(), self._browser.snapshot(), self._harmless

    def restore(self, snapshot: Any) -> None:
        session, browser, self._harmless = snapshot
        self._session.restore(session)
        self._browser.restore(browser)

    def fork(self) -> SiteState:
        session = self._session.fork()
        fork = SiteState(self._app, session, self._browser, 0, self._layout, self._task_id)
        fork._browser = self._browser.fork(self._port(session), deliver=fork._deliver, wait=session.wait)
        fork._harmless = self._harmless
        return fork

    def difference(self) -> dict[str, Any]:
        texts = self._session.ledger.texts()
        return {"documents": {f"{kind}/{key}": text for (kind, key), text in texts.items()}, "write_calls": []}

    def read(self, name: Name) -> tuple[str | None, str | None]:
        return None, self._session.ledger.texts().get(name)

    def may_write(self, tool: str) -> bool:
        return tool in WRITES

    def names_known(self, tool: str, key: str) -> bool | None:
        return False if (tool, key) in self._harmless else None


def _refusals(rows: Mapping[str, Any]) -> dict[str, tuple[int, Element]]:
    trees = ((path, status, decode(page)[0]) for path, (status, page) in rows.items())
    return {path: (status, tree) for path, status, tree in trees if isinstance(tree, Element)}


def load(folder: Path, row: Mapping[str, Any]) -> SiteApp:
    """Load the app from its folder."""
    return SiteApp(row["name"], folder, row)
