"""Answer the `confluence_*` tools of mcp-atlassian over a company's pages, comments and labels.

In: records `wiki` (pages), `wiki_comment`, `wiki_space`, `wiki_user` of a desk. Out: the server's JSON.
Conventions (learnt from recorded answers, `learn_confluence`): `site`: the address of the site; `urls`: `cloud` or `server`;
`content`: the format in which a page's text is shown, `storage` (without evidence) or `markdown`; `echoes`: whether a write
shows the text; `search_fields`: what a search tells of a page. Text is in storage format; of Markdown only plain paragraphs
are converted, the rest is undecided. Without recorded answers these are assumptions: texts in storage format (the public server
converts them), the four fields of a search (it shows all), a refusal of a missing page as an error (it answers an object).
Does not see: attachments, restrictions of single pages, emoji and widths, ids of labels: exports of content have none.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .confluence_cql import CqlClause, CqlQuery, CqlValue, InvalidCql, parse_query, satisfies
from .tables import count_of
from .tools import OfficeTool

SERVER = "mcp-atlassian-confluence"
PRODUCT = "confluence"
PAGE, COMMENT, SPACE, ACCOUNT, LABEL = "wiki", "wiki_comment", "wiki_space", "wiki_user", "wiki_label"
SEARCH_FIELDS = ("id", "title", "space", "version")
_PAGE_IN_PATH = re.compile(r"(?:^|/)pages/([0-9]+)(?:/|$|\?)|[?&]pageId=([0-9]+)")
_MARKUP = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)
_PARAGRAPH = re.compile(r"<p>([^<&]*)</p>")
_WORD = re.compile(r"\w+")
_DAY = 86_400
_FORMATS = ("markdown", "wiki", "storage", "xhtml")


def _refusal(text: str) -> ProductRefusal:
    return ProductRefusal(f"Error: {text}")


def _dump(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


# Pages


def _page_id(given: Any) -> str:
    """Return the id in a page's id or address."""
    text = str(given)
    match = None if text.isdecimal() else _PAGE_IN_PATH.search(text)
    return text if match is None else match[1] or match[2]


def _visible_page(desk: CompanyDesk, given: Any) -> str:
    """Return the id of a page that the person can see. Errors: ProductRefusal."""
    page = _page_id(given)
    if not _is_visible(desk, page):
        raise _refusal(f"No content found with id: ContentId{{id={page}}}")
    return page


def _is_visible(desk: CompanyDesk, page: str) -> bool:
    return (desk.exists(PAGE, page) and desk.sees(PAGE, page) and desk.value(PAGE, page, "status", "current") == "current"
            and _sees_space(desk, desk.value(PAGE, page, "space")))


def _sees_space(desk: CompanyDesk, space: str) -> bool:
    return desk.sees(SPACE, space)


def _pages(desk: CompanyDesk) -> Iterable[str]:
    return (page for page in desk.ids(PAGE) if _is_visible(desk, page))


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _updated(desk: CompanyDesk, page: str) -> float:
    return desk.changed_at(PAGE, page, "version") or 0.0


def _display_name(desk: CompanyDesk, account: str) -> str:
    """Return the name of an account. Errors: Undecided."""
    for kind in (ACCOUNT, "jira_user"):
        name = desk.value(kind, account, "display_name") if desk.exists(kind, account) else None
        if name:
            return str(name)
    raise Undecided(f"no record names the account {account}")


def _own_account(desk: CompanyDesk) -> str:
    return desk.account_of(ACCOUNT, desk.address) or desk.account("jira_user")


def _url(desk: CompanyDesk, page: str, space: str) -> str:
    site = desk.convention(PRODUCT, "site") or desk.value("setting", PRODUCT, "site")
    if site is None:
        raise Undecided("neither exports nor recorded answers tell the address of the site")
    if desk.convention(PRODUCT, "urls", "cloud") == "cloud":
        return f"{site}/spaces/{space}/pages/{page}"
    return f"{site}/pages/viewpage.action?pageId={page}"


