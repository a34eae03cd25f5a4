"""Answer the Gmail tools of google_workspace_mcp over the mailbox of a desk's person.

In: a desk, arguments. Out: the server's texts. Its later versions print more lines; the shape is the one of the version that
lists ids alone in a search, and `label_actions` of the conventions says whether a change of labels names its labels.
Sees: gmail_query.py and mailboxes.py. Does not see: names of labels' own ids (a label's id is its name, as agents use it);
the zone of a mail's date, which is shown in UTC; texts in HTML are shown as the export has them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .gmail_query import Letter, QueryProblem, SearchRules, matches, parse_query
from .mailboxes import (
    MAIL,
    MAILBOX,
    PRODUCT,
    SYSTEM,
    NewMail,
    addresses,
    change_labels,
    gmail_id,
    has_label,
    is_hidden,
    labels_on_record,
    letter_by_id,
    letters,
    send,
    write_mail,
)
from .tools import OfficeTool

SERVER = "google-workspace-mcp"
_PAGE = 10
_BATCH = 100
_NO_TEXT = "[No text/plain body matching]"
_SPECIAL = frozenset('()<>[]:;@\\,."')
_OPEN_IN_TRASH = ("in:trash", "in:spam", "in:anywhere", "label:trash", "label:spam")
Arguments = dict[str, Any]


def list_matches(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `search_gmail_messages`: the ids of the latest letters that match. Errors: Undecided."""
    query = str(arguments["query"])
    matching = find_letters(desk, query, int(arguments.get("page_size") or _PAGE))
    if not matching:
        return f"No messages found for '{query}'."
    return "\n".join([f"Found {len(matching)} messages:", *(f"- ID: {gmail_id(desk, letter.key)}" for letter in matching)])


def find_letters(desk: CompanyDesk, query: str, most: int) -> list[Letter]:
    """Return the latest letters that match a query, the latest first. Errors: Undecided."""
    rules = SearchRules(desk.now, lambda letter, label: has_label(desk, letter, label),
                        desk.convention(PRODUCT, "part_words", True), desk.convention(PRODUCT, "midnight"))
    matching: list[Letter] = []
    try:
        expression = parse_query(query)
        for letter in reversed(letters(desk)):
            answer = matches(expression, letter, rules)
            if answer and not any(place in query.lower() for place in _OPEN_IN_TRASH):
                hidden = is_hidden(desk, letter)
                answer = None if hidden is None else not hidden
            if answer is None:
                raise Undecided(f"whether the message {letter.key} matches {query!r} is not on record")
            if answer:
                matching.append(letter)
            if len(matching) == most:
                break
    except QueryProblem as problem:
        raise Undecided(str(problem)) from problem
    return matching


