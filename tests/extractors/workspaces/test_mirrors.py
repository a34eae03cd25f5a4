"""Repositories on a server are cloned once and brought up to date, by the program git, and nobody is asked for a password."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from extractors.workspaces import mirrors
from extractors.workspaces.mirrors import fetched, is_address, mirror_folder
from extractors.workspaces.repository import Repository
from pipelines.settings import Settings
from tests.extractors.workspaces.commits import commit_all
from warehouse.errors import InputError


class _Locked(SimpleHTTPRequestHandler):
    """Serves a folder to who says the password."""

    def do_GET(self) -> None:
        if "locked" in self.path and self.headers.get("Authorization") != "Basic YW5uOnMzY3JldA==":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="code"')
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    commit_all(tmp_path / "lamp", ("Light", {"lamp.c": "wick\n"}))
    return tmp_path / "lamp"


@pytest.fixture
def server(origin: Path) -> Iterator[str]:
    for name in ("lamp.git", "locked.git"):
        subprocess.run(["git", "clone", "--quiet", "--bare", str(origin), str(origin.parent / name)], check=True)
        subprocess.run(["git", "--git-dir", str(origin.parent / name), "update-server-info"], check=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Locked, directory=str(origin.parent))) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


@pytest.mark.parametrize(("name", "is_one"), [
    ("https://git.example/core/app.git", True), ("ssh://git@git.example:2222/app", True), ("file:///srv/app.git", True),
    ("git@git.example:core/app.git", True), ("app.git", False), ("/srv/app.bundle", False), ("C:app", False),
    ("ext::sh -c true", False)])
def test_addresses_are_told_from_paths(name: str, is_one: bool) -> None:
    assert is_address(name) is is_one


def test_a_clone_has_the_repository_s_name(tmp_path: Path) -> None:
    names = [mirror_folder(address, tmp_path).name for address in (
        "https://git.example/core/app.git", "git@git.example:core/app", "https://git.example/app/")]
    assert names == ["app.git"] * 3


def test_what_the_server_has_is_had(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, folder = origin.as_uri(), tmp_path / "clones"
    with Repository.open(fetched(address, folder)) as repository:
        assert repository.name == "lamp" and len(repository.commits) == 1
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "More"], cwd=origin, check=True)
    with Repository.open(fetched(address, folder)) as repository:
        assert len(repository.commits) == 1   # within a minute it is taken as it is
    monkeypatch.setattr(mirrors, "FRESH_S", 0)
    with Repository.open(fetched(address, folder)) as repository:
        assert len(repository.commits) == 2


def test_a_server_is_asked_over_http(server: str, tmp_path: Path) -> None:
    for address in (f"http://{server}/lamp.git", f"http://ann:s3cret@{server}/locked.git"):
        with Repository.open(fetched(address, tmp_path / "clones")) as repository:
            assert len(repository.commits) == 1


def test_what_cannot_be_had_is_said_without_the_password(server: str, tmp_path: Path) -> None:
    for address in (f"http://ann:wr0ng@{server}/locked.git", f"http://{server}/locked.git", f"http://{server}/none.git",
                    (tmp_path / "none").as_uri()):
        with pytest.raises(InputError, match="cannot be had from its server") as caught:
            fetched(address, tmp_path / "clones")
        assert "wr0ng" not in str(caught.value)
        assert not mirror_folder(address, tmp_path / "clones").exists()


def test_a_server_that_is_gone_leaves_the_last_clone(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = Settings(logs=(), out=str(tmp_path / "out"), repositories=(origin.as_uri(),)).checked()
    warnings: list[str] = []
    assert settings.repositories_text == "[]"
    settings.fetch_repositories(warnings.append)
    before = settings.repositories_text
    origin.rename(tmp_path / "gone")
    monkeypatch.setattr(mirrors, "FRESH_S", 0)
    settings.fetch_repositories(warnings.append)
    assert settings.repositories_text == before != "[]" and len(warnings) == 1 and "last is used" in warnings[0]
    with pytest.raises(InputError):
        Settings(logs=(), out=str(tmp_path / "other"), repositories=(origin.as_uri(),)).fetch_repositories(warnings.append)
