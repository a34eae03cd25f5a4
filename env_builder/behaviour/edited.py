"""Lists whose rows write calls add, remove and change.

In: the answers of a read that shows a list, before write calls and after them. Out: an `edited` rule, or none. The answers
before write calls tell what tells rows apart, the windows (pages, offsets, limits), the order, and what the fields next to the
list count. For each tool that writes, all ways to edit the list are kept that no answer after its calls contradicts.
Sees: keys that stand in the arguments of a write call, in its answer, or in the document that it names. Does not see: edits of
tools after which the list was not read again; conditions on which an edit depends.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise, product
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import NOTHING, Induced, Rule, ToolEvidence, begun_documents, one_or_none
from env_builder.runtime.answers import parse, parsed
from env_builder.runtime.canonical import canonical
from env_builder.runtime.edited import (
    UNKNOWN,
    Edited,
    Extent,
    Page,
    ShownRows,
    Way,
    answered_after,
    begun_extent,
    bounds_of,
    extent_of,
    extents_after,
    key_of,
    page_of,
    question_of,
    rendered,
    shown_rows,
    source_at,
    value_at,
)
from env_builder.runtime.filters import without_blanks
from env_builder.runtime.lists import STYLES
from env_builder.runtime.programs import Programs
from env_builder.runtime.tables import scalars
from env_builder.runtime.world import SURE, Name
from env_builder.world import ServiceWorld
from env_builder.world.replay import LoggedStep

MINIMUM_RIGHT, MINIMUM_EDITED = 3, 1
"""Answers after calls of a tool that its ways must give, and of these such as no other way gives, if it surely edits."""
MINIMUM_ROWS = 5
"""Neighbours whose order a column must explain."""
MOST_SOURCES = 6
PLACES = (("page", 1), ("page", 0), ("row", 0))
"""How an argument may say where a window begins: in windows from the first number on, or in rows."""
MOST_CASES = 400
Answers = list[tuple[dict[str, Any], str]]


class ListCase(NamedTuple):
    """An answer after write calls, and the answers before them."""

    arguments: dict[str, Any]
    content: str
    answers: Answers
    writes: list[Edited]


class ReadCase(NamedTuple):
    """The same with the answers read: the page that is shown, the list before, and all rows that were shown before."""

    page: Page
    extent: Extent
    shown: ShownRows
    writes: list[Edited]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a read that shows a list, and of no document."""
    kinds = ("recorded", "refuse", "rows", "nothing", "find", "filter", "select", "always", "precedent", "status")
    if evidence.sources is None or evidence.effect != "read" or not evidence.has_only(*kinds):
        return NOTHING
    cases, base = _cases(evidence.service, evidence.tool)
    named = {tool: [each.entity_class, each.argument] for tool, each in evidence.service.documents.tools.items()
             if each.argument is not None}
    return one_or_none(edited_rule(cases, base, named, _begins_alike(evidence.service, evidence.tool)))


def edited_rule(cases: list[ListCase], base: Answers, named: dict[str, list[str]], begins_alike: bool) -> Rule | None:
    """Return the rule of one tool. `named`: tool -> class and argument of the document that its calls name."""
    layout = _layout([*base, *((case.arguments, case.content) for case in cases)], base) if cases else None
    if layout is None:
        return None
    tools = sorted({write.tool for case in cases for write in case.writes})
    keys = {str(key_of(layout, row)) for case in cases for page in _pages(layout, case.answers) for row in page.rows}
    ways = {tool: _ways(layout, [case for case in cases if {write.tool for write in case.writes} == {tool}], keys)
            for tool in tools}
    edits = {tool: {"names": named.get(tool), "ways": each} for tool, each in ways.items() if each}
    rule = {**layout, "edits": _fitting(layout, edits, _read_cases(layout, cases))}
    if begins_alike:
        rule["begun"] = _begun_lists(rule, cases)
    predictions = [(answered_after(rule, case.arguments, case.answers, case.writes), case.content) for case in cases]
    is_wrong = any(text is not None and text != content for text, content in predictions)
    return rule if any(any(edit["ways"]) for edit in rule["edits"].values()) and not is_wrong else None


