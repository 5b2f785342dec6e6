"""Requests of our own reach only what they may, whatever the URL, the name server or the other side does."""

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator

import pytest

from batonpass.dispatch.egress import Egress, EgressLimits
from batonpass.dispatch.egress_rule import EgressRule, is_public
from batonpass.errors import (
    EgressError,
    EgressFailedError,
    EgressRedirectedError,
    EgressRefusedError,
    EgressTooLargeError,
    InvalidValueError,
)
from batonpass.model.policy.listed_place import ListedPlace, read_listed

PUBLIC = "93.184.215.14"
NAMES = {
    "example.org": [PUBLIC],
    "both.example.org": [PUBLIC, "10.0.0.7"],
    "inside.example.org": ["10.0.0.7"],
    "mapped.example.org": ["::ffff:127.0.0.1"],
    "zoned.example.org": ["fe80::1%eth0"],
    "odd.example.org": ["not an address"],
    "xn--bcher-kva.example": [PUBLIC],
}


def resolve(host: str, _: int) -> list[str]:
    """Answer as a name server would; also with what it takes for an address, as systems do."""
    if host in NAMES:
        return NAMES[host]
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def judge(url: str, *allowed: str) -> str:
    """Return the addresses that may be dialled, or the code that refuses it."""
    try:
        found = EgressRule([read_listed(one) for one in allowed], resolve=resolve).judge(url)
    except EgressError as error:
        return error.code
    return " ".join(found.addresses)


REFUSED = (
    "http://example.org/",
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "//example.org/",
    "example.org",
    "",
    "https://",
    "https:///path",
    "https://user@example.org/",
    "https://user:secret@example.org/",
    "https://@example.org/",
    "https://example.org:0/",
    "https://example.org:99999/",
    "https://example.org:25/",
    "https://example.org:22/",
    "https://example.org\\@127.0.0.1/",
    "https://example.org /",
    "https://example.org/a b",
    "https://example.org/\r\nHost: x",
    "https://example.org\t/",
    "https://bücher.example/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://127。0。0。1/",
    "https://ⓛocalhost/",
    "https://exa%6dple.org/",
    "https://example..org/",
    "https://-example.org/",
    f"https://{'a' * 64}.org/",
    f"https://example.org/{'a' * 2048}",
    "https://127.0.0.1/",
    "https://127.0.0.1./",
    "https://127.1/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://0x7f.0.0.1/",
    "https://0x7f000001/",
    "https://017700000001/",
    "https://127.0.0.01/",
    "https://0/",
    "https://0.0.0.0/",
    "https://10.0.0.1/",
    "https://100.64.0.1/",
    "https://100.100.100.200/",
    "https://168.63.129.16/",
    "https://169.254.169.254/latest/meta-data/",
    "https://172.16.0.1/",
    "https://192.0.0.192/",
    "https://192.168.0.1/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::127.0.0.1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::169.254.169.254]/",
    "https://[64:ff9b:1::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a9fe:a9fe::1]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[::1",
    "https://both.example.org/",
    "https://inside.example.org/",
    "https://inside.example.org./",
    "https://mapped.example.org/",
    "https://zoned.example.org/",
    "https://odd.example.org/",
)


def test_what_is_not_public_or_not_plain_is_refused() -> None:
    """No spelling of an address, and no name that leads to one, gets a request out."""
    assert {} == {url: told for url in REFUSED if (told := judge(url)) != "egress.refused"}


def test_public_places_are_reached() -> None:
    """By name, by address, at unprivileged ports, with a trailing dot, and by the ASCII form of any name."""
    reached = {
        "https://example.org": PUBLIC,
        "HTTPS://EXAMPLE.ORG/Path?q=1": PUBLIC,
        "https://example.org./": PUBLIC,
        "https://example.org:8443/": PUBLIC,
        "https://xn--bcher-kva.example/": PUBLIC,
        f"https://{PUBLIC}/": PUBLIC,
        "https://[2606:2800:220:1::1]/": "2606:2800:220:1::1",
        "https://[64:ff9b::5db8:d70e]/": "64:ff9b::5db8:d70e",
    }

    assert reached == {url: judge(url) for url in reached}


