"""A server on this machine that speaks as much of Google Cloud Storage (its XML API) and of Azure's blobs as releases and logs
need.

Written after the public protocols: objects with a generation and an entity tag, conditional writes, ranges, listing by prefix.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class StoredBlob(NamedTuple):
    """An object with its version."""

    content: bytes
    generation: int

    @property
    def tag(self) -> str:
        return f'"{self.generation}-{hashlib.sha256(self.content).hexdigest()[:8]}"'


class CloudHandler(BaseHTTPRequestHandler):
    """One request; the objects are those of the class."""

    protocol_version = "HTTP/1.1"
    blobs: ClassVar[dict[str, StoredBlob]] = {}
    guard: ClassVar[threading.Lock] = threading.Lock()
    last_generation: ClassVar[int] = 0

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query or "comp" in query:
            self._list(query.get("prefix", [""])[0], is_azure="comp" in query)
        else:
            self._give(self.blobs.get(self._name))

    do_HEAD = do_GET

    def _give(self, blob: StoredBlob | None) -> None:
        """Answer with an object, or with the range of it that is wanted."""
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or self.headers.get("x-ms-range") or "")
        if blob is None:
            self._answer(404)
        elif wanted is None:
            self._answer(200, blob.content, blob)
        else:
            begin = int(wanted[1])
            content = blob.content[begin:int(wanted[2]) + 1 if wanted[2] else None]
            self._answer(206, content, blob, (begin, begin + len(content) - 1, len(blob.content)))

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.guard:
            before = self.blobs.get(self._name)
            if not self._holds(before):
                self._answer(409 if self.headers.get("If-None-Match") else 412)
                return
            CloudHandler.last_generation += 1
            blob = self.blobs[self._name] = StoredBlob(content, self.last_generation)
        self._answer(201, b"", blob)

    def do_DELETE(self) -> None:
        self._answer(404 if self.blobs.pop(self._name, None) is None else 202)

    def do_POST(self) -> None:
        """Azure deletes in batches: a request in each part of the body, and an answer in each part of the reply."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        root = "/".join(urlsplit(self.path).path.split("/")[:2])
        parts = []
        for number, path in enumerate(re.findall(r"^DELETE (\S+) HTTP", body, re.M)):
            name = unquote(urlsplit(path).path)
            is_gone = self.blobs.pop(name if name.startswith(root) else root + name, None) is None
            status = "404 Not Found" if is_gone else "202 Accepted"
            parts.append(f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                         f"HTTP/1.1 {status}\r\n\r\n\r\n")
        self._answer(202, ("".join(parts) + "--batch--\r\n").encode(), kind="multipart/mixed; boundary=batch")

    def _holds(self, before: StoredBlob | None) -> bool:
        """Whether the conditions of a write are met."""
        if (wanted := self.headers.get("x-goog-if-generation-match")) is not None:
            return int(wanted) == (before.generation if before else 0)
        if self.headers.get("If-None-Match") == "*":
            return before is None
        tag = self.headers.get("If-Match")
        return tag is None or (before is not None and before.tag == tag)

    def _list(self, prefix: str, is_azure: bool) -> None:
        root = "/".join(self._name.split("/")[:3 if is_azure else 2])
        rows = []
        for name, blob in sorted(self.blobs.items()):
            key = name.removeprefix(f"{root}/")
            if key == name or not key.startswith(prefix):
                continue
            if is_azure:
                rows.append(f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>{formatdate(usegmt=True)}</Last-Modified>"
                            f"<Content-Length>{len(blob.content)}</Content-Length><Etag>{escape(blob.tag)}</Etag>"
                            "<Content-Type>any</Content-Type></Properties></Blob>")
            else:
                rows.append(f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                            f"<ETag>{escape(blob.tag)}</ETag><Size>{len(blob.content)}</Size></Contents>")
        listed = (f"<EnumerationResults><Blobs>{''.join(rows)}</Blobs></EnumerationResults>" if is_azure else
                  f"<ListBucketResult>{''.join(rows)}</ListBucketResult>")
        self._answer(200, listed.encode())

    def _answer(self, status: int, content: bytes = b"", blob: StoredBlob | None = None,
                part: tuple[int, int, int] | None = None, kind: str = "") -> None:
        self.send_response(status)
        if part:
            self.send_header("Content-Range", f"bytes {part[0]}-{part[1]}/{part[2]}")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        if kind:
            self.send_header("Content-Type", kind)
        if blob:
            self.send_header("ETag", blob.tag)
            self.send_header("x-goog-generation", str(blob.generation))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    @property
    def _name(self) -> str:
        return unquote(urlsplit(self.path).path)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving_clouds() -> Iterator[str]:
    """Yield the server's address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), CloudHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