def confirmed(rules: list[Rule]) -> list[Rule]:
    """Return the rules; where write calls edit a list, its answer on record from before them is not given."""
    editing = next((sorted(rule["edits"]) for rule in rules if rule["rule"] == "edited"), None)
    return rules if editing is None else [
        {**rule, "edited": editing} if rule["rule"] == "recorded" else rule for rule in rules]


def _cases(service: ServiceWorld, tool: str) -> tuple[list[ListCase], Answers]:
    """Return the answers after write calls that may matter, and the answers before any."""
    begins_alike = _begins_alike(service, tool)
    programs, begun = Programs(service.programs), begun_documents(service) if begins_alike else {}
    after: list[tuple[LoggedStep, Answers, list[Edited]]] = []
    first: list[LoggedStep] = []
    for _, session in groupby(service.steps, key=lambda step: step.call.session_id):
        own: Answers = []
        writes: list[Edited] = []
        documents = dict(begun)
        for step in session:
            call = step.call
            if call.tool == tool and not call.failed and writes:
                after.append((step, list(own), list(writes)))
            elif call.tool == tool and not call.failed:
                own.append((call.arguments, call.content))
                first.append(step)
            if step.act and programs.bearing(call.tool, tool) != "keeps":
                writes.append(_edited_by(service, step, documents))
            documents |= dict(step.effects) | ({step.shown[:2]: step.shown[2]} if step.shown else {})
    shared = _agreed(first) if begins_alike else []
    cases = [ListCase(step.call.arguments, step.call.content, shared or own, writes) for step, own, writes in after]
    return cases[:MOST_CASES], shared or [(step.call.arguments, step.call.content) for step in first]


def _agreed(steps: list[LoggedStep]) -> Answers:
    """Return the questions with the answer that nearly all got."""
    contents: dict[str, Counter[str]] = defaultdict(Counter)
    for step in steps:
        contents[step.call.key][step.call.content] += 1
    usual = ((key, *counts.most_common(1)[0], counts.total()) for key, counts in sorted(contents.items()))
    return [(parsed(key), text) for key, text, times, total in usual if times >= SURE * total]


def _edited_by(service: ServiceWorld, step: LoggedStep, documents: dict[Name, str]) -> Edited:
    name = _named_document(service, step.call.tool, step.call.arguments)
    before = None if name is None else documents.get(name)
    return Edited(step.call.tool, {"argument": step.call.arguments, "answer": parse(step.call.content),
                                   "before": None if before is None else parsed(before)})


def _named_document(service: ServiceWorld, tool: str, arguments: dict[str, Any]) -> tuple[str, str] | None:
    """Return (class, key) of the document that an argument of a write call names."""
    documented = service.documents.tools.get(tool)
    value = None if documented is None or documented.argument is None else arguments.get(documented.argument)
    if documented is None or not isinstance(value, str | int):
        return None
    return documented.entity_class, service.documents.plain(documented.entity_class, str(value))


def _layout(answers: Answers, base: Answers) -> Rule | None:
    """Return a rule without edits: where the list stands, its key, windows, order, and the fields next to it."""
    field = _field([content for _, content in answers])
    if field is None:
        return None
    values = [value for _, content in answers for value in [parse(content)] if _rows_at(value, field[0]) is not None]
    lists = [_rows_at(value, field[0]) or [] for value in values]
    rows = [row for each in lists for row in each]
    key = _key(lists)
    if not rows or key is None:
        return None
    columns = list(rows[0]) if isinstance(rows[0], dict) else []
    if any(list(row) != columns for row in rows if isinstance(row, dict)):
        return None
    rule: Rule = {
        "rule": "edited", "field": field[0], "fields": [] if field[0] is None else list(values[0]), "key": key[0],
        "columns": columns, "around": {}, "orders": [], "partitions": [], "empty": not all(lists), "edits": {}, "begun": [],
        "style": _style([content for _, content in answers])}
    if field[0] is not None and any(list(value) != rule["fields"] for value in values):
        return None
    window = _window(rule, base)
    if window is None:
        return None
    rule["window"] = window
    pages = _pages(rule, base)
    around = _around(rule, pages)
    if around is None:
        return None
    rule["around"] = around
    groups = _grouped(pages)
    extents = [extent_of(rule, each) for each in groups]
    if None in extents:
        return None
    whole = [extent for extent in extents if extent is not None]
    return {**rule, "orders": _orders(whole), "partitions": _partitions(rule, pages)}


