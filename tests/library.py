"""A real small web application to log and to rebuild: a library with members, books, loans and notes.

`Library` is the real thing; `log` lets clerks and members work with it for some days and gives its request log (pino).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

Answer = tuple[int, Any]
START_MS = 1_900_000_000_000
TOWNS = ("Lund", "Gera", "Pau")


class Library:
    """The application as it stands."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.members = {
            f"m{n}": {"name": f"Member {n}", "email": f"m{n}.{self.choose.randrange(1000, 9999)}@example.org",
                      "town": self.choose.choice(TOWNS), "credit": self.choose.randrange(90, 200), "loans": list[str]()}
            for n in range(100, 116)}
        self.books = {
            f"B-{n}": {"book": f"B-{n}", "title": f"Title {n}", "shelf": self.choose.choice("QRS"),
                       "pages": self.choose.randrange(80, 900), "free": True} for n in range(40, 64)}
        self.loans: dict[str, dict[str, Any]] = {}
        self.notes: dict[int, dict[str, Any]] = {}

    def answer(self, who: str, method: str, path: str, given: dict[str, Any]) -> Answer:
        """Return what the application really answers."""
        kind, *rest = path.strip("/").split("/")
        if method == "POST":
            if kind == "notes":
                return self._mark(int(rest[0]), **given) if rest else self._new_note(who, **given)
            return self._back(rest[0]) if rest else self._new_loan(who, **given)
        if not rest:
            return self._listed(**given)
        key = f"#{rest[0]}" if kind == "loans" else int(rest[0]) if kind == "notes" else rest[0]
        there = getattr(self, kind).get(key)
        if len(rest) > 1:
            return 200, {"loans": [self.loans[loan] for loan in there["loans"]]}
        return (200, there) if there else (404, {"error": "not found"})

    def _new_loan(self, who: str, book: str) -> Answer:
        if not self.books[book]["free"]:
            return 409, {"error": "the book is out"}
        loan = f"#L{self.choose.randrange(10_000, 99_999)}"
        self.books[book]["free"] = False
        self.loans[loan] = {"loan": loan, "member": who, "book": book, "fee": 3, "state": "out"}
        self.members[who]["loans"].append(loan)
        self.members[who]["credit"] -= 3
        return 201, self.loans[loan]

    def _back(self, key: str) -> Answer:
        loan = self.loans[f"#{key}"]
        loan["state"] = "back"
        self.books[loan["book"]]["free"] = True
        return 200, loan

    def _new_note(self, who: str, text: str) -> Answer:
        note = self.choose.randrange(10_000, 99_999)
        self.notes[note] = {"note": note, "from": self.members[who]["email"], "text": text, "state": "open"}
        return 201, {"note": note, "state": "open"}

    def _mark(self, note: int, state: str) -> Answer:
        self.notes[note]["state"] = state
        return 200, {"done": True}

    def _listed(self, shelf: str, page: str = "1") -> Answer:
        rows = [book for book in self.books.values() if book["shelf"] == shelf]
        first = 4 * (int(page) - 1)
        return 200, {"books": [{name: row[name] for name in ("book", "title", "free")} for row in rows[first:first + 4]],
                     "page": int(page), "total": len(rows)}


def log(seed: int, n_visits: int) -> Iterator[dict[str, Any]]:
    """Request log of so many visits of members, and of the clerks who look into them."""
    library, clock = Library(seed), START_MS
    choose = random.Random(seed + 1)
    for _ in range(n_visits):
        for who, method, path, given in _visit(library, choose):
            clock += choose.randrange(2_000, 40_000)
            status, body = library.answer(who, method, path, given)
            asked: dict[str, Any] = {"method": method, "url": path, "user": {"id": who}}
            if method == "POST" and given:
                asked["body"] = given
            elif given:
                asked["url"] += "?" + urlencode(given)
            yield {"time": clock, "msg": "request completed", "req": asked, "responseTime": 5,
                   "res": {"statusCode": status, "body": copy.deepcopy(body)}}
        clock += choose.randrange(100_000, 4_000_000)


def _visit(library: Library, choose: random.Random) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    who, clerk = choose.choice(sorted(library.members)), choose.choice(["clerk-a", "clerk-b"])
    yield who, "GET", "/books", {"shelf": choose.choice("QRS"), "page": choose.choice("12")}
    book = choose.choice(sorted(library.books))
    yield who, "GET", f"/books/{book}", {}
    if choose.random() < 0.6 and library.books[book]["free"]:
        yield who, "POST", "/loans", {"book": book}
    yield who, "POST", "/notes", {"text": f"please look at {book} for me {choose.randrange(100_000)}"}
    note = list(library.notes)[-1]
    yield clerk, "GET", f"/notes/{note}", {}
    if choose.random() < 0.6:
        yield clerk, "POST", f"/notes/{note}/mark", {"state": choose.choice(["solved", "waiting"])}
        yield clerk, "GET", f"/notes/{note}", {}
    yield clerk, "GET", f"/members/{who}", {}
    yield clerk, "GET", f"/members/{who}/loans", {}
    for loan in library.members[who]["loans"][-1:]:
        yield clerk, "GET", f"/loans/{loan[1:]}", {}
        if library.loans[loan]["state"] == "out" and choose.random() < 0.7:
            yield clerk, "POST", f"/loans/{loan[1:]}/back", {}
            yield clerk, "GET", f"/books/{library.loans[loan]['book']}", {}
