"""Paths to templates: what is an id, what a name, and that nothing of a path is lost."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.routes import segments, templates
from tests.extractors.formats.application_reading import lines, read_payloads

SLUGS = ["".join(each) for each in itertools.product("abcdef", repeat=2)]
PARTS = st.sampled_from(["doors", "open", "17", "a-1", "keys", "x", "", "%23A1", *SLUGS])
PATHS = st.lists(st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts)), min_size=1, max_size=60)


@pytest.mark.parametrize(("path", "template", "parameters"), [
    ("/doors/17/open", "/doors/{doors_1}/open", {"doors_1": "17"}),
    ("/doors/%23A1", "/doors/{doors_1}", {"doors_1": "#A1"}),
    ("/v2/doors", "/v2/doors", {}),
    ("/", "/", {}),
    ("/17", "/{path_1}", {"path_1": "17"}),
    ("/doors/1/2", "/doors/{doors_1}/{doors_2}", {"doors_1": "1", "doors_2": "2"}),
    ("/doors/550e8400-e29b-41d4-a716-446655440000", "/doors/{doors_1}", {"doors_1": "550e8400-e29b-41d4-a716-446655440000"}),
])
def test_a_path_and_its_template(path: str, template: str, parameters: dict[str, str]) -> None:
    assert templates([path])[path] == (template, parameters)


def test_a_crowded_place_holds_ids_that_look_like_words() -> None:
    names = ["ab" + chr(97 + i) + chr(97 + j) for i in range(6) for j in range(6)]
    found = templates([f"/people/{name}/keys" for name in names])
    assert {shape for shape, _ in found.values()} == {"/people/{people_1}/keys"}
    assert templates(["/people/all", "/people/some"])["/people/all"][0] == "/people/all"


@given(PATHS)
def test_a_template_and_its_parameters_give_the_path_back(paths: list[str]) -> None:
    for path, (shape, parameters) in templates(paths).items():
        for name, value in parameters.items():
            shape = shape.replace(f"{{{name}}}", value, 1)
        assert shape == "/" + "/".join(segments(path))


@given(PATHS, st.randoms())
def test_the_order_of_the_paths_does_not_matter(paths: list[str], chosen: random.Random) -> None:
    shuffled = list(paths)
    chosen.shuffle(shuffled)
    assert templates(shuffled) == templates(paths)


def test_a_crowded_place_keeps_the_names_of_collections() -> None:
    """An interface with many kinds of things is no place of ids: an id stands behind each."""
    found = templates([f"/api/v1/{slug}/{number}" for slug in SLUGS for number in range(3)])
    assert {shape for shape, _ in found.values()} == {f"/api/v1/{slug}/{{{slug}_1}}" for slug in SLUGS}


def test_a_crowded_root_keeps_pages_that_stand_out() -> None:
    found = templates({**{f"/{slug}": 1 for slug in SLUGS}, "/login": 500, "/blog/news": 1})
    assert found["/login"] == ("/login", {}) and found["/blog/news"] == ("/blog/news", {})
    assert found["/aa"] == ("/{path_1}", {"path_1": "aa"})


def test_ids_below_ids_that_look_like_words_come_together() -> None:
    found = templates([f"/people/{one}/keys/{two}" for one in SLUGS for two in (SLUGS[:3] if one < "c" else SLUGS[3:])])
    assert {shape for shape, _ in found.values()} == {"/people/{people_1}/keys/{keys_1}"}


def test_a_path_as_deep_as_a_server_takes_and_a_hundred_thousand_paths() -> None:
    deep = "/a" * 4000
    assert templates([deep]) == {deep: (deep, {})}
    many = templates(f"/orders/{number}/items/{number % 7}" for number in range(100_000))
    assert len(many) == 100_000 and {shape for shape, _ in many.values()} == {"/orders/{orders_1}/items/{items_1}"}


def test_routes_of_a_real_web_server(data: Path) -> None:
    events = read_payloads("access_log", lines(data / "access_log/logs/apache_combined.log")).events
    paths = [event["tool"].partition(" ")[2] for event in events]
    found = templates(paths)
    shapes = {found[path][0] for path in paths}
    assert len(shapes) < 0.4 * len(set(paths))
    for name in ("presentations", "blog", "images", "projects", "files", "articles"):
        assert any(shape.startswith(f"/{name}/") for shape in shapes), "the site's parts keep their names"
    assert found["/favicon.ico"] == ("/favicon.ico", {}) and found["/robots.txt"][0] == "/robots.txt"