def _rows_at(value: Any, field: str | None) -> list[Any] | None:
    rows = value if field is None else value.get(field) if isinstance(value, dict) else None
    return rows if isinstance(rows, list) else None


def _field(contents: list[str]) -> tuple[str | None] | None:
    """Return the field in which the answers have their one list, in a tuple; None if they have none."""
    fields: set[str | None] = set()
    for content in contents:
        value = parse(content)
        if isinstance(value, list):
            fields.add(None)
        elif isinstance(value, dict):
            lists = [name for name, item in value.items() if isinstance(item, list)]
            if len(lists) != 1:
                return None
            fields.add(lists[0])
    return (fields.pop(),) if len(fields) == 1 else None


def _key(lists: list[list[Any]]) -> tuple[str | int | None] | None:
    """Return the first column that tells the rows of each list apart, in a tuple; None in it: the rows themselves do."""
    rows = [row for each in lists for row in each]
    if all(isinstance(row, str | int) for row in rows):
        columns: list[Any] = [None]
    elif all(isinstance(row, dict) for row in rows) or all(isinstance(row, list) for row in rows):
        columns = list(dict.fromkeys(name for row in rows for name in (row if isinstance(row, dict) else range(len(row)))))
    else:
        return None
    for column in columns:
        keys = [[key_of({"key": column}, row) for row in each] for each in lists]
        if all(None not in each and len(set(each)) == len(each) for each in keys):
            return (column,)
    return None


def _style(contents: list[str]) -> dict[str, Any]:
    values = [(content, parse(content)) for content in contents]
    return max(STYLES, key=lambda style: sum(json.dumps(value, **style) == content for content, value in values))


def _window(rule: Rule, base: Answers) -> dict[str, Any] | None:
    """Return how arguments choose the rows that are shown: so that the answers show the most rows of the
    fewest lists without a gap."""
    numeric = sorted({name for given, _ in base for name, value in without_blanks(given).items()
                      if isinstance(value, int) and not isinstance(value, bool)})
    placing = [(None, "row", 0), *((name, by, first) for name in numeric for by, first in PLACES)]
    ways = [{"argument": argument, "by": by, "first": first, "limit": limit, "size": size}
            for limit in (None, *numeric) for argument, by, first in placing if argument is None or argument != limit
            for size in _sizes(rule, base, limit, argument is not None)]
    fitting = [(-placed[0], placed[1], index) for index, way in enumerate(ways)
               for placed in [_placed({**rule, "window": way}, base)] if placed is not None]
    return ways[min(fitting)[2]] if fitting else None


def _sizes(rule: Rule, base: Answers, limit: str | None, is_paged: bool) -> list[int | None]:
    """Return how many rows an answer may show at most where no limit is given (None: all)."""
    window = {"argument": None, "by": "row", "first": 0, "limit": None, "size": None}
    pages = [page for page in _pages({**rule, "window": window}, base) if limit is None or limit not in page.question.group]
    longest = max((len(page.rows) for page in pages), default=0)
    full = {canonical(page.rows) for page in pages if len(page.rows) == longest}
    is_cut = is_paged or len(full) > 1
    return [longest] if longest and is_cut else [None] if not is_paged else []


