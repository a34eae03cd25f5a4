"""Scripted people at a web application that runs in this process, as a recording proxy sees them, and the truth.

In: a WSGI application and the folder that it keeps its data in. Out: a folder as `browser_room.py` reads it: `logs/har`,
`logs/access`, `logs/files`, `logs/slack`, `truth/sessions.jsonl`, `truth/probes.jsonl`. Time is the driver's. Faults, lost
sessions and slow answers are drawn. Does not see: scripts of pages; nothing of a page but its links, forms and texts is used.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib
import io
import json
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

Row = dict[str, Any]
Pairs = list[tuple[str, str]]
_AGENT = "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0"
_BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"


class Fault(Exception):
    """The application did not answer."""


class Lost(Exception):
    """The script finds no such link or form on the page."""


class StrangerClock:
    """The time that the application sees."""

    def __init__(self, begin: datetime) -> None:
        self.now = begin
        self._traveller = importlib.import_module("time_machine").travel(begin, tick=False).start()

    def move_to(self, instant: datetime) -> None:
        """Go there."""
        self.now = instant
        self._traveller.move_to(instant)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.move_to(self.now + timedelta(seconds=seconds))


class Answer(NamedTuple):
    """What the application answered to one request."""

    url: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return next((value for each, value in self.headers if each.lower() == name), None)

    @property
    def page(self) -> LexborHTMLParser:
        """Return the parsed page."""
        return LexborHTMLParser(self.body.decode("utf-8", "replace"))


class WebForm(NamedTuple):
    """A form with the values that it would send."""

    method: str
    url: str
    is_multipart: bool
    values: Pairs
    choices: dict[str, dict[str, str]]
    """Of each select: label -> value."""

    def filled(self, **values: str | None) -> WebForm:
        """Return the form with other values; None leaves a field out; `_at_` in a name stands for @."""
        named = {name.replace("_at_", "@"): value for name, value in values.items()}
        kept = [(name, value) for name, value in self.values if name not in named]
        return self._replace(values=kept + [(name, value) for name, value in named.items() if value is not None])


def forms_of(page: LexborHTMLParser, url: str) -> list[WebForm]:
    """Return the forms of a page."""
    forms = []
    for node in page.css("form"):
        values: Pairs = []
        choices: dict[str, dict[str, str]] = {}
        for field in node.css("input, select, textarea"):
            name, kind = field.attributes.get("name") or "", (field.attributes.get("type") or "text").lower()
            if not name or kind in ("submit", "button", "file", "image", "reset"):
                continue
            if field.tag == "select":
                options = field.css("option")
                choices[name] = {option.text().strip(): _value(option) for option in options}
                chosen = [option for option in options if "selected" in option.attributes] or options[:1]
                values += [(name, _value(option)) for option in chosen]
            elif field.tag == "textarea":
                values.append((name, field.text().removeprefix("\n")))
            elif kind not in ("checkbox", "radio") or "checked" in field.attributes:
                values.append((name, field.attributes.get("value") or ("on" if kind in ("checkbox", "radio") else "")))
        action = urljoin(url, node.attributes.get("action") or "")
        forms.append(WebForm((node.attributes.get("method") or "get").upper(), action,
                             "multipart" in (node.attributes.get("enctype") or ""), values, choices))
    return forms


def _value(option: LexborNode) -> str:
    value = option.attributes.get("value")
    return option.text().strip() if value is None else value


class Stage:
    """The application with its data, clock, log and records."""

    def __init__(self, app: Callable[..., Any], data: Path, origin: str, base: str, out: Path, seed: int = 7) -> None:
        """Take the application, its folder and its address. `base`: the path under which it lives, without a last slash."""
        self.app, self.data, self.base, self.out = app, data, base, out
        self.origin = origin
        self.random = random.Random(seed)
        self.clock = StrangerClock(datetime(2026, 1, 5, 8, tzinfo=UTC))
        self.access: list[str] = []
        self.files: list[Row] = []
        self.messages: list[Row] = []
        self.reset: Callable[[], None] = lambda: None
        """What closes the application's connections before its data are exchanged."""

    def ask(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Answer:
        """Let the application answer."""
        parts, got = urlsplit(url), []
        environ: Row = {
            "REQUEST_METHOD": method, "SCRIPT_NAME": self.base, "PATH_INFO": parts.path.removeprefix(self.base) or "/",
            "QUERY_STRING": parts.query, "SERVER_NAME": parts.hostname, "SERVER_PORT": "443", "HTTP_HOST": parts.netloc,
            "SERVER_PROTOCOL": "HTTP/1.1", "REQUEST_URI": f"{parts.path}?{parts.query}" if parts.query else parts.path,
            "wsgi.url_scheme": parts.scheme, "wsgi.input": io.BytesIO(body), "wsgi.errors": io.StringIO(),
            "wsgi.version": (1, 0), "wsgi.multithread": False, "wsgi.multiprocess": False, "wsgi.run_once": False,
            "REMOTE_ADDR": "10.4.0.9", "HTTPS": "on", "CONTENT_LENGTH": str(len(body)) if body else ""}
        for name, value in headers:
            key = name.upper().replace("-", "_")
            environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value

        def start(status: str, answered: list[tuple[str, str]], _: Any = None) -> Callable[[bytes], object]:
            got.append((int(status.split()[0]), answered))
            return written.append

        written: list[bytes] = []
        chunks = self.app(environ, start)
        content = b"".join([*written, *chunks])
        if hasattr(chunks, "close"):
            chunks.close()
        status, answered = got[-1]
        return Answer(url, status, answered, content)

    def snapshot(self, folder: Path) -> None:
        """Keep the data as they are."""
        self.reset()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.data, folder)

    def restore(self, folder: Path) -> None:
        """Bring the data back."""
        self.reset()
        shutil.rmtree(self.data)
        shutil.copytree(folder, self.data)

    def say(self, channel: str, user: str, text: str, thread: str | None = None) -> str:
        """Write a message in the chat; its stamp comes back."""
        stamp = f"{self.clock.now.timestamp():.6f}"
        self.messages.append({"channel": channel, "type": "message", "user": user, "ts": stamp, "text": text,
                              **({"thread_ts": thread} if thread else {})})
        return stamp

    def keep_file(self, user: str, operation: str, path: str, content: bytes | None = None, to: str | None = None) -> None:
        """Note what happened to a file."""
        row: Row = {"at": self.clock.now.isoformat(), "user": user, "process": "chromium" if content else "explorer.exe",
                    "op": operation, "path": path, **({"to": to} if to else {})}
        if content is not None:
            name = hashlib.sha256(content).hexdigest()
            row |= {"sha256": name, "size": len(content)}
            store = self.out / "logs" / "files" / "store"
            store.mkdir(parents=True, exist_ok=True)
            (store / f"{name}.{path.rpartition('.')[2]}").write_bytes(content)
        self.files.append(row)

    def write_logs(self) -> None:
        """Write what is no HAR."""
        logs = self.out / "logs"
        for name in ("access", "files", "slack"):
            (logs / name).mkdir(parents=True, exist_ok=True)
        (logs / "access" / "access.log").write_text("".join(self.access), "utf-8")
        if self.files:
            _write_lines(logs / "files" / "audit.jsonl", self.files)
        channels = sorted({row["channel"] for row in self.messages})
        users = sorted({row["user"] for row in self.messages})
        (logs / "slack" / "users.json").write_text(json.dumps([{"id": each, "name": each} for each in users]))
        (logs / "slack" / "channels.json").write_text(json.dumps(
            [{"id": f"C{number:03}", "name": each} for number, each in enumerate(channels)]))
        days: dict[tuple[str, str], list[Row]] = {}
        for row in self.messages:
            day = datetime.fromtimestamp(float(row["ts"]), UTC).date().isoformat()
            days.setdefault((row["channel"], day), []).append({name: row[name] for name in row if name != "channel"})
        for (channel, day), rows in days.items():
            (logs / "slack" / channel).mkdir(exist_ok=True)
            (logs / "slack" / channel / f"{day}.json").write_text(json.dumps(rows))


