"""Pages of others that want this one to do something: framed, posted to, with somebody's cookie in the same browser."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from batonpass.model.base.lifecycle import State
from tests.page.conftest import PATIENCE, Opener, ServedPage

expect.set_options(timeout=PATIENCE * 1000)


@contextmanager
def evil(body: str) -> Iterator[int]:
    """Serve one page at another port of this machine, which is the same site to a browser, and another origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def form_secret(page: Page) -> str:
    """Return the secret of the session's forms: more than another site ever has."""
    return page.locator("input[name=form]").first.get_attribute("value") or ""


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["the same site", "another site"])
@pytest.mark.parametrize("encoding", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
def test_a_form_of_another_page_decides_nothing(shown: ServedPage, somebody: Opener, host: str, encoding: str) -> None:
    """Even with the secret of the session, at another port whose cookies are sent along, and in any encoding."""
    page = somebody(shown, "operator")
    address = f"/approvals/{shown.handoffs['mailer']}"
    page.goto(address)
    fields = {"form": form_secret(page), "key": "k", "reason": "r", "decision": "denied", "shown": ""}
    inputs = "".join(f'<input name="{name}" value="{text}">' for name, text in fields.items())
    body = f'<form method="post" enctype="{encoding}" action="{shown.address}{address}">{inputs}</form>'
    with evil(f"{body}<script>document.forms[0].submit()</script>") as port:
        with page.expect_response(lambda answer: address in answer.url) as told:
            page.goto(f"http://{host}:{port}/")
        status = told.value.status

    assert (403, State.HELD) == (status, shown.relay.handoff(shown.handoffs["mailer"]).state())


@pytest.mark.slow
def test_no_page_frames_ours_or_reads_it(shown: ServedPage, somebody: Opener) -> None:
    """A frame stays empty, so nothing can be laid over a button; a script of another port reads nothing."""
    page = somebody(shown, "operator")
    address = f"{shown.address}/approvals/{shown.handoffs['mailer']}"
    script = "const say = (word) => () => { document.title = word }; fetch(there).then(say('read'), say('no'))"
    with evil(f'<iframe src="{address}"></iframe><script>const there = "{address}"; {script}</script>') as port:
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_function("document.title !== ''")
        title = page.title()
        inside = [frame.content() for frame in page.frames[1:]]

    assert "no" == title
    assert [] == [one for one in inside if "Approve" in one]


@pytest.mark.slow
def test_somebody_else_s_session_is_another_person(shown: ServedPage, somebody: Opener) -> None:
    """The form of one session does not fit another, and no script reads the cookie."""
    one, other = somebody(shown, "operator"), somebody(shown, "admin")
    address = f"/approvals/{shown.handoffs['mailer']}"
    one.goto(address)
    other.goto(address)
    stolen = form_secret(one)
    other.evaluate("secret => document.querySelector('#verdict [name=form]').value = secret", stolen)
    other.fill("#reason", "no")
    other.click("text=Deny")
    expect(other.locator("main")).to_contain_text("access.form")

    assert "" == one.evaluate("document.cookie")
    assert State.HELD is shown.relay.handoff(shown.handoffs["mailer"]).state()
