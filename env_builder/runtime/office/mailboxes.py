"""The mail of a desk's person: letters, their ids at Gmail, labels, and the delivery of new mail.

In: a desk; mails (`mail`, by Message-ID) and their places in mailboxes (`mailbox`, "<address>|<Message-ID>"). Out: letters,
written mail.
Sees: Gmail's own id of a message where the export has it (`id` of `mailbox`), or as calls show it (`known_ids`; `ids` if every
id that calls show is a digest of the Message-ID). Does not see: filters of the recipients, which may label or hide new mail;
labels at an instant, but for what cannot have been otherwise (`has_label`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..company import CompanyDesk, ProductRefusal, Undecided
from .gmail_query import Letter

MAIL, MAILBOX, PRODUCT = "mail", "mailbox", "gmail"
SYSTEM = ("INBOX", "SENT", "UNREAD", "STARRED", "IMPORTANT", "TRASH", "SPAM", "DRAFT", "CHAT")
NOT_FOUND = "Error: Requested entity was not found."


class NewMail(NamedTuple):
    """A mail to be written."""

    to: Sequence[str]
    cc: Sequence[str]
    bcc: Sequence[str]
    subject: str
    body: str
    references: Sequence[str]
    thread: str | None


def letters(desk: CompanyDesk) -> list[Letter]:
    """Return the letters in the person's mailbox, in the order of their dates."""
    first = desk.of_start("gmail/letters", _letters_of_start)
    own = [key for key in desk.own(MAILBOX) if key.partition("|")[0] == desk.address]
    keys = {letter.key for letter in first}
    new = [letter_of(desk, key.partition("|")[2]) for key in own if key.partition("|")[2] not in keys]
    return [*first, *new] if new else first


def _letters_of_start(desk: CompanyDesk) -> list[Letter]:
    loaded = [letter_of(desk, key.partition("|")[2]) for key in desk.visible(MAILBOX)]
    return sorted(loaded, key=lambda letter: letter.date)


def letter_of(desk: CompanyDesk, key: str) -> Letter:
    """Return a mail as a letter. Errors: Undecided."""
    return desk.of_record("letter", MAIL, key, lambda: _letter(desk, key))


def _letter(desk: CompanyDesk, key: str) -> Letter:
    values = {field: desk.value(MAIL, key, field) for field in
              ("sender", "name", "to", "cc", "subject", "body", "attach", "date", "thread", "references")}
    to, cc, attached = (tuple(values[field] or ()) for field in ("to", "cc", "attach"))
    sender, name, subject, body = (str(values[field] or "") for field in ("sender", "name", "subject", "body"))
    texts = {"from": f"{name} <{sender}>", "to": " ".join((*to, *cc)), "cc": " ".join(cc), "subject": subject,
             "filename": " ".join(attached)}
    texts["deliveredto"] = texts["to"]
    texts["anywhere"] = "\n".join((subject, body, texts["from"], texts["to"], texts["filename"]))
    return Letter(key, sender, name, to, cc, subject, body, attached, float(values["date"] or 0), str(values["thread"] or ""),
                  tuple(values["references"] or ()), {field: text.casefold() for field, text in texts.items()})


# Ids

@lru_cache(maxsize=1 << 16)
def digest_id(algorithm: str, before: str, length: int, key: str) -> str:
    """Return the beginning of the digest of a key behind a text."""
    return hashlib.new(algorithm, (before + key).encode(), usedforsecurity=False).hexdigest()[:length]


def gmail_id(desk: CompanyDesk, key: str) -> str:
    """Return Gmail's id of a message in the person's mailbox. Errors: Undecided."""
    message_id = _known_id(desk, key)
    if message_id is None:
        raise Undecided(f"neither the exports nor calls show Gmail's id of the message {key}")
    return message_id


def _known_id(desk: CompanyDesk, key: str) -> str | None:
    stated = desk.value(MAILBOX, f"{desk.address}|{key}", "id")
    if stated is not None:
        return str(stated)
    rule = desk.convention(PRODUCT, "ids")
    if rule is not None:
        return digest_id(rule["algorithm"], rule["before"], rule["length"], key)
    shown = desk.convention(PRODUCT, "known_ids", {})
    ids = [own for own, mail in shown.items() if mail == key]
    return str(ids[0]) if len(ids) == 1 else None


def letter_by_id(desk: CompanyDesk, message_id: str) -> Letter:
    """Return the letter with Gmail's id. Errors: ProductRefusal if the mailbox has none, Undecided."""
    for key in _keys_of_id(desk, message_id):
        place = f"{desk.address}|{key}"
        if desk.exists(MAILBOX, place) and _known_id(desk, key) == message_id:
            return letter_of(desk, key)
    if desk.convention(PRODUCT, "ids") is None:
        unknown = [letter.key for letter in letters(desk) if _known_id(desk, letter.key) is None]
        meant = desk.one_of(unknown, f"neither the exports nor calls show Gmail's id of the message {next(iter(unknown), '')}")
        if meant is not None:
            return letter_of(desk, meant)
    raise ProductRefusal(NOT_FOUND)


def _keys_of_id(desk: CompanyDesk, message_id: str) -> list[str]:
    """Return the Message-IDs of the messages that may have an id of Gmail's."""
    own = [key.partition("|")[2] for key in desk.own(MAILBOX)]
    keys = [*own, *(key.partition("|")[2] for key in desk.where(MAILBOX, "id", message_id))]
    rule = desk.convention(PRODUCT, "ids")
    if rule is not None:
        digests = desk.of_world("gmail/digests", lambda ids: {
            digest_id(rule["algorithm"], rule["before"], rule["length"], key): key for key in ids.get(MAIL, ())})
        return [*keys, digests[message_id]] if message_id in digests else keys
    shown = desk.convention(PRODUCT, "known_ids", {}).get(message_id)
    return keys if shown is None else [*keys, shown]


