"""A small web site that keeps cards: what its people do is recorded as a HAR's events would be."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
HOST = "cards.example"
Pairs = tuple[tuple[str, str], ...]


class CardSite:
    """Cards with a title, a level and comments; whoever is logged in may change them."""

    def __init__(self, n_cards: int = 6) -> None:
        self.cards = {number: {"title": f"Lamp {number * 11}", "level": "low", "comments": [], "month": 1 + number % 3}
                      for number in range(101, 101 + n_cards)}

    def answer(self, user: str | None, method: str, url: str, form: Pairs) -> tuple[int, str | None, str | None, Any]:
        """Return status, location, page, and file as (name, content); None where there is none."""
        address = urlsplit(url)
        parts, values = address.path.strip("/").split("/"), dict(form)
        if parts == ["login"]:
            return self._login(method, values, dict(parse_qsl(address.query)))
        if user is None:
            return 302, f"/login/?next={quote(address.path)}", None, None
        if parts == ["cards"]:
            return 200, None, self._list(dict(parse_qsl(address.query)).get("title", "")), None
        if len(parts) < 2 or not parts[1].isdigit() or int(parts[1]) not in self.cards:
            return 404, None, "<h1>Not here</h1>", None
        card = self.cards[int(parts[1])]
        if parts[2:] == ["sheet"]:
            return 200, None, None, (f"sheet-{parts[1]}.pdf", f"%PDF {card['title']}: {parts[1]}.50 in all".encode())
        if method == "POST":
            if values.get("work") == "comment" and not values.get("text"):
                return 200, None, self._card(int(parts[1]), user), None
            if values.get("work") == "comment":
                card["comments"].append(values["text"])
            else:
                card["title"], card["level"] = values["title"], values["level"]
            return 302, address.path, None, None
        return 200, None, self._card(int(parts[1]), user), None

    def _login(self, method: str, values: dict[str, str], query: dict[str, str]) -> tuple[int, str | None, str | None, Any]:
        if method == "POST" and values.get("password") == "sesame":
            return 302, query.get("next", "/cards/"), None, None
        return 200, None, ("<h1>Come in</h1><form method=post><label>Who <input name=who></label>"
                           "<label>Password <input type=password name=password></label>"
                           "<input type=hidden name=token value=abc><button>Go</button></form>"), None

    def _list(self, title: str) -> str:
        rows = "".join(f"<tr><td><a href='/cards/{number}/'>{card['title']}</a></td><td>2026-0{card['month']}</td></tr>"
                       for number, card in self.cards.items() if title in card["title"])
        return f"<h1>Cards</h1><form><input name=title value='{title}'></form><table>{rows}</table>"

    def _card(self, number: int, user: str) -> str:
        card = self.cards[number]
        levels = "".join(f"<option{' selected' if each == card['level'] else ''}>{each}</option>" for each in ("low", "high"))
        comments = "".join(f"<li>{each}</li>" for each in card["comments"])
        return (f"<p>{user}</p><h1>{card['title']}</h1><a href='/cards/{number}/sheet'>Sheet</a>"
                f"<form method=post><input type=hidden name=work value=edit>"
                f"<label>Title <input name=title value='{card['title']}'></label>"
                f"<label>Level <select name=level>{levels}</select></label><button>Save</button></form><ul>{comments}</ul>"
                f"<form method=post><input type=hidden name=work value=comment>"
                f"<label>Words <textarea name=text></textarea></label>"
                f"<button>Comment</button></form>")


class Recorder:
    """Records what people do on a site as events of pages, files and a chat."""

    def __init__(self, site: Any, begin: datetime = BEGIN) -> None:
        self.site = site
        self.now = begin
        self.events: list[dict[str, Any]] = []
        self.messages: list[tuple[datetime, str, str, str, str | None]] = []
        """(instant, channel, author, text, thread)."""
        self.files: list[tuple[datetime, str, str, str, str | None, str | None]] = []
        """(instant, user, operation, path, to, sha256)."""
        self.blobs: dict[str, bytes] = {}
        self._session = ""
        self._who = ""
        self._user: str | None = None

    def sit_down(self, who: str, ask: str | None = None) -> None:
        """Begin a session and log in."""
        self.begin(who, ask)
        self.ask("GET", "/login/")
        self.ask("POST", "/login/", (("who", f"{who}@cards.example"), ("password", "sesame"), ("token", "abc")))

    @property
    def who(self) -> str:
        """Return whose session it is."""
        return self._who

    def lose(self) -> None:
        """Let the site forget the session."""
        self._user = None

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def begin(self, who: str, ask: str | None = None) -> None:
        """Begin a session; `ask`: what somebody asks for before it."""
        self.now += timedelta(hours=3)
        if ask is not None:
            self.messages.append((self.now, "desk", "mona", f"<@{who}> {ask}", None))
            self.now += timedelta(seconds=5)
        self._session, self._who, self._user = f"s{len({each['session_id'] for each in self.events}) + 1}", who, None

    def ask(self, method: str, url: str, form: Pairs = ()) -> str | None:
        """Make a request and follow where it leads; return the page."""
        self.now += timedelta(seconds=7)
        status, location, page, file = self.site.answer(self._user, method, url, form)
        if ("password", "sesame") in form and location:
            self._user = self._who
        value: dict[str, Any] = {"status": status, "location": location, "type": "text/html", "body": page}
        if file is not None:
            value |= {"type": "application/pdf", "file": file[0]}
            self._save(*file)
        posted = {name: "[secret]" if name in ("password", "token") else text for name, text in form}
        address = urlsplit(url)
        arguments = {"query": dict(parse_qsl(address.query)), **({"body": posted} if method == "POST" else {})}
        self.events.append({
            "session_id": self._session, "file_id": "f", "service": HOST, "happened_at": self.now, "name": None,
            "content": f"https://{HOST}{url}" if method == "GET" else None,
            "kind": "request" if method == "POST" else "page", "tool": f"{method} {address.path}",
            "arguments": json.dumps(arguments),
            "value": json.dumps({name: each for name, each in value.items() if each is not None})})
        return self.ask("GET", location) if location else page

    def _save(self, name: str, content: bytes) -> None:
        sha256 = hashlib.sha256(content).hexdigest()
        self.blobs[sha256] = content
        self.files.append((self.now + timedelta(seconds=1), self._who, "create", f"/home/{self._who}/{name}", None, sha256))

    def move(self, name: str, to: str) -> None:
        """Move a file from where it arrived."""
        self.now += timedelta(seconds=3)
        self.files.append((self.now, self._who, "rename", f"/home/{self._who}/{name}", to, None))

    def say(self, text: str) -> None:
        """Post in the channel."""
        self.now += timedelta(seconds=3)
        self.messages.append((self.now, "desk", self._who, text, None))

    def reply(self, text: str) -> None:
        """Answer to the last ask, as the one who asked."""
        at = max(index for index, each in enumerate(self.messages) if each[2] == "mona" and each[4] is None)
        self.messages.append((self.now + timedelta(minutes=30), "desk", "mona", text, str(at)))

    def change(self, number: int, work: str, **values: str) -> None:
        """Open a card and post one of its forms."""
        self.ask("GET", "/cards/")
        self.ask("GET", f"/cards/{number}/")
        self.ask("POST", f"/cards/{number}/", (("work", work), *values.items()))



    def write_logs(self, folder: Path, origin: str = f"https://{HOST}") -> None:
        """Write what was recorded as production does: HARs, an export of Slack, audit events of files and their bytes.

        Redirects state whole addresses where the origin has a port."""
        entries: dict[str, list[dict[str, Any]]] = {}
        for event in self.events:
            entries.setdefault(event["session_id"], []).append(_entry(event, origin))
        (folder / "har").mkdir(parents=True)
        for session, own in entries.items():
            document = {"log": {"version": "1.2", "creator": {"name": "proxy", "version": "1"}, "entries": own}}
            (folder / "har" / f"{session}.har").write_text(json.dumps(document))
        self._write_slack(folder / "slack")
        (folder / "files" / "store").mkdir(parents=True)
        (folder / "files" / "audit.jsonl").write_text("".join(json.dumps({
            "at": at.isoformat(), "user": user, "process": "x", "op": operation, "path": path,
            **({"to": to} if to else {}), **({"sha256": sha256} if sha256 else {})}) + "\n"
            for at, user, operation, path, to, sha256 in self.files))
        for sha256, content in self.blobs.items():
            (folder / "files" / "store" / sha256).write_bytes(content)

    def _write_slack(self, folder: Path) -> None:
        stamps = [f"{int(at.timestamp())}.{index:06}" for index, (at, *_) in enumerate(self.messages)]
        days: dict[str, list[dict[str, Any]]] = {}
        for ts, (at, _, author, text, thread) in zip(stamps, self.messages, strict=True):
            row = {"type": "message", "user": author, "text": text, "ts": ts}
            days.setdefault(at.date().isoformat(), []).append(
                {**row, "thread_ts": stamps[int(thread)]} if thread is not None else row)
        (folder / "desk").mkdir(parents=True)
        for day, rows in days.items():
            (folder / "desk" / f"{day}.json").write_text(json.dumps(rows))
        (folder / "channels.json").write_text(json.dumps([{"id": "C1", "name": "desk", "created": 1, "members": []}]))
        people = sorted({each[2] for each in self.messages})
        (folder / "users.json").write_text(json.dumps([{"id": name, "name": name} for name in people]))


def _entry(event: dict[str, Any], origin: str) -> dict[str, Any]:
    method, _, path = event["tool"].partition(" ")
    arguments, value = json.loads(event["arguments"]), json.loads(event["value"])
    query = [{"name": name, "value": each} for name, each in arguments["query"].items()]
    url = f"{origin}{path}" + (f"?{urlencode(arguments['query'])}" if query else "")
    request: dict[str, Any] = {"method": method, "url": url, "queryString": query, "headers": [
        {"name": "Accept", "value": "text/html"}], "cookies": []}
    if "body" in arguments:
        text = urlencode({name: "sesame" if each == "[secret]" else each for name, each in arguments["body"].items()})
        request["postData"] = {"mimeType": "application/x-www-form-urlencoded", "text": text}
    location = value.get("location", "") and ("" if origin.endswith(HOST) else origin) + value["location"]
    headers = [{"name": "Location", "value": location}] if location else []
    if "file" in value:
        headers.append({"name": "Content-Disposition", "value": f"attachment; filename={value['file']}"})
    content = {"mimeType": value["type"], "size": len(value.get("body", "")), "text": value.get("body", "")}
    return {"startedDateTime": event["happened_at"].isoformat(), "time": 5, "request": request, "_resourceType": "document",
            "response": {"status": value["status"], "headers": headers, "redirectURL": location,
                         "content": content}}
