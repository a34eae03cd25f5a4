"""Storage of releases: the same operations on a folder, on S3, on Google Cloud Storage and on Azure."""

from __future__ import annotations

import json
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipelines.releases.registry import Registry
from pipelines.releases.storage import FolderStorage, ObjectStorage, open_storage
from tests.pipelines.releases.clouds import serving_clouds
from tests.pipelines.releases.conftest import put
from warehouse.errors import InputError, Unavailable


@pytest.fixture(scope="session")
def cloud_server() -> Iterator[str]:
    with serving_clouds() as url:
        yield url


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow), "gs", "az"])
def address(
    request: pytest.FixtureRequest, cloud_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return the address of an empty storage of each kind."""
    if request.param == "s3":
        return str(request.getfixturevalue("bucket"))
    if request.param == "gs":
        account = tmp_path / "account.json"
        account.write_text(json.dumps({
            "gcs_base_url": cloud_server, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}))
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(account))
        return f"gs://shelf/{uuid.uuid4().hex}"
    if request.param == "az":
        monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", cloud_server)
        return f"az://shelf/{uuid.uuid4().hex}"
    return str(tmp_path / "shelf")


@pytest.fixture
def storage(address: str) -> FolderStorage | ObjectStorage:
    return open_storage(address)


def test_swap_creates_only_where_nothing_is_and_replaces_only_what_was_read(storage: FolderStorage | ObjectStorage) -> None:
    assert storage.read("current") is None
    assert not storage.swap("current", b"first", b"second")
    assert storage.swap("current", None, b"first")
    assert not storage.swap("current", None, b"other")
    assert not storage.swap("current", b"other", b"second")
    assert storage.swap("current", b"first", b"second")
    assert storage.read("current") == b"second"


def test_of_many_writers_one_creates_and_no_replacement_is_lost(address: str) -> None:
    ready = threading.Barrier(4)

    def write(number: int) -> bool:
        own = open_storage(address)
        ready.wait()
        is_first = own.swap("created", None, str(number).encode())
        for _ in range(5):
            while not own.swap("count", before := own.read("count"), (before or b"") + b"."):
                pass
        return is_first

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(write, range(4))) == 1
    assert open_storage(address).read("count") == b"." * 20


@pytest.mark.parametrize("address", [pytest.param("s3", marks=pytest.mark.slow), "gs", "az"], indirect=True)
def test_a_writer_that_comes_between_reading_and_writing_wins(storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(storage, ObjectStorage)
    storage.swap("current", None, b"first")
    for before in (b"first", None):
        name = "current" if before else "new"
        seen = storage._versioned(name)
        assert storage.swap(name, before, b"another's")
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_versioned", lambda name, seen=seen: seen)
            assert not storage.swap(name, before, b"ours")
        assert storage.read(name) == b"another's"


def test_objects_are_listed_downloaded_and_removed(storage: FolderStorage | ObjectStorage, tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"x" * 70_000)
    with storage.lock():
        for name in ("objects/ab/abc", "objects/cd/cde"):
            storage.upload(name, tmp_path / "content")
        storage.lay_out("r-1", {"a/b": "objects/ab/abc"}, {"files.jsonl": b"", "manifest.json": b"{}"})
    assert [(name, each.n_bytes) for name, each in storage.names("objects").items()] == [
        ("objects/ab/abc", 70_000), ("objects/cd/cde", 70_000)]
    assert {"objects/ab/abc", "r-1/files.jsonl", "r-1/manifest.json"} <= storage.names("").keys()
    assert storage.has_copy("r-1/a/b", "objects/ab/abc")
    storage.download("objects/ab/abc", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "content").read_bytes()
    with pytest.raises(FileNotFoundError):
        storage.download("objects/ef/efg", tmp_path / "none")
    storage.remove(["objects/ab/abc", "objects/ef/efg"])
    storage.remove_folder("r-1")
    assert list(storage.names("")) == ["objects/cd/cde"]


def test_a_release_is_put_promoted_and_yanked(address: str, tmp_path: Path) -> None:
    registry = Registry(address)
    release = put(registry, tmp_path, {"environments/hall/tasks.jsonl": "{}\n", "report/b": "ö"})
    registry.promote(release, None, "")
    assert registry.current() == release and not list(registry.verify([release]))
    assert (registry.fetch(release, tmp_path / "to") / "report" / "b").read_text() == "ö"
    registry.withdraw(release, "wrong", None)
    assert registry.current() is None and not registry.storage.names("objects")


def test_an_address_of_another_kind_and_a_container_without_its_account_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"ftp://shelf.* az://container/prefix"):
        open_storage("ftp://shelf/rooms")
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_USE_EMULATOR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="az://shelf/rooms: no keys of the bucket are set; set AZURE_STORAGE_ACCOUNT_NAME"):
        open_storage("az://shelf/rooms")


def test_without_the_extra_a_folder_works_and_a_bucket_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert open_storage(str(tmp_path / "shelf")).read("current") is None
    with pytest.raises(Unavailable, match=r"traceroom\[s3\]"):
        open_storage("gs://shelf/rooms")
