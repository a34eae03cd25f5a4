"""A small web site of one script: pages by `?page=`, every form is posted to one address, and a login stands on every page."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from tests.env_builder.site.cards import Pairs, Recorder


class BoxSite:
    """Boxes with a place and a state; whoever is logged in may change them, everybody may look."""

    def __init__(self, n_boxes: int = 8) -> None:
        self.boxes = {number: {"place": f"shelf {number * 7}", "state": "1"} for number in range(41, 41 + n_boxes)}

    def answer(self, user: str | None, method: str, url: str, form: Pairs) -> tuple[int, str | None, str | None, Any]:
        """Return status, location, page, and file; None where there is none."""
        query, values = dict(parse_qsl(urlsplit(url).query)), dict(form)
        if method == "POST" and values.get("act") == "login":
            is_right = values.get("password") == "sesame"
            return 302, f"/main?note={quote('Welcome' if is_right else 'Wrong password')}", None, None
        if method == "POST" and user is None:
            return 302, "/main?note=Log+in+first", None, None
        if method == "POST":
            self.boxes[int(values["box"])] |= {name: values[name] for name in ("place", "state") if name in values}
            return 302, f"/main?page=box&id={values['box']}", None, None
        page = self._box(int(query["id"])) if query.get("page") == "box" else (
            self._list() if query.get("page") == "all" else f"<h1>Boxes</h1><p>{query.get('note', '')}</p>")
        return 200, None, page + (f"<p>Hello {user}</p>" if user else self._login()), None

    def _login(self) -> str:
        return ("<form method=post action=/main><input type=hidden name=act value=login><input name=who>"
                "<input type=password name=password><button>Log in</button></form>")

    def _list(self) -> str:
        rows = "".join(f"<tr class=row><td><a href='/main?page=box&amp;id={number}'>{number}</a></td></tr>"
                       for number in self.boxes)
        return f"<h2 class=list>All</h2><table id=all><thead><tr><th class=name>Box</th></tr></thead>{rows}</table>"

    def _box(self, number: int) -> str:
        box = self.boxes[number]
        states = "".join(f"<option value={value}{' selected' if box['state'] == value else ''}>{name}</option>"
                         for value, name in (("1", "empty"), ("2", "full"), ("3", "broken")))
        return (f"<h1>Box</h1><form method=post action=/main id=edit><input type=hidden name=act value=save>"
                f"<input type=hidden name=box value={number}><label>Place <input name=place value='{box['place']}'></label>"
                f"<label>State <select name=state>{states}</select></label><button>Save</button></form>")


class BoxRecorder(Recorder):
    """Records what people do there."""

    def sit_down(self, who: str, ask: str | None = None, wrong: bool = False) -> None:
        """Begin a session; `wrong`: with a wrong password first."""
        self.begin(who, ask)
        self.ask("GET", "/main")
        if wrong:
            self.log_in("open")
        self.log_in()

    def log_in(self, password: str = "sesame") -> None:
        """Send the form that every page has."""
        self.ask("POST", "/main", (("act", "login"), ("who", self.who), ("password", password)))

    def change(self, number: int, work: str = "save", **values: str) -> None:
        """Open a box and post its form."""
        self.ask("GET", "/main?page=all")
        self.ask("GET", f"/main?page=box&id={number}")
        shown = self.site.boxes[number]
        self.ask("POST", "/main", (("act", work), ("box", str(number)), *{**shown, **values}.items()))
