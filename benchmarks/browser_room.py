"""How far a site's recorded pages carry, on held-out sessions: replay, the ceiling of logs, templates and what fills them.

    python benchmarks/browser_room.py ../shared/data/portal [--part pages] [--part hosts]

DATA holds `logs/har/*.har`, a session each, and `truth/sessions.jsonl`, of which `held_out` alone is read. Everything is learnt
of the other sessions. Requests that got 502 or 503 are left out. Prints one JSON object on its last line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browser_hosts import hosts
from browser_pages import BROKEN, SiteAnswer, site_answer, words_of
from browser_replay import Cassette, HarReplay, SiteRequest
from browser_site import InducedSite

from env_builder.site.shapes import PageFit, fit, places_of, rows_of
from extractors.inventory import SourceFile
from extractors.reading import read

Figures = dict[str, Any]
Answering = Callable[[SiteRequest, Sequence[SiteRequest]], SiteAnswer | None]
"""What answers a request, given those before it in its session."""


def recorded_requests(har: Path) -> list[SiteRequest]:
    """Return the requests for pages and with forms of one HAR, in order, as our reader reads them.

    The user is the last part of the file's name. Headers and posted bytes, which events do not hold, come from the file."""
    entries = json.loads(har.read_bytes())["log"]["entries"]
    sent = [(instant_of(entry["startedDateTime"]), entry["request"]) for entry in entries]
    raw = {(at, f"{request['method']} {_path(request['url'])}"): request for at, request in sent}
    requests = []
    events = read(SourceFile(har, har.name)).events
    for event in events.filter(events["kind"].is_in(["page", "request"])).sort("happened_at", "position").iter_rows(named=True):
        value, arguments = json.loads(event["value"]), json.loads(event["arguments"])
        if value.get("status") is None or value["status"] in BROKEN:
            continue
        request = raw[event["happened_at"], event["tool"]]
        posted = (request.get("postData") or {}).get("text") or ""
        requests.append(SiteRequest(
            har.stem, har.stem.rpartition("-")[2], event["happened_at"], request["method"], request["url"],
            hashlib.sha256(posted.encode()).hexdigest(), arguments.get("body"),
            frozenset((each["name"].lower(), each["value"]) for each in request["headers"]), site_answer(value)))
    return requests


def instant_of(text: str) -> datetime:
    """Return a HAR's instant in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def sessions_of(data: Path) -> tuple[list[list[SiteRequest]], list[list[SiteRequest]]]:
    """Return the sessions to learn from and the held-out ones, a list of requests each."""
    truth = [json.loads(line) for line in (data / "truth" / "sessions.jsonl").read_text("utf-8").splitlines()]
    is_held_out = {row["har"]: bool(row["held_out"]) for row in truth}
    split: dict[bool, list[list[SiteRequest]]] = {False: [], True: []}
    for har in sorted((data / "logs" / "har").glob("*.har")):
        split[is_held_out[har.name]].append(recorded_requests(har))
    return split[False], split[True]


def score(sessions: Sequence[Sequence[SiteRequest]], answer: Answering) -> Figures:
    """Return which share of the sessions' requests is answered, and answered right."""
    n_requests = n_answered = n_right = n_posts = n_posts_right = n_whole = 0
    for session in sessions:
        right = []
        for index, request in enumerate(session):
            answered = answer(request, session[:index])
            n_answered += answered is not None
            right.append(answered == request.answer)
            n_posts += request.method == "POST"
            n_posts_right += request.method == "POST" and right[-1]
        n_requests, n_right, n_whole = n_requests + len(right), n_right + sum(right), n_whole + all(right)
    return {"answered": _share(n_answered, n_requests), "requests_right": _share(n_right, n_requests),
            "posts_right": _share(n_posts_right, n_posts), "sessions_right": n_whole}


def ceiling(training: Sequence[Sequence[SiteRequest]], held_out: Sequence[Sequence[SiteRequest]]) -> Figures:
    """Return the share of held-out pages of which every word was recorded before: by then, or at any time.

    Words of the own session count up to the request, what it asks for with them; everything that is no page counts as right."""
    first: dict[str, datetime] = {}
    for request in sorted((each for session in training for each in session), key=lambda each: each.at):
        for word in _words(request):
            first.setdefault(word, request.at)
    n_pages = n_before = n_ever = n_requests = 0
    for session in held_out:
        own: set[str] = set()
        for request in session:
            n_requests += 1
            own.update(_asked_words(request))
            if request.is_page:
                unknown = request.answer.words - own
                n_pages += 1
                n_before += all(word in first and first[word] < request.at for word in unknown)
                n_ever += all(word in first for word in unknown)
            own.update(_words(request))
    n_others = n_requests - n_pages
    return {"pages_before": _share(n_before, n_pages), "pages_ever": _share(n_ever, n_pages),
            "requests_before": _share(n_before + n_others, n_requests), "requests_ever": _share(n_ever + n_others, n_requests)}


