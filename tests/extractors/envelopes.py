"""Invented envelopes of different style, each with what it tells: (kind, session, who, text) in order of the file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

Told = list[tuple[str, str | None, str | None, str | None]]


def lines(rows: Iterable[Any]) -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode() + b"\n"


def table(header: list[str], rows: Iterable[list[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def flat_chat_rows() -> tuple[bytes, Told]:
    """Return the one who answers has a title of the house, no word for a role."""
    said = [("visitor", "Hello, is the workshop open on Sunday?"), ("concierge", "Yes, from ten to four."),
            ("visitor", "Great, thank you!")]
    rows = [{"chatRef": f"ch-{c}", "when": f"2026-03-0{c + 1}T10:0{i}:00Z", "speaker": who, "said": text, "locale": "en"}
            for c in range(3) for i, (who, text) in enumerate(said)]
    role = {"visitor": "user", "concierge": "assistant"}
    return lines(rows), [("message", row["chatRef"], role[row["speaker"]], row["said"]) for row in rows]


def nested_events() -> tuple[bytes, Told]:
    """Each kind of event has fields of its own, and a result names its call under another name than the call does."""
    rows, told = [], []
    for c in range(3):
        around = {"id": f"cv{c}", "tenant": "acme"}
        for i, (kind, held) in enumerate([
                ("user_message", {"text": "Where is my parcel?"}),
                ("tool_call", {"name": "find_parcel", "input": {"parcel": c}, "id": f"k{c}"}),
                ("tool_result", {"ref": f"k{c}", "output": {"state": "on its way"}}),
                ("bot_message", {"reply": "It is on its way to you."})]):
            rows.append({"v": 1, "emitted": 1772446500000 + c * 10**6 + i * 1000, "conversation": around,
                         "event": {"type": kind, "data": held}})
        told += [("message", f"cv{c}", "user", "Where is my parcel?"), ("call", f"cv{c}", "find_parcel", f'{{"parcel":{c}}}'),
                 ("result", f"cv{c}", None, '{"state":"on its way"}'),
                 ("message", f"cv{c}", "assistant", "It is on its way to you.")]
    return lines(rows), told


def table_of_messages() -> tuple[bytes, Told]:
    """CSV, with a place in the ticket."""
    said = [("customer", "My lamp flickers, what now?"), ("agent", "Please try\nanother bulb."), ("customer", "That worked.")]
    rows = [[500 + c, f"2026-03-02 1{c}:0{i}:00", who, text, i] for c in range(3) for i, (who, text) in enumerate(said)]
    return table(["ticket_no", "sent_at", "author_type", "body", "seq"], rows), [
        ("message", str(row[0]), "user" if row[2] == "customer" else "assistant", row[3]) for row in rows]


def audit_of_tools() -> tuple[bytes, Told]:
    """Nobody speaks; one call failed."""
    rows, told = [], []
    for i in range(8):
        name, run = ["open_door", "close_door", "read_meter"][i % 3], f"run-{i // 3}"
        rows.append({"audit_id": f"a-{i}", "run": run, "operation": name, "params": {"door": i},
                     "returned": None if i == 4 else {"done": True}, "failure": "door is stuck" if i == 4 else None,
                     "started": 1772446500.5 + i * 10, "took_ms": 12 + i, "principal": f"u{i // 3}"})
        told += [("call", run, name, f'{{"door":{i}}}'),
                 ("result", run, name, "door is stuck" if i == 4 else '{"done":true}')]
    return lines(rows), told


def request_log_with_odd_names() -> tuple[bytes, Told]:
    """Methods are verbs, durations are seconds."""
    rows, told = [], []
    for i in range(6):
        rows.append({"began": f"2026-03-02T10:00:0{i}.000Z", "verb": ["GET", "POST"][i % 2], "target": f"/api/boats/{i}?full=1",
                     "answered": 503 if i == 3 else 200, "sent": {"name": f"b{i}"} if i % 2 else None, "got": {"id": i},
                     "elapsed": 0.25 * (i + 1), "visit": f"v{i // 3}", "req": f"r{i}"})
        sent = f'{{"name":"b{i}"}}' if i % 2 else "null"
        told.append(("request", f"v{i // 3}", f"{['GET', 'POST'][i % 2]} /api/boats/{i}",
                     f'{{"query":{{"full":"1"}},"body":{sent}}}'))
    return lines(rows), told


def list_in_a_document() -> tuple[bytes, Told]:
    """Threads in a document, entries in threads."""
    said = [("human", "I need a new key for the boat house"),
            ("ai", "I have ordered one for you."), ("human", "Lovely, thanks.")]
    threads = [{"ref": f"T-{c}", "customer": {"mail": f"a{c}@example.com"}, "entries": [
        {"at": f"2026-03-02T10:0{i}:00+01:00", "from": who, "words": text} for i, (who, text) in enumerate(said)]}
        for c in range(3)]
    return json.dumps({"exported": "2026-03-05", "threads": threads}, indent=1).encode(), [
        ("message", f"T-{c}", "user" if who == "human" else "assistant", text) for c in range(3) for who, text in said]


def two_sides_in_a_row() -> tuple[bytes, Told]:
    """Return a question and its answer in one record, with token counts."""
    rows = [{"request_id": f"r{i}", "session": f"s{i // 2}", "timestamp": 1772446500 + i, "model_name": "m-1",
             "prompt": f"please write poem {i} about rain", "completion": "soft rain falls on the roof",
             "prompt_tokens": 9 + i, "completion_tokens": 7, "latency": 1.5} for i in range(6)]
    return lines(rows), [each for row in rows for each in (
        ("message", row["session"], "user", row["prompt"]), ("message", row["session"], "assistant", row["completion"]))]


def calls_inside_messages() -> tuple[bytes, Told]:
    """Return a conversation a line, its messages in a list, their calls in another."""
    rows, told = [], []
    for c in range(4):
        rows.append({"conversation": {"key": f"c{c}"}, "turns": [
            {"who": "USER", "text": "please book a table", "ts": 1772446500},
            {"who": "BOT", "text": "sure", "ts": 1772446501,
             "actions": [{"action": "book_table", "args": {"n": c}, "result": {"ok": True}}]},
            {"who": "BOT", "text": "your table is booked", "ts": 1772446502}]})
        told += [("message", f"c{c}", "user", "please book a table"), ("message", f"c{c}", "assistant", "sure"),
                 ("call", f"c{c}", "book_table", f'{{"n":{c}}}'), ("result", f"c{c}", "book_table", '{"ok":true}'),
                 ("message", f"c{c}", "assistant", "your table is booked")]
    return lines(rows), told


def words_of_the_house() -> tuple[bytes, Told]:
    """No word for what a record is is known; success is told, not failure."""
    rows, told = [], []
    for c in range(3):
        name = f"S{c:03}"
        for n, held in enumerate([
                {"step": "guest_says", "utterance": "a table for two?"},
                {"step": "skill_invoked", "skill": "tables.search", "with": {"seats": c}, "invocation": f"i{c}"},
                {"step": "skill_returned", "skill": "tables.search", "gave": [{"table": 4}], "invocation": f"i{c}",
                 "ok": c != 1},
                {"step": "host_says", "utterance": "yes, table four"}]):
            rows.append({"dialog": name, "n": n, "t": f"2026-03-02T1{c}:00:0{n}.000+02:00", **held})
        told += [("message", name, "user", "a table for two?"), ("call", name, "tables.search", f'{{"seats":{c}}}'),
                 ("result", name, "tables.search", '[{"table":4}]'), ("message", name, "assistant", "yes, table four")]
    return lines(rows), told


def text_that_spells_records() -> tuple[bytes, Told]:
    """Return what was said stands in JSON text, and lists of parts stand for text; a flag says who speaks."""
    rows, told = [], []
    for c in range(3):
        for i, text in enumerate(["can I bring my dog", "dogs are welcome here"]):
            rows.append({"logged": f"2026-03-02T10:00:0{i}Z", "sid": f"q{c}", "record": json.dumps(
                {"is_bot": bool(i), "parts": [{"type": "text", "text": text}]})})
            told.append(("message", f"q{c}", ["user", "assistant"][i], text))
    return lines(rows), told


def events_of_a_business() -> tuple[bytes, Told]:
    """Nobody speaks and no tool runs: what happened, to whom."""
    rows = [{"occurred": f"2026-03-02T10:00:0{i}Z", "activity": ["Order Placed", "Order Paid"][i % 2], "customer": f"k{i // 2}",
             "details": {"total": i}} for i in range(6)]
    return lines(rows), [("business", None, row["activity"], f'{{"total":{i}}}') for i, row in enumerate(rows)]


ALL = (flat_chat_rows, nested_events, table_of_messages, audit_of_tools, request_log_with_odd_names, list_in_a_document,
       two_sides_in_a_row, calls_inside_messages, words_of_the_house, text_that_spells_records, events_of_a_business)
