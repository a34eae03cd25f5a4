"""Templates of free text: groups, variables, and what must hold of any messages."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.first_hour_templates import STATEMENTS as STATEMENTS_OF_LOGS
from benchmarks.first_hour_templates import accuracy, drain
from benchmarks.first_hour_templates import instances as instances_of
from extractors.templates import MASK, named

STATEMENTS = ["login of user {name} took {number} ms", "Connection from {number}:{number} closed",
              "disk {number} is {number} % full", "started", "stopped",
              "Accepted password for {name} from {number} port {number} ssh2",
              "Failed password for {name} from {number} port {number} ssh2"]
WORDS = st.sampled_from(["door", "opened", "17", "a-1", "x=5", "(late)", "\"q\"", "10.0.0.1:80", "deadbeef00", "ü", "<*>", ":"])
MESSAGES = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=12)


def instances(seed: int, n: int) -> list[tuple[int, str]]:
    """Messages with the statement that each was made from."""
    chosen = random.Random(seed)
    made = []
    for _ in range(n):
        number = chosen.randrange(len(STATEMENTS))
        values = {"name": chosen.choice(["ann", "bob", "web-7", "carol"]), "number": chosen.randrange(10_000)}
        made.append((number, STATEMENTS[number].format(**values)))
    return made


def test_statements_and_their_variables() -> None:
    found = named(["user ann logged in after 12 ms", "user bob logged in after 3 ms", "queue [size=7] at 10:15:02"])
    assert found[0].template.endswith("logged in after <*> ms") and found[0].variables["after"] == "12"
    assert found[2].template == "queue [size=<*>] at <*>" and found[2].variables == {"size": "7", "at": "10:15:02"}


@pytest.mark.parametrize("seed", range(5))
def test_messages_of_one_statement_come_together(seed: int) -> None:
    """Grouping accuracy: the share of messages whose group holds exactly the messages of their statement."""
    made = instances(seed, 400)
    found = [each.template for each in named(message for _, message in made)]
    groups, pairs = Counter(found), Counter(zip(found, (number for number, _ in made), strict=True))
    whole = Counter(number for number, _ in made)
    right = sum(n for (template, number), n in pairs.items() if n == groups[template] == whole[number])
    assert right / len(made) == 1, groups
    assert {each.template for each in named(message for _, message in made)} == set(found), "deterministic"


def test_a_first_word_without_a_digit_that_varies_is_a_value_and_a_few_states_are_not() -> None:
    hosts = ["ada", "bea", "cid", "dov", "eli", "fay", "gus", "hal", "ida"]
    opened = {named([f"{host} refused the connection" for host in hosts])[0].template}
    assert opened == {"<*> refused the connection"}
    states = named(f"{state} the connection" for state in ["opened", "closed", "lost"])
    assert [each.template for each in states] == ["opened the connection", "closed the connection", "lost the connection"]


@pytest.mark.parametrize("log", sorted(STATEMENTS_OF_LOGS))
def test_lines_are_grouped_at_least_as_well_as_by_drain(log: str) -> None:
    made = instances_of(STATEMENTS_OF_LOGS[log], 400, 7)
    true, texts = [number for number, _ in made], [text for _, text in made]
    assert accuracy(true, [each.template for each in named(texts)]) >= accuracy(true, drain(texts))


@given(MESSAGES, st.randoms())
def test_the_order_of_the_messages_does_not_matter(messages: list[str], chosen: random.Random) -> None:
    shuffled = list(enumerate(messages))
    chosen.shuffle(shuffled)
    again = named(message for _, message in shuffled)
    assert [again[place] for place, _ in sorted(enumerate(number for number, _ in shuffled), key=lambda each: each[1])] == \
        named(messages)


@given(MESSAGES | st.lists(st.text(max_size=40), max_size=6))
def test_a_template_and_its_variables_give_the_words_back(messages: list[str]) -> None:
    for message, (template, variables) in zip(messages, named(messages), strict=True):
        words = " ".join(message.split())
        if "<" not in message:
            assert template.count(MASK) == len(variables)
            parts = template.split(MASK)
            assert words == "".join(part + value for part, value in zip(parts, [*variables.values(), ""], strict=True))


def test_a_long_message_is_told_by_its_beginning() -> None:
    [found] = named(["word " * 500])
    assert len(found.template) < 1100 and found.template.endswith(f" {MASK}") and list(found.variables) == ["word"]


def test_lines_of_a_web_server_as_raw_text(data: Path) -> None:
    """Ten thousand lines of one notation, no two alike, are few statements."""
    messages = (data / "access_log/logs/apache_combined.log").read_text("utf-8").splitlines()
    found = Counter(each.template for each in named(messages))
    assert len(found) <= 150 < len(set(messages))
    assert sum(n for _, n in found.most_common(20)) > 0.7 * len(messages)
