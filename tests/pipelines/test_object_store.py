"""Logs on an object store: a real server of S3 on this machine, asked over HTTP."""

from __future__ import annotations

import gzip
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest

from extractors import objects
from extractors.inventory import discover
from tests.buckets import serving
from tests.pipelines.conftest import Traceroom
from tests.pipelines.ingestion import access, events, held, ingest, session
from warehouse.errors import InputError

BUCKET = "lamp-room"


class Server(NamedTuple):
    """A server, and the keys of somebody who may read."""

    url: str
    settings: dict[str, str]
    client: Any


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server that refuses keys which it does not know."""
    with serving(tmp_path_factory.mktemp("server") / "said") as url:
        keys = {"aws_access_key_id": "setup", "aws_secret_access_key": "setup"}
        iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", **keys)
        iam.create_user(UserName="reader")
        iam.put_user_policy(UserName="reader", PolicyName="all", PolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}))
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
        client.create_bucket(Bucket=BUCKET)
        for name, content in (
                ("logs/a.jsonl", "".join(map(session, range(9)))),
                ("logs/deep/b.jsonl", "".join(map(session, range(5, 14)))),
                ("logs/.part", "hidden"), ("logs/truth/t.jsonl", session(99)), ("logs/access.log", access(1) + access(2))):
            client.put_object(Bucket=BUCKET, Key=name, Body=content.encode())
        client.put_object(Bucket=BUCKET, Key="logs/deep/", Body=b"")
        client.put_object(Bucket=BUCKET, Key="logs/c.jsonl.gz", Body=gzip.compress(session(30).encode()))
        urllib.request.urlopen(urllib.request.Request(   # from now on keys count
            f"{url}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}, method="POST")).close()
        yield Server(url, {
            "AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"], "AWS_MAX_ATTEMPTS": "1"}, client)


@pytest.fixture
def store(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Return the server, with its address and keys in the environment."""
    for name, value in server.settings.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.mark.parametrize(("given", "names"), [
    ("logs", ["a.jsonl", "access.log", "c.jsonl.gz", "deep/b.jsonl"]),
    ("logs/", ["a.jsonl", "access.log", "c.jsonl.gz", "deep/b.jsonl"]),
    ("logs/deep", ["b.jsonl"]), ("logs/a.jsonl", ["a.jsonl"]), ("logs/*.jsonl", ["a.jsonl"]),
    ("logs/**/*.jsonl", ["a.jsonl", "deep/b.jsonl"]), ("logs/[ab].jsonl", ["a.jsonl"]), ("logs/truth", []),
    ("logs/truth/t.jsonl", []), ("logs/truth/*", [])])
def test_objects_are_found_by_prefix_by_glob_and_alone(store: Server, given: str, names: list[str]) -> None:
    files, left = discover([f"s3://{BUCKET}/{given}"])
    assert [each.relative for each in files] == names
    assert all(each.stamp().n_bytes > 0 and each.stamp().modified_ns > 0 for each in files)
    assert set(left["reason"]) <= {"truth_folder"} and not any("t.jsonl" in each.place for each in files)


