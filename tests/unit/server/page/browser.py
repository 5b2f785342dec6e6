"""A browser without a network: it keeps cookies, follows redirects, and sends the forms that it was shown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode, urlsplit

from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.page.door import page_routes
from batonpass.server.page.session import PageSessions
from batonpass.server.page.shown_files import ShownFiles
from tests.unit.server.conftest import House
from tests.unit.server.visitor import HERE, Answered, Visitor

FORM = "application/x-www-form-urlencoded"


@dataclass(slots=True)
class Browser:
    """Somebody who looks at the page."""

    visitor: Visitor
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, target: str, **headers: str) -> Answered:
        """Look at an address, and follow where it leads."""
        answer = self.ask("GET", target, b"", **headers)
        return self.get(answer.headers["location"]) if answer.status in {303, 307} else answer

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answered:
        """Send a request as browsers do."""
        sent = {"sec_fetch_site": "same-origin", **headers}
        if self.cookies:
            sent.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        answer = self.visitor.send(method, target, body, **sent)
        if (given := answer.headers.get("set-cookie")) is not None:
            name, _, rest = given.partition("=")
            value = rest.partition(";")[0].strip('"')
            self.cookies = {**self.cookies, name: value} if value else {}
        return answer

    def post(self, target: str, fields: dict[str, str], **headers: str) -> Answered:
        """Send a form."""
        sent = {"content_type": FORM, "origin": f"http://{HERE}", **headers}
        return self.ask("POST", target, urlencode(fields).encode(), **sent)

    def secrets(self, target: str) -> dict[str, str]:
        """Return what the forms of a page bring along."""
        shown = self.get(target).body.decode()
        return {
            name: unescape(found[1])
            for name in ("form", "key")
            if (found := re.search(f'name="{name}" value="([^"]*)"', shown)) is not None
        }

    def submit(self, shown_at: str, target: str, **fields: str) -> Answered:
        """Send a form that a page shows."""
        return self.post(target, {**self.secrets(shown_at), **fields})


def a_browser(
    house: House, role: str | None = None, *, sessions: PageSessions | None = None, files: Sequence[ShownFiles] = ()
) -> Browser:
    """Return a browser at the page of a server; with a role, whoever has its token has come in."""
    app = make_app(house.plane, hosts=hosts_for("127.0.0.1"), mounts=page_routes(house.plane, sessions, files))
    browser = Browser(Visitor(app))
    if role is not None:
        answer = browser.post("/session", {"token": house.everybody[role], "to": "/"})
        assert 303 == answer.status, answer.body
    return browser


def path_of(answer: Answered) -> str:
    """Return where an answer leads."""
    return urlsplit(answer.headers["location"]).path
