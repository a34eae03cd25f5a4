"""The page of reviews: the next case of the queue or of a random sample, and the line that an answer becomes.

An answer is a line of `OUT/reviews.jsonl`, on disk before the next case is shown; the next run reads it as it reads every log.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from extractors.reviews import agreement_of
from pipelines.browser.changes import changes_of_calls
from pipelines.browser.library import Library
from pipelines.inspection import views
from pipelines.quality.precision import published_precision, sentence_on
from pipelines.reviewing.cases import case_of
from pipelines.reviewing.files import append_reviews, stored_reviews
from pipelines.reviewing.queue import QueueItem, queue, sample
from pipelines.rollouts.standings import unsolved_of
from warehouse.errors import InputError

Row = dict[str, Any]
MOST = 100
"""Cases of a queue; the next run makes another one."""
_LONGEST = {"reviewer": 100, "reason": 2000, "session_id": 1000, "task_id": 1000, "service": 1000}
_ANSWERS = {"right": True, "wrong": False}


def cases(library: Library, n_sampled: int, seed: int) -> list[QueueItem]:
    """Return the queue, or a random sample of `n_sampled` if that is not 0; made once for a build and its rollouts."""
    unsolved = unsolved_of(library.out)
    return library.once(f"reviews {n_sampled} {seed} {sorted(unsolved.items())}", lambda: library.with_store(
        lambda store: sample(store, n_sampled, seed) if n_sampled else queue(store, MOST, unsolved=unsolved)))


def review_page(library: Library, target: Path, reviewer: str, at: int, n_sampled: int, seed: int) -> Row:
    """Return the case at `at` of those that `reviewer` has not answered, with what a reviewer needs on one screen."""
    stored = stored_reviews(target)
    done = {row["session_id"] for row in stored if not reviewer or row["reviewer"] == reviewer}
    every = cases(library, n_sampled, seed)
    waiting = [item for item in every if item.session_id not in done]
    item = waiting[min(at, len(waiting) - 1)] if waiting else None
    statement, agreement = library.once("reviews", lambda: library.with_store(
        lambda store: (sentence_on(*published_precision(store)), agreement_of(store.table("core.reviews")))))
    return {
        "item": item, "shown": _shown(library, item) if item else None, "at": min(at, len(waiting) - 1) if waiting else 0,
        "n_waiting": len(waiting), "n_done": len(every) - len(waiting), "n_stored": len(stored), "n_sampled": n_sampled,
        "seed": seed, "statement": statement, "agreement": agreement}


def _shown(library: Library, item: QueueItem) -> Row:
    case = case_of(library, item.session_id)
    by_call = changes_of_calls(library, item.service, views.turns(library, item.session_id)[:views.TURNS])
    changes = [change for each in by_call.values() for change in each["changed"]]
    rows = [row for each in by_call.values() for row in each["rows"]]
    return {"case": case, "changes": changes, "rows": rows}


def answer(target: Path, form: Mapping[str, str], now: datetime) -> Row:
    """Append the review that a form says. Raises InputError if it says too little or too much."""
    for name, most in _LONGEST.items():
        if (n := len(form.get(name, ""))) > most:
            raise InputError(f"this is too long ({name}: {n} characters of {most})", hint="go back, and shorten it")
    if form.get("answer") not in _ANSWERS:
        raise InputError("this is no answer", hint="go back, and choose right or wrong")
    text = {name: form.get(name, "").strip().replace("\r\n", "\n") for name in _LONGEST}
    for name, what in (("reviewer", "who you are"), ("session_id", "which session it is about")):
        if not text[name]:
            raise InputError(f"a review says {what}", hint="go back, and fill it in")
    try:
        "".join(text.values()).encode()
    except UnicodeEncodeError as error:
        raise InputError("the review is no text", hint="go back, and write it again") from error
    review = {**{name: value for name, value in text.items() if value}, "right": _ANSWERS[form["answer"]],
              "sampled": form.get("sampled") == "yes"}
    append_reviews(target, [review], now)
    return review
