"""A site induced from recorded requests, as the benchmark of browser environments asks it: a request in, an answer out.

The site is written to files and answers from these, as an environment's does. What it answers is masked as recordings are.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browser_pages import Download, SiteAnswer, mask_page, mask_text, site_answer
from browser_replay import SiteRequest

from env_builder.runtime.site.evidence import SiteEvidence
from env_builder.runtime.site.form_ledger import changed_fields, shown_form
from env_builder.runtime.site.model import InducedPages
from env_builder.runtime.site.port import Delivery, PortAnswer, PortRequest
from env_builder.runtime.site.trees import Element, squeeze
from env_builder.runtime.site.visits import SiteVisit, local_url
from env_builder.site.learning import RecordedAnswer, write_site
from env_builder.site.parsing import collapse, parse
from env_builder.site.shapes import ElementShape
from extractors.routes import templates


def recorded_answer(session: str, user: str, at: datetime, method: str, url: str, form: Any,
                    value: dict[str, Any]) -> RecordedAnswer:
    """Return a request and what an event of a HAR holds of its answer, as a site's learner takes them."""
    pairs = None
    if isinstance(form, dict):
        pairs = tuple((name, str(each)) for name, values in form.items()
                      for each in (values if isinstance(values, list) else [values]))
    kind, body, location = str(value.get("type") or ""), value.get("body"), str(value.get("location") or "") or None
    page = collapse(parse(body)) if kind == "text/html" and isinstance(body, str) and not location else None
    file = Delivery(str(value.get("file") or ""), kind, None) if page is None and not location else None
    return RecordedAnswer(session, user, at, PortRequest(method, local_url(url), pairs),
                          PortAnswer(int(value["status"]), "recorded", location, page, file))


def with_changes(requests: Sequence[SiteRequest]) -> list[SiteRequest]:
    """Return the requests of a session, posts with the fields that people changed in the form as a page showed it."""
    shown: list[tuple[str, Element]] = []
    changed = []
    for each in requests:
        asked, page = each.recorded.request, each.recorded.answer.page
        if asked.form:
            names = [name for name, _ in asked.form]
            form = next((form for url, page in reversed(shown)
                         if (form := shown_form(page, url, asked.url, names)) is not None), None)
            asked = asked._replace(changed=changed_fields(form, asked.form))
        if page is not None:
            shown.append((asked.url, page))
        changed.append(replace(each, recorded=replace(each.recorded, request=asked)))
    return changed


class InducedSite:
    """What answers out of the files of a site, learnt from the requests of whole sessions."""

    def __init__(self, requests: Sequence[SiteRequest], evidence: SiteEvidence | None = None) -> None:
        """Learn, write, and load what was written; `evidence`: what other logs tell."""
        paths = templates([urlsplit(request.url).path or "/" for request in requests])
        with tempfile.TemporaryDirectory() as folder:
            self.learnt = write_site(Path(folder), [request.recorded for request in requests],
                                     {path: template for path, (template, _) in paths.items()}, evidence)
            self.n_bytes = sum(file.stat().st_size for file in Path(folder).iterdir())
            self._pages = InducedPages.load(Path(folder))
            self.trust = json.loads((Path(folder) / "sources.json").read_text("utf-8"))["least_trust"]
        self._visits: dict[int, SiteVisit] = {}
        self.seconds: list[float] = []
        """How long each answer took of the processor."""

    def template(self, request: SiteRequest) -> ElementShape | None:
        """Return the template of the pages that a request's route answers with this status."""
        return self.learnt.templates.get((self.learnt.route(request.recorded.request), request.recorded.answer.status))

    def ask(self, request: SiteRequest, own: Sequence[SiteVisit]) -> tuple[PortAnswer, SiteVisit] | None:
        """Return what the site answers after these visits of the session."""
        begin = time.process_time()
        answered = self._pages.answer(request.recorded.request, request.user, request.at, own)
        self.seconds.append(time.process_time() - begin)
        return answered

    def answer(self, request: SiteRequest, earlier: Sequence[SiteRequest]) -> SiteAnswer | None:
        """Return what the site answers after what was recorded of the session so far, masked."""
        answered = self.ask(request, [self.visit(each) for each in earlier])
        return masked(answered[0]) if answered is not None else None

    def visit(self, request: SiteRequest) -> SiteVisit:
        """Return a recorded request as the site's own visit."""
        if id(request) not in self._visits:
            self._visits[id(request)] = self.learnt.visit(request.recorded)
        return self._visits[id(request)]


    def log_in(self, user: str, at: datetime, recorded: Sequence[SiteRequest]) -> list[SiteVisit]:
        """Return visits that log a user in: what the user's session nearest to the instant asked before the first page after a
        form. That page is the walk's first, which greets who came in."""
        last = min((each for each in recorded if each.user == user), key=lambda each: abs(each.at - at), default=None)
        own: list[SiteVisit] = []
        has_posted = False
        session = [each for each in recorded if last is not None and each.session == last.session]
        for request in sorted(session, key=lambda each: each.at):
            if has_posted and request.is_page:
                break
            answered = self._pages.answer(request.recorded.request, user, at, own)
            own += [answered[1]] if answered is not None else []
            has_posted |= request.method == "POST"
        return own


def probe_of(step: dict[str, Any], user: str, at: datetime) -> SiteRequest:
    """Return a step of an unrecorded walk as a request with the application's answer."""
    kind, headers = str(step["type"] or "").partition(";")[0], frozenset[tuple[str, str]]()
    value = {"status": step["status"], "location": step["location"], "type": kind,
             "body": step["body"] if kind == "text/html" else None}
    form: dict[str, list[str]] = {}
    for name, text in step["form"] or ():
        form.setdefault(name, []).append(text)
    recorded = recorded_answer("probe", user, at, step["method"], step["path"], form if step["form"] else None, value)
    return SiteRequest("probe", user, at, step["method"], step["path"], "", form or None, headers, site_answer(value), recorded)


def masked(answer: PortAnswer) -> SiteAnswer:
    """Return an answer as recordings are compared."""
    if answer.location is not None:
        return SiteAnswer(answer.status, mask_text(answer.location))
    if answer.page is not None:
        return SiteAnswer(answer.status, page=mask_page(squeeze(answer.page)))
    file = answer.file
    return SiteAnswer(answer.status, download=Download(file.type, file.name, 0) if file is not None else None)