def test_a_listed_place_is_reached_and_nothing_beside_it() -> None:
    """A name, an address, a network; with a port only that port; also without TLS."""
    rows = [
        ("http://127.0.0.1:9000/", ("127.0.0.1",), "127.0.0.1"),
        ("http://127.0.0.1:9000/", ("127.0.0.1:9000",), "127.0.0.1"),
        ("http://127.0.0.1:9001/", ("127.0.0.1:9000",), "egress.refused"),
        ("http://[::1]:9000/", ("[::1]:9000",), "::1"),
        ("http://[::1]/", ("::1",), "::1"),
        ("http://[::ffff:127.0.0.1]/", ("127.0.0.0/8",), "::ffff:7f00:1"),
        ("https://10.0.0.8/", ("10.0.0.0/29",), "egress.refused"),
        ("https://inside.example.org/", ("10.0.0.0/29",), "10.0.0.7"),
        ("https://inside.example.org/", ("Inside.Example.org.",), "10.0.0.7"),
        ("https://sub.inside.example.org/", ("inside.example.org",), "egress.failed"),
        ("https://both.example.org/", ("10.0.0.7",), f"{PUBLIC} 10.0.0.7"),
        ("http://both.example.org/", ("10.0.0.7",), "egress.refused"),
        ("https://127.1/", ("127.0.0.0/8",), "egress.refused"),
    ]

    assert [row[2] for row in rows] == [judge(url, *allowed) for url, allowed, _ in rows]


def test_a_listed_place_is_written_plainly() -> None:
    """Whoever mistypes one is told, and nothing is allowed by accident."""
    wrong = ("", "*", "http://a.b/", "a b", "10.0.0.1/8", "127.1", "a.b/c", "u@a.b", "a.b:x", "[::1", "300.1.1.1")

    for given in wrong:
        with pytest.raises(InvalidValueError, match="is no place"):
            read_listed(given)


def test_nobody_knows_a_name() -> None:
    """That is a failure which may pass, and no refusal."""
    assert "egress.failed" == judge("https://nowhere.example.org/")
    silent = EgressRule(resolve=lambda *_: [])

    with pytest.raises(EgressFailedError, match="the name is not known"):
        silent.judge("https://example.org/")


def test_a_name_server_that_is_silent_is_not_waited_for() -> None:
    """The system's resolver takes no limit; the rule has one."""
    answered = threading.Event()
    rule = EgressRule(resolve=lambda *_: [PUBLIC] if answered.wait(60) else [], resolve_seconds=0.01)

    with pytest.raises(EgressFailedError, match="the name was not resolved"):
        rule.judge("https://example.org/")
    answered.set()


def test_every_address_that_python_calls_not_global_is_refused() -> None:
    """Our own list only adds to it."""
    rows = (
        "127.0.0.1",
        "10.9.9.9",
        "169.254.0.9",
        "192.0.2.1",
        "::1",
        "fe80::9",
        "2001:db8::9",
        "ff0e::1",
        "239.1.1.1",
    )

    assert [] == [one for one in rows if is_public(ipaddress.ip_address(one))]


