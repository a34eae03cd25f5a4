"""How tools turn pages is learnt from those that were turned, and a rollout gives long listings so where it is asked to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.perturbations import learn_paging
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.world.calls import LoggedCall
from tests.env_builder.world.calls import call
from tests.rooms import TASK, write_room

N = 7
ITEMS = [{"sign": f"s-{n}", "says": f"no {n}"} for n in range(N)]


def by_cursor(hall: str, after: str | None = None, take: int = 3) -> dict[str, Any]:
    begin = next((n + 1 for n, item in enumerate(ITEMS) if item["sign"] == after), 0)
    part = ITEMS[begin:begin + take]
    return {"signs": part, "n": len(part), "next": part[-1]["sign"] if begin + take < N else None}


def by_token(hall: str, token: str | None = None) -> dict[str, Any]:
    """Return an opaque token, and none on the last page."""
    begin = 0 if token is None else sum(int(sign) * 10**place for place, sign in enumerate(token[2:4]))
    more = {"token": f"T-{(begin + 2) % 10}{(begin + 2) // 10}xQ"} if begin + 2 < N else {}
    return {"signs": ITEMS[begin:begin + 2], "of": N, **more}


def by_page(hall: str, page: int = 1) -> dict[str, Any]:
    return {"page": page, "signs": ITEMS[3 * page - 3:3 * page], "more": 3 * page < N, "hall": hall}


def by_offset(hall: str, skip: int = 0, take: int = 2) -> list[dict[str, Any]]:
    return ITEMS[skip:skip + take]


REAL = {"by_cursor": by_cursor, "by_token": by_token, "by_page": by_page, "by_offset": by_offset}


def logged(tool: str, turns: list[list[dict[str, Any]]]) -> list[LoggedCall]:
    return [call(tool, arguments, json.dumps(REAL[tool](**arguments)), f"s{session}", place)
            for session, asked in enumerate(turns) for place, arguments in enumerate(asked)]


TURNS: dict[str, list[list[dict[str, Any]]]] = {
    "by_cursor": [[{"hall": "a"}, {"hall": "a", "after": "s-2"}, {"hall": "a", "after": "s-5"}],
                  [{"hall": "b", "take": 2}, {"hall": "b", "take": 2, "after": "s-1"}]],
    "by_token": [[{"hall": "a"}, *({"hall": "a", "token": f"T-{begin}0xQ"} for begin in (2, 4, 6))]],
    "by_page": [[{"hall": "a"}, {"hall": "a", "page": 2}, {"hall": "a", "page": 3}],
                [{"hall": "b", "page": 1}, {"hall": "b", "page": 2}]],
    "by_offset": [[{"hall": "a"}, {"hall": "a", "skip": 2}, {"hall": "a", "skip": 4}, {"hall": "a", "skip": 6}],
                  [{"hall": "b", "take": 3}, {"hall": "b", "take": 3, "skip": 3}]]}


def test_each_way_of_turning_is_learnt() -> None:
    found = learn_paging([one for tool in TURNS for one in logged(tool, TURNS[tool])], dict.fromkeys(TURNS, "read"))
    told = {tool: (row["kind"], row["argument"], row["start"], row["limit"], row["size"], row["list"])
            for tool, row in found.items()}
    assert told == {
        "by_cursor": ("cursor", "after", 0, "take", 3, "signs"), "by_token": ("cursor", "token", 0, None, 2, "signs"),
        "by_page": ("page", "page", 1, None, 3, "signs"), "by_offset": ("offset", "skip", 0, "take", 2, None)}
    assert found["by_cursor"]["of"] == "sign" and found["by_cursor"]["end"] == ["is", None]
    assert found["by_token"]["of"] is None and found["by_token"]["end"] == ["absent"]
    assert found["by_page"]["fields"] == {"page": "echo", "more": "more", "hall": "same"}
    assert found["by_token"]["fields"] == {"of": "total"} and found["by_cursor"]["fields"] == {"n": "count"}
    assert not learn_paging(logged("by_page", TURNS["by_page"]), {"by_page": "write"}), "only what looks is asked again"
    assert not learn_paging(logged("by_token", [TURNS["by_token"][0][:3]]), {"by_token": "read"}), "too few, and no end came"


@pytest.fixture(params=sorted(TURNS))
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def env(tool: str, tmp_path: Path) -> Environment:
    """Return a room that has the whole listing of one hall on record, as from before there were pages."""
    room = write_room(tmp_path / "house")
    (turning,) = learn_paging(logged(tool, TURNS[tool]), {tool: "read"}).values()
    wholes = {"by_cursor": {"signs": ITEMS, "n": N, "next": None}, "by_token": {"signs": ITEMS, "of": N},
              "by_page": {"page": 1, "signs": ITEMS, "more": False, "hall": "c"}, "by_offset": ITEMS}
    row = {"tool": tool, "arguments": '{"hall":"c"}', "content": json.dumps(wholes[tool]), "is_error": False, "from": None,
           "to": None, "session": None, "after": [], "effects": [], "event": "e"}
    for name, line in {
        "recorded": row, "behaviour": {"tool": tool, "effect": "read", "rules": [{"rule": "recorded"}], "support": {}},
        "perturbations": {"tool": tool, "latency_ms": None, "fault_rate": 0.0, "faults": [], "pages": turning},
    }.items():
        (room / f"{name}.jsonl").write_text(canonical(line) + "\n")
    return Environment.load_room(room)


def test_a_long_listing_comes_in_the_pages_of_the_real_tool(tool: str, env: Environment) -> None:
    env.reset(TASK, seed=3, perturbations=("pages",))
    first = env.call(tool, {"hall": "c"})
    if tool != "by_token":
        assert (first.content, first.tier) == (json.dumps(REAL[tool](hall="c")), "induced")
        follow = {"by_cursor": {"after": "s-5"}, "by_page": {"page": 3}, "by_offset": {"skip": 4, "take": 2}}[tool]
        assert env.call(tool, {"hall": "c", **follow}).content == json.dumps(REAL[tool](hall="c", **follow))
        beyond = {"by_cursor": {"after": "s-99"}, "by_page": {"page": 9}, "by_offset": {"skip": 7}}[tool]
        assert env.call(tool, {"hall": "c", **beyond}).tier == "unknown", "what is no page is not guessed"
    else:
        seen = json.loads(first.content)
        for _ in range(2):
            assert seen["token"][:2] == "T-" and seen["token"][2].isdigit() and seen["token"][3:] == "0xQ"
            seen = json.loads(env.call(tool, {"hall": "c", "token": seen["token"]}).content)
        last = env.call(tool, {"hall": "c", "token": seen["token"]})
        assert json.loads(last.content) == {"signs": ITEMS[6:], "of": N}
    assert env.journal[0]["paged"]
    assert env.replay(TASK, env.journal, 3, ("pages",)).journal == env.journal


def test_off_it_is_as_recorded(tool: str, env: Environment) -> None:
    for seed in (0, 3):
        env.reset(TASK, seed=seed)
        said = env.call(tool, {"hall": "c"})
        assert said.tier == "recorded" and len(said.content) > 200 and "paged" not in env.journal[0]
