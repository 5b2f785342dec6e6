"""The boundary: every route is behind it, and so is everything that is mounted beside them."""

import logging

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for, is_loopback
from batonpass.server.routes import ENDPOINTS
from tests.unit.server.conftest import House
from tests.unit.server.visitor import Visitor

PATHS = [*sorted({one.path for one in ENDPOINTS}), "/v1/enter", "/enter", "/docs", "/openapi.json", "/mounted/x", "/no"]


async def _mounted(_: Request) -> Response:
    return PlainTextResponse("here")


async def _broken(_: Request) -> Response:
    raise RuntimeError("the secret is 42")


def with_mounts(house: House) -> Visitor:
    """Return somebody at a server with other doors beside the interface."""
    mounts = [Mount("/mounted", routes=[Route("/x", _mounted)]), Route("/broken", _broken)]
    return Visitor(make_app(house.plane, hosts=hosts_for("127.0.0.1"), mounts=mounts))


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "ana@127.0.0.1", "127.0.0.1/x", "[::1"])
def test_another_host_gets_nothing_on_any_route(house: House, host: str) -> None:
    """A name that somebody pointed at this address is refused, mounted doors included."""
    visitor = with_mounts(house)

    assert {(421, "access.host")} == {
        (one.status, one.code) for one in (visitor.get(path, host=host) for path in PATHS)
    }


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:7420", "x"]
)
def test_a_page_of_another_site_gets_nothing_on_any_route(house: House, origin: str) -> None:
    """Another port or scheme is another site."""
    visitor = with_mounts(house)
    answers = [visitor.send(method, path, origin=origin) for path in PATHS for method in ("GET", "POST")]

    assert {(403, "access.origin")} == {(one.status, one.code) for one in answers}


@pytest.mark.parametrize("host", ["127.0.0.1:7420", "localhost:7420", "[::1]:7420", "LOCALHOST"])
def test_its_own_names_are_served(house: House, host: str) -> None:
    """With its own origin too."""
    assert 200 == with_mounts(house).get("/mounted/x", host=host, origin=f"http://{host.lower()}").status


def test_every_answer_keeps_browsers_careful(house: House) -> None:
    """Also errors, and answers of mounted doors; and nothing lets other sites in."""
    visitor = with_mounts(house)
    answers = [visitor.get(path) for path in (*PATHS, "/broken")] + [visitor.get("/docs", host="evil.example")]
    wanted = (
        "x-content-type-options",
        "x-frame-options",
        "content-security-policy",
        "referrer-policy",
        "cache-control",
    )

    assert [] == [(one.status, name) for one in answers for name in wanted if name not in one.headers]
    assert [] == [name for one in answers for name in one.headers if name.startswith("access-control-")]


def test_a_fault_tells_a_number_and_nothing_else(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """The log has the error under that number, and neither the query nor the token."""
    visitor = with_mounts(house)
    visitor.token = house.everybody["admin"]
    with caplog.at_level(logging.ERROR):
        answer = visitor.get("/broken?secret=7")

    assert (500, "http.internal", False) == (answer.status, answer.code, b"42" in answer.body)
    assert answer.json["error"]["number"] in caplog.text
    assert (False, False) == (visitor.token in caplog.text, "secret=7" in caplog.text)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - a case
        ("::", False),
        ("example.com", False),
    ],
)
def test_which_addresses_only_this_machine_reaches(address: str, *, loopback: bool) -> None:
    """A name that is not localhost may lead anywhere."""
    assert loopback == is_loopback(address)