class Visitor:
    """One person's browser: cookies, the page that is open, and what a recording proxy keeps."""

    def __init__(self, stage: Stage, user: str, is_broken: bool = True, credentials: tuple[str, str] | None = None) -> None:
        """`credentials`: those of an application that asks for them in headers."""
        self.stage, self.user, self.is_broken = stage, user, is_broken
        self.cookies: dict[str, str] = {}
        self.entries: list[Row] = []
        self.answers: list[tuple[str, str, Pairs | None, Answer]] = []
        self.credentials = credentials
        self.answer: Answer | None = None

    @property
    def page(self) -> LexborHTMLParser:
        """Return the page that is open."""
        if self.answer is None:
            raise Lost("no page")
        return self.answer.page

    @property
    def url(self) -> str:
        """Return the address of the page that is open."""
        return self.answer.url if self.answer is not None else ""

    def go(self, url: str) -> Answer:
        """Open an address."""
        return self._followed("GET", urljoin(self.url or self.stage.origin, url).partition("#")[0], None, False)

    def follow(self, text: str = "", href: str = "") -> Answer:
        """Click the link with this text, or whose address has this in it."""
        for node in self.page.css("a[href]"):
            target = node.attributes["href"] or ""
            if (text and " ".join(node.text().split()) == text) or (href and href in target):
                return self.go(target)
        raise Lost(f"{self.url}: no link {text or href}")

    def form(self, **having: str) -> WebForm:
        """Return the form with these values of fields, or with these fields where the value is empty; `_at_` stands for @."""
        wanted = {name.replace("_at_", "@"): value for name, value in having.items()}
        for form in forms_of(self.page, self.url):
            values = dict(form.values)
            if all(name in values and (not value or values[name] == value) for name, value in wanted.items()):
                return form
        raise Lost(f"{self.url}: no form with {wanted}")

    def send(self, form: WebForm) -> Answer:
        """Submit a form."""
        if form.method == "GET":
            return self.go(f"{form.url.partition('?')[0]}?{urlencode(form.values)}")
        return self._followed("POST", form.url.partition("#")[0], form.values, form.is_multipart)

    def _followed(self, method: str, url: str, form: Pairs | None, is_multipart: bool) -> Answer:
        answer = self._asked(method, url, form, is_multipart, self.url)
        for _ in range(5):
            location = answer.header("location")
            if location is None or not 300 <= answer.status < 400:
                break
            answer = self._asked("GET", urljoin(answer.url, location).partition("#")[0], None, False, url)
        if "html" in (answer.header("content-type") or ""):
            self.answer = answer
        return answer

    def _asked(self, method: str, url: str, form: Pairs | None, is_multipart: bool, referer: str) -> Answer:
        clock, draw = self.stage.clock, self.stage.random
        clock.wait(draw.uniform(1.5, 9) if self.is_broken else 1)
        begin = clock.now
        kind, body = _encoded(form, is_multipart)
        headers = [("accept", "text/html,*/*"), ("user-agent", _AGENT)]
        headers += [("referer", referer)] if referer else []
        headers += [("origin", self.stage.origin)] if form is not None else []
        cookies = "; ".join(f"{name}={value}" for name, value in sorted(self.cookies.items()))
        headers += [("cookie", cookies)] if cookies else []
        headers += [("content-type", kind)] if kind else []
        if self.credentials:
            pair = base64.b64encode(":".join(self.credentials).encode()).decode()
            headers.append(("authorization", f"Basic {pair}"))
        is_fault = self.is_broken and draw.random() < .02
        answer = Answer(url, 503, [("content-type", "text/html")], b"<h1>Service Unavailable</h1>") if is_fault else (
            self.stage.ask(method, url, headers, body))
        clock.wait(draw.uniform(.1, .6) * (12 if draw.random() < .03 else 1))
        for name, value in answer.headers:
            if name.lower() == "set-cookie":
                self._keep(value)
        self.entries.append(_entry(begin, clock.now, method, headers, kind, body, answer))
        self.answers.append((method, url, form, answer))
        line = begin.strftime("%d/%b/%Y:%H:%M:%S +0000")
        path = urlsplit(url)._replace(scheme="", netloc="").geturl()
        self.stage.access.append(f'10.4.0.9 - - [{line}] "{method} {path} HTTP/1.1" {answer.status} {len(answer.body)} '
                                 f'"{referer or "-"}" "{_AGENT}" rt={(clock.now - begin).total_seconds():.3f}\n')
        if is_fault:
            if draw.random() < .1:
                raise Fault(url)
            return self._asked(method, url, form, is_multipart, referer)
        return answer

    def _keep(self, cookie: str) -> None:
        name, _, rest = cookie.partition("=")
        value = rest.partition(";")[0]
        if value.strip('"') and "max-age=0" not in rest.replace(" ", "").lower():
            self.cookies[name] = value
        else:
            self.cookies.pop(name, None)


