"""Sessions of the page: how somebody comes in, what their cookie is worth, and how it ends."""

import re

import pytest
from msgspec.structs import replace

from batonpass.model.base.kinds import AccessRole
from batonpass.server.page.session import LASTS, PageSessions
from batonpass.testing import FrozenClock
from tests.unit.server.conftest import ANA, House
from tests.unit.server.page.browser import Browser, a_browser, path_of
from tests.unit.server.visitor import Visitor

COME_IN = b"<h1>Come in</h1>"


def test_nobody_looks_without_a_session(house: House) -> None:
    """Every address asks to come in, and remembers where somebody wanted to go."""
    answer = a_browser(house).get("/tasks?state=open")

    assert (401, True) == (answer.status, COME_IN in answer.body)
    assert b'name="to" value="/tasks?state=open"' in answer.body


def test_the_link_opens_a_session_once(house: House) -> None:
    """The code becomes a cookie; a second time it lets nobody in, and the page says where there is a new one."""
    code = house.plane.entrance.open(ANA)
    browser, thief = a_browser(house), a_browser(house)
    first = browser.post("/session", {"code": code, "to": "/tasks"})
    second = thief.post("/session", {"code": code, "to": "/tasks"})

    assert (303, "/tasks", 401) == (first.status, path_of(first), second.status)
    assert (200, 401) == (browser.get("/").status, thief.get("/").status)
    assert b"This link was used already" in second.body


@pytest.mark.parametrize("role", ["operator", "auditor", "admin"])
def test_a_token_opens_a_session_of_its_principal(house: House, role: str) -> None:
    """The page says whose session it is, and in which role."""
    shown = a_browser(house, role).get("/").body.decode()

    assert (True, True) == (f"user:{role}, until" in shown, f"· {role}</span>" in shown)


def test_an_agent_has_no_page(house: House) -> None:
    """It reaches its own run alone, and the page shows all."""
    answer = a_browser(house).post("/session", {"token": house.everybody["agent"]})

    assert (403, b"access.role" in answer.body) == (answer.status, True)


def test_a_wrong_token_opens_nothing_and_is_counted(house: House) -> None:
    """Guessing at the page locks out as it does at every door."""
    browser = a_browser(house)
    answers = [browser.post("/session", {"token": "token_x.y"}).status for _ in range(11)]

    assert ([401, 429], {}) == (sorted(set(answers)), browser.cookies)


def test_the_cookie_is_kept_from_scripts_and_other_sites(house: House) -> None:
    """HttpOnly, SameSite=Strict and an end, always; over TLS also Secure, and bound to the host."""
    browser = a_browser(house)
    plain = browser.post("/session", {"token": house.everybody["admin"]}).headers["set-cookie"]
    secure = (
        _over_tls(house)
        .post("/session", {"token": house.everybody["admin"]}, origin="https://127.0.0.1:7420")
        .headers["set-cookie"]
    )

    assert plain.startswith("batonpass-7420=")
    assert secure.startswith("__Host-batonpass=")
    assert ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict"] == sorted(plain.split("; ")[1:])
    assert ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=strict", "Secure"] == sorted(secure.split("; ")[1:])


def test_a_revoked_token_ends_its_sessions(house: House) -> None:
    """At once, whoever has the cookie."""
    browser = a_browser(house, "operator")
    before = browser.get("/").status
    (token,) = (one for one in house.relay.admin.tokens() if one.role is AccessRole.OPERATOR)
    house.relay.admin.revoke_token(token.id, by=ANA, reason="left the company")

    assert (200, 401) == (before, browser.get("/").status)


def test_a_session_ends_with_its_time(house: House) -> None:
    """After twelve hours, although the token is valid longer."""
    clock = FrozenClock(house.plane.clock.now())
    plane = replace(house.plane, clock=clock)
    sessions = PageSessions(plane)
    (token,) = (one for one in house.relay.admin.tokens() if one.role is AccessRole.OPERATOR)
    secret = sessions.open_with(token.id, is_own=False)
    before = sessions.find(secret).caller.principal
    clock.tick(LASTS)

    assert "user:operator" == before
    with pytest.raises(Exception, match="come in again"):
        sessions.find(secret)