def _space(desk: CompanyDesk, key: str) -> dict[str, str]:
    name = desk.last_known(SPACE, key, "name") if desk.exists(SPACE, key) else None
    return {"key": key, "name": name or key}


def _content(desk: CompanyDesk, page: str, does_convert: bool) -> dict[str, str]:
    body = desk.value(PAGE, page, "body") or ""
    if not body:
        return {}
    if does_convert and desk.convention(PRODUCT, "content", "storage") == "markdown":
        return {"value": _as_markdown(body), "format": "markdown"}
    return {"value": body, "format": "storage"}


def _as_markdown(body: str) -> str:
    """Return plain paragraphs of storage format as Markdown. Errors: Undecided."""
    if "<" not in body and "&" not in body:
        return body
    paragraphs = _PARAGRAPH.findall(body)
    if "".join(f"<p>{text}</p>" for text in paragraphs) != body:
        raise Undecided("how the server writes this page's markup as Markdown")
    return "\n\n".join(paragraphs)


def _ancestors(desk: CompanyDesk, page: str) -> list[str]:
    """Return the pages above a page, from the top."""
    above: list[str] = []
    parent = desk.value(PAGE, page, "parent")
    while parent and parent not in above and desk.exists(PAGE, parent):
        above.insert(0, parent)
        parent = desk.value(PAGE, parent, "parent")
    return above


def _metadata(desk: CompanyDesk, page: str, with_content: bool = True, does_convert: bool = True) -> dict[str, Any]:
    """Return a page as the server's model writes it."""
    space = desk.value(PAGE, page, "space")
    content = _content(desk, page, does_convert) if with_content else {}
    above = [{"id": each, "title": desk.value(PAGE, each, "title")} for each in _ancestors(desk, page)]
    return {
        "id": page, "title": desk.value(PAGE, page, "title"), "type": desk.value(PAGE, page, "type", "page"),
        "created": _stamp(desk.value(PAGE, page, "created")), "updated": _stamp(_updated(desk, page)),
        "url": _url(desk, page, space), "space": _space(desk, space),
        "author": _display_name(desk, desk.value(PAGE, page, "author")), "version": desk.value(PAGE, page, "version"),
        "attachments": [], **({"content": content} if content else {}), **({"ancestors": above} if above else {})}


