"""The byte search of benchmarks/privacy.py finds what lies inside of files, and nothing where pseudonyms stand."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import process
from tests.conftest import ROOT, SAMPLE, once
from tests.pipelines.conftest import part_of_sample

sys.path.insert(0, str(ROOT / "benchmarks"))

from privacy_published import left_in

MAIL = re.compile(r"[a-z][\w.]*@example\.com")


@pytest.fixture(scope="module")
def mails() -> set[str]:
    return {mail for path in SAMPLE.rglob("*.jsonl") for mail in MAIL.findall(path.read_text("utf-8"))}


@pytest.mark.slow
def test_what_is_published_without_privacy_holds_them_everywhere(
        mails: set[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    def make(out: Path) -> None:
        done = process("run", SAMPLE, "--out", out, "--no-image", "--privacy", "off")
        assert done.returncode == 0, done.stderr

    found = left_in(once(tmp_path_factory, "run_without_privacy", make), mails)
    kinds = (r"environments/main/world\.jsonl", r"environments/main: layer \d: ", r"datasets/.*\.parquet: rows",
             r"warehouse\.duckdb: core\.events", r"datasets/.*\.jsonl")
    assert [kind for kind in kinds if not any(re.fullmatch(kind + ".*", name) for name in found)] == []
    assert {mail for values in found.values() for mail in values} == mails


def test_what_is_published_by_default_holds_none(mails: set[str], sample_run: Path) -> None:
    assert len(mails) >= 10 and left_in(sample_run, mails) == {}


def test_archives_in_archives_are_opened_and_case_is_one(tmp_path: Path) -> None:
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "x" * 100 + "Ada Lovelace")
    with tarfile.open(fileobj=outer, mode="w") as archive:
        entry = tarfile.TarInfo("a.zip")
        entry.size = len(inner.getvalue())
        archive.addfile(entry, io.BytesIO(inner.getvalue()))
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(outer.getvalue()))
    pl.DataFrame({"said": [["ADA LOVELACE"]]}).write_parquet(tmp_path / "rows.parquet", compression="zstd")
    found = left_in(tmp_path, ["ada lovelace", "nobody at all"])
    assert {name.partition(":")[0] for name in found} == {"a.tar.gz", "rows.parquet"}
    assert set(map(tuple, found.values())) == {("ada lovelace",)}


@pytest.mark.slow
def test_it_prints_what_was_found_and_what_is_left(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "privacy.py"), str(part_of_sample(tmp_path / "airline")), "--people", "30",
         "--rounds", "1"], capture_output=True, text=True, cwd=tmp_path, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])["figures"]
    assert figures["recall_structured"] == 1 and figures["recall_unstructured"] >= 0.97
    assert figures["originals_left"] == 0 and figures["n_originals"] > 100 and figures["n_releases"] == 1
    assert figures["privacy_cost"] > 0