def _placed(rule: Rule, base: Answers) -> tuple[int, int] | None:
    """Return how many rows the answers show without a gap, and of how many lists; None if the window does not fit them."""
    pages = _pages(rule, base)
    if len(pages) < len(base) or any(page.question.size is not None and len(page.rows) > page.question.size for page in pages):
        return None
    extents = [extent_of(rule, each) for each in _grouped(pages)]
    rows = {key_of(rule, row) for extent in extents if extent is not None for row in extent.rows}
    return None if None in extents else (len(rows), len(extents))


def _pages(rule: Rule, answers: Answers) -> list[Page]:
    return [page for given, content in answers for page in [page_of(rule, given, content)] if page is not None]


def _grouped(pages: list[Page]) -> list[list[Page]]:
    """Return the pages of each list."""
    by_group: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        by_group[canonical(page.question.group)].append(page)
    return list(by_group.values())


def _around(rule: Rule, pages: list[Page]) -> dict[str, list[Any]] | None:
    """Return what each field next to the list says; None if one of them is not explained, or no answer is a page."""
    if not pages:
        return None
    says: dict[str, list[Any]] = {}
    for name in rule["fields"]:
        if name == rule["field"]:
            continue
        ways = [["place"], ["shown"], ["total"], ["pages"], ["more"], ["size"], ["constant", pages[0].around[name]], ["group"]]
        how = next((way for way in ways if _says(rule, name, way, pages)), None)
        if how is None:
            return None
        says[name] = how
    return says


def _says(rule: Rule, name: str, how: list[Any], pages: list[Page]) -> bool:
    """Return whether a field next to the list says this in all answers of which it can be told, and in one at least."""
    if how[0] in ("total", "pages") and not all(
            isinstance(page.around[name], int) and not isinstance(page.around[name], bool) for page in pages):
        return False
    one = {**rule, "fields": [rule["field"], name], "around": {name: how}, "empty": True}
    n_texts = 0
    for group in _grouped(pages):
        extent = extent_of(one, group)
        if extent is None:
            return False
        for page in group:
            text = rendered(one, page.question, extent, group)
            if text is not None:
                n_texts += 1
                if canonical(parse(text)[name]) != canonical(page.around[name]):
                    return False
    return n_texts > 0


def _orders(extents: list[Extent]) -> list[list[Any]]:
    """Return the columns by which all lists are strictly ordered, each with whether it falls."""
    pairs = [pair for extent in extents for pair in pairwise(extent.rows)]
    if len(pairs) < MINIMUM_ROWS:
        return []
    first = pairs[0][0]
    columns: list[Any] = list(first) if isinstance(first, dict) else list(range(len(first))) if isinstance(first, list) else []
    return [[column, is_descending] for column in columns for is_descending in (False, True)
            if _is_ordered([(value_at(one, column), value_at(other, column)) for one, other in pairs], is_descending)]


def _is_ordered(pairs: list[tuple[Any, Any]], is_descending: bool) -> bool:
    try:
        return all(one > other if is_descending else one < other for one, other in pairs)
    except TypeError:
        return False


def _partitions(rule: Rule, pages: list[Page]) -> list[str]:
    """Return the arguments with different values of which no row is shown twice."""
    names = sorted({name for page in pages for name in page.question.group})
    parted = []
    for name in names:
        values: dict[str, set[str]] = defaultdict(set)
        for page in pages:
            if name in page.question.group:
                values[canonical(page.question.group[name])].update(str(key_of(rule, row)) for row in page.rows)
        if len(values) > 1 and sum(map(len, values.values())) == len(set().union(*values.values())):
            parted.append(name)
    return parted


def _begins_alike(service: ServiceWorld, tool: str) -> bool:
    return service.starts_from == "reset" and bool(service.programs[tool].get("alike", True))


