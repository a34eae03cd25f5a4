"""Sections to one page of HTML: a template that escapes all, a style and a script, and the policy that lets only these run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pipelines.reporting.parts import Row, Section, clean, many

_LONGEST = 2_000
"""Signs of any text of the page."""


def page(identity: Row, totals: Row, sections: list[Section]) -> str:
    """The page's text. Everything is escaped but the pictures, whose words the renderer escaped, and our style and script."""
    style, script = _part("page.css"), _part("page.js")
    policy = (f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; base-uri 'none'; "
              "form-action 'none'")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: clean(value, _LONGEST) if type(value) is str else value)
    return environment.from_string(_part("page.html.jinja")).render(
        policy=policy, style=Markup(style), script=Markup(script), safe=Markup, many=many, identity=identity, totals=totals,
        tiles=_tiles(totals), sections=sections)


def _tiles(totals: Row) -> list[tuple[str, str, str]]:
    """(number, what, detail) of the page's head."""
    first, last = totals["first_day"] or "", totals["last_day"] or ""
    if first[-4:] == last[-4:] and first != last:
        first = first[:-5]
    days = " – ".join(dict.fromkeys(day for day in (first, last) if day)) or "of unknown time"
    new = totals["n_from_failures"] + totals["n_generated"]
    return [
        (f"{totals['n_sessions']:,}", "sessions", days),
        (f"{totals['n_calls']:,}", "tool calls", f"of {many(totals['n_tools'], 'tool')}"),
        (f"{totals['n_families']:,}", "families", "of things asked for"),
        (f"{totals['n_tasks']:,}", "tasks", f"in {many(totals['n_services'], 'service')}"),
        (f"{new:,}", "tasks made new", f"{totals['n_from_failures']:,} of failures"),
        (f"{totals['n_published']:,}", "published tasks", f"in {many(totals['n_environments'], 'environment')}")]


def _hash(text: str) -> str:
    """A source of a policy: the text with this digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return files("pipelines.reporting").joinpath(name).read_text("utf-8")