def _asked_words(request: SiteRequest) -> Iterable[str]:
    return words_of([request.url, json.dumps(request.form)])


def _words(request: SiteRequest) -> Iterable[str]:
    yield from _asked_words(request)
    yield from words_of([request.answer.location])
    yield from request.answer.words


def template_figures(site: InducedSite, held_out: Sequence[Sequence[SiteRequest]]) -> Figures:
    """Return how well the templates of an induced site explain held-out pages."""
    fits: list[PageFit] = []
    by_route: dict[str, list[bool]] = defaultdict(list)
    for request in (request for session in held_out for request in session):
        if request.answer.page is not None:
            template = site.template(request)
            fits += [fit(template, request.answer.page)] if template is not None else []
            name = f"{site.routes.route(request.method, request.url)} {request.answer.status}"
            by_route[name].append(template is not None and fits[-1].has_structure)
    for name, results in sorted(by_route.items()):
        print(f"{sum(results):3} of {len(results):3} pages have the structure: {name}")
    n_all = sum(request.is_page for session in held_out for request in session)
    explained = [each.n_places + each.n_constants for each in fits]
    values = [each.n_places + each.n_constants + each.n_changed + each.n_surplus for each in fits]
    return {"routes": len(site.templates), "routes_of_one_page": sum(len(each) == 1 for each in site.pages.values()),
            "pages_of_a_route": _share(len(fits), n_all),
            "pages_with_structure": _share(sum(each.has_structure for each in fits), n_all),
            "pages_fit": _share(sum(each.fits for each in fits), n_all), "coverage": _share(sum(explained), sum(values)),
            "values_in_places": _share(sum(each.n_places for each in fits), sum(values)),
            "places_per_page": statistics.median(each.n_places for each in fits),
            "places_per_template": statistics.median(places_of(each) for each in site.templates.values()),
            "templates_with_rows": sum(rows_of(each) > 0 for each in site.templates.values())}


def _path(url: str) -> str:
    return urlsplit(url).path or "/"


def _share(part: int, whole: int) -> float:
    return round(part / whole, 3) if whole else 0.0


def pages(data: Path) -> Figures:
    """Return the figures of pages: replays, the induced site, a cheat and an oracle, what logs can give at most, templates."""
    training, held_out = sessions_of(data)
    requests = [request for session in training for request in session]
    har, last, user = HarReplay(requests), Cassette(requests, same_user_first=False), Cassette(requests, same_user_first=True)
    site, empty = InducedSite(requests), site_answer({"status": 200, "type": "text/html", "body": ""})
    answers: dict[str, Answering] = {
        "har_replay": lambda request, _: _recorded(har.answer(request)),
        "cassette_last": lambda request, _: _recorded(last.answer(request)),
        "cassette_user": lambda request, earlier: _recorded(user.answer(request, earlier)),
        "induced": site.answer, "empty_page": lambda request, _: empty, "oracle": lambda request, _: request.answer}
    figures: Figures = {
        "sessions": len(training) + len(held_out), "held_out_sessions": len(held_out),
        "held_out_requests": sum(map(len, held_out)),
        "held_out_pages": sum(request.is_page for session in held_out for request in session)}
    counts = [site.count_places(request, session[:index]) for session in held_out for index, request in enumerate(session)]
    figures["induced_places_right"] = _share(sum(right for right, _ in counts), sum(all_ for _, all_ in counts))
    measured = {name: score(held_out, answer) for name, answer in answers.items()} | {
        "ceiling": ceiling(training, held_out), "templates": template_figures(site, held_out)}
    return figures | {f"{name}_{figure}": value for name, each in measured.items() for figure, value in each.items()}


def _recorded(request: SiteRequest | None) -> SiteAnswer | None:
    return request.answer if request is not None else None


PARTS = {"pages": pages, "hosts": hosts}


def main(arguments: Sequence[str]) -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--part", choices=PARTS, action="append")
    options = parser.parse_args(arguments)
    figures = {name: value for part in options.part or PARTS for name, value in PARTS[part](options.data).items()}
    print(json.dumps({"benchmark": "browser_room", "data": options.data.name, "figures": figures}))


if __name__ == "__main__":
    main(sys.argv[1:])
