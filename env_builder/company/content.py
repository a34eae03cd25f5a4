"""What the app of a company holds: its versions, its people, and what traces teach; as an app in memory, and as its files.

In: versions of all fields, recorded calls. Out: `CompanyContent`, which `company_app` opens at once and `env_builder.backends`
writes for an environment.
A product's tools are offered if the exports hold records of its kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.bundle import write_json, write_lines
from env_builder.company.calls import RecordedCall
from env_builder.company.conventions import learn
from env_builder.company.cross_effects import learn_effects
from env_builder.company.inhouse import induce
from env_builder.runtime.apps.identities import SessionUsers
from env_builder.runtime.company import CompanyWorld, FieldVersion, VersionLike
from env_builder.runtime.company.following import ACROSS
from env_builder.runtime.office.colleagues import COLLEAGUES, DESCRIPTOR, WAIT, Colleagues
from env_builder.runtime.office.company import (
    CONVENTIONS,
    PEOPLE,
    PRODUCTS,
    SCHEMAS,
    VERSIONS,
    CompanySetup,
    CompanySuite,
    tools_of,
)
from env_builder.runtime.office.inhouse import INHOUSE

NAME = "company"
"""Of the app in its environment."""
_RECORDS = {"slack": "slack_channel", "jira": "jira", "confluence": "wiki", "github": "gh", "gmail": "mail",
            "calendar_events": "cal", "drive": "sheet"}
"""Product -> class of records that only its exports hold."""
SOFTWARE = {"software": ["python3-openpyxl"], "optional_software": ["libreoffice-calc-nogui"]}
"""Debian packages that an agent's image should have, or may have, for work on the files of a drive (docs/containers.md)."""
_ENDPOINTS = {"calendar_events": "calendar"}
"""Product -> name of its endpoint, where it is another."""
OWN = "company"
"""Endpoint of the company's own tools."""
DESCRIPTORS = Path(__file__).parent / "descriptors"
"""A file a public server: where its descriptors are from, with the licence, then a descriptor a line."""


class CompanyContent(NamedTuple):
    """What the app of a company holds."""

    versions: Sequence[VersionLike]
    """In the order in which they apply."""
    accounts: Mapping[str, Mapping[str, str]]
    """Address of a person -> class of accounts -> id."""
    conventions: Mapping[str, Any]
    products: tuple[str, ...]
    induced: Mapping[str, Any] | None = None
    """The company's own tools, as calls teach them; None: there are none."""
    identities: Mapping[str, str] = {}
    """Session -> address of the person whom its agent worked for."""
    colleagues: Sequence[Mapping[str, Any]] = ()
    """Who answers in which task: rows as `runtime/office/colleagues.py` reads them."""


def company_content(versions: Sequence[VersionLike], calls: Sequence[RecordedCall], accounts: Mapping[str, Mapping[str, str]],
                    identities: Mapping[str, str]) -> CompanyContent:
    """Return the content that versions and calls give. `accounts`: address -> class of accounts -> id (`env_builder.people`);
    `identities`: session -> address of the person whom its agent worked for."""
    world = CompanyWorld(versions)
    products = tuple(product for product in PRODUCTS if _RECORDS.get(product, product) in world.ids)
    induced = induce(calls, world, accounts, tools_of(products))
    classes = [frozenset(name for tool in tools_of([product]).values() for name in tool.writes) for product in products]
    rules = learn_effects(world, accounts, classes)
    conventions = {**learn(calls, world), **({ACROSS: {"rules": rules}} if rules else {})}
    return CompanyContent(world.versions, accounts, conventions, products, induced, identities)


def company_app(content: CompanyContent) -> CompanySuite:
    """Open a content without writing it; who acts is asked for at each start."""
    schemas = {tool["name"]: tool["inputSchema"] for tool in descriptors(content)}
    return CompanySuite(NAME, CompanySetup(CompanyWorld(content.versions), content.accounts, SessionUsers(content.identities),
                                           content.products, content.conventions, content.induced, schemas,
                                           colleagues={row["task_id"]: Colleagues(row) for row in content.colleagues}))


def write_content(folder: Path, content: CompanyContent) -> None:
    """Write the files of the app."""
    write_lines(folder / VERSIONS, (FieldVersion(*(getattr(version, name) for name in FieldVersion._fields))._asdict()
                                    for version in content.versions))
    write_lines(folder / PEOPLE, ({"address": address, "accounts": dict(own)}
                                  for address, own in sorted(content.accounts.items())))
    write_json(folder / CONVENTIONS, dict(content.conventions))
    write_lines(folder / SCHEMAS, descriptors(content))
    if content.colleagues:
        write_lines(folder / COLLEAGUES, sorted(map(dict, content.colleagues), key=lambda row: str(row["task_id"])))
    if content.induced is not None:
        write_json(folder / INHOUSE, dict(content.induced))


def descriptors(content: CompanyContent) -> list[dict[str, Any]]:
    """Return the MCP descriptors of the tools: as public servers declare those of products, as calls show the company's own.

    Errors: KeyError for a tool that the files of descriptors lack."""
    declared: dict[str, dict[str, Any]] = {}
    for path in sorted(DESCRIPTORS.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        declared |= {row["name"]: row for row in rows[1:]}   # the first line says where they are from
    public = tools_of(content.products)
    own = [tool for tool in (content.induced or {}).get("descriptors", ()) if tool["name"] not in public]
    waiting = [dict(DESCRIPTOR)] if content.colleagues else []
    return sorted([*(declared[name] for name in public), *own, *waiting], key=lambda tool: str(tool["name"]))


def endpoints(content: CompanyContent) -> dict[str, list[str]]:
    """Return the tools of each app, by the name of the endpoint that a server may offer for it alone; those that are the
    company's own together."""
    own = {tool["name"] for tool in (content.induced or {}).get("descriptors", ())}
    named = {_ENDPOINTS.get(product, product): sorted(tools_of((product,))) for product in content.products}
    rest = sorted(own.difference(*named.values()) | ({WAIT} if content.colleagues else set()))
    return {**named, **({OWN: rest} if rest else {})}
