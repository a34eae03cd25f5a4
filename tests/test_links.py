"""Every link of the documentation leads somewhere: to a file of the repository, to a heading of a page; and every page is
reached from README.md."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_OUTSIDE = ("http://", "https://", "mailto:")


def prose(text: str) -> str:
    """Return the text without its code blocks and without lines that are indented as code."""
    return "\n".join(line for line in _FENCE.sub("", text).splitlines() if not line.startswith("    "))


def linked(page: Path) -> list[str]:
    """Links of a page that stay in the repository."""
    return links(page.read_text("utf-8"))


def links(text: str) -> list[str]:
    return [link for link in _LINK.findall(_CODE.sub("", prose(text))) if not link.startswith(_OUTSIDE)]


def anchors(page: Path) -> set[str]:
    """Names of its headings, as GitHub makes them: the second of the same name ends in -1."""
    found: dict[str, int] = {}
    for title in re.findall(r"^#{1,6} +(.+?) *$", _FENCE.sub("", page.read_text("utf-8")), re.M):
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        found[name] = found.get(name, 0) + 1
    return {f"{name}-{n}" if n else name for name, times in found.items() for n in range(times)}


def broken(page: Path, text: str) -> list[str]:
    """Links of a text that lead nowhere from the page's place."""
    lost = []
    for link in links(text):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        outside = not there.is_relative_to(ROOT) and there != ROOT
        if outside or not there.exists() or (anchor and (there.suffix != ".md" or anchor not in anchors(there))):
            lost.append(link)
    return lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text("utf-8")) == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        reached.add(page)
        there = {(page.parent / link.partition("#")[0]).resolve() for link in linked(page) if link.partition("#")[0]}
        left += [each for each in there if each.suffix == ".md" and each.is_file() and each not in reached]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


def test_a_link_leads_to_a_file_that_git_knows() -> None:
    """One that lies here and is ignored leads nowhere in another checkout."""
    files = {(page.parent / link.partition("#")[0]).resolve() for page in PAGES for link in linked(page) if link[0] != "#"}
    named = [str(path.relative_to(ROOT)) for path in files if path.is_file()]
    ignored = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "check-ignore", *named], cwd=ROOT, capture_output=True,
                             text=True, check=False).stdout
    assert len(named) > 20 and ignored == ""


def test_a_broken_link_is_noticed() -> None:
    text = "[a](nowhere.md) [b](architecture.md#no-such) [c](architecture.md#the-laws) `[d](code.md)` [e](../../outside)"
    assert broken(ROOT / "docs" / "a.md", text) == ["nowhere.md", "architecture.md#no-such", "../../outside"]
    assert broken(ROOT / "docs" / "a.md", "```\n[a](nowhere.md)\n```\n[b](https://example.org/nowhere.md)") == []