def _encoded(form: Pairs | None, is_multipart: bool) -> tuple[str, bytes]:
    if form is None:
        return "", b""
    if not is_multipart:
        return "application/x-www-form-urlencoded", urlencode(form).encode()
    parts = [f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form]
    return f"multipart/form-data; boundary={_BOUNDARY}", ("".join(parts) + f"--{_BOUNDARY}--\r\n").encode()


def _entry(begin: datetime, end: datetime, method: str, headers: Pairs, kind: str, body: bytes, answer: Answer) -> Row:
    """Return what a recording proxy keeps: cookies and credentials hashed, no body of a download."""
    hidden = [(name, "; ".join(
        f"{each.partition('=')[0]}={_hashed(each)}" for each in value.split("; ")) if name == "cookie" else value)
        for name, value in headers]
    shown = [(name.lower(), f"{value.partition('=')[0]}={_hashed(value.partition(';')[0])}; Path=/" if (
        name.lower() == "set-cookie") else value) for name, value in answer.headers]
    mime = answer.header("content-type") or ""
    content: Row = {"size": len(answer.body), "mimeType": mime}
    if answer.body and "html" in mime:
        content["text"] = answer.body.decode("utf-8", "replace")
    elapsed = (end - begin).total_seconds() * 1000
    posted = {"postData": {"mimeType": kind, "text": body.decode()}} if kind else {}
    return {
        "startedDateTime": begin.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "time": round(elapsed, 1),
        "_resourceType": "document",
        "request": {"method": method, "url": answer.url, "httpVersion": "HTTP/1.1", "cookies": [], "headersSize": -1,
                    "bodySize": -1, "queryString": [{"name": name, "value": value} for name, value in parse_qsl(
                        urlsplit(answer.url).query, keep_blank_values=True)],
                    "headers": [{"name": name, "value": value} for name, value in hidden], **posted},
        "response": {"status": answer.status, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [],
                     "redirectURL": answer.header("location") or "", "headersSize": -1, "bodySize": -1,
                     "headers": [{"name": name, "value": value} for name, value in shown], "content": content},
        "cache": {}, "timings": {"send": 0, "wait": round(elapsed, 1), "receive": 0}}


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_har(path: Path, entries: Iterable[Row]) -> None:
    """Write one session's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": "recording proxy", "version": "1"},
                                        "entries": list(entries)}}), "utf-8")


def walk(visitor: Visitor, begin: str, known: Callable[[str], bool], n: int) -> Iterator[Row]:
    """Yield the steps of a walk by links and searches that no session made, from the page `begin`.

    `known`: whether an address is of a kind that people look at."""
    draw = visitor.stage.random
    visitor.answers.clear()
    url: str | None = begin
    for _ in range(n):
        if url is None:
            break
        visitor.go(url)
        links = [urljoin(visitor.url, node.attributes["href"] or "").partition("#")[0]
                 for node in visitor.page.css("a[href]")]
        fitting = sorted({each for each in links if each.startswith(visitor.stage.origin) and known(each)} - {visitor.url})
        url = draw.choice(fitting) if fitting else None
    for number, (method, asked, form, answer) in enumerate(visitor.answers):
        mime = answer.header("content-type") or ""
        yield {"step": number, "method": method, "path": urlsplit(asked)._replace(scheme="", netloc="").geturl(),
               "form": form, "status": answer.status, "location": answer.header("location"), "type": mime,
               "body": answer.body.decode("utf-8", "replace") if "html" in mime else None}


def _write_lines(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


class Job(NamedTuple):
    """A piece of work that somebody is asked for."""

    kind: str
    user: str
    channel: str
    asker: str
    ask: str
    slots: Row
    do: Callable[[Visitor], None]
    is_done: Callable[[], bool]
    """Whether the data are as they were asked to be."""
    note: str | None
    slip: str | None = None
    mentions: bool = True


class Stranger(Protocol):
    """An application with its data, its people and what they are asked."""

    stage: Stage
    first_url: str
    """Address at which walks begin."""

    def jobs(self, n: int) -> Iterator[Job | None]:
        """Yield what people are asked, as the data are by then."""

    def log_in(self, user: str) -> Visitor:
        """Return somebody's browser."""

    def enter(self, visitor: Visitor) -> None:
        """Come in, as the application asks for it."""

    def rows(self) -> dict[tuple[str, str], Row]:
        """Return the data that people change, by table and key."""

    def between(self) -> None:
        """Let something happen that none of the people did."""

    def is_known(self, url: str) -> bool:
        """Return whether an address is of a kind that people look at."""