# Labels

def has_label(desk: CompanyDesk, letter: Letter, label: str) -> bool | None:
    """Return whether a letter has a label; None: the exports cannot tell.

    Certain without a history: mail that the person sent has SENT and other mail has not; a label of the person's own making
    that no mail of the mailbox has on any record is on none.
    """
    place, name = f"{desk.address}|{letter.key}", _folded(label)
    if not all(desk.is_known(MAILBOX, place, field) for field in ("labels_added", "labels_removed")):
        return None
    if name in map(_folded, desk.value(MAILBOX, place, "labels_added", ())):
        return True
    if name in map(_folded, desk.value(MAILBOX, place, "labels_removed", ())):
        return False
    if desk.is_known(MAILBOX, place, "labels"):
        return name in map(_folded, desk.value(MAILBOX, place, "labels") or ())
    if name == "sent":
        return letter.sender.lower() == desk.address
    return None if label.upper() in SYSTEM or name in labels_on_record(desk) else False


def is_hidden(desk: CompanyDesk, letter: Letter) -> bool | None:
    """Return whether a letter lies in the trash or with the spam, which searches leave out."""
    states = [has_label(desk, letter, label) for label in ("TRASH", "SPAM")]
    if True in states:
        return True
    last = desk.last_known(MAILBOX, f"{desk.address}|{letter.key}", "labels") or ()
    return None if None in states and not {"TRASH", "SPAM"}.isdisjoint(last) else False


def change_labels(desk: CompanyDesk, letter: Letter, add: Iterable[str], remove: Iterable[str]) -> None:
    """Put labels on a letter and take others off."""
    place, add, remove = f"{desk.address}|{letter.key}", list(add), list(remove)
    if desk.is_known(MAILBOX, place, "labels"):
        labels = [each for each in desk.value(MAILBOX, place, "labels") or () if each not in remove]
        desk.write(MAILBOX, place, labels=[*labels, *(each for each in add if each not in labels)])
        return
    before = {name: [each for each in desk.value(MAILBOX, place, name, ()) if each not in (*add, *remove)]
              for name in ("labels_added", "labels_removed")}
    desk.write(MAILBOX, place, labels_added=sorted({*before["labels_added"], *add}),
               labels_removed=sorted({*before["labels_removed"], *remove}))


def labels_on_record(desk: CompanyDesk) -> frozenset[str]:
    """Return the labels, folded, that mail of the mailbox has on any record."""
    return desk.of_start("gmail/labels", _labels_on_record)


def _labels_on_record(desk: CompanyDesk) -> frozenset[str]:
    return frozenset(_folded(label) for key in desk.visible(MAILBOX) for label in desk.last_known(MAILBOX, key, "labels") or ())


def _folded(label: str) -> str:
    return label.casefold().replace(" ", "-").replace("/", "-")


# Writing

def addresses(value: Any) -> list[str]:
    """Return the addresses of a header: a text with commas, or a list."""
    parts = value.split(",") if isinstance(value, str) else list(value or ())
    return [part.rpartition("<")[2].rstrip(">").strip() for part in map(str, parts) if part.strip()]


def send(desk: CompanyDesk, mail: NewMail, kind: str = "mail") -> str:
    """Write a mail that the person sends, with its places in the mailboxes of colleagues; return its Message-ID."""
    key = write_mail(desk, mail, kind)
    everybody = dict.fromkeys(each.lower() for each in (*mail.to, *mail.cc, *mail.bcc))
    desk.write(MAILBOX, f"{desk.address}|{key}", labels=["SENT", *(["INBOX", "UNREAD"] if desk.address in everybody else [])])
    for address in everybody:
        if address != desk.address and has_mailbox(desk, address):
            desk.write(MAILBOX, f"{address}|{key}", labels=["INBOX", "UNREAD"])
    return key


def write_mail(desk: CompanyDesk, mail: NewMail, kind: str = "mail") -> str:
    """Write a mail without any place; return its Message-ID."""
    key = f"<{desk.made_id(kind, 20)}@{desk.address.rpartition('@')[2]}>"
    desk.write(MAIL, key, sender=desk.address, name=own_name(desk), to=list(mail.to), cc=list(mail.cc), subject=mail.subject,
               date=float(int(desk.now)), body=mail.body.rstrip("\n"), attach=None, references=list(mail.references),
               thread=mail.thread or desk.made_id(f"{kind}/thread"))
    return key


def has_mailbox(desk: CompanyDesk, address: str) -> bool:
    """Return whether somebody has a mailbox in the company."""
    return desk.account_of("person", address) is not None or address in desk.of_world(
        "gmail/owners", lambda ids: frozenset(key.partition("|")[0].lower() for key in ids.get(MAILBOX, ())))


def own_name(desk: CompanyDesk) -> str:
    """Return the person's name as the directory has it, else as their last mail has it."""
    entry = desk.account_of("person", desk.address)
    name = None if entry is None else desk.value("person", entry, "name")
    if name is None:
        own = (letter.name for letter in reversed(letters(desk)) if letter.sender.lower() == desk.address and letter.name)
        name = next(own, "")
    return str(name)
