"""Mail: mbox files (Takeout, Thunderbird, Mailman), Maildir, single messages, Gmail API JSON.

Sees: a message once for all mailboxes that hold it, by Message-ID; headers unfolded and decoded, the text, names of
attachments, threads (Gmail's, else by References). Lines that an mbox escaped (`>From `) are restored. Files inside messages
go to the apps that claim them: invitations, workbooks.
Does not see, and says so: since when a message has its labels and was read, unless it was sent from that mailbox; deleted mail.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, NamedTuple

from extractors.apps.version import (
    BEGINNING,
    NEVER_KNOWN,
    AppRow,
    AppVersion,
    CompanyApp,
    ExportFile,
    RecordKind,
    bad_row,
    epoch,
)
from extractors.formats.instants import microseconds

MAIL, MAILBOX = "mail", "mailbox"
_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n(?=[!-9;-~]+:)")
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_HEADER = re.compile(rb"\A(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*){2,}")
_IDS = re.compile(r"<[^<>\s]+>")
_MAILDIR = re.compile(r"(?:^|/)(?:cur|new)/[^/]+$")
_FLAGS = {"S": "read", "F": "STARRED", "D": "DRAFT", "T": "TRASH"}
_ADDRESS = re.compile(r"[^\s/]+@[^\s/]+\.[^\s/]+")
_ERRORS = (ValueError, KeyError, TypeError, AttributeError, LookupError, HeaderParseError)


class _Copy(NamedTuple):
    """A message in a mailbox."""

    owner: str
    labels: list[str] | None
    """As Gmail's API names them; None: the export has none."""
    thread: str | None
    content: bytes
    where: str
    own_id: str | None = None
    """Of the message in this mailbox, as Gmail's API has it."""


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file is an mbox, a message, or messages of Gmail's API."""
    head = file.content[:4000]
    if file.name.endswith((".json", ".jsonl")):
        return b'"payload"' in head and b'"headers"' in head and b'"threadId"' in head
    if head.startswith(b"From ") or file.name.endswith((".mbox", ".eml")):
        return True
    return _MAILDIR.search(file.path) is not None and _HEADER.match(head) is not None


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of messages and of their places in mailboxes."""
    parsed: dict[str, _Mail] = {}
    by_content: dict[bytes, str] = {}
    placed: set[tuple[str, str]] = set()
    for file in files:
        copies: list[_Copy] = []
        try:
            copies = list(_copies(file))
        except _ERRORS as error:
            yield bad_row(file, "", error)
        for copy in copies:
            try:
                body = _without_place(copy.content)
                key = by_content.get(body)
                if key is None:
                    mail = _Mail(copy, file)
                    key = by_content[body] = mail.key
                    if key not in parsed:
                        parsed[key] = mail
                        yield from mail.files()
                mail = parsed[key]
                mail.thread = mail.thread or copy.thread
                if (copy.owner, key) not in placed:
                    placed.add((copy.owner, key))
                    yield mail.place(copy)
                    if copy.own_id is not None:
                        yield AppVersion(MAILBOX, f"{copy.owner}|{key}", "id", copy.own_id, mail.at, 0, mail.sender, BEGINNING,
                                         mail.record)
            except _ERRORS as error:
                yield bad_row(file, copy.where, error)
    for mail in parsed.values():
        yield from mail.versions(parsed)


def _without_place(content: bytes) -> bytes:
    """Return a message without the headers that each mailbox adds."""
    while content[:2] in (b"X-", b"De") and content.startswith((b"X-GM", b"X-Gmail", b"Delivered-To")):
        content = content.partition(b"\n")[2]
    return content


def _copies(file: ExportFile) -> Iterator[_Copy]:
    """Yield the messages of a file. Errors: ValueError and the like."""
    if file.name.endswith((".json", ".jsonl")):
        content = file.json_lines() if file.name.endswith(".jsonl") else file.json()
        rows = content.get("messages", [content]) if isinstance(content, dict) else content
        owner = _owner_of(file, [])
        for row in rows:
            labels = [str(label) for label in row.get("labelIds") or ()]
            yield _Copy(owner, labels, row.get("threadId"), _from_json(row), str(row["id"]), str(row["id"]))
        return
    if b"\r\n" in file.content[:1000]:
        file = file._replace(content=file.content.replace(b"\r\n", b"\n"))
    if not file.content.startswith(b"From "):
        flags = file.name.rpartition(":2,")[2] if ":2," in file.name else ""
        place = None if not flags and not _MAILDIR.search(file.path) else _maildir_labels(file, flags)
        yield _Copy(_owner_of(file, [file.content]), place, None, file.content, "")
        return
    starts = list(_FROM_LINE.finditer(file.content))
    ends = [match.start() for match in starts[1:]] + [len(file.content)]
    texts = [_ESCAPED.sub(rb"\1", file.content[match.end():end]) for match, end in zip(starts, ends, strict=True)]
    owner = _owner_of(file, texts)
    for index, text in enumerate(texts):
        header = text[:text.find(b"\n\n") + 1].decode("utf-8", "replace")
        stated = re.search(r"^X-Gmail-Labels:(.*(?:\n[ \t].*)*)", header, re.MULTILINE)
        thread = re.search(r"^X-GM-THRID: *(\d+)", header, re.MULTILINE)
        yield _Copy(owner, None if stated is None else _gmail_labels(stated[1]),
                    None if thread is None else f"{int(thread[1]):016x}", text, str(index))


def _gmail_labels(text: str) -> list[str]:
    """Return labels of Takeout as the API names them: `Inbox,Unread,Bugs` -> INBOX, UNREAD, Bugs."""
    names = [name.strip().strip('"') for name in _header(_FOLD.sub("", text)).split(",")]
    system = {"Inbox", "Sent", "Unread", "Starred", "Important", "Trash", "Spam", "Draft", "Drafts", "Chat"}
    return [name.upper().removesuffix("S") if name == "Drafts" else name.upper() if name in system else name
            for name in names if name and name not in ("Opened", "Archived")]


def _maildir_labels(file: ExportFile, flags: str) -> list[str]:
    folder = file.path.split("/")[-3] if file.path.count("/") > 1 else ""
    place = folder.strip(".") if folder.startswith(".") else "INBOX"
    names = [place.upper() if place.lower() in ("inbox", "sent", "trash", "drafts", "spam") else place]
    names += [label for flag, label in _FLAGS.items() if flag in flags and label.isupper()]
    return names if "S" in flags else [*names, "UNREAD"]


def _owner_of(file: ExportFile, texts: list[bytes]) -> str:
    """Return whose mailbox it is: an address in the path, else the one to which or from which every message goes."""
    for part in reversed(file.path.split("/")):
        match = _ADDRESS.search(part.removesuffix(".mbox").removesuffix(".json"))
        if match is not None:
            return match[0].lower()
    counts: Counter[str] = Counter()
    for text in texts:
        header = text[:max(text.find(b"\n\n"), 0)].decode("utf-8", "replace")
        lines = re.findall(r"^(?:From|To|Cc|Delivered-To):(.*(?:\n[ \t].*)*)", header, re.MULTILINE)
        counts.update({address.lower() for _, address in getaddresses([_FOLD.sub("", line) for line in lines])})
    return counts.most_common(1)[0][0] if counts else file.path


def _from_json(row: dict[str, Any]) -> bytes:
    """Return a message of Gmail's API as its bytes."""
    if row.get("raw"):
        return base64.urlsafe_b64decode(row["raw"] + "==")
    return _part_bytes(row["payload"])


