"""All pages of the browser on a run, as they come over HTTP, and what of a log became more than text in them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from pipelines.browser.pages import PAGES
from tests.attacks.hostile_run import MARK
from tests.pipelines.test_browser import Server

FORBIDDEN = frozenset({"script", "iframe", "object", "embed", "img", "svg", "math", "base", "meta http-equiv", "template",
    "audio",
                       "video", "source", "applet", "frame", "frameset", "portal", "dialog", "marquee"})
ADDRESSES = ("href", "src", "action", "formaction", "poster", "data", "srcset", "background", "ping", "xlink:href")
HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.text += data

    def problems(self) -> list[str]:
        """Return what stands there that can only come from a log."""
        problems = [f"a tag {tag}" for tag in self.tags & FORBIDDEN]
        problems += [f"an attribute {name}" for name, _ in self.attributes if name.startswith("on") or name in ("style",
            "srcdoc")]
        problems += [f"{name} leads to {value[:60]!r}" for name, value in self.attributes
                     if name in ADDRESSES and not _is_own(value)]
        return problems + [f"a tag with {MARK}: {tag}" for tag in self.tags if MARK in tag]


def _is_own(address: str) -> bool:
    url = urlsplit(html.unescape(address))
    return not url.scheme and not url.netloc and not address.startswith(("//", "/\\"))


def crawled(server: Server, most: int, **headers: str) -> Iterator[tuple[str, str]]:
    """Yield addresses that pages lead to, and their HTML; at most so many, those of each kind first."""
    waiting, done = list(PAGES), set[str]()
    counts: dict[str, int] = {}
    while waiting and len(done) < most:
        waiting.sort(key=lambda address: counts.get(urlsplit(address).path, 0))
        address = waiting.pop(0)
        if address in done:
            continue
        done.add(address)
        path = urlsplit(address).path
        counts[path] = counts.get(path, 0) + 1
        status, kinds, text = server.ask(address, **headers)
        if status != 200 or not kinds["content-type"].startswith("text/html") or path == "/report":
            continue
        yield address, text
        waiting += [link for each in re.findall(r'href="(/[^"#]*)', text) if (link := html.unescape(each)) not in done]


def on(out: Path) -> Server:
    """Return the browser on a run."""
    return Server(out)