def show_message(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `get_gmail_message_content`. Errors: ProductRefusal, Undecided."""
    letter = letter_by_id(desk, str(arguments["message_id"]))
    return "\n".join([f"Subject: {letter.subject}", f"From:    {from_header(letter)}", "\n--- BODY ---",
                      letter.body or _NO_TEXT])


def show_messages(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `get_gmail_messages_content_batch`. Errors: ProductRefusal, Undecided."""
    ids = [str(each) for each in arguments["message_ids"]]
    if not ids:
        raise ProductRefusal("Error: No message IDs provided")
    is_full = arguments.get("format", "full") == "full"
    shown = []
    for message_id in ids[:_BATCH]:
        letter = letter_by_id(desk, message_id)
        head = f"Message ID: {message_id}\nSubject: {letter.subject}\nFrom: {from_header(letter)}\n"
        shown.append(f"{head}\n{letter.body or _NO_TEXT}\n" if is_full else head)
    return f"Retrieved {len(shown)} messages:\n\n" + "\n---\n\n".join(shown)


def show_thread(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `get_gmail_thread_content`. Errors: ProductRefusal, Undecided."""
    thread = str(arguments["thread_id"])
    of_thread = [letter for letter in letters(desk) if letter.thread == thread]
    if not of_thread:
        of_thread = [each for each in letters(desk) if each.thread == letter_by_id(desk, thread).thread]
    subject = of_thread[0].subject
    lines = [f"Thread ID: {thread}", f"Subject: {subject}", f"Messages: {len(of_thread)}", ""]
    for number, letter in enumerate(of_thread, start=1):
        lines += [f"=== Message {number} ===", f"From: {from_header(letter)}",
                  f"Date: {format_datetime(datetime.fromtimestamp(letter.date, UTC))}"]
        lines += [f"Subject: {letter.subject}"] if letter.subject != subject else []
        lines += ["", letter.body or _NO_TEXT, ""]
    return "\n".join(lines)


def from_header(letter: Letter) -> str:
    """Return the sender as a header has it."""
    if not letter.name:
        return letter.sender
    name = letter.name if _SPECIAL.isdisjoint(letter.name) else '"' + letter.name.replace('"', '\\"') + '"'
    return f"{name} <{letter.sender}>"


def send_message(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `send_gmail_message`; colleagues have the mail in their mailboxes. Errors: ProductRefusal, Undecided."""
    mail = _new_mail(desk, arguments)
    if not (mail.to or mail.cc or mail.bcc):
        raise ProductRefusal("Error: Recipient address required")
    return f"Email sent! Message ID: {_id_of_new(desk, send(desk, mail))}"


def draft_message(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `draft_gmail_message`. Errors: Undecided."""
    key = write_mail(desk, _new_mail(desk, arguments), "draft")
    desk.write(MAILBOX, f"{desk.address}|{key}", labels=["DRAFT"])
    _id_of_new(desk, key)
    return f"Draft created! Draft ID: r{int(desk.made_id('draft id'), 16)}"


def modify_labels(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `modify_gmail_message_labels`. Errors: ProductRefusal, Undecided."""
    add, remove = (_names(arguments.get(name)) for name in ("add_label_ids", "remove_label_ids"))
    if not add and not remove:
        raise ProductRefusal("Error: At least one of add_label_ids or remove_label_ids must be provided.")
    message_id = str(arguments["message_id"])
    change_labels(desk, letter_by_id(desk, message_id), add, remove)
    lines = ["Message labels updated successfully!", f"Message ID: {message_id}"]
    if desk.convention(PRODUCT, "label_actions", True):
        lines.append("; ".join(f"{verb} labels: {', '.join(names)}" for verb, names in (("Added", add), ("Removed", remove))
                               if names))
    return "\n".join(lines)


def list_labels(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `list_gmail_labels`. Errors: Undecided if mail of the mailbox has labels whose time is not known."""
    named = {label for letter in letters(desk)
             for label in _names(desk.value(MAILBOX, f"{desk.address}|{letter.key}", "labels_added", ()))}
    if {name.upper() for name in labels_on_record(desk)} - set(SYSTEM):
        raise Undecided("when the labels of this mailbox were made is not on record")
    lines = [f"Found {len(SYSTEM) + len(named)} labels:", "", "SYSTEM LABELS:",
             *(f"  • {name} (ID: {name})" for name in SYSTEM)]
    lines += ["", "USER LABELS:", *(f"  • {name} (ID: {name})" for name in sorted(named))] if named else []
    return "\n".join(lines)


def _names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value or ()]


def _id_of_new(desk: CompanyDesk, key: str) -> str:
    """Return Gmail's id of a mail that the episode made, and write it down unless it follows from the Message-ID."""
    if desk.convention(PRODUCT, "ids") is None:
        desk.write(MAILBOX, f"{desk.address}|{key}", id=desk.made_id(f"gmail/{key}"))
    return gmail_id(desk, key)


def _new_mail(desk: CompanyDesk, arguments: Arguments) -> NewMail:
    """Return the mail of a call; a reply goes into the thread of what it answers. Errors: ProductRefusal, Undecided."""
    named = str(arguments.get("in_reply_to") or "")
    thread, references = arguments.get("thread_id") or None, tuple(str(arguments.get("references") or "").split())
    answered = None
    if named:
        by_key = [letter for letter in letters(desk) if letter.key == named]
        answered = by_key[0] if by_key else None if named.startswith("<") else letter_by_id(desk, named)
        references = references or ((*answered.references, answered.key) if answered else (named,))
        thread = thread or (answered.thread if answered else None)
    to, cc, bcc = (addresses(arguments.get(name)) for name in ("to", "cc", "bcc"))
    return NewMail(to, cc, bcc, str(arguments.get("subject") or ""), str(arguments.get("body") or ""), references,
                   None if thread is None else str(thread))


_WRITTEN = (MAIL, MAILBOX)
TOOLS: dict[str, OfficeTool] = {
    "search_gmail_messages": OfficeTool(list_matches),
    "get_gmail_message_content": OfficeTool(show_message),
    "get_gmail_messages_content_batch": OfficeTool(show_messages),
    "get_gmail_thread_content": OfficeTool(show_thread),
    "list_gmail_labels": OfficeTool(list_labels),
    "send_gmail_message": OfficeTool(send_message, writes=_WRITTEN),
    "draft_gmail_message": OfficeTool(draft_message, writes=_WRITTEN),
    "modify_gmail_message_labels": OfficeTool(modify_labels, writes=(MAILBOX,)),
}
