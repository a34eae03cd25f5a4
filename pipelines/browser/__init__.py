"""The browser: pages on what a run published, and the corrections of people who read them (docs/browser.md).

`app.application(out, guard)` is an ASGI application on the folder that a run writes. Pages are made on the server, without
script; what a log holds is text wherever it stands. It reads the published warehouse, the environments, their rewards and the
rollouts next to them, and writes nothing but lines of `corrections/`. What it sees: what was published. What it does not see: a
run that goes on."""

from __future__ import annotations
