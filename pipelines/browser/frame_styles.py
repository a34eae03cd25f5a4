"""The styles of a page in a frame: recorded sheets and the page's own, as one text that loads nothing.

In: a page, its address, recorded style sheets by path. Out: CSS. Rules are kept in the page's order, each sheet under its own
`media`; what would load something (`@import`, fonts, addresses but `data:`) is taken out. A link in a frame has no address, so
rules for links speak of the mark `LINK`. Attributes `style` become rules of the mark `STYLED`. The text is one that `visible`
leaves as it is, so its hash is the hash of what stands in the frame (`guard.policy`).
Does not see: sheets that no log holds, styles that scripts write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urljoin, urlsplit

from env_builder.runtime.site.flat import FlatPage
from pipelines.browser.shown import visible

LINK, STYLED, OPENED = "data-traceroom-link", "data-traceroom-style", "data-traceroom-open"
"""Attributes of a framed page: it had an address; it had this `style`; somebody opened it, whatever its classes say."""
_BASE = (":where(html) { background: #fff; color-scheme: light; }\n"
         f":where([{LINK}]) {{ color: #0645ad; text-decoration: underline; }}\n")
_LAST = f"[{OPENED}] {{ display: block !important; visibility: visible !important; opacity: 1 !important; }}"
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_LOADING = re.compile(r"@(?:import|charset|namespace)\b[^;{}]*(?:;|$)|@font-face\b[^{}]*\{[^{}]*\}", re.IGNORECASE)
_ADDRESS = re.compile(r"""url\(\s*(?!['"]?data:)(?:"[^"]*"|'[^']*'|[^)"']*)\s*\)""", re.IGNORECASE)
_HREF = re.compile(r"\[\s*href\b", re.IGNORECASE)
_LINKS = re.compile(r":(?:any-)?link\b", re.IGNORECASE)


def frame_style(page: FlatPage, address: str, sheets: Mapping[str, str]) -> tuple[str, int]:
    """Return the CSS of a page, and how many recorded sheets are in it."""
    parts, n_sheets = [_BASE], 0
    for number in sorted([*page.of_tag.get("link", ()), *page.of_tag.get("style", ())]):
        attributes = page.attributes[number]
        if page.closest(number, "noscript", "template", "svg") is not None:
            continue
        if page.tags[number] == "style":
            text: str | None = page.text(number)
        elif "stylesheet" in attributes.get("rel", "").lower().split() and attributes.get("href"):
            text = sheets.get(_path(address, attributes["href"]))
            n_sheets += text is not None
        else:
            text = None
        if text is not None:
            parts.append(_under(attributes.get("media", ""), _inert(text)))
    parts += [f":is(#{STYLED}, [{STYLED}='{number}']) {{ {_inert(style).replace('{', '').replace('}', '')} }}"
              for number, style in styled(page)]
    return visible("\n".join([*parts, _LAST])).replace("</", r"<\/"), n_sheets


def styled(page: FlatPage) -> Iterator[tuple[int, str]]:
    """Yield the elements that have styles of their own."""
    for number, attributes in enumerate(page.attributes):
        if attributes.get("style"):
            yield number, attributes["style"]


def _path(address: str, reference: str) -> str:
    try:
        return urlsplit(urljoin(address, reference)).path
    except ValueError:
        return ""


def _under(media: str, text: str) -> str:
    """Return a sheet under its media; a block that it leaves open is closed."""
    text += "}" * max(0, text.count("{") - text.count("}"))
    return f"@media {media} {{ {text} }}" if media.strip() and re.fullmatch(r"[\w\s().,:<>=/-]+", media) else text


def _inert(text: str) -> str:
    """Return CSS that loads nothing, with links by their mark."""
    text = _COMMENT.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").replace("\ufeff", ""))
    text = _ADDRESS.sub("none", _LOADING.sub("", text))
    return _LINKS.sub(f"[{LINK}]", _HREF.sub(f"[{LINK}", text))
