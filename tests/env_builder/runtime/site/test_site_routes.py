"""Routes: requests of one kind are one route, and a new path finds the route that it fits best."""

from __future__ import annotations

import pytest

from env_builder.runtime.site.routes import SiteRoute, SiteRoutes, group_by_route

ROUTES = SiteRoutes({"/": "/", "/shelves/17/": "/shelves/{shelves_1}", "/shelves/18": "/shelves/{shelves_1}",
                     "/shelves/new/": "/shelves/new", "/a%20b/3": "/a b/{a_b_1}"})


@pytest.mark.parametrize(("url", "path", "query"), [
    ("https://site.test/", "/", ()),
    ("https://site.test", "/", ()),
    ("https://site.test/shelves/17/", "/shelves/{shelves_1}/", ()),
    ("https://site.test/shelves/99/?page=2&by=size", "/shelves/{shelves_1}/", ("by", "page")),
    ("https://other.test/shelves/18?empty=", "/shelves/{shelves_1}", ("empty",)),
    ("/shelves/new/#top", "/shelves/new/", ()),
    ("/a%20b/4", "/a b/{a_b_1}", ()),
])
def test_a_request_has_the_route_of_its_path_and_query(url: str, path: str, query: tuple[str, ...]) -> None:
    assert ROUTES.route("GET", url) == SiteRoute("GET", path, query)


def test_the_varying_segments_have_the_names_of_the_template() -> None:
    route = ROUTES.route("GET", "/a%20b/c%207")
    assert route is not None
    assert ROUTES.parameters(route, "/a%20b/c%207") == {"a_b_1": "c 7"}
    assert ROUTES.parameters(SiteRoute("GET", "/"), "/") == {}


@pytest.mark.parametrize("url", ["/doors/1/", "/shelves/17/boxes/", "/shelves"])
def test_a_path_like_none_before_has_no_route(url: str) -> None:
    assert ROUTES.route("GET", url) is None


def test_requests_are_grouped_by_method_and_route() -> None:
    requests = [("GET", "/shelves/17/"), ("POST", "/shelves/18/"), ("GET", "/shelves/20/"), ("GET", "/nowhere/")]
    assert group_by_route(ROUTES, requests) == {
        SiteRoute("GET", "/shelves/{shelves_1}/"): [0, 2], SiteRoute("POST", "/shelves/{shelves_1}/"): [1]}
    assert str(SiteRoute("GET", "/x/", ("a", "b"))) == "GET /x/?a&b"
