"""Configurations that somebody else wrote: keys that are not there, paths, patterns, code, other types; each gives one
sentence."""

from __future__ import annotations

from pathlib import Path

from extractors import configuration
from tests.attacks.report import Report
from warehouse.errors import InputError

TEXTS = ("[sources", "a = 1", "[[sources]]\nname = 5", '[[sources]]\nfields = {session_id = 5}', "[gates]\nmin_precision = nan",
         "[gates]\nmin_precision = 2", "[gates]\nmin_precision = -inf", '[bindings]\nx = "os.system"',
         '[bindings]\nx = "python"', '[bindings]\nx = 5', "[audit]\nmutants = -1",
         "[release]\nkeep = 0", '[release]\ndrift = "never"', "[sessions]\ngap_minutes = 0",
         '[[sources]]\n[sources.pull]\nplatform = "x"\nsince = "never"',
         '[[sources]]\n[sources.pull]\nplatform = "x"\ncredentials = {K = "sk-secret"}',
         '[[sources]]\n[sources.pull]\nplatform = "x"\nlimit = -5', 'privacy = "maybe"',
         "privacy = false", "[unknown]\nx = 1", '[[sources]]\nfields = {"roles.x" = "god"}',
         '[[sources]]\nfields = {"roles" = "x"}', "\x00", "x = '''", "[a]\n[a]", "a.b = 1\na = 2",
         "[[sources]]\npaths = 5", '[[sources]]\nstarts_from = "nowhere"', "[goals]\nask = 'yes please'",
         "x = 99999999999999999999999999", "x = 9999-99-99", "[" * 2_000)
CONTENTS = (b"\xff\xfe", b"\xef\xbb\xbfprivacy = 'on'", b"", b"#" * 1_000_000, "privacy = 'on'".encode("utf-16"))


def attack(folder: Path, share: float) -> Report:
    """Load each, and read what the message says."""
    path, problems = folder / "c.toml", []
    for content in (*(text.encode() for text in TEXTS), *CONTENTS):
        path.write_bytes(content)
        try:
            configuration.load(path)
            problems += [f"{content[:60]!r} is taken"] if content[:60] in {text.encode()[:60] for text in TEXTS} else []
        except InputError as error:
            problems += [f"{content[:40]!r}: a secret is repeated"] if "sk-secret" in str(error) else []
            problems += [f"{content[:40]!r}: {str(error)[:100]!r}"] if "\n" in str(error) or len(str(error)) > 3_000 else []
        except Exception as error:
            problems.append(f"{content[:60]!r}: {type(error).__name__}: {str(error)[:100]}")
    for other in (folder, Path("/dev/null/x"), folder / "nothing.toml"):
        try:
            configuration.load(other)
            problems.append(f"{other} is taken")
        except InputError:
            pass
    return Report(len(TEXTS) + len(CONTENTS) + 3, tuple(problems))


def test_a_configuration_is_checked(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
