"""The site of cards as an application of its own: `cards_application.py PORT FOLDER`; FOLDER/cards.json is its data."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

from tests.env_builder.site.cards import CardSite


def main(port: int, folder: Path) -> None:
    """Serve the site."""
    site = CardSite()
    site.cards = {int(number): card for number, card in json.loads((folder / "cards.json").read_text()).items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", ())

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            self._answer("POST", tuple(parse_qsl(text, keep_blank_values=True)))

        def _answer(self, method: str, form: tuple[tuple[str, str], ...]) -> None:
            cookie = (self.headers.get("Cookie") or "").partition("user=")[2] or None
            status, location, page, file = site.answer(cookie, method, self.path, form)
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            if location and "password" in dict(form):
                self.send_header("Set-Cookie", f"user={dict(form)['who'].partition('@')[0]}; Path=/; HttpOnly")
            content = file[1] if file else (page or "").encode()
            self.send_header("Content-Type", "application/pdf" if file else "text/html; charset=utf-8")
            if file:
                self.send_header("Content-Disposition", f"attachment; filename={file[0]}")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            (folder / "cards.json").write_text(json.dumps(site.cards))

        def log_message(self, *arguments: object) -> None:
            return

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
