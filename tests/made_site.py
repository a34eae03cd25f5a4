"""A small made-up site behind a port, for tests of browsers: every kind of control, redirects, a file, a question."""

from __future__ import annotations

from env_builder.runtime.site.port import Delivery, PortAnswer, PortRequest
from env_builder.site.parsing import parse

ORIGIN = "http://site.test"
HOME = """<html><head><title>A  form</title></head><body>
<form id=f action="/save?x=1#frag" method=post><input type=hidden name=t value=1><input type=hidden name=_charset_>
<p><label for=n>Name</label> <input id=n name=n required minlength=3 maxlength=8></p>
<label>Mail <input type=email name=mail></label><label>Count <input type=number name=count min=1 max=10 step=2 value=1></label>
<label>Site <input type=url name=site></label><label>Code <input name=code pattern="[A-Z]{2}\\d+" title="two letters"></label>
<fieldset><legend>Kind</legend><label><input type=radio name=kind value=a> A</label>
<label><input type=radio name=kind value=b checked> B</label></fieldset>
<fieldset disabled><legend><input name=inlegend value=yes aria-label=Legend></legend>
<input name=never aria-label=Never></fieldset>
<label><input type=checkbox name=c1> One</label><label><input type=checkbox name=c2 value=two checked> Two</label>
<select name=s aria-label=Single><option disabled>Choose<option>First  option<option value="">Empty
<optgroup label=G disabled><option value=z>Z</optgroup></select>
<select name=m multiple aria-label=Many><option value=1 selected>I<option value=2>II<option value=3 selected>III</select>
<textarea name=ta aria-label=Area>
line 1
line 2</textarea><input type=range name=r aria-label=Range><input type=date name=d aria-label=Day><input type=color name=col>
<input type=file name=file aria-label=File><input readonly name=ro value=ro aria-label=RO><input name=no value=1 disabled>
<input value=nn aria-label=Nameless><button name=go value=save>Save</button>
<button name=go value=other formaction="/other" formmethod=get formnovalidate>Other</button><button type=button>Nothing</button>
<input type=reset></form><input form=f name=outside value=out aria-label=Outside>
<form action="/search"><input name=q aria-label=Query><input name=h type=hidden value="ä ~*'&amp;"></form>
<form action="/two"><input name=a aria-label=First><input name=b aria-label=Second></form>
<form action="/sub" onsubmit="return confirm('Really?')"><button>Ask</button></form>
<a href="/plain" onclick="return confirm('Go?')">Asking</a><a href="sub/./../page?a=b c&amp;d='é'#x y">Odd</a>
<a href="#here">Here</a><a href="#">Top</a>
<a href="/moved">Moved</a><a href="/file.txt">File</a><a href="/new" target=_blank>New</a>
<a href="javascript:void(0)">Script</a><a href="/missing">Missing</a><a href="/loop">Loop</a><a href="https://other.test/">Off</a>
<form action=/kept method=post><input name=v value=1 aria-label=V><button>Kept</button></form>
<form action=/turned method=post><input type=hidden name=w value=2><button>Turned</button></form>
<form action=/up method=post enctype=multipart/form-data><input type=file name=up aria-label=Up multiple>
<button>Send</button></form>
<form method=post><input type=hidden name=again value=1><button>Again</button></form>
<form><button name=got value=1>Getting</button></form>
<details><summary>More</summary><a href=/inside>Inside</a></details>
</body></html>"""
_HOME = parse(HOME)
_OTHER = parse('<title>Other</title><h1>Page</h1><a href="/">Back</a>')
_MISSING = parse("<title>No</title><p>none</p>")


class MadePort:
    """The site; it writes down what it is asked for."""

    def __init__(self) -> None:
        self.journal: list[PortRequest] = []

    def ask(self, request: PortRequest) -> PortAnswer:
        """Answer one request."""
        self.journal.append(request)
        path = request.url.partition("?")[0]
        if path == "/file.txt":
            return PortAnswer(200, "recorded", file=Delivery("file.txt", "text/plain", b"text"))
        if path == "/missing":
            return PortAnswer(404, "unknown", page=_MISSING)
        location = {"/moved": (301, "dest?z=1"), "/kept": (307, "/dest307"), "/turned": (303, f"{ORIGIN}/dest303"),
                    "/save": (302, "/"), "/loop": (302, "/loop"), "/away": (302, "https://other.test/")}.get(path)
        if location is not None:
            return PortAnswer(location[0], "recorded", location=location[1])
        return PortAnswer(200, "induced", page=_HOME if path == "/" else _OTHER)

    @property
    def asked(self) -> list[str]:
        """Return method and address of each request."""
        return [f"{request.method} {request.url}" for request in self.journal]
