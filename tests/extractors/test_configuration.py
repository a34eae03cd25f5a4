"""The configuration: what it takes, and the one sentence for what it does not."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from extractors.configuration import Audit, Configuration, Gates, SessionRules, Source, load
from extractors.formats.envelope import FIELDS
from extractors.inventory import discover
from extractors.reading import read
from warehouse.errors import InputError, Missing

ROOT = Path(__file__).parents[2]


def told(tmp_path: Path, text: str) -> Configuration:
    (tmp_path / "t.toml").write_text(text)
    return load(tmp_path / "t.toml")


def test_every_key_is_optional(tmp_path: Path) -> None:
    made = told(tmp_path, "")
    assert made.privacy == "on" and made.sources == []
    assert made.sessions.gap_minutes == 30 and made.gates.min_probability == 0.5


@pytest.mark.parametrize(("text", "says"), [
    ("privacy = \"maybe\"", r"key 'privacy': Input should be 'on' or 'off'"),
    ("colour = 1", r"there is no key 'colour'; remove it, or use one of: privacy, privacy_policy, sources, repositories"),
    ("[[sources]]\nnmae = 'x'", r"there is no key 'sources\.0\.nmae'; remove it, or use one of: name, paths"),
    ("[[sources]]\nfields = {colour = 'a'}", r"key 'sources\.0\.fields': no field 'colour'; there are: session_id"),
    ("[gates]\nmin_probability = 2", r"key 'gates\.min_probability': .*less than or equal to 1"),
    ("[sessions]\ngap_minutes = 0", r"key 'sessions\.gap_minutes': .*greater than 0"),
    ("privacy = ", r"is no TOML .*repair that place"),
])
def test_a_wrong_key_is_named_with_the_hint(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        told(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 't.toml'}: ") and re.search(says, str(caught.value))
    assert "\n" not in str(caught.value).rstrip("\n")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "no.toml")


def test_fields_service_and_format_are_followed(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    row = {"chat": {"ref": "c-1", "who": "u-1", "began": "2026-03-02T10:00:00+01:00"},
           "messages": [{"role": "user", "content": "a"}]}
    (tmp_path / "logs/x.data").write_bytes(orjson.dumps(row))
    made = told(tmp_path, """
        [[sources]]
        name = "desk"
        paths = ["logs"]
        service = "front"
        format = "openai_sessions"
        fields = {session_id = "chat.ref", identity = "chat.who", time = "chat.began"}
        """)
    [event] = read(discover([], configuration=made)[0][0]).events.to_dicts()
    assert (event["session_id"], event["name"], event["service"], event["source"]) == ("c-1", "u-1", "front", "desk")
    assert event["happened_at"].isoformat() == "2026-03-02T09:00:00+00:00"


def test_an_unknown_format_lists_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    made = told(tmp_path, "[[sources]]\npaths = ['x']\nformat = 'opnai'")
    with pytest.raises(Missing, match=r"no format 'opnai'; there are: .* more"):
        read(discover([], configuration=made)[0][0])


def test_the_reference_names_every_key() -> None:
    text = (ROOT / "docs/configuration.md").read_text("utf-8")
    sections = (Configuration, Source, SessionRules, Gates, Audit)
    names = [name for section in sections for name in section.model_fields]
    assert len(names) > 10 and not [name for name in names if f"`{name}`" not in text]


def test_the_example_of_the_reference_loads(tmp_path: Path) -> None:
    text = (ROOT / "docs/configuration.md").read_text("utf-8")
    made = told(tmp_path, re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0])
    assert [each.name for each in made.sources] == ["support", "shop"] and set(made.sources[0].fields) < set(FIELDS)
