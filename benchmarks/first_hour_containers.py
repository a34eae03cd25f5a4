"""The same records in every container that people really have: files, exports of databases, envelopes of log platforms.

In: records, as JSON values. Out: the bytes of a file for each container, or None where one cannot hold such records.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import sqlite3
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

Row = dict[str, Any]
Container = Callable[[list[Row]], bytes | None]
_BEGIN = datetime(2026, 3, 2, 11, 0, tzinfo=UTC)
CONTAINERS: dict[str, Container] = {}
"""Every container by its name."""


def container(write: Container) -> Container:
    """Register a container under the name of its function."""
    CONTAINERS[write.__name__] = write
    return write


def lines(rows: list[Any]) -> bytes:
    """Return a JSON value a line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _text(row: Any) -> str:
    return orjson.dumps(row).decode()


def _times() -> Iterator[datetime]:
    number = 0
    while True:
        yield _BEGIN + timedelta(seconds=number)
        number += 1


@container
def json_list(rows: list[Row]) -> bytes:
    return orjson.dumps(rows)


@container
def json_list_indented(rows: list[Row]) -> bytes:
    return json.dumps(rows, indent=2, ensure_ascii=False).encode()


@container
def under_data(rows: list[Row]) -> bytes:
    return orjson.dumps({"data": rows, "has_more": False, "next_page": None})


@container
def under_items(rows: list[Row]) -> bytes:
    return json.dumps({"count": len(rows), "items": rows, "next_cursor": None}, indent=1).encode()


@container
def pages(rows: list[Row]) -> bytes:
    """Return a page of an API a line."""
    half = (len(rows) + 1) // 2
    return lines([{"results": rows[:half], "next": "abc"}, {"results": rows[half:], "next": None}])


@container
def pages_indented(rows: list[Row]) -> bytes:
    """Return pages one after the other, as a loop around `curl` leaves them."""
    half = (len(rows) + 1) // 2
    return b"\n".join(json.dumps({"data": part, "meta": {"page": number}}, indent=2).encode()
                      for number, part in enumerate((rows[:half], rows[half:])))


@container
def elasticsearch_answer(rows: list[Row]) -> bytes:
    hits = [{"_index": "logs-1", "_id": f"h{number}", "_score": 1.0, "_source": row} for number, row in enumerate(rows)]
    return orjson.dumps({"took": 3, "timed_out": False, "_shards": {"total": 1, "successful": 1, "failed": 0},
                         "hits": {"total": {"value": len(rows), "relation": "eq"}, "max_score": 1.0, "hits": hits}})


@container
def elasticdump(rows: list[Row]) -> bytes:
    return lines([{"_index": "logs-1", "_type": "_doc", "_id": f"h{number}", "_score": 1, "_source": row}
                  for number, row in enumerate(rows)])


@container
def concatenated_indented(rows: list[Row]) -> bytes:
    """Return indented objects one after the other, as `jq` prints them."""
    return b"\n".join(json.dumps(row, indent=2).encode() for row in rows) + b"\n"


@container
def trailing_commas(rows: list[Row]) -> bytes:
    return b"".join(orjson.dumps(row) + b",\n" for row in rows)


@container
def list_by_hand(rows: list[Row]) -> bytes:
    """Return lines in brackets, with a comma after the last."""
    return b"[\n" + trailing_commas(rows) + b"]\n"


@container
def commented_lines(rows: list[Row]) -> bytes:
    return b"# exported by ops\n" + lines(rows) + b"// end\n"


@container
def windows_lines(rows: list[Row]) -> bytes:
    return b"\xef\xbb\xbf" + lines(rows).replace(b"\n", b"\r\n")


def _cells(rows: list[Row]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and the cells: what is no scalar is JSON text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return names, [[_text(row[name]) if isinstance(row.get(name), dict | list) else row.get(name) for name in names]
                   for row in rows]


def _csv(rows: list[Row], **dialect: Any) -> str:
    names, cells = _cells(rows)
    text = io.StringIO()
    writer = csv.writer(text, **dialect)
    writer.writerow(names)
    writer.writerows([["true" if each is True else "false" if each is False else each for each in row] for row in cells])
    return text.getvalue()


@container
def csv_commas(rows: list[Row]) -> bytes:
    return _csv(rows, lineterminator="\n").encode()


@container
def csv_semicolons(rows: list[Row]) -> bytes:
    return _csv(rows, delimiter=";", lineterminator="\r\n").encode("utf-8-sig")


@container
def csv_tabs(rows: list[Row]) -> bytes:
    return _csv(rows, delimiter="\t", lineterminator="\n").encode()


@container
def csv_latin_1(rows: list[Row]) -> bytes | None:
    text = _csv(rows, lineterminator="\r\n")
    try:
        return text.encode("cp1252")
    except UnicodeEncodeError:
        return None


@container
def csv_index(rows: list[Row]) -> bytes:
    """Return what pandas writes: a column of numbers without a name first."""
    names, cells = _cells(rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["", *names], *([number, *row] for number, row in enumerate(cells))])
    return text.getvalue().encode()