def _part_bytes(part: dict[str, Any]) -> bytes:
    headers = {str(each["name"]): str(each["value"]) for each in part.get("headers") or ()}
    headers = {name: value for name, value in headers.items() if name.lower() != "content-transfer-encoding"}
    kinds = [value for name, value in headers.items() if name.lower() == "content-type"]
    kind = kinds[0] if kinds else str(part.get("mimeType") or "text/plain")
    headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    parts = part.get("parts") or ()
    if parts:
        mark = "part-of-message"
        kind = f'{part.get("mimeType") or "multipart/mixed"}; boundary="{mark}"'
        text = b"".join(f"--{mark}\n".encode() + _part_bytes(each) + b"\n" for each in parts) + f"--{mark}--\n".encode()
    else:
        headers["Content-Transfer-Encoding"] = "base64"
        data = (part.get("body") or {}).get("data") or ""
        text = base64.encodebytes(base64.urlsafe_b64decode(data + "=="))
    lines = [f"{name}: {value}" for name, value in headers.items()] + [f"Content-Type: {kind}"]
    return "\n".join(lines).encode() + b"\n\n" + text


def _header(value: Any) -> str:
    """Return a header's text, unfolded and decoded."""
    text = _FOLD.sub("", str(value))
    try:
        return str(make_header(decode_header(text))).strip() if "=?" in text else text.strip()
    except (LookupError, ValueError, HeaderParseError):
        return text.strip()


