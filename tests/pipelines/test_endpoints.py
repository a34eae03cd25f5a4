"""One MCP endpoint for all tools of a company, and one for each app: the same episode, the same journal."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from env_builder.company.rooms import CompanyTask, write_company
from env_builder.runtime import Environment
from env_builder.runtime.office.office_files import read_workbook
from pipelines.serving.endpoints import McpEndpoints
from tests.pipelines.test_serve import run, started, stopped
from tests.small_company import ADA, BEN, content_of, instant_at, mail_of, sheets_of

TASK = "e" * 64
CONTENT = content_of(sheets_of("f1", -900, "Stock", ADA, [], Bins=[["oats", "2"]]),
                     mail_of("<m1@mill.example>", -800, BEN, [ADA], "Oats", "Please set the oats to 5."))
BINS = {"spreadsheet_id": "f1", "range_name": "Bins!B1"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    folder = tmp_path_factory.mktemp("company")
    write_company("company", CONTENT, [CompanyTask(TASK, instant_at(), ADA, "Set the oats.")], folder / "company", folder / "r")
    process, url = started(folder / "company", "--journals", str(folder / "journals.jsonl"))
    yield url, folder / "company", folder / "journals.jsonl"
    stopped(process)


def test_endpoints_of_apps_play_one_episode(served: tuple[str, Path, Path]) -> None:
    url, folder, journals = served
    chosen, before = f"task={TASK[:9]}&episode=morning-1", len(rows_of(journals))

    async def play() -> None:
        async with (streamable_http_client(f"{url}/gmail?{chosen}") as mail_streams, ClientSession(*mail_streams) as mail,
                    streamable_http_client(f"{url}/drive?{chosen}") as drive_streams, ClientSession(*drive_streams) as drive,
                    streamable_http_client(f"{url}?{chosen}") as all_streams, ClientSession(*all_streams) as every):
            for session in (mail, drive, every):
                hello = await session.initialize()
                assert hello.instructions and "Set the oats." in hello.instructions
            names = [{tool.name for tool in (await session.list_tools()).tools} for session in (mail, drive, every)]
            assert "search_gmail_messages" in names[0] and "modify_sheet_values" in names[1]
            talk = {"say", "finish"}
            assert (names[0] - talk).isdisjoint(names[1] - talk) and names[0] | names[1] == names[2]
            with pytest.raises(MCPError, match="it is at /mcp, /mcp/drive"):
                await mail.call_tool("modify_sheet_values", {**BINS, "values": [["9"]]})
            await drive.call_tool("modify_sheet_values", {**BINS, "values": [["5"]]})
            seen = await every.call_tool("read_sheet_values", BINS)
            assert "['5']" in seen.content[0].text
            await mail.call_tool("search_gmail_messages", {"query": "oats", "user_google_email": ADA})

    run(play())
    (row,) = rows_of(journals)[before:]
    assert [step["tool"] for step in row["journal"]] == ["modify_sheet_values", "read_sheet_values", "search_gmail_messages"]
    environment = Environment.load_room(folder)
    assert [step["content"] for step in environment.replay(TASK, row["journal"]).journal] == [
        step["content"] for step in row["journal"]]


def rows_of(journals: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journals.read_text().splitlines()] if journals.exists() else []


def begin(client: httpx2.Client, url: str) -> httpx2.Response:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    return client.post(url, json=hello)


def test_an_episode_lasts_as_long_as_one_of_its_sessions(served: tuple[str, Path, Path]) -> None:
    url, _, journals = served
    before = len(rows_of(journals))
    read = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read_sheet_values", "arguments": BINS}}
    with httpx2.Client() as client:
        n_others = client.get(url.replace("/mcp", "/health")).json()["episodes"]
        one, two = ({"Mcp-Session-Id": begin(client, f"{url}/drive?task={TASK}&episode=x").headers["Mcp-Session-Id"]}
                    for _ in range(2))
        assert one != two
        assert client.post(f"{url}/drive", json=read, headers=one).status_code == 200
        assert client.delete(f"{url}/drive", headers=one).status_code == 200
        assert client.post(f"{url}/drive", json=read, headers=one).status_code == 404
        assert client.post(url, json=read, headers=two).status_code == 200, "the other one plays it on"
        assert begin(client, f"{url}?task={TASK}&seed=3&episode=x").status_code == 400, "other choices, the same name"
        assert client.get(url.replace("/mcp", "/health")).json()["episodes"] == n_others + 1
        assert client.delete(url, headers=two).status_code == 200
        assert [len(row["journal"]) for row in rows_of(journals)[before:]] == [2]
        other = begin(client, f"{url}?task={TASK}&episode=x").headers["Mcp-Session-Id"]
        assert client.delete(url, headers={"Mcp-Session-Id": other}).status_code == 200


@pytest.mark.parametrize(("path", "status"), [
    ("/gmail", 200), ("/slack", 404), ("/gmail/x", 404), ("?episode=a/b", 400), ("?episode=", 400), ("?episode=a.b-c", 200)])
def test_what_is_no_endpoint_is_refused(served: tuple[str, Path, Path], path: str, status: int) -> None:
    url, _, _ = served
    with httpx2.Client() as client:
        assert begin(client, f"{url}{path}").status_code == status
        assert {*client.get(url.replace("/mcp", "/health")).json()["endpoints"]} == {"/mcp", "/mcp/gmail", "/mcp/drive"}


def test_files_are_read_and_saved_beside_the_tools(served: tuple[str, Path, Path]) -> None:
    url, _, _ = served
    with httpx2.Client() as client:
        own = {"Mcp-Session-Id": begin(client, f"{url}?task={TASK}").headers["Mcp-Session-Id"]}
        place = url.replace("/mcp", "/episode")
        (file,) = client.get(f"{place}/files", headers=own).json()["files"]
        content = base64.b64decode(client.post(f"{place}/file", json={"path": file["path"]}, headers=own).json()["content"])
        assert read_workbook(content) == {"Bins": [["oats", "2"]]}
        new = {"path": "drive/new.md", "content": base64.b64encode(b"x").decode()}
        saved = client.post(f"{place}/save", json=new, headers=own)
        assert saved.json()["content"][0]["text"] == "Saved the new file drive/new.md."
        assert len(client.get(f"{place}/files", headers=own).json()["files"]) == 2
        assert client.post(f"{place}/file", json={"path": "drive/none"}, headers=own).status_code == 400
        client.delete(url, headers=own)


def test_an_environment_without_endpoints_has_one() -> None:
    endpoints = McpEndpoints([{"name": "records", "kind": "records", "path": "."}])
    assert endpoints.paths == ["/mcp"] and "/mcp/records" not in endpoints
    assert endpoints.refusal("/mcp", "tools/call", {"name": "x"}) is None
