"""Tell the sites of one host apart: what answers on two ports is two applications, unless it leads from one to the other.

In: events of a site (`core.events`, of the kinds `page` and `request`), with the service that they were recorded of. Out: the
name of the site of an event: the service, with the port where others of its ports are other sites. The ports that http and
https have by themselves are one. Two ports are one site if a redirect leads from one to the other, or a form is sent there.
Sees: addresses of pages, redirects, forms. Does not see: cookies, which reach every port of a host; plain links, which also
lead to other applications.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from env_builder.site.parsing import parse

_DEFAULT = frozenset({80, 443})
Port = int | None
"""None: the one that the scheme has by itself."""


def port_of(url: str | None) -> Port:
    """Return the port of an address, None for the scheme's own, or where the address is none."""
    try:
        port = urlsplit(url or "").port
    except ValueError:
        return None
    return None if port in _DEFAULT else port


class SitePorts:
    """Which ports of a host are one site."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        rows = list(rows)
        self._ports: dict[str, dict[Port, Port]] = defaultdict(dict)
        """Service -> port -> a port of the same site, itself for the one that stands for all."""
        for row in rows:
            port = _recorded_port(row)
            self._ports[str(row["service"])].setdefault(port, port)
        for row in rows:
            service = str(row["service"])
            for url in _leads_to(row) if len(self._ports[service]) > 1 else ():
                if _host_of(url) == service and (other := port_of(url)) in self._ports[service]:
                    self._join(service, _recorded_port(row), other)

    def site(self, row: Mapping[str, Any]) -> str:
        """Return the name of the site of an event."""
        return self.named(str(row["service"]), _recorded_port(row))

    def named(self, service: str, port: Port) -> str:
        """Return the name of the site that answers on a port of a service."""
        ports = self._ports.get(service, {})
        roots = {self._root(service, each) for each in ports}
        if len(roots) < 2 or port not in ports:
            return service
        own = self._own(service, port)
        return service if None in own else f"{service}:{min(each for each in own if each is not None)}"

    def under(self, origin: str, service: str, text: str) -> str:
        """Return an address, or a page, with the addresses of all ports of a site under one of them."""
        others = self._own(service, port_of(origin)) - {port_of(origin)}
        for port in sorted(others, key=str):
            written = r"(?::80|:443)?" if port is None else f":{port}"
            text = re.sub(rf"https?://{re.escape(service)}{written}(?=[/?#\"'\s]|$)", origin, text)
        return text

    def _own(self, service: str, port: Port) -> set[Port]:
        """Return the ports of one site."""
        ports = self._ports.get(service, {})
        return {each for each in ports if self._root(service, each) == self._root(service, port)} if port in ports else set()

    def _root(self, service: str, port: Port) -> Port:
        ports = self._ports[service]
        while ports[port] != port:
            port = ports[port]
        return port

    def _join(self, service: str, one: Port, other: Port) -> None:
        self._ports[service][self._root(service, one)] = self._root(service, other)


def _recorded_port(row: Mapping[str, Any]) -> Port:
    if row["content"]:
        return port_of(row["content"])
    port = json.loads(row["value"] or "{}").get("port")
    return port if isinstance(port, int) else None


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _leads_to(row: Mapping[str, Any]) -> Iterable[str]:
    """Return whole addresses to which an answer leads by a redirect, or to which its forms are sent."""
    value = json.loads(row["value"] or "{}")
    if value.get("location"):
        return [str(value["location"])]
    body = value.get("body")
    if not isinstance(body, str) or "<form" not in body.lower() or "://" not in body:
        return []
    return [each.attributes["action"].strip() for each in parse(body).elements()
            if each.tag == "form" and "://" in each.attributes.get("action", "")]