class _Mail:
    """A message, whatever mailboxes hold it."""

    def __init__(self, copy: _Copy, file: ExportFile) -> None:
        self.message: Message = message_from_bytes(copy.content)
        self.thread, self.record = copy.thread, f"{file.path}#{copy.where}"
        date = _header(self.message.get("Date", ""))
        at = microseconds(date)
        if at is None:
            try:
                at = int(parsedate_to_datetime(date).timestamp() * 1_000_000)
            except ValueError as error:
                raise ValueError(f"Date is no time: {date!r}") from error
        self.at = at
        senders = getaddresses([_header(self.message.get("From", ""))])
        self.name, self.sender = senders[0] if senders else ("", "")
        self.key = _header(self.message.get("Message-ID", "")) or f"<{copy.owner}/{copy.where}@{file.path}>"
        self.references = _IDS.findall(_header(self.message.get("References", "")))
        self.answers = _IDS.findall(_header(self.message.get("In-Reply-To", "")))

    def files(self) -> Iterator[ExportFile]:
        """Yield the files inside the message, with the instant at which it was sent."""
        for index, part in enumerate(self.message.walk()):
            if part.get_content_type() == "text/calendar" or part.get_filename():
                name = part.get_filename() or f"{index}.ics"
                content = part.get_payload(decode=True)
                if isinstance(content, bytes):
                    yield ExportFile(f"{self.record}/{_header(name)}", content, self.at)

    def place(self, copy: _Copy) -> AppVersion:
        """Return the message's labels in a mailbox: known of one that was sent from it and lies nowhere else."""
        is_sent = copy.labels == ["SENT"] and self.sender.lower() == copy.owner
        return AppVersion(MAILBOX, f"{copy.owner}|{self.key}", "labels", copy.labels or [], self.at, 0, self.sender,
                          BEGINNING if is_sent else NEVER_KNOWN, self.record)

    def versions(self, parsed: dict[str, _Mail]) -> Iterator[AppVersion]:
        """Yield the fields of the message."""
        text, names = self.text()
        fields = {"sender": self.sender, "name": self.name, "to": self._addresses("To"), "cc": self._addresses("Cc"),
                  "subject": _header(self.message.get("Subject", "")), "date": epoch(self.at), "body": text,
                  "attach": names or None, "references": self.references or self.answers,
                  "thread": self.thread or self.root(parsed)}
        for field, value in fields.items():
            yield AppVersion(MAIL, self.key, field, value, self.at, 0, self.sender, BEGINNING, self.record)

    def root(self, parsed: dict[str, _Mail]) -> str:
        """Return the id of the first message of the thread, as far as the mailboxes hold it."""
        mail, visited = self, {self.key}
        while True:
            before = next((key for key in (*mail.references[:1], *mail.answers) if key not in visited), None)
            if before is None:
                return str(mail.key)
            visited.add(before)
            if before not in parsed:
                return str(before)
            mail = parsed[before]

    def _addresses(self, header: str) -> list[str]:
        values = [_header(value) for value in self.message.get_all(header, [])]
        return [address for _, address in getaddresses(values) if address]

    def text(self) -> tuple[str, list[str]]:
        """Return the plain text (else the HTML) and the names of the attachments."""
        plain, html, names = None, None, []
        for part in self.message.walk():
            kind = part.get_content_type()
            if part.get_filename():
                names.append(_header(part.get_filename()))
            elif kind == "text/plain" and plain is None:
                plain = _decoded(part)
            elif kind == "text/html" and html is None:
                html = _decoded(part)
        text = plain if plain is not None else html or ""
        return text.replace("\r\n", "\n").rstrip("\n"), names


def _decoded(part: Message) -> str:
    content = part.get_payload(decode=True)
    if not isinstance(content, bytes):
        return ""
    try:
        return content.decode(part.get_content_charset() or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


APP = CompanyApp("mail", claims, read, rank=40, advice=(
    (MAILBOX, "labels", "Gmail history API: labelsAdded, labelsRemoved, messagesDeleted"),
), kinds=(
    RecordKind(MAIL, texts=("subject", "body"), people=("to", "cc"), answers="mail_thread:{thread}",
               follows=("date", "references", "name")),
    RecordKind(MAILBOX, part_of=MAIL),
))
