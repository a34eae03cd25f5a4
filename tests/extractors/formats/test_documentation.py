"""docs/formats.md names every format that ships, with a section that says what is read, and nothing that does not ship."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

TEXT = (ROOT / "docs/formats.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SHIPPED = set(PROJECT["entry-points"]["traceroom.formats"])
ROWS = [line.split(" | ") for line in TEXT.split("\n## ", 1)[0].splitlines() if line.startswith("| ") and "`" in line]


def test_the_table_has_every_format_once() -> None:
    named = [name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(SHIPPED)
    assert all(len(row) == 4 and set(row[3]) <= set("MCTRFODBP; |") for row in ROWS)


def test_every_format_has_a_section() -> None:
    titles = " ".join(re.findall(r"^## (.*)$", TEXT, re.M))
    in_sections = TEXT.split("\n## ", 1)[1]
    assert not [name for name in SHIPPED if f"`{name}`" not in in_sections]
    assert set(re.findall(r"`(\w+)`", titles)) <= SHIPPED


def test_links_lead_to_sections() -> None:
    titles = re.findall(r"^## (.*)$", TEXT, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    links = re.findall(r"\(#([^)]*)\)", TEXT)
    assert len(links) > 10 and set(links) <= anchors
