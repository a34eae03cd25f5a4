"""Queries of Jira are parsed as their grammar says, and clauses over empty fields are neither met nor unmet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import Undecided
from env_builder.runtime.office.jql import (
    JqlClause,
    JqlGroup,
    JqlNode,
    JqlQuery,
    JqlValue,
    UnsupportedQuery,
    is_met,
    parse_jql,
)

words = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,6}", fullmatch=True).filter(
    lambda word: (
        word.lower() not in {"and", "or", "not", "in", "is", "order", "by", "was", "changed", "empty", "null", "asc", "desc"}
    )
)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
values = st.one_of(
    texts.map(lambda text: JqlValue(text)),
    st.just(JqlValue("", "empty")),
    st.builds(lambda name, own: JqlValue(name, "call", tuple(own)), words, st.lists(texts, max_size=2)),
)
clauses = st.builds(JqlClause, words, st.sampled_from(["=", "~", "<", "<=", ">", ">="]), values.map(lambda value: (value,)))
lists = st.builds(JqlClause, words, st.just("="), st.lists(values, min_size=2, max_size=3).map(tuple))
nodes: st.SearchStrategy[JqlNode] = st.recursive(
    clauses | lists,
    lambda inner: st.one_of(
        st.builds(lambda part: JqlGroup("not", (part,)), inner),
        st.builds(
            lambda operator, parts: JqlGroup(operator, tuple(parts)),
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    ),
    max_leaves=6,
)
queries = st.builds(JqlQuery, st.none() | nodes, st.lists(st.tuples(words, st.booleans()), max_size=2).map(tuple))


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def written_value(value: JqlValue) -> str:
    if value.kind == "empty":
        return "EMPTY"
    return f"{value.text}({', '.join(map(quoted, value.arguments))})" if value.kind == "call" else quoted(value.text)


def written(node: JqlNode) -> str:
    if isinstance(node, JqlClause):
        listed = [written_value(value) for value in node.values]
        return f"{node.field} IN ({', '.join(listed)})" if len(listed) > 1 else f"{node.field} {node.operator} {listed[0]}"
    if node.operator == "not":
        return f"NOT ({written(node.parts[0])})"
    return f" {node.operator} ".join(f"({written(part)})" for part in node.parts)


@given(queries)
def test_a_written_query_parses_to_itself(query: JqlQuery) -> None:
    text = "" if query.where is None else written(query.where)
    if query.order:
        text += " ORDER BY " + ", ".join(f"{field} {'DESC' if is_down else 'asc'}" for field, is_down in query.order)
    assert parse_jql(text) == query


@given(st.text(max_size=40))
def test_any_text_is_a_query_or_unsupported(text: str) -> None:
    try:
        parse_jql(text)
    except UnsupportedQuery as error:
        assert str(error)


@given(nodes, st.lists(st.sampled_from([True, False, None, "gap"]), min_size=8, max_size=8))
def test_the_opposite_of_an_opposite_is_the_same(node: JqlNode, results: list[bool | str | None]) -> None:
    def test(clause: JqlClause) -> bool | None:
        result = results[hash(clause) % 8]
        if isinstance(result, str):
            raise Undecided("not on record")
        return result

    def met(own: JqlNode) -> bool | str | None:
        try:
            return is_met(own, test)
        except Undecided:
            return "gap"

    once = met(JqlGroup("not", (node,)))
    assert met(JqlGroup("not", (JqlGroup("not", (node,)),))) == met(node)
    assert once == ({True: False, False: True}.get(met(node), met(node)))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a = 1 AND b = 2", False),
        ("b = 2 AND a = 1", False),
        ("a = 1 OR c = 3", True),
        ("NOT d = 4", None),
        ("d = 4 OR c = 3", True),
        ("d = 4 AND c = 3", None),
    ],
)
def test_what_is_decided_does_not_ask_for_the_rest(text: str, result: bool | None) -> None:
    def test(clause: JqlClause) -> bool | None:
        if clause.field == "a":
            raise Undecided("not on record")
        return {"b": False, "c": True, "d": None}[clause.field]

    assert is_met(parse_jql(text).where or JqlGroup("and", ()), test) is result


def test_operators_and_lists_of_jql() -> None:
    assert parse_jql("status != Done").where == JqlGroup("not", (JqlClause("status", "=", (JqlValue("Done"),)),))
    assert parse_jql("x is not EMPTY").where == JqlGroup("not", (JqlClause("x", "=", (JqlValue("", "empty"),)),))
    assert parse_jql("x NOT IN (a, 'b c')").where == JqlGroup("not", (JqlClause("x", "=", (JqlValue("a"), JqlValue("b c"))),))
    assert parse_jql("due <= endOfDay(-1d)").where == JqlClause("due", "<=", (JqlValue("endOfDay", "call", ("-1d",)),))
    assert parse_jql('"Epic Link" = A-1 order by key').order == (("key", False),)


@pytest.mark.parametrize(
    "text",
    [
        "status",
        "status = ",
        "status WAS Done",
        "status CHANGED",
        "a = 1 b = 2",
        "a = 'x",
        "ORDER created",
        "(a = 1",
        "a IN ()",
        "a is Done",
        "a = b(c())",
        "((" * 60 + "a = 1",
    ],
)
def test_queries_outside_of_the_grammar_are_unsupported(text: str) -> None:
    with pytest.raises(UnsupportedQuery):
        parse_jql(text)