def _summary(desk: CompanyDesk, page: str, fields: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a page."""
    if not set(fields) <= set(SEARCH_FIELDS):
        whole = _metadata(desk, page)
        return {field: value for field, value in whole.items() if field in set(fields)}
    row = {"id": page, "title": desk.value(PAGE, page, "title"), "space": _space(desk, desk.value(PAGE, page, "space")),
           "version": desk.value(PAGE, page, "version")}
    return {field: row[field] for field in fields}


def get_page(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer a page by id or address, or by title and space."""
    does_convert = bool(arguments.get("convert_to_markdown", True))
    if arguments.get("page_id"):
        page = _visible_page(desk, arguments["page_id"])
    elif arguments.get("title") and arguments.get("space_key"):
        title, space = str(arguments["title"]), str(arguments["space_key"])
        titled = _titled(desk, title, space)
        if titled is None:
            return _dump({"error": f"Page with title '{title}' not found in space '{space}'."})
        page = titled
    else:
        raise _refusal("Either 'page_id' OR both 'title' and 'space_key' must be provided.")
    if arguments.get("include_metadata", True):
        return _dump({"metadata": _metadata(desk, page, does_convert=does_convert)})
    return _dump({"content": {"value": _content(desk, page, does_convert).get("value", "")}})


def _titled(desk: CompanyDesk, title: str, space: str, only_visible: bool = True) -> str | None:
    for page in desk.where(PAGE, "title", title):
        if desk.value(PAGE, page, "space") == space and (not only_visible or _is_visible(desk, page)):
            return page
    return None


def get_page_children(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the pages below a page, oldest first."""
    parent = _visible_page(desk, arguments.get("parent_id"))
    limit, start = count_of(arguments.get("limit"), 25), count_of(arguments.get("start"), 0)
    with_content = bool(arguments.get("include_content")) or "body" in str(arguments.get("expand") or "")
    children = [page for page in desk.where(PAGE, "parent", parent) if _is_visible(desk, page)][start:start + limit]
    fields = ("id", "title", "type", "created", "updated", "url", "space", "version", "attachments")
    rows = []
    for page in children:
        whole = _metadata(desk, page, with_content, bool(arguments.get("convert_to_markdown", True)))
        rows.append({name: "" if name in ("created", "updated") else whole[name] for name in fields}
                    | {name: whole[name] for name in ("content",) if name in whole})
    return _dump({"parent_id": parent, "count": len(rows), "limit_requested": limit, "start_requested": start, "results": rows})


# Search


def search(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the pages that a simple query or CQL finds: the latest changed first unless the query orders them."""
    try:
        query = parse_query(str(arguments.get("query") or ""))
    except InvalidCql as error:
        raise _refusal(str(error)) from None
    spaces = {key.strip() for key in str(arguments.get("spaces_filter") or "").split(",") if key.strip()}
    pages = [page for page in _candidates(desk, query) if (not spaces or desk.value(PAGE, page, "space") in spaces)
             and satisfies(query.condition, partial(_holds, desk, page))]
    pages.sort(key=lambda page: -_updated(desk, page))
    for field, falls in reversed(query.order):
        pages.sort(key=partial(_order_key, desk, field), reverse=falls)
    fields = desk.convention(PRODUCT, "search_fields", SEARCH_FIELDS)
    limit = min(max(count_of(arguments.get("limit"), 10), 1), 50)
    return _dump([_summary(desk, page, fields) for page in pages[:limit]])


def _candidates(desk: CompanyDesk, query: CqlQuery) -> list[str]:
    """Return visible pages in the order of creation, by the index of words where the query is one text."""
    condition = query.condition
    if isinstance(condition, CqlClause) and condition.operator == "~" and condition.field in ("sitesearch", "text", "title"):
        words = _WORD.findall(condition.values[0].text)
        if words:
            pages = desk.with_prefix(PAGE, "title", words[0])
            pages |= desk.with_prefix(PAGE, "body", words[0]) if condition.field != "title" else set()
            return [page for page in sorted(pages, key=lambda page: (desk.value(PAGE, page, "created", 0), page))
                    if _is_visible(desk, page)]
    return list(_pages(desk))


def _order_key(desk: CompanyDesk, field: str, page: str) -> Any:
    if field in ("lastmodified", "created"):
        return _updated(desk, page) if field == "lastmodified" else desk.value(PAGE, page, "created")
    if field in ("title", "space"):
        return str(desk.value(PAGE, page, field)).lower()
    raise Undecided(f"how Confluence orders by {field}")


def _holds(desk: CompanyDesk, page: str, clause: CqlClause) -> bool:
    """Return whether a page satisfies a clause. Errors: Undecided."""
    field, operator = clause.field, clause.operator
    if field in ("sitesearch", "text", "title") and operator in ("~", "!~"):
        text = _folded(str(desk.value(PAGE, page, "title")), "" if field == "title" else desk.value(PAGE, page, "body") or "")
        return all(pattern.search(text) for pattern in _patterns(clause.values[0].text)) != (operator == "!~")
    if field in ("lastmodified", "created"):
        moment = _updated(desk, page) if field == "lastmodified" else float(desk.value(PAGE, page, "created"))
        return _compare(moment, operator, _span(desk, clause.values[0]))
    if operator not in ("=", "!="):
        raise Undecided(f"Confluence's answer to {field} {operator}")
    values = {_identity(desk, field, value) for value in clause.values}
    return (not values.isdisjoint(_fields(desk, page, field))) != (operator == "!=")


def _identity(desk: CompanyDesk, field: str, value: CqlValue) -> str:
    if value.is_function:
        if value.text != "currentuser":
            raise Undecided(f"Confluence's function {value.text}()")
        return _own_account(desk)
    return value.text if field in ("creator", "contributor", "space", "id", "content") else value.text.lower()


def _fields(desk: CompanyDesk, page: str, field: str) -> set[str]:
    """Return what `field = value` is compared with."""
    if field in ("space", "space.key"):
        return {str(desk.value(PAGE, page, "space"))}
    if field == "title":
        return {str(desk.value(PAGE, page, "title")).lower()}
    if field in ("id", "content"):
        return {page}
    if field == "type":
        return {str(desk.value(PAGE, page, "type", "page")).lower()}
    if field == "creator":
        return {str(desk.value(PAGE, page, "author"))}
    if field == "label":
        return {label.lower() for label in desk.value(PAGE, page, "labels") or ()}
    if field == "parent":
        return {str(desk.value(PAGE, page, "parent"))}
    if field == "ancestor":
        return set(_ancestors(desk, page))
    raise Undecided(f"the exports do not tell what Confluence finds by {field}")


@lru_cache(maxsize=4096)
def _folded(title: str, body: str) -> str:
    """Return a page's title and text, markup left out, with single spaces and without case."""
    return " ".join(f"{title}\n{html.unescape(_MARKUP.sub(' ', body))}".split()).casefold()


@lru_cache(maxsize=256)
def _patterns(query: str) -> tuple[re.Pattern[str], ...]:
    """Return what a text must hold for a query: its words begin words of the text; a phrase in quotes is there as it is."""
    phrases = [" ".join(phrase.split()).casefold() for phrase in re.findall(r'"([^"]*)"', query)]
    words = [word.casefold() for word in _WORD.findall(re.sub(r'"[^"]*"', " ", query))]
    return tuple(re.compile(rf"(?<!\w){re.escape(word)}") for word in words) + tuple(
        re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)") for phrase in phrases if phrase)


def _span(desk: CompanyDesk, value: CqlValue) -> tuple[float, float]:
    """Return the beginning and the end of the moment or day that a value names."""
    if value.is_function:
        offset = re.fullmatch(r"([+-]?\d{1,5})([wdhm])?|", value.argument)
        start = {"now": desk.now, "startofday": desk.now - desk.now % _DAY}.get(value.text)
        if offset is None or start is None:
            raise Undecided(f"Confluence's function {value.text}({value.argument})")
        start += int(offset[1] or 0) * {"w": 7 * _DAY, "d": _DAY, "h": 3600, "m": 60}[offset[2] or "d"]
        return start, start
    for form, length in (("%Y-%m-%d", _DAY), ("%Y/%m/%d", _DAY), ("%Y-%m-%d %H:%M", 60), ("%Y/%m/%d %H:%M", 60)):
        try:
            moment = datetime.strptime(value.text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
        return moment, moment + length
    raise _refusal(f"Could not parse cql : {value.text}")


def _compare(moment: float, operator: str, span: tuple[float, float]) -> bool:
    start, end = span
    inside = start <= moment < end or moment == start
    results = {"=": inside, "!=": not inside, "<": moment < start, "<=": moment < start or inside,
               ">": moment > start and not (inside and end > start), ">=": moment >= start}
    if operator not in results:
        raise Undecided(f"Confluence's answer to a date with {operator}")
    return results[operator]


# Writes to pages


def _given_body(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Return the text of a call as it is stored: as given. Errors: ProductRefusal, Undecided."""
    content_format = arguments.get("content_format", "markdown")
    if content_format not in _FORMATS:
        raise _refusal(f"Invalid content_format: {content_format}. Must be 'markdown', 'wiki', 'storage', or 'xhtml'")
    if arguments.get("content_file"):
        desk.doubt("the server's files are not in the company's exports")
        return ""
    if arguments.get("content") is None:
        raise _refusal("One of 'content' or 'content_file' must be provided.")
    return str(arguments["content"])


def _page_answer(desk: CompanyDesk, page: str, word: str, arguments: dict[str, Any]) -> str:
    shows = bool(arguments.get("include_content", desk.convention(PRODUCT, "echoes", True)))
    desk.acted()
    return _dump({"message": f"Page {word} successfully", "page": _metadata(desk, page, with_content=shows)})


def create_page(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Create a page, below another one if asked for."""
    space, title = str(arguments.get("space_key") or ""), str(arguments.get("title") or "")
    body = _given_body(desk, arguments)
    if not title.strip():
        raise _refusal("Title cannot be empty.")
    if not _space_exists(desk, space) or not _sees_space(desk, space):
        raise _refusal(f"No space with key : {space}")
    parent = _visible_page(desk, arguments["parent_id"]) if arguments.get("parent_id") else None
    if _titled(desk, title, space, only_visible=False) is not None:
        raise _refusal(f"A page with this title already exists: A page already exists with the title {title} in the space "
                       f"with key {space}")
    page, author = _new_id(desk, PAGE), _own_account(desk)
    desk.write(PAGE, page, author=author, created=desk.now, status="current", type="page", space=space, parent=parent,
               labels=[], title=title, body=body, version=1)
    return _page_answer(desk, page, "created", arguments)


def _new_id(desk: CompanyDesk, kind: str) -> str:
    """Return an id that no record has: larger than those of all records so far, by digits of the act."""
    latest = max((int(key) for each in (PAGE, COMMENT) for key in desk.ids(each) if key.isdecimal()), default=65_536)
    return str(latest + 1 + int(desk.made_id(kind, 3), 16))


def _space_exists(desk: CompanyDesk, space: str) -> bool:
    return bool(space) and (desk.exists(SPACE, space) or bool(desk.where(PAGE, "space", space)))


def update_page(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Write a page's next version."""
    page = _visible_page(desk, arguments.get("page_id"))
    title, body = str(arguments.get("title") or ""), _given_body(desk, arguments)
    if not title.strip():
        raise _refusal("Title cannot be empty.")
    other = _titled(desk, title, desk.value(PAGE, page, "space"), only_visible=False)
    if other not in (None, page):
        raise _refusal("A page with this title already exists: A page already exists with the title "
                       f"{title} in the space with key {desk.value(PAGE, page, 'space')}")
    changes: dict[str, Any] = {"body": body, "version": desk.value(PAGE, page, "version") + 1}
    if title != desk.value(PAGE, page, "title"):
        changes["title"] = title
    if arguments.get("parent_id"):
        changes["parent"] = _visible_page(desk, arguments["parent_id"])
        if changes["parent"] == page or page in _ancestors(desk, changes["parent"]):
            raise _refusal("Cannot set parent of a page to itself or to one of its descendants")
    desk.write(PAGE, page, **changes)
    return _page_answer(desk, page, "updated", arguments)


def delete_page(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Delete a page; the pages below it move up to its parent, and its comments go."""
    page = _visible_page(desk, arguments.get("page_id"))
    parent = desk.value(PAGE, page, "parent")
    for child in desk.where(PAGE, "parent", page):
        desk.write(PAGE, child, parent=parent)
    for comment in desk.where(COMMENT, "page", page):
        desk.remove(COMMENT, comment)
    desk.remove(PAGE, page)
    return _dump({"success": True, "message": f"Page {page} deleted successfully"})


def move_page(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Move a page below another one."""
    page = _visible_page(desk, arguments.get("page_id"))
    if not arguments.get("target_parent_id") and not arguments.get("target_space_key"):
        raise _refusal("At least one of target_parent_id or target_space_key must be provided.")
    if not arguments.get("target_parent_id") or arguments.get("position", "append") != "append":
        raise Undecided("the exports do not tell the order of pages, nor a space's first page")
    parent = _visible_page(desk, arguments["target_parent_id"])
    if parent == page or page in _ancestors(desk, parent):
        raise _refusal("Cannot set parent of a page to itself or to one of its descendants")
    desk.write(PAGE, page, parent=parent, space=desk.value(PAGE, parent, "space"))
    desk.acted()
    return _dump({"message": "Page moved successfully", "page": _metadata(desk, page)})


# Comments and labels


def _comment(desk: CompanyDesk, comment: str) -> dict[str, Any]:
    title = desk.value(PAGE, desk.value(COMMENT, comment, "page"), "title")
    row = {"id": comment, "body": _as_markdown(desk.value(COMMENT, comment, "body") or ""), "created": "", "updated": "",
           "title": f"Re: {title}", "author": _display_name(desk, desk.value(COMMENT, comment, "author"))}
    parent = desk.value(COMMENT, comment, "parent")
    return row | ({"parent_comment_id": parent} if parent else {})


def get_comments(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the comments of a page, oldest first."""
    page = _visible_page(desk, arguments.get("page_id"))
    return _dump([_comment(desk, comment) for comment in desk.where(COMMENT, "page", page)])


def _add(desk: CompanyDesk, page: str, body: str, word: str, parent: str | None = None) -> str:
    if not body.strip():
        raise _refusal("Comment body cannot be empty.")
    comment, author = _new_id(desk, COMMENT), _own_account(desk)
    own = {"author": author, "created": desk.now, "page": page, "body": body}
    desk.write(COMMENT, comment, **own, **({"parent": parent} if parent else {}))
    desk.acted()
    return _dump({"success": True, "message": f"{word} added successfully", "comment": _comment(desk, comment)})


def add_comment(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Comment on a page."""
    page = _visible_page(desk, arguments.get("page_id"))
    return _add(desk, page, str(arguments.get("body") or ""), "Comment")


def reply_to_comment(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer a comment."""
    comment = str(arguments.get("comment_id") or "")
    if not desk.exists(COMMENT, comment) or not _is_visible(desk, desk.value(COMMENT, comment, "page")):
        raise _refusal(f"No content found with id: ContentId{{id={comment}}}")
    return _add(desk, desk.value(COMMENT, comment, "page"), str(arguments.get("body") or ""), "Reply", comment)


def _labels(desk: CompanyDesk, page: str) -> str:
    rows = []
    for label in desk.value(PAGE, page, "labels") or ():
        ids = desk.where(LABEL, "name", label)
        if not ids:
            raise Undecided(f"exports of content hold no id of the label {label}")
        rows.append({"id": ids[0], "name": label, "prefix": "global", "label": label})
    return _dump(rows)


def get_labels(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the labels of a page."""
    return _labels(desk, _visible_page(desk, arguments.get("page_id")))


def add_label(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Add a label to a page."""
    page, name = _visible_page(desk, arguments.get("page_id")), str(arguments.get("name") or "").strip().lower()
    if not name or " " in name:
        raise _refusal(f"Invalid label: {name}")
    labels = list(desk.value(PAGE, page, "labels") or ())
    if name not in labels:
        desk.write(PAGE, page, labels=[*labels, name])
    if not desk.where(LABEL, "name", name) and not any(name in (desk.last_known(PAGE, each, "labels") or ())
                                                             for each in desk.ids(PAGE) if each != page):
        desk.write(LABEL, _new_id(desk, "label"), name=name)
    desk.acted()
    return _labels(desk, page)


_WRITTEN = (PAGE, COMMENT, LABEL)
TOOLS: dict[str, OfficeTool] = {
    "confluence_search": OfficeTool(search),
    "confluence_get_page": OfficeTool(get_page),
    "confluence_get_page_children": OfficeTool(get_page_children),
    "confluence_get_comments": OfficeTool(get_comments),
    "confluence_get_labels": OfficeTool(get_labels),
    "confluence_create_page": OfficeTool(create_page, writes=_WRITTEN),
    "confluence_update_page": OfficeTool(update_page, writes=_WRITTEN),
    "confluence_delete_page": OfficeTool(delete_page, writes=_WRITTEN),
    "confluence_move_page": OfficeTool(move_page, writes=_WRITTEN),
    "confluence_add_comment": OfficeTool(add_comment, writes=_WRITTEN),
    "confluence_reply_to_comment": OfficeTool(reply_to_comment, writes=_WRITTEN),
    "confluence_add_label": OfficeTool(add_label, writes=_WRITTEN),
}
