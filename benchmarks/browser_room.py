"""How far a site's recorded pages carry, on held-out sessions: replay, the ceiling of logs, templates and what fills them.

    python benchmarks/browser_room.py ../shared/data/portal [--part pages] [--part logs] [--part hosts [--application PYTHON]]

DATA holds `logs/har/*.har`, a session each, and `truth/sessions.jsonl`, of which `held_out` alone is read. Everything is learnt
of the other sessions. Requests that got 502 or 503 are left out. Prints one JSON object on its last line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from browser_application import application
from browser_hosts import hosts
from browser_logs import access_evidence
from browser_pages import BROKEN, SiteAnswer, site_answer, values_of, words_of
from browser_replay import Cassette, HarReplay, SiteRequest
from browser_site import InducedSite, masked, probe_of, recorded_answer, with_changes
from browser_steps import (
    PlaceCounts,
    count_places,
    have_same_offers,
    is_offered,
    made_numbers,
    place_values,
    probes_of,
    steps_of,
)
from browser_tasks import tasks

from env_builder.runtime.site.trees import Element, decode
from env_builder.runtime.site.visits import SiteVisit
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
        user, form = har.stem.rpartition("-")[2], arguments.get("body")
        requests.append(SiteRequest(
            har.stem, user, event["happened_at"], request["method"], request["url"],
            hashlib.sha256(posted.encode()).hexdigest(), form,
            frozenset((each["name"].lower(), each["value"]) for each in request["headers"]), site_answer(value),
            recorded_answer(har.stem, user, event["happened_at"], request["method"], request["url"], form, value)))
    return with_changes(requests)


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


def score_steps(sessions: Sequence[Sequence[SiteRequest]], answer: Answering, known: Collection[str]) -> Figures:
    """Return which share of places is right, which is wrong without a mark, and what people could do next.

    `places_right`, `places_wrong_unmarked`: of all places of recorded pages and surplus ones of answers; a page that is not
    answered has none right; rows are one place, in `values_*` each text and attribute in them is one. `next_step_offered`: of
    the steps that people took by a link or form, those that the answer in place of their page offers too, numbers that the
    session made aside; `sessions_walkable`: sessions with all steps offered.
    """
    steps: list[list[bool]] = []
    counts: dict[str, list[PlaceCounts]] = {"places": [], "values": []}
    for session in sessions:
        answers = [answer(request, session[:index]) for index, request in enumerate(session)]
        pages = [each.page if each is not None else None for each in answers]
        for name, each in counts.items():
            each += [count_places(request.answer.page, page, in_rows=name == "values")
                     for request, page in zip(session, pages, strict=True) if request.answer.page is not None]
        made = made_numbers(session, known)
        steps.append([is_offered(step, pages[index], session[index].url, made) for index, step in steps_of(session)])
    figures = {"next_step_offered": _share(sum(map(sum, steps)), sum(map(len, steps))),
               "sessions_walkable": _share(sum(map(all, steps)), len(steps))}
    for name, places in counts.items():
        n_all, n_right, n_unmarked = (sum(each) for each in zip(*places, strict=True)) if places else (0, 0, 0)
        figures |= {f"{name}_right": _share(n_right, n_all, 4), f"{name}_wrong_unmarked": _share(n_unmarked, n_all, 4)}
    return figures


def probe_figures(data: Path, site: InducedSite, requests: Sequence[SiteRequest]) -> Figures:
    """Return which share of the requests of unrecorded walks is answered right, and which has right links and forms.

    A walk begins logged in: the site is asked first what the user's nearest session asked before its first page after a form.
    `probes_ceiling`: as `ceiling`, of requests of recorded routes those whose page's every word was recorded before or is in
    the walk."""
    words = _Words(requests)
    n_all = n_right = n_offers = n_known = n_status = 0
    for walk in probes_of(data):
        at, user = instant_of(walk["at"]), walk["user"]
        own, asked = site.log_in(user, at, requests), set[str]()
        for step in walk["steps"]:
            probe = probe_of(step, user, at)
            answered = site.ask(probe, own)
            answer = masked(answered[0]) if answered is not None else None
            own += [answered[1]] if answered is not None else []
            n_all += 1
            n_right += answer == probe.answer
            n_status += answer is not None and answer.status == probe.answer.status
            n_offers += have_same_offers(probe.answer, answer, probe.url)
            asked.update(_asked_words(probe))
            n_known += answer is not None and (not probe.is_page or words.are_known(probe.answer.words - asked, at))
            asked |= probe.answer.words
    return {"probes": n_all, "probes_right": _share(n_right, n_all), "probes_status_right": _share(n_status, n_all),
            "probes_offers_right": _share(n_offers, n_all), "probes_ceiling": _share(n_known, n_all)}


class _Words:
    """When words were recorded first."""

    def __init__(self, requests: Iterable[SiteRequest]) -> None:
        self._first: dict[str, datetime] = {}
        for request in sorted(requests, key=lambda each: each.at):
            for word in _words(request):
                self._first.setdefault(word, request.at)

    def are_known(self, words: Iterable[str], at: datetime | None) -> bool:
        return all(word in self._first and (at is None or self._first[word] < at) for word in words)


def ceiling(training: Sequence[Sequence[SiteRequest]], held_out: Sequence[Sequence[SiteRequest]]) -> Figures:
    """Return the share of held-out pages of which every word was recorded before: by then, or at any time.

    The same of places (rows are one), and of next steps: those of whose link or form every word of the address was recorded
    before the page that offers it. Words of the own session count up to the request, what it asks for with them; everything
    that is no page counts as right."""
    words = _Words(each for session in training for each in session)
    n_pages = n_before = n_ever = n_requests = n_steps = n_offered = n_walkable = n_places = n_places_known = 0
    for session in held_out:
        own: set[str] = set()
        steps = [(page, set(words_of([step.address]))) for page, step in steps_of(session)]
        n_known = 0
        for index, request in enumerate(session):
            n_requests += 1
            own.update(_asked_words(request))
            n_known += sum(words.are_known(each - own, request.at) for page, each in steps if page == index)
            if request.answer.page is not None:
                places = place_values(request.answer.page)
                n_places += len(places)
                n_places_known += sum(words.are_known(set(_words_of_rows(each)) - own, request.at) for each in places)
                unknown = request.answer.words - own
                n_pages += 1
                n_before += words.are_known(unknown, request.at)
                n_ever += words.are_known(unknown, None)
            own.update(_words(request))
        n_steps, n_offered, n_walkable = n_steps + len(steps), n_offered + n_known, n_walkable + (n_known == len(steps))
    n_others = n_requests - n_pages
    return {"pages_before": _share(n_before, n_pages), "pages_ever": _share(n_ever, n_pages),
            "requests_before": _share(n_before + n_others, n_requests), "requests_ever": _share(n_ever + n_others, n_requests),
            "places_right": _share(n_places_known, n_places, 4),
            "next_step_offered": _share(n_offered, n_steps), "sessions_walkable": _share(n_walkable, len(held_out))}


def _words_of_rows(value: str) -> Iterable[str]:
    return words_of(each for node in decode(value) for each in values_of(Element("", {}, [node]))) if value[:2] in (
        '["', "[[") else words_of([value])


def _asked_words(request: SiteRequest) -> Iterable[str]:
    return words_of([request.url, json.dumps(request.form)])


def _words(request: SiteRequest) -> Iterable[str]:
    yield from _asked_words(request)
    yield from words_of([request.answer.location])
    yield from request.answer.words


def score_alone(site: InducedSite, held_out: Sequence[Sequence[SiteRequest]]) -> Figures:
    """Return which share of requests is right where the site goes on from its own answers, as in an episode."""
    n_right = 0
    for session in held_out:
        own: list[SiteVisit] = []
        for request in session:
            answered = site.ask(request, own)
            own += [answered[1]] if answered is not None else []
            n_right += answered is not None and masked(answered[0]) == request.answer
    return {"induced_alone_requests_right": _share(n_right, sum(map(len, held_out)))}


def template_figures(site: InducedSite, held_out: Sequence[Sequence[SiteRequest]]) -> Figures:
    """Return how well the templates of an induced site explain held-out pages."""
    fits: list[PageFit] = []
    by_route: dict[str, list[bool]] = defaultdict(list)
    for request in (request for session in held_out for request in session):
        if (page := request.recorded.answer.page) is not None:
            template = site.template(request)
            fits += [fit(template, page)] if template is not None else []
            name = f"{site.learnt.route(request.recorded.request)} {request.answer.status}"
            by_route[name].append(template is not None and fits[-1].has_structure)
    for name, results in sorted(by_route.items()):
        print(f"{sum(results):3} of {len(results):3} pages have the structure: {name}")
    n_all = sum(request.is_page for session in held_out for request in session)
    explained = [each.n_places + each.n_constants for each in fits]
    values = [each.n_places + each.n_constants + each.n_changed + each.n_surplus for each in fits]
    return {"routes": len(site.learnt.templates),
            "routes_of_one_page": sum(len(each) == 1 for each in site.learnt.pages.values()),
            "pages_of_a_route": _share(len(fits), n_all),
            "pages_with_structure": _share(sum(each.has_structure for each in fits), n_all),
            "pages_fit": _share(sum(each.fits for each in fits), n_all), "coverage": _share(sum(explained), sum(values)),
            "values_in_places": _share(sum(each.n_places for each in fits), sum(values)),
            "places_per_page": statistics.median(each.n_places for each in fits),
            "places_per_template": statistics.median(places_of(each) for each in site.learnt.templates.values()),
            "templates_with_rows": sum(rows_of(each) > 0 for each in site.learnt.templates.values())}


def _path(url: str) -> str:
    return urlsplit(url).path or "/"


def _share(part: int, whole: int, digits: int = 3) -> float:
    return round(part / whole, digits) if whole else 0.0


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
    known = {number for request in requests for word in request.answer.words for number in re.findall(r"\d{2,}", word)}
    measured = {name: score(held_out, answer) | score_steps(held_out, answer, known) for name, answer in answers.items()} | {
        "ceiling": ceiling(training, held_out), "templates": template_figures(site, held_out)}
    figures |= score_alone(site, held_out) | probe_figures(data, site, requests)
    figures |= {"site_bytes": site.n_bytes, "answers_s": round(len(site.seconds) / sum(site.seconds))}
    return figures | {f"{name}_{figure}": value for name, each in measured.items() for figure, value in each.items()}


def _recorded(request: SiteRequest | None) -> SiteAnswer | None:
    return request.answer if request is not None else None


def logs_beside(data: Path) -> Figures:
    """Return the figures of the induced site where it reads the server's log too (`with_access_*`)."""
    training, held_out = sessions_of(data)
    requests = [request for session in training for request in session]
    known = {number for request in requests for word in request.answer.words for number in re.findall(r"\d{2,}", word)}
    evidence = access_evidence(data, requests)
    site = InducedSite(requests, evidence)
    measured = score(held_out, site.answer) | score_steps(held_out, site.answer, known)
    return {f"with_access_{figure}": value for figure, value in measured.items()} | {"unseen_writes": len(evidence.unseen)}


PARTS = {"pages": pages, "logs": logs_beside, "hosts": hosts, "tasks": tasks}


def main(arguments: Sequence[str]) -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--application", type=Path, metavar="PYTHON", help="a Python with django-oscar: browser_application.py")
    options = parser.parse_args(arguments)
    figures = {name: value for part in options.part or PARTS for name, value in PARTS[part](options.data).items()}
    if "hosts" in (options.part or PARTS):
        if options.application is None:
            print("the real application is not compared: no --application is given")
        else:
            figures |= application(options.data, options.application)
    print(json.dumps({"benchmark": "browser_room", "data": options.data.name, "figures": figures}))


if __name__ == "__main__":
    main(sys.argv[1:])