def _read_cases(rule: Rule, cases: list[ListCase]) -> list[ReadCase]:
    """Return the cases of which it is known what the list was before."""
    read: list[ReadCase] = []
    for case in cases:
        page, shown = page_of(rule, case.arguments, case.content), _pages(rule, case.answers)
        pages = [each for each in shown if page is not None and each.question.group == page.question.group]
        extent = begun_extent(rule, pages) if pages else None
        if page is not None and extent is not None:
            read.append(ReadCase(page, extent, shown_rows(rule, shown), case.writes))
    return read


def _begun_lists(rule: Rule, cases: list[ListCase]) -> list[list[Any]]:
    """Return what answers after write calls tell of lists as they begin: [arguments, rows as text, at least, at most]."""
    begun: dict[str, tuple[dict[str, Any], Extent]] = {}
    for case in _read_cases(rule, cases):
        group = case.page.question.group
        _, extent = begun.get(canonical(group), (group, case.extent))
        after = extents_after(rule, group, extent, case.shown, case.writes)
        if not after or any(each != after[0] for each in after) or _shows_new(rule, case, after[0]):
            continue
        narrowed = after[0].bounded(*bounds_of(rule, case.page))
        if narrowed is None:
            continue
        n_more = after[0].low - extent.low
        start, n_known = case.page.question.start, len(after[0].rows)
        rows = extent.rows + (case.page.rows[n_known - start:] if start <= n_known else [])
        high = None if narrowed.high is None else narrowed.high - n_more
        wider = Extent(rows, extent.low, extent.high).bounded(narrowed.low - n_more, high)
        if wider is not None and wider != extent:
            begun[canonical(group)] = group, wider
    return [[group, json.dumps(extent.rows), extent.low, extent.high] for _, (group, extent) in sorted(begun.items())]


def _shows_new(rule: Rule, case: ReadCase, after: Extent) -> bool:
    """Return whether the answer shows a row beyond what is known that a write call may have added."""
    named = {str(value) for write in case.writes for _, value in scalars(
        {kind: each for kind, each in write.sources.items() if isinstance(each, dict)})}
    further = case.page.rows[max(0, len(after.rows) - case.page.question.start):]
    return any(key_of(rule, row) in named for row in further)


def _ways(rule: Rule, cases: list[ListCase], keys: set[str]) -> list[Way]:
    """Return the ways in which calls of one tool may edit the list: those that no answer contradicts."""
    read = _read_cases(rule, cases)
    sources = _sources(rule, [write for case in cases for write in case.writes], keys)
    removing: list[Way] = [[], *([["remove", source]] for source in sources)]
    adding: list[Way] = [[], *([["add", source]] for source in sources)]
    changing: list[Way] = [[], *([change] for change in _changes(rule, cases, sources))]
    ways = [[edit for part in parts for edit in part] for parts in product(removing, adding, changing)
            if not parts[0] or not parts[1] or parts[0][0][1] != parts[1][0][1]]
    tool = cases[0].writes[0].tool if cases else ""
    return [way for way in ways if all(_tried(rule, {tool: {"ways": [way]}}, case) is not False for case in read)]


def _fitting(rule: Rule, edits: dict[str, Any], read: list[ReadCase]) -> dict[str, Any]:
    """Return the edits without ways that answers after calls of several tools contradict, and without tools of which too few
    answers show what they do."""
    for tool in edits:
        own = [case for case in read if tool in {write.tool for write in case.writes}]
        ways = [way for way in edits[tool]["ways"] if all(
            _tried(rule, {**edits, tool: {"ways": [way]}}, case) is not False for case in own)]
        edits = {**edits, tool: {**edits[tool], "ways": ways}}
    return {tool: edit for tool, edit in edits.items() if _is_shown(rule, edits, tool, read)}


def _is_shown(rule: Rule, edits: dict[str, Any], tool: str, read: list[ReadCase]) -> bool:
    """Return whether answers bear out what the tool does: enough that its ways give, and an edit where it must edit."""
    own = [case for case in read if tool in {write.tool for write in case.writes} and _tried(rule, edits, case)]
    still = {**edits, tool: {"ways": [[]]}}
    n_edited = sum(_tried(rule, still, case) is False for case in own)
    return bool(edits[tool]["ways"]) and len(own) >= MINIMUM_RIGHT and (
        [] in edits[tool]["ways"] or n_edited >= MINIMUM_EDITED)