def test_what_is_read_is_what_lies_there(store: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, here = tmp_path / "out", tmp_path / "here"
    for name in ("a.jsonl", "access.log", "c.jsonl.gz", "deep/b.jsonl"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(store.client.get_object(Bucket=BUCKET, Key=f"logs/{name}")["Body"].read())
    url = f"s3://{BUCKET}/logs"
    assert ingest(out, url)["n_new_files"] == 4
    ingest(tmp_path / "other", here)
    assert events(out) == events(tmp_path / "other")
    tables = held(out)
    for table in ("raw.records", "raw.declarations", "core.events"):
        assert BUCKET not in str(tables[table].rows()), "where it lies is told by the ledger alone"
    everything = str([rows.rows() for rows in tables.values()])
    assert store.settings["AWS_SECRET_ACCESS_KEY"] not in everything and store.settings["AWS_ACCESS_KEY_ID"] not in everything

    def never(url: str) -> None:
        raise AssertionError(f"{url} was read already")

    monkeypatch.setattr(objects, "opened", never)
    assert ingest(out, url)["n_new_files"] == 0


def test_an_object_that_has_grown_is_read_on(store: Server, tmp_path: Path) -> None:
    key, url = "growing/x.jsonl", f"s3://{BUCKET}/growing"
    for n in (3, 8):
        store.client.put_object(Bucket=BUCKET, Key=key, Body="".join(map(session, range(n))).encode())
        ingest(tmp_path / "out", url)
    ingest(tmp_path / "fresh", url)
    assert events(tmp_path / "out") == events(tmp_path / "fresh") and held(tmp_path / "out")["raw.files"].height == 1


@pytest.mark.parametrize(("given", "settings", "says"), [
    ("s3://no-such-bucket/logs", {}, "there is no such bucket or object; check the address."),
    (f"s3://{BUCKET}/nothing/", {}, "there is no such bucket or object; check the address."),
    (f"s3://{BUCKET}/logs", {"AWS_ACCESS_KEY_ID": "AKIAWRONG"}, "the object store refuses ("),
    (f"s3://{BUCKET}/logs", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "the object store refuses ("),
    (f"s3://{BUCKET}/logs", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "the object store refuses ("),
])
def test_what_cannot_be_read_is_one_sentence_with_the_hint(
    store: Server, monkeypatch: pytest.MonkeyPatch, given: str, settings: dict[str, str], says: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as caught:
        discover([given])
    sentence = str(caught.value)
    assert sentence.startswith(f"{given}: ") and says in sentence and "\n" not in sentence
    assert "check the address" in sentence and store.settings["AWS_SECRET_ACCESS_KEY"] not in sentence


def test_the_command_line_says_so_and_leaves(store: Server, tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom("run", "s3://no-such-bucket/logs", "--out", tmp_path / "out", **store.settings)
    assert done.returncode == 2 and "there is no such bucket or object; check the address." in done.stderr
    assert done.stderr.count("✗") == 1 and "Traceback" not in done.stderr


def test_the_inbox_on_a_store_asks_for_a_run_by_content(store: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from dagster import SensorResult, SkipReason, build_sensor_context

    from pipelines.dagster_assets.automation import inbox

    def looked(cursor: str | None) -> SensorResult | SkipReason:
        return inbox(build_sensor_context(cursor=cursor))

    def put(key: str, text: str) -> None:
        store.client.put_object(Bucket=BUCKET, Key=key, Body=text.encode())

    monkeypatch.setenv("TRACEROOM_INBOX", f"s3://{BUCKET}/inbox/desk, s3://{BUCKET}/inbox/shop")
    assert isinstance(none := looked(None), SkipReason) and "there is no such bucket or object" in (none.skip_message or "")
    for name in ("desk/a.jsonl", "shop/b.jsonl", "shop/truth/t.jsonl", "shop/.part"):
        put(f"inbox/{name}", name)
    first = looked(None)
    assert isinstance(first, SensorResult) and first.run_requests and first.cursor
    assert first.run_requests[0].tags["traceroom/new_files"] == "2" and "truth" not in first.cursor
    put("inbox/desk/again.jsonl", "desk/a.jsonl")
    put("inbox/shop/b.jsonl", "shop/b.jsonl")
    same = looked(first.cursor)
    assert isinstance(same, SensorResult) and not same.run_requests, "the same content, under another name and written again"
    put("inbox/shop/b.jsonl", "shop/b.jsonl, and more")
    more = looked(same.cursor)
    assert isinstance(more, SensorResult) and more.run_requests
    assert more.run_requests[0].run_key != first.run_requests[0].run_key
    assert store.settings["AWS_SECRET_ACCESS_KEY"] not in str(more.cursor)