def main(make: Callable[[Path, Path, int], Stranger], description: str, n_sessions: int) -> None:
    """Make the data of an application as the command line says. `make`: of its folder, the output and a seed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--sessions", type=int, default=n_sessions)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    record(make(options.out.absolute() / "application", options.out, options.seed), options.sessions)
    shutil.rmtree(options.out / "application")


def record(stranger: Stranger, n_sessions: int) -> None:
    """Let people do jobs, one after the other, and write all logs and truth."""
    stage = stranger.stage
    truth, probes = [], []
    scratch = stage.data.parent / "kept"
    for number, job in enumerate(stranger.jobs(n_sessions)):
        if job is None:
            continue
        session_id = f"s{number:04}"
        held_out = int(hashlib.sha256(session_id.encode()).hexdigest(), 16) % 4 == 0
        stage.clock.move_to(_next_hour(stage.clock.now, stage.random))
        stranger.between()
        mention = f"<@{job.user}> " if job.mentions else f"{job.user.capitalize()}, "
        asked = stage.say(job.channel, job.asker, mention + job.ask)
        stage.clock.wait(stage.random.uniform(60, 1500))
        if held_out:
            probes.append(_probe(stranger, scratch, session_id, job))
        before, begin, error = stranger.rows(), stage.clock.now, None
        visitor = stranger.log_in(job.user)
        try:
            stranger.enter(visitor)
            job.do(visitor)
        except (Fault, Lost) as problem:
            error = f"{type(problem).__name__}: {problem}"
        ended = stage.clock.now
        success = error is None and job.is_done()
        _afterwards(stage, job, success, asked)
        after = stranger.rows()
        har = f"{begin.strftime('%Y-%m-%dT%H%M%S')}-{job.user}.har"
        write_har(stage.out / "logs" / "har" / har, visitor.entries)
        truth.append({
            "har": har, "session_id": session_id, "user": job.user, "kind": job.kind, "slots": job.slots,
            "slips": [job.slip] if job.slip else [], "success": success, "error": error, "started_at": begin.isoformat(),
            "ended_at": ended.isoformat(), "asked_ts": asked, "held_out": held_out, "n_entries": len(visitor.entries),
            "rows_changed": [{"table": key[0], "key": key[1], "before": before.get(key), "after": after.get(key)}
                             for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]})
    stage.write_logs()
    _write_lines(stage.out / "truth" / "sessions.jsonl", truth)
    _write_lines(stage.out / "truth" / "probes.jsonl", probes)


def _afterwards(stage: Stage, job: Job, success: bool, asked: str) -> None:
    """Write the note, and what the asker says to it; some are wrong, some say nothing."""
    draw = stage.random
    if job.note is not None and draw.random() < .8:
        stage.clock.wait(draw.uniform(5, 60))
        stage.say(job.channel, job.user, job.note)
    if draw.random() < .5:
        stage.clock.wait(draw.uniform(60, 900))
        is_content = success if draw.random() < .93 else not success
        stage.say(job.channel, job.asker, draw.choice(["thanks!", "perfect, thank you"]) if is_content else draw.choice(
            ["that's not what I asked for", "this is wrong, please check again"]), asked)


def _probe(stranger: Stranger, scratch: Path, session_id: str, job: Job) -> Row:
    """Return a walk in the state in which a session begins; the data are as before afterwards."""
    stage = stranger.stage
    now, noted = stage.clock.now, len(stage.access)
    stage.snapshot(scratch)
    visitor = stranger.log_in(job.user)
    visitor.is_broken = False
    stranger.enter(visitor)
    steps = list(walk(visitor, stranger.first_url, stranger.is_known, 6))
    stage.restore(scratch)
    stage.clock.move_to(now)
    del stage.access[noted:]
    return {"before_session": session_id, "at": now.isoformat(), "user": job.user, "steps": steps}


def _next_hour(now: datetime, draw: random.Random) -> datetime:
    """Return a working hour after this instant."""
    then = now + timedelta(minutes=draw.uniform(50, 350))
    while then.weekday() > 4 or not 8 <= then.hour < 17:
        then += timedelta(minutes=draw.uniform(60, 600))
    return then
