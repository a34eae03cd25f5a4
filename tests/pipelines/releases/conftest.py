"""What tests of releases share: registries of both kinds, small releases, and a build of the sample to break."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from pipelines.releases.registry import Registry, source
from tests.buckets import serving

Put = Callable[..., str]


@pytest.fixture(scope="session")
def bucket_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a server that speaks S3 on this machine; gives its address."""
    with serving(tmp_path_factory.mktemp("bucket") / "output") as url:
        yield url


@pytest.fixture
def bucket(bucket_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a prefix in a bucket of its own."""
    for name, value in (("AWS_ENDPOINT_URL", bucket_server), ("AWS_DEFAULT_REGION", "us-east-1"),
                        ("AWS_ACCESS_KEY_ID", "somebody"), ("AWS_SECRET_ACCESS_KEY", "somebody")):
        monkeypatch.setenv(name, value)
    name = f"shelf-{uuid.uuid4().hex[:12]}"
    boto3.client("s3", endpoint_url=bucket_server).create_bucket(Bucket=name)
    return f"s3://{name}/rooms"


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.slow)])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Registry:
    """Return an empty registry: a folder, or a bucket."""
    return Registry(request.getfixturevalue("bucket") if request.param == "bucket" else str(tmp_path / "registry"))


def put(registry: Registry, folder: Path, contents: dict[str, str], **more: Any) -> str:
    """Return a release of these files (path -> text) in the registry; gives its id."""
    files = {}
    for path, text in contents.items():
        place = folder / "made" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        files[path] = source(place)
    now = more.pop("now", None)
    return registry.put({"predecessor": registry.current(), "figures": {}, **more}, files, now)


def copied(out: Path, to: Path) -> Path:
    """Return a finished run to do with as one likes."""
    shutil.copytree(out, to, ignore=shutil.ignore_patterns("*.lock", "releases"))
    return to