def test_leaving_ends_the_session_and_the_token_that_was_made_for_it(house: House) -> None:
    """A cookie that somebody kept is worth nothing then, and the ledger says that they left."""
    browser = a_browser(house)
    browser.post("/session", {"code": house.plane.entrance.open(ANA)})
    kept = Browser(browser.visitor, dict(browser.cookies))
    left = browser.submit("/", "/session/end")
    mine = [one for one in house.relay.admin.tokens() if one.principal == ANA and one.role is AccessRole.ADMIN]

    assert (303, "/enter", {}, 401) == (left.status, path_of(left), browser.cookies, kept.get("/").status)
    assert [(ANA, True)] == [(one.revoked_by, one.revoked_at is not None) for one in mine]


def test_another_door_can_open_a_session(house: House) -> None:
    """A login service that knows somebody opens one for a principal and a role; the ledger has a token for it."""
    sessions = PageSessions(house.plane)
    browser = a_browser(house, sessions=sessions)
    browser.cookies["batonpass-7420"] = sessions.open_for("user:eva", AccessRole.AUDITOR, by="service:login")

    assert "user:eva, until" in browser.get("/").body.decode()
    assert ["service:login"] == [one.added_by for one in house.relay.admin.tokens() if one.principal == "user:eva"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param({"origin": "https://evil.example"}, 403, id="of another site"),
        pytest.param({"origin": "null"}, 403, id="of a page without an origin"),
        pytest.param({"origin": "http://127.0.0.1:9"}, 403, id="of another port"),
    ],
)
def test_forms_of_other_sites_are_refused(house: House, sent: dict[str, str], status: int) -> None:
    """Before anything is read, also where nobody has come in yet: nobody is let in as somebody else."""
    browser = a_browser(house, "admin")
    before = len(house.relay.admin.tokens())
    forms = [
        browser.post("/session", {"token": house.everybody["admin"]}, **sent),
        browser.post("/session/end", browser.secrets("/"), **sent),
    ]

    assert ([status, status], before, 200) == (
        [one.status for one in forms],
        len(house.relay.admin.tokens()),
        browser.get("/").status,
    )


def test_a_form_without_an_origin_needs_the_word_of_the_browser(house: House) -> None:
    """Neither header: it is refused."""
    browser = a_browser(house)
    fields = b"token=" + house.everybody["admin"].encode()
    answers = [
        browser.visitor.send(
            "POST", "/session", fields, content_type="application/x-www-form-urlencoded", **more
        ).status
        for more in ({}, {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-origin"})
    ]

    assert [403, 403, 303] == answers


def test_a_form_needs_the_secret_of_its_session(house: House) -> None:
    """Another session's is refused, and so is none; the session goes on."""
    browser, other = a_browser(house, "admin"), a_browser(house, "operator")
    answers = [browser.post("/session/end", fields) for fields in ({}, other.secrets("/"), {"form": ""})]

    assert [(403, True)] * 3 == [(one.status, b"access.form" in one.body) for one in answers]
    assert 200 == browser.get("/").status


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1", "/a\r\nX: 1"]
)
def test_coming_in_leads_nowhere_else(house: House, to: str) -> None:
    """Whatever stands in the link, the way in ends at this server."""
    answer = a_browser(house).post("/session", {"token": house.everybody["admin"], "to": to})

    assert (303, "/") == (answer.status, answer.headers["location"])


def test_a_link_in_a_chat_opens_at_its_place(house: House) -> None:
    """A strict cookie does not come from another site; our own page asks again, and then it does."""
    browser = a_browser(house, "auditor")
    cookies, browser.cookies = browser.cookies, {}
    first = browser.get("/tasks?state=open", sec_fetch_site="cross-site")
    browser.cookies = cookies
    again = re.search(rb'content="0; url=([^"]*)"', first.body)

    assert (200, b"/tasks?state=open") == (first.status, again and again[1])
    assert 200 == browser.get("/tasks?state=open").status


def test_no_secret_is_written_down(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the cookie nor the secret of forms is in a log, nor the cookie in what is kept."""
    sessions = PageSessions(house.plane)
    browser = a_browser(house, "admin", sessions=sessions)
    browser.get("/")
    browser.get("/tasks/nothing")
    (cookie,) = browser.cookies.values()

    assert (False, False) == (cookie in caplog.text, cookie in repr(vars(sessions)))


def _over_tls(house: House) -> Browser:
    browser = a_browser(house)

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as a server calls it
        await browser.visitor.app({**scope, "scheme": "https"}, receive, send)

    return Browser(Visitor(app))