def _tried(rule: Rule, edits: dict[str, Any], case: ReadCase) -> bool | None:
    """Return whether the answer shows what the edits make of the list, as far as that is known, in one of their ways; None:
    nothing is known."""
    extents = extents_after({**rule, "edits": edits}, case.page.question.group, case.extent, case.shown, case.writes)
    if extents is None:
        return None
    start = case.page.question.start
    fitting = [after for after in extents if after.bounded(*bounds_of(rule, case.page)) is not None and all(
        _agrees(*rows) for rows in zip(after.rows[start:], case.page.rows, strict=False))]
    if not fitting:
        return False
    return True if any(after.rows[start:] or after.is_whole for after in fitting) else None


def _agrees(row: Any, shown: Any) -> bool:
    """Return whether a row is the one that is shown, as far as it is known."""
    if not isinstance(row, dict) or not isinstance(shown, dict):
        return bool(row == shown)
    return all(value is UNKNOWN or value == shown.get(column) for column, value in row.items())


def _sources(rule: Rule, writes: list[Edited], keys: set[str]) -> list[list[list[str]]]:
    """Return where the write calls have values that may be keys of rows: paths with equal values together, first those
    next to which most columns stand."""
    values: dict[tuple[str, ...], list[str | None]] = {}
    columns: dict[tuple[str, ...], int] = {}
    for index, write in enumerate(writes):
        for path, value in scalars({kind: each for kind, each in write.sources.items() if isinstance(each, dict)}):
            values.setdefault(path, [None] * len(writes))[index] = str(value)
            n_columns = len(set(rule["columns"]) & source_at(write, [list(path)])[1].keys())
            columns[path] = max(columns.get(path, 0), n_columns)
    likely = [path for path, own in values.items() if path[-1] == rule["key"] or any(value in keys for value in own)]
    alike: list[list[tuple[str, ...]]] = []
    for path in sorted(likely, key=lambda path: (path[-1] != rule["key"], values[path].count(None), -columns[path], path)):
        same = next((paths for paths in alike if all(_is_equal(values[path], values[other]) for other in paths)), None)
        if same is None:
            alike.append(same := [])
        same.append(path)
    return [list(map(list, paths)) for paths in alike[:MOST_SOURCES]]


def _is_equal(values: list[str | None], others: list[str | None]) -> bool:
    """Return whether two sources have the same values wherever both have one."""
    both = [(value, other) for value, other in zip(values, others, strict=True) if value is not None and other is not None]
    return bool(both) and all(value == other for value, other in both)


def _changes(rule: Rule, cases: list[ListCase], sources: list[list[list[str]]]) -> Iterator[list[Any]]:
    """Yield the changes of rows that answers after one write call show."""
    yielded: set[str] = set()
    for case in cases:
        page = page_of(rule, case.arguments, case.content) if len(case.writes) == 1 else None
        question = question_of(rule, case.arguments)
        if page is None or question is None:
            continue
        before = {key_of(rule, row): row for each in _pages(rule, case.answers) for row in each.rows
                  if each.question.group == question.group}
        for row in page.rows:
            old = before.get(key_of(rule, row))
            for change in _changed(old, row, sources) if old is not None and old != row else ():
                if canonical(change) not in yielded:
                    yielded.add(canonical(change))
                    yield change


def _changed(old: Any, new: Any, sources: list[list[list[str]]]) -> Iterator[list[Any]]:
    columns: list[Any] = list(new) if isinstance(new, dict) else list(range(len(new))) if isinstance(new, list) else []
    for column, paths in product(columns, sources):
        one, other = value_at(old, column), value_at(new, column)
        if one != other and isinstance(one, int | float) and isinstance(other, int | float):
            yield ["change", paths, column, other - one]
