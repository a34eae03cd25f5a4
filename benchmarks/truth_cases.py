"""Tasks from an application's requests: can an agent know what it must write, and is every step the agent's own?

A value of a case (its slots in the truth) is known if it stands in the goal, the opening, what the user says in reply, or the
answer to an earlier call of the known solution that did not itself name it (an answer that repeats its question teaches
nothing). A value must be known before the first write that holds it. A step is another person's if only other people made such
a request in the case.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truth_attacks import Published, Step, published
from truth_data import DataSet, rows
from truth_policies import share

from warehouse.store import Store

Request = dict[str, Any]
READING = ("GET ", "HEAD ", "OPTIONS ")


def knowable(out: Path, data: DataSet) -> dict[str, Any]:
    """Return the share of published tasks whose case an agent can know and do alone, and why the others are not."""
    cases = {row["ticket"]: row for row in rows(data.path / "truth" / "cases.jsonl")}
    requests = {row["req"]["id"]: row["req"] for path in sorted((data.path / "logs").iterdir()) for row in rows(path)}
    of_session, n = cases_of_sessions(out, cases), Counter[str]()
    for task in published(out, data.path):
        own = sorted({ticket for session_id in task.session_ids for ticket in of_session.get(session_id, ())})
        n["published"] += 1
        n[unknowable_reason(task, [cases[ticket] for ticket in own], requests) or "knowable"] += 1
    return {"knowable_share": share(n["knowable"], n["published"]), **n}


def cases_of_sessions(out: Path, cases: dict[str, Any]) -> dict[str, list[str]]:
    """Session -> the cases that have most of their requests in it."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        of_request = dict(store.read("select call_id, session_id from core.turns where call_id is not null").iter_rows())
    found: dict[str, list[str]] = defaultdict(list)
    for ticket, case in cases.items():
        sessions = [of_request[request] for request in case["requests"] if request in of_request]
        if sessions:
            found[max(sorted(set(sessions)), key=sessions.count)].append(ticket)
    return found


def unknowable_reason(task: Published, cases: list[Any], requests: dict[str, Request]) -> str | None:
    """Return why an agent cannot do the task from what it can know; None if it can."""
    if not cases:
        return "no_case"
    others = {route(request) for case in cases for request in own_requests(case, requests) if who(request) != case["clerk"]}
    clerks = {route(request) for case in cases for request in own_requests(case, requests) if who(request) == case["clerk"]}
    if any(called(step) in others - clerks for step in task.solution if "tool" in step):
        return "step_of_another_person"
    wanted = {plain(value) for case in cases for slots in case["slots"] for value in leaves(slots)}
    return "value_unknown" if any(not is_known_in_time(value, task) for value in wanted) else None


def is_known_in_time(value: str, task: Published) -> bool:
    """Play the solution and return whether the value is known before the first write that holds it (or by the end)."""
    for texts, step in sources(task):
        if any(value in text for text in texts):
            return True
        if step is not None and "tool" in step and not step["tool"].startswith(READING) and value in plain(step):
            return False
    return False


def sources(task: Published) -> Iterator[tuple[list[str], Step | None]]:
    """Yield what is learnt, and the step that comes next; an answer counts without the values that its call named."""
    environment = task.environment
    opening = environment.reset(task.task_id, seed=0)
    goal = next(each for each in environment.tasks if each.task_id == task.task_id)
    texts = [plain(goal.goal), plain(opening.messages)]
    for step in task.solution:
        yield texts, step
        if "say" in step:
            texts = [plain(environment.say(step["say"]) or "")]
        else:
            named = sorted({plain(value) for value in leaves(step["arguments"])} - {""}, key=len, reverse=True)
            answer = plain(environment.call(step["tool"], step["arguments"]).content)
            texts = [re.sub("|".join(map(re.escape, named)), "\0", answer) if named else answer]
    yield texts, None


def own_requests(case: Any, requests: dict[str, Request]) -> Iterator[Request]:
    """Yield the requests of a case."""
    return (requests[name] for name in case["requests"] if name in requests)


def who(request: Request) -> str:
    """Return who made a request."""
    return str((request.get("user") or {}).get("id"))


def route(request: Request) -> str:
    """Return the method and the path of a request, without its query."""
    return f"{request['method']} {request['url'].split('?')[0]}"


def called(step: Step) -> str:
    """Return the method and the path of a call."""
    return re.sub(r"\{(\w+)\}", lambda match: str(step["arguments"].get(match[1], "")), step["tool"])


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values inside of objects and lists."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    elif value is not None:
        yield value


def plain(value: Any) -> str:
    """Return a value as text to search in: in lower case, without the sign before numbers."""
    return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).lower().replace("#", "")