class Other:
    """The other side of a connection: answers with given bytes, and remembers who was dialled and what was asked."""

    def __init__(self, *parts: bytes, listed: bool = True) -> None:
        self.parts = parts
        self.dialled: list[tuple[str, int]] = []
        self.asked = b""
        self.looked = 0
        self.answers = [["127.0.0.1"]]
        place = [ListedPlace(name="hooks.internal")] if listed else []
        self.rule = EgressRule(place, resolve=self.resolve)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def resolve(self, _: str, __: int) -> list[str]:
        """Answer differently each time, as a rebinding name server does."""
        self.looked += 1
        return self.answers[min(self.looked, len(self.answers)) - 1]

    def dial(self, address: str, port: int, seconds: float) -> socket.socket:
        """Connect to this side, whatever the address."""
        self.dialled.append((address, port))
        ours, theirs = socket.socketpair()
        ours.settimeout(seconds)
        thread = threading.Thread(target=self._answer, args=(theirs,), daemon=True)
        thread.start()
        self._threads.append(thread)
        return ours

    def end(self) -> None:
        """Let everything go."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _is_all(self) -> bool:
        return self.asked.endswith(b"{}" if b"Content-Length: 2\r\n" in self.asked else b"\r\n\r\n")

    def _answer(self, theirs: socket.socket) -> None:
        with theirs, contextlib.suppress(OSError):
            while not self._is_all():
                self.asked += theirs.recv(65536)
            for part in self.parts:
                if part == b"...":
                    while not self._stop.wait(0.001):
                        theirs.sendall(b"x")
                theirs.sendall(part)


@contextlib.contextmanager
def answering(*parts: bytes) -> Iterator[Other]:
    """Open the other side, and close it again."""
    other = Other(*parts)
    try:
        yield other
    finally:
        other.end()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-One: 1\r\n\r\nhi"


def test_the_judged_address_is_the_one_dialled() -> None:
    """A name server that answers with something else the second time is not asked a second time."""
    with answering(OK) as other:
        other.answers = [["127.0.0.1"], ["169.254.169.254"]]
        answer = Egress(other.rule, dial=other.dial).send("POST", "http://hooks.internal:81/a?b=c", body=b"{}")

    assert (1, [("127.0.0.1", 81)]) == (other.looked, other.dialled)
    assert (200, b"hi", "1", True) == (answer.status, answer.body, answer.headers["x-one"], answer.is_good)
    assert other.asked.startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert b"\r\nHost: hooks.internal:81\r\n" in other.asked


def test_a_host_header_of_the_callers_own_is_not_sent() -> None:
    """The name that was judged is the one that is asked for."""
    with answering(OK) as other:
        Egress(other.rule, dial=other.dial).send("GET", "http://hooks.internal/", headers={"Host": "evil.example"})

    assert b"evil" not in other.asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """The other side would choose where we go."""
    said = f"HTTP/1.1 {status} Go\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n".encode()

    with answering(said) as other, pytest.raises(EgressRedirectedError):
        Egress(other.rule, dial=other.dial).send("GET", "http://hooks.internal/")
    assert 1 == len(other.dialled)


def test_an_answer_that_is_too_large_is_given_up() -> None:
    """Also one that says nothing of its length. Whoever wants no body is not bothered."""
    endless = (b"HTTP/1.1 200 OK\r\n\r\n", b"...")

    with answering(*endless) as other, pytest.raises(EgressTooLargeError):
        Egress(other.rule, limits=EgressLimits(answer_bytes=100), dial=other.dial).send("GET", "http://hooks.internal/")
    with answering(*endless) as other:
        answer = Egress(other.rule, dial=other.dial).send("POST", "http://hooks.internal/", wants_body=False)
    assert (200, b"") == (answer.status, answer.body)


def test_an_answer_that_drips_is_given_up() -> None:
    """Each byte comes in time, and all of them together never end."""
    with answering(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"...") as other, pytest.raises(EgressFailedError) as told:
        Egress(other.rule, limits=EgressLimits(seconds=0.05), dial=other.dial).send("GET", "http://hooks.internal/")

    # It drips quickly here, so either the time is up or the line is longer than any header.
    assert "longer than 0.05 seconds" in str(told.value) or "LineTooLong" in str(told.value)


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 20"])
def test_an_answer_that_is_not_http_is_a_failure(said: bytes) -> None:
    """One error, whatever came."""
    with answering(said) as other, pytest.raises(EgressFailedError):
        Egress(other.rule, dial=other.dial).send("GET", "http://hooks.internal/")


def test_an_answer_that_breaks_off_is_a_failure() -> None:
    """Half a card is none."""
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf"

    with answering(half) as other, pytest.raises(EgressFailedError, match="IncompleteRead"):
        Egress(other.rule, dial=other.dial).send("GET", "http://hooks.internal/")


def test_the_next_address_is_tried() -> None:
    """One address that does not answer is not the end, and the last failure is told."""
    with answering(OK) as other:
        other.answers = [["127.0.0.1", "127.0.0.2"]]

        def dial(address: str, port: int, seconds: float) -> socket.socket:
            if address == "127.0.0.1":
                raise ConnectionRefusedError(111, "Connection refused")
            return other.dial(address, port, seconds)

        answer = Egress(other.rule, dial=dial).send("GET", "http://hooks.internal/")
    with pytest.raises(EgressFailedError, match="longer than 0 seconds"):
        Egress(other.rule, limits=EgressLimits(seconds=0), dial=other.dial).send("GET", "http://hooks.internal/")

    assert (200, [("127.0.0.2", 80)]) == (answer.status, other.dialled)


def test_a_refusal_does_not_quote_what_may_be_secret() -> None:
    """Paths and queries of webhooks are passwords, as often as not."""
    with pytest.raises(EgressRefusedError) as told:
        EgressRule(resolve=resolve).judge("https://inside.example.org/T000/hunter2?key=hunter2")

    assert "hunter2" not in str(told.value)
    assert "https://inside.example.org" in str(told.value)