@container
def one_column(rows: list[Row]) -> bytes:
    """Return a table of a query whose last column is the record as JSON."""
    return _csv([{"id": number, "payload": row} for number, row in enumerate(rows)], lineterminator="\n").encode()


def _duckdb(rows: list[Row], options: str, select: str = "*") -> bytes | None:
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "in.jsonl").write_bytes(lines(rows))
        connection = duckdb.connect()
        try:
            connection.execute(f"copy (select {select} from read_json('{scratch}/in.jsonl', format = 'newline_delimited', "
                               f"maximum_object_size = 50000000 {options})) to '{scratch}/out.parquet'")
        except duckdb.Error:   # a value that has no type of Parquet
            return None
        finally:
            connection.close()
        return Path(scratch, "out.parquet").read_bytes()


@container
def parquet_inferred(rows: list[Row]) -> bytes | None:
    """Return Parquet of the types that DuckDB infers: times, UUIDs, structs, maps."""
    return _duckdb(rows, ", sample_size = -1")


@container
def parquet_json(rows: list[Row]) -> bytes | None:
    """Return Parquet whose nested values are JSON text, with inferred scalars."""
    return _duckdb(rows, ", maximum_depth = 1")


@container
def parquet_strings(rows: list[Row]) -> bytes:
    """Return Parquet of text alone."""
    names, cells = _cells(rows)
    columns = zip(*cells, strict=True)
    table = pa.table({name: pa.array([each if each is None or isinstance(each, str) else _text(each) for each in column],
                                     pa.string()) for name, column in zip(names, columns, strict=True)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _sqlite(rows: list[Row], value: Callable[[Any], Any]) -> bytes:
    names, cells = _cells(rows)
    connection = sqlite3.connect(":memory:")
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    connection.execute(f"create table logs ({', '.join(quoted)})")
    connection.executemany(f"insert into logs values ({', '.join('?' * len(names))})",
                           [[value(each) for each in row] for row in cells])
    connection.commit()
    content = connection.serialize()
    connection.close()
    return content


@container
def sqlite_table(rows: list[Row]) -> bytes:
    return _sqlite(rows, lambda each: each)


@container
def sqlite_blobs(rows: list[Row]) -> bytes:
    """Return a database with nested values as bytes, and numbers as text."""
    return _sqlite(rows, lambda each: each.encode() if isinstance(each, str) and each[:1] in "{[" else
                   each if each is None or isinstance(each, str) else _text(each))


@container
def sqlite_payload(rows: list[Row]) -> bytes:
    return _sqlite([{"id": number, "payload": row} for number, row in enumerate(rows)], lambda each: each)


def _copied(each: Any) -> str:
    if each is None:
        return "\\N"
    text = "t" if each is True else "f" if each is False else str(each)
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


@container
def pg_dump_copy(rows: list[Row]) -> bytes:
    names, cells = _cells(rows)
    columns = ", ".join(f'"{name}"' if not name.isidentifier() else name for name in names)
    body = "".join("\t".join(map(_copied, row)) + "\n" for row in cells)
    return ("--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\n\n"
            "--\n-- Data for Name: logs; Type: TABLE DATA; Schema: public; Owner: app\n--\n\n"
            f"COPY public.logs ({columns}) FROM stdin;\n{body}\\.\n\n\n"
            "--\n-- PostgreSQL database dump complete\n--\n\n").encode()


def _literal(each: Any) -> str:
    if each is None or isinstance(each, bool | int | float):
        return {None: "NULL", True: "true", False: "false"}.get(each, str(each)) if not isinstance(each, int | float) or (
            isinstance(each, bool)) else str(each)
    return "'" + str(each).replace("'", "''") + "'"


@container
def pg_dump_inserts(rows: list[Row]) -> bytes:
    names, cells = _cells(rows)
    columns = ", ".join(f'"{name}"' if not name.isidentifier() else name for name in names)
    body = "".join(f"INSERT INTO public.logs ({columns}) VALUES ({', '.join(map(_literal, row))});\n" for row in cells)
    return (f"--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\nSET client_encoding = 'UTF8';\n\n{body}\n\n"
            "--\n-- PostgreSQL database dump complete\n--\n\n").encode()


def _extended(value: Any) -> Any:
    """Return a value as `mongoexport --jsonFormat=canonical` writes it."""
    if isinstance(value, dict):
        return {name: _extended(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_extended(each) for each in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return {"$numberInt" if abs(value) < 1 << 31 else "$numberLong": str(value)}
    return {"$numberDouble": str(value)} if isinstance(value, float) else value


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) >= 19 and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


@container
def mongoexport(rows: list[Row]) -> bytes:
    """Return documents with an `_id`, times of the top as dates, and numbers of 64 bits."""
    return lines([{"_id": {"$oid": f"65a1b2c3d4e5f6a7b8c9{number:04x}"}, **{
        name: {"$date": each} if _is_time(each) else {"$numberLong": str(each)} if isinstance(each, int) and not isinstance(
            each, bool) and abs(each) > 1 << 31 else each for name, each in row.items()}} for number, row in enumerate(rows)])


@container
def mongoexport_canonical(rows: list[Row]) -> bytes:
    dated = [{name: {"$date": {"$numberLong": str(round(datetime.fromisoformat(each).timestamp() * 1000))}}
              if _is_time(each) else _extended(each) for name, each in row.items()} for row in rows]
    return lines([{"_id": {"$oid": f"65a1b2c3d4e5f6a7b8c9{number:04x}"}, **row} for number, row in enumerate(dated)])


def _attribute(value: Any) -> Any:
    """Return a value of DynamoDB."""
    if isinstance(value, dict):
        return {"M": {name: _attribute(each) for name, each in value.items()}}
    if isinstance(value, list):
        return {"L": [_attribute(each) for each in value]}
    if value is None:
        return {"NULL": True}
    return {"BOOL": value} if isinstance(value, bool) else {"N": str(value)} if isinstance(value, int | float) else {"S": value}


@container
def dynamodb_export(rows: list[Row]) -> bytes:
    return lines([{"Item": _attribute(row)["M"]} for row in rows])


@container
def dynamodb_scan(rows: list[Row]) -> bytes:
    return json.dumps({"Items": [_attribute(row)["M"] for row in rows], "Count": len(rows), "ScannedCount": len(rows),
                       "ConsumedCapacity": None}, indent=4).encode()


def _stringly(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stringly(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_stringly(each) for each in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


@container
def bigquery_export(rows: list[Row]) -> bytes:
    """Return JSON lines with whole numbers as text, as `bq extract` writes them."""
    return lines(_stringly(rows))


@container
def bigquery_rest(rows: list[Row]) -> bytes:
    """Return rows of `jobs.getQueryResults`, with JSON in the cells."""
    names, cells = _cells(rows)
    schema = {"fields": [{"name": name, "type": "STRING", "mode": "NULLABLE"} for name in names]}
    made = [{"f": [{"v": None if each is None else each if isinstance(each, str) else _text(each)} for each in row]}
            for row in cells]
    return orjson.dumps({"kind": "bigquery#getQueryResultsResponse", "schema": schema, "totalRows": str(len(rows)),
                         "rows": made, "jobComplete": True})


@container
def cloudwatch_events(rows: list[Row]) -> bytes:
    events = [{"logStreamName": "app/i-0", "timestamp": int(at.timestamp() * 1000), "message": _text(row),
               "eventId": str(number), "ingestionTime": int(at.timestamp() * 1000)}
              for number, (at, row) in enumerate(zip(_times(), rows, strict=False))]
    return orjson.dumps({"events": events, "searchedLogStreams": []})


@container
def cloudwatch_insights(rows: list[Row]) -> bytes:
    results = [[{"field": "@timestamp", "value": f"{at:%Y-%m-%d %H:%M:%S}.000"}, {"field": "@message", "value": _text(row)},
                {"field": "@ptr", "value": f"p{at:%H%M%S}"}] for at, row in zip(_times(), rows, strict=False)]
    return orjson.dumps({"results": results, "status": "Complete"})


@container
def datadog(rows: list[Row]) -> bytes:
    data = [{"id": f"AQ{number}", "type": "log", "attributes": {
        "timestamp": at.isoformat(), "host": "h1", "service": "desk", "status": "info", "tags": ["env:prod"],
        "message": _text(row)}} for number, (at, row) in enumerate(zip(_times(), rows, strict=False))]
    return orjson.dumps({"data": data, "links": {"next": "x"}, "meta": {"status": "done"}})


@container
def loki_query(rows: list[Row]) -> bytes:
    values = [[str(int(at.timestamp() * 1_000_000_000)), _text(row)] for at, row in zip(_times(), rows, strict=False)]
    return orjson.dumps({"status": "success", "data": {"resultType": "streams", "result": [
        {"stream": {"app": "desk", "pod": "desk-1"}, "values": values}], "stats": {}}})


@container
def loki_lines(rows: list[Row]) -> bytes:
    """Return what `logcli --output=jsonl` prints."""
    return lines([{"labels": {"app": "desk"}, "line": _text(row), "timestamp": at.isoformat()}
                  for at, row in zip(_times(), rows, strict=False)])


@container
def splunk_export(rows: list[Row]) -> bytes:
    return lines([{"preview": False, "offset": number, "result": {
        "_raw": _text(row), "_time": f"{at:%Y-%m-%dT%H:%M:%S}.000+00:00", "host": "h1", "index": "main", "source": "app.log",
        "sourcetype": "_json"}} for number, (at, row) in enumerate(zip(_times(), rows, strict=False))])


@container
def splunk_csv(rows: list[Row]) -> bytes:
    return _csv([{"_raw": _text(row), "_time": at.isoformat(), "host": "h1", "source": "app.log"}
                 for at, row in zip(_times(), rows, strict=False)], lineterminator="\n").encode()


@container
def gcp_entries(rows: list[Row]) -> bytes:
    return lines([{"insertId": f"i{number}", "logName": "projects/p/logs/desk", "resource": {"type": "k8s_container"},
                   "timestamp": at.isoformat(), "severity": "INFO", "jsonPayload": row}
                  for number, (at, row) in enumerate(zip(_times(), rows, strict=False))])


@container
def kafka_envelope(rows: list[Row]) -> bytes:
    return lines([{"topic": "desk", "partition": 0, "offset": number, "timestamp": int(at.timestamp() * 1000),
                   "timestampType": "CreateTime", "headers": [], "key": None, "value": row}
                  for number, (at, row) in enumerate(zip(_times(), rows, strict=False))])


@container
def kafka_text(rows: list[Row]) -> bytes:
    """Return what `kcat -J` prints: the record as text under `payload`."""
    return lines([{"topic": "desk", "partition": 0, "offset": number, "tstype": "create", "ts": int(at.timestamp() * 1000),
                   "broker": 1, "key": None, "payload": _text(row)}
                  for number, (at, row) in enumerate(zip(_times(), rows, strict=False))])


@container
def kafka_base64(rows: list[Row]) -> bytes:
    """Return records as REST proxies and Lambda give them: base64 under `value`."""
    return orjson.dumps({"eventSource": "aws:kafka", "records": {"desk-0": [
        {"topic": "desk", "partition": 0, "offset": number, "timestamp": int(at.timestamp() * 1000),
         "timestampType": "CREATE_TIME", "value": base64.b64encode(orjson.dumps(row)).decode()}
        for number, (at, row) in enumerate(zip(_times(), rows, strict=False))]}})


@container
def docker_json_file(rows: list[Row]) -> bytes:
    return lines([{"log": _text(row) + "\n", "stream": "stdout", "time": f"{at:%Y-%m-%dT%H:%M:%S}.123456789Z"}
                  for at, row in zip(_times(), rows, strict=False)])


@container
def kubernetes_lines(rows: list[Row]) -> bytes:
    return "".join(f"{at:%Y-%m-%dT%H:%M:%S}.123456789Z stdout F {_text(row)}\n"
                   for at, row in zip(_times(), rows, strict=False)).encode()


@container
def compose_lines(rows: list[Row]) -> bytes:
    return "".join(f"desk-1  | {_text(row)}\n" for row in rows).encode()


@container
def journal_lines(rows: list[Row]) -> bytes:
    return lines([{"__REALTIME_TIMESTAMP": str(int(at.timestamp() * 1_000_000)), "_PID": "17", "SYSLOG_IDENTIFIER": "desk",
                   "PRIORITY": "6", "MESSAGE": _text(row)} for at, row in zip(_times(), rows, strict=False)])


@container
def gzipped(rows: list[Row]) -> bytes:
    return gzip.compress(lines(rows))


@container
def zstd_packed(rows: list[Row]) -> bytes:
    return zstandard.compress(lines(rows))


@container
def zip_of_folder(rows: list[Row]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/README.txt", "Exported by ops.\n")
        archive.writestr("export/logs.jsonl", lines(rows))
    return packed.getvalue()


@container
def tar_of_folder(rows: list[Row]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("export/logs.jsonl")
        content = lines(rows)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


@container
def utf_16(rows: list[Row]) -> bytes:
    return json.dumps(rows, ensure_ascii=False).encode("utf-16")
