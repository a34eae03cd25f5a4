"""Two ports of one host are two sites, unless one leads to the other by a redirect or a form."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.site.ports import SitePorts, port_of
from env_builder.site.recorded import page_sessions
from extractors.inventory import SourceFile
from extractors.reading import read
from tests.env_builder.site.cards import HOST

MORNING = datetime(2026, 3, 2, 9)


def page(url: str, minute: int = 0, body: str = "<p>Words</p>", **value: Any) -> dict[str, Any]:
    plain = {"status": 200, "type": "text/html", "body": body, **value}
    return {"session_id": None, "file_id": "f", "service": "shop.example", "name": None, "kind": "page", "content": url,
            "happened_at": MORNING + timedelta(minutes=minute), "tool": f"GET /{url.rpartition('/')[2]}", "arguments": "{}",
            "value": json.dumps(plain)}


def hosts(*rows: dict[str, Any]) -> list[str]:
    return sorted({session.host for session in page_sessions(rows)})


def test_two_ports_that_do_not_lead_to_each_other_are_two_sites() -> None:
    rows = [page("http://shop.example:8080/a"), page("http://shop.example:9090/b", 1),
            page("http://shop.example:8080/c", 2, '<a href="http://shop.example:9090/b">elsewhere</a>')]
    assert hosts(*rows) == ["shop.example:8080", "shop.example:9090"]
    one, other = page_sessions(rows)
    assert ([each.url for each in one.requests], one.origin) == (["/a", "/c"], "http://shop.example:8080")
    assert ([each.url for each in other.requests], other.origin) == (["/b"], "http://shop.example:9090")
    assert hosts(page("https://shop.example/a"), page("https://shop.example:8443/b")) == ["shop.example", "shop.example:8443"]


@pytest.mark.parametrize("leading", [
    page("http://shop.example:8080/in", 1, location="http://shop.example:9090/b", status=302),
    page("http://shop.example:8080/in", 1, '<form action="http://shop.example:9090/b" method=post></form>')])
def test_ports_that_lead_to_each_other_are_one_site_under_one_address(leading: dict[str, Any]) -> None:
    rows = [page("http://shop.example:8080/a"), leading, page("http://shop.example:9090/b", 2),
            page("http://shop.example:8080/c", 3)]
    (session,) = page_sessions(rows)
    assert session.host == "shop.example:8080" or session.host == "shop.example"
    assert session.origin == "http://shop.example:8080" and len(session.requests) == 4
    assert not any("9090" in (each.location or "") + (each.html or "") for each in session.requests)


def test_the_ports_of_http_and_https_are_one_site() -> None:
    assert hosts(page("http://shop.example/a"), page("https://shop.example:443/a"), page("http://shop.example:80/b")) == [
        "shop.example"]
    assert hosts(page("http://shop.example:8080/a"), page("http://shop.example:8080/b")) == ["shop.example"]


@given(st.lists(st.tuples(st.sampled_from((None, 80, 443, 81, 8080, 9090)), st.sampled_from((None, 443, 81, 8080, 9090))),
                min_size=1, max_size=8))
def test_sites_are_classes_of_ports(leads: list[tuple[int | None, int | None]]) -> None:
    def url(port: int | None) -> str:
        return f"http://shop.example{'' if port is None else f':{port}'}/a"

    rows = [each for one, other in leads for each in (page(url(one), location=url(other)), page(url(other)))]
    sites = SitePorts(rows)
    for one, other in leads:
        assert sites.named("shop.example", port_of(url(one))) == sites.named("shop.example", port_of(url(other)))
    assert sites.named("other.example", 8080) == "other.example"
    assert SitePorts(rows[::-1]).named("shop.example", 8080) == sites.named("shop.example", 8080), "whatever the order"


def test_a_har_says_the_port_of_a_form(tmp_path: Any) -> None:
    entries = [{"startedDateTime": f"2026-03-02T09:0{minute}:00+00:00", "time": 1, "_resourceType": "document",
                "request": {"method": method, "url": f"http://{HOST}:{port}/x", "headers": [], "queryString": []},
                "response": {"status": 200, "headers": [], "content": {"mimeType": "text/html", "text": "<p>Words</p>"}}}
               for minute, (method, port) in enumerate((("GET", 8080), ("POST", 8080), ("GET", 9090), ("POST", 9090)))]
    (tmp_path / "a.har").write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": "x", "version": "1"},
                                                        "entries": entries}}))
    events = read(SourceFile(tmp_path / "a.har", "a.har")).events
    sessions = page_sessions([{**row, "file_id": "f", "session_id": None} for row in events.iter_rows(named=True)])
    assert [(each.host, [request.method for request in each.requests]) for each in sessions] == [
        (f"{HOST}:8080", ["GET", "POST"]), (f"{HOST}:9090", ["GET", "POST"])]
