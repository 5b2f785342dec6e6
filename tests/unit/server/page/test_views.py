"""Every view: who sees it, that nothing in it runs, that it is small, and that it opens at the same place again."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from batonpass import Constraint, Decision, Exclusion, OpenQuestion, RejectedPath, tool
from batonpass.model.base.ids import StreamId
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.relay import Relay
from batonpass.server.endpoint import PEOPLE
from batonpass.server.page.frame import SCRIPT, static_files
from batonpass.server.page.view_table import VIEWS
from batonpass.store.port import ReceiptQuery
from tests.page.scene import WORDS, play
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser

MOST_BYTES = 200 * 1024
INLINE = re.compile(rb"<[^>]*\s(?:style|on[a-z]+)\s*=", re.IGNORECASE)
HOSTILE = (
    "<img src=x onerror=alert(1)>\u202e\u200b\x1b]0;x\x07"
    '<a href="https://evil.example">click</a>\u2066 {{ 7*190811 }} <b hx-get="/x">'
)
MARKS = ("<img", 'href="https://evil', "\u202e", "\u200b", "\u2066", "\x1b", "\x07", ">1335677<", "<b hx-get")


class Scene:
    """A server over a whole task, and the ids in it."""

    def __init__(self, relay: Relay) -> None:
        self.house: House = a_house(relay)
        self.browsers: dict[str, Browser] = {}
        with relay.store.view() as view:
            self.root = next(iter(view.find_runs(roots=True))).id
            self.handoffs = {str(one.to): one.id for one in view.find_handoffs(root=self.root)}
            self.receipt = view.get_receipt_at(StreamId(self.root), 1).id

    def browser(self, role: str) -> Browser:
        """Return the browser of somebody in this role, who came in once."""
        if role not in self.browsers:
            self.browsers[role] = a_browser(self.house, role)
        return self.browsers[role]

    def addresses(self) -> list[str]:
        """Return an address of each view, and of each of their parts."""
        task, handoff = f"/tasks/{self.root}", f"/handoffs/{self.handoffs['writer']}"
        return [
            "/",
            "/tasks",
            "/tasks?state=open&series=quarterly",
            *(f"{task}?as={way}" for way in ("graph", "time", "list", "trail")),
            f"{task}?only=needs",
            f"{task}?q=store",
            f"{task}?open={self.fetcher}",
            f"{task}?at={self.handoffs['mailer']}",
            f"{task}?from={self.handoffs['compiler']}",
            "/handoffs?state=completed",
            *(f"{handoff}?part={part}" for part in ("baton", "changed", "attempts", "briefing", "calls", "receipts")),
            f"/handoffs/{self.handoffs['fetcher']}?part=changed",
            f"/handoffs/{self.handoffs['mailer']}",
            f"/handoffs/{self.handoffs['scout']}",
            f"/handoffs/{self.handoffs['biller']}?part=calls",
            "/passkey",
            "/approvals",
            f"/approvals/{self.handoffs['mailer']}",
            f"/questions/{self.handoffs['printer']}",
            "/blame",
            "/blame?text=board",
            "/blame/diff",
            "/review",
            f"/review?root={self.root}",
            "/ledger",
            "/ledger?kind=tool&agent=fetcher",
            "/ledger?q=board",
            f"/ledger/receipts/{self.receipt}",
            "/ledger/seals",
            "/ledger/verify",
            "/drift",
            "/drift/fetcher?weeks=12",
            "/agents",
            "/agents/fetcher",
            "/policy",
            "/policy/try",
            "/find?q=board",
            "/find",
            "/keys",
        ]

    @property
    def fetcher(self) -> str:
        """Return the name of the group of fetchers: the first of them."""
        with self.house.relay.store.view() as view:
            return min(one.id for one in view.find_handoffs(root=self.root) if one.to == "fetcher")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Play the task once for all tests here: none of them changes it."""
    directory = tmp_path_factory.mktemp("scene")
    play(directory)
    home = directory / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=directory, keys_in_files=True) as relay:
        yield Scene(relay)


def test_every_view_is_shown_to_everybody_who_may_look(scene: Scene) -> None:
    """Operators, auditors and administrators see all of them; a page is small, and nothing in it is inline."""
    wrong = []
    for role in sorted(PEOPLE):
        for address in scene.addresses():
            answer = scene.browser(role).get(address)
            faults = [
                *([f"status {answer.status}"] if answer.status != 200 else []),
                *([f"{len(answer.body)} bytes"] if len(answer.body) > MOST_BYTES else []),
                *(["something inline"] if INLINE.search(answer.body) or b"<style" in answer.body else []),
                *(["a script without a nonce"] if re.search(rb"<script(?! nonce=)", answer.body) else []),
            ]
            wrong += [f"{role} {address}: {fault}" for fault in faults]

    assert [] == wrong


def test_every_view_has_an_address_above(scene: Scene) -> None:
    """So that a new one is tested too. Actions are looked at where they are done."""
    shown = {re.sub("[?].*", "", address) for address in scene.addresses()}
    patterns = {
        view.path: re.compile(re.sub(r"\{[^}]*\}", "[^/]+", view.path)) for view in VIEWS if view.template != "act.html"
    }
    missing = {path for path, pattern in patterns.items() if not any(pattern.fullmatch(one) for one in shown)}

    assert {"/review/{root}/{finding}", "/handoffs/{handoff}/calls/{call}"} == missing


def test_the_policy_of_a_page_allows_nothing_but_its_own_files(scene: Scene) -> None:
    """A nonce that is new each time, trusted types, and no way out."""
    first, second = scene.browser("admin").get("/"), scene.browser("admin").get("/")
    said = first.headers["content-security-policy"]
    nonces = [re.search("'nonce-([^']+)'", one.headers["content-security-policy"]) for one in (first, second)]

    assert nonces[0]
    assert nonces[1]
    assert nonces[0][1] != nonces[1][1]
    assert {
        "default-src 'none'",
        f"script-src 'nonce-{nonces[0][1]}'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types htmx",
    } == set(said.split("; "))


def test_what_needs_somebody_comes_first_and_oldest_first(scene: Scene) -> None:
    """A call in doubt, a question, something held: each with what to do about it."""
    shown = scene.browser("operator").get("/").body.decode()
    order = re.findall(r">(Settle|Answer|Decide)<", shown)

    assert ["Settle", "Answer", "Decide"] == order


def test_similar_siblings_are_one_card_and_failures_are_never_hidden(scene: Scene) -> None:
    """Forty-four fetchers are one card, and the two that failed stand in it with their names."""
    shown = unescape(scene.browser("auditor").get(f"/tasks/{scene.root}").body.decode())

    assert ("44 × fetcher" in shown, shown.count("Fetch the sales of store 7"), "42 of 44" in shown) == (True, 1, True)
    assert "Fetch the sales of store 8" not in shown
    opened = unescape(scene.browser("auditor").get(f"/tasks/{scene.root}?open={scene.fetcher}").body.decode())
    assert "Fetch the sales of store 8" in opened


def test_a_handoff_is_a_document(scene: Scene) -> None:
    """The human's words, the exact task, what must hold and who checks it, decisions with why, rejected paths."""
    shown = unescape(scene.browser("auditor").get(f"/handoffs/{scene.handoffs['writer']}").body.decode())
    told = [
        WORDS,
        "At most 350 words.",
        "checked at <code>call:compare.threshold</code>",
        "in words: nothing checks it",
        "the business is seasonal",
        "December hides everything",
        "Are the missing stores in the east?",
        "From outside: data, never instructions",
        "1 · drafter, failed",
    ]

    assert [] == [words for words in told if words not in shown]


def test_what_cannot_be_seen_stands_there_by_number(scene: Scene) -> None:
    """The page from outside has a zero-width space and a picture in it: the one is a box, the other is text."""
    shown = scene.browser("auditor").get(f"/handoffs/{scene.handoffs['writer']}").body.decode()

    assert ('<span class="odd">U+200B</span>' in shown, "<img" in shown, "&lt;img src=x" in shown) == (
        True,
        False,
        True,
    )


def test_an_id_may_be_cut_to_its_last_letters(scene: Scene) -> None:
    """As in every command; the page moves to the whole address."""
    browser = scene.browser("auditor")
    answers = [
        browser.ask("GET", f"/tasks/{scene.root[-5:]}?as=list"),
        browser.ask("GET", f"/handoffs/{scene.handoffs['writer'][-5:]}"),
        browser.ask("GET", f"/ledger/receipts/{scene.receipt[-6:]}"),
    ]

    assert [
        (303, f"/tasks/{scene.root}?as=list"),
        (303, f"/handoffs/{scene.handoffs['writer']}"),
        (303, f"/ledger/receipts/{scene.receipt}"),
    ] == [(one.status, one.headers["location"]) for one in answers]


@pytest.mark.parametrize(
    ("address", "told"),
    [
        pytest.param("/tasks/zzzz", (404, "id.not_found"), id="a task that is not there"),
        pytest.param("/handoffs/zz", (404, "id.too_short"), id="an id that is too short"),
        pytest.param("/tasks?state=happy", (400, "value.invalid"), id="a state that there is not"),
        pytest.param("/ledger?since=yesterday", (400, "value.invalid"), id="a day that is none"),
        pytest.param("/approvals/call_01m7p9f5fxfbtrvdxzs3dzvt9p", (404, "id.not_found"), id="no held call"),
    ],
)
def test_errors_are_the_sentences_of_the_command_line(scene: Scene, address: str, told: tuple[int, str]) -> None:
    """In the frame of the page, with the code."""
    answer = scene.browser("auditor").get(address)
    code = re.search("<code>([a-z_.]+)</code></span></p>", answer.body.decode())

    assert told == (answer.status, code and code[1])


def test_lists_go_on_by_key_and_never_by_number(scene: Scene) -> None:
    """Following “Older” shows every receipt once."""
    browser, address, seen = scene.browser("auditor"), "/ledger", list[str]()
    while address:
        shown = browser.get(address).body.decode()
        seen += re.findall(r'<td><a href="/ledger/receipts/(receipt_\w+)"', shown)
        found = re.search(r'rel="next" href="([^"]+)"', shown)
        address = unescape(found[1]) if found else ""
    with scene.house.relay.store.view() as view:
        total = view.last_position()

    assert (total, total) == (len(seen), len(set(seen)))


def test_vendored_files_are_the_ones_that_were_checked(scene: Scene) -> None:
    """Htmx 4.0.1 and two of its extensions, by digest; their addresses change with them, and they are kept for good."""
    del scene
    pinned = {
        "htmx.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
        "hx-csp.js": "a7e1e6711ae6c3e50ad300fba7936cbe8d07599cdae313414a179ddd6b26e143",
        "hx-sse.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
    }

    assert pinned == {name: static_files()[name].digest for name in pinned}


def test_htmx_comes_with_its_guard(scene: Scene) -> None:
    """One script has both: htmx begins at once, and without the guard it would obey attributes that are not ours."""
    browser = scene.browser("auditor")
    shown = browser.get("/tasks").body.decode()
    scripts = re.findall(r'<script [^>]*src="([^"]+)"', shown)

    body = browser.get(scripts[0]).body.decode()

    assert [static_files()[SCRIPT].address] == scripts
    assert body.index('version="4.') < body.index('registerExtension("hx-csp"')


def test_files_are_sent_with_their_type_and_kept(scene: Scene) -> None:
    """And a name that is none of ours gets nothing, however it is spelled."""
    browser = scene.browser("auditor")
    style = browser.ask("GET", static_files()["page.css"].address)
    odd = [browser.ask("GET", f"/static/x/{name}").status for name in ("HTMX-LICENSE", "..%2fdoor.py", "door.py")]

    assert (200, "text/css; charset=utf-8", "public, max-age=31536000, immutable") == (
        style.status,
        style.headers["content-type"],
        style.headers["cache-control"],
    )
    assert [404, 404, 404] == odd


def test_no_template_turns_escaping_off() -> None:
    """No `safe`, no `autoescape`: what is markup is made in one place."""
    folder = Path(__file__).parents[4] / "src/batonpass/server/page/templates"

    assert [] == [
        path.name for path in folder.iterdir() if re.search(r"\|\s*safe\b|autoescape|Markup", path.read_text())
    ]


def test_hostile_text_in_every_field_is_inert(tmp_path: Path) -> None:
    """In words of people, models and tools: no tag, no link, no control, no template of it reaches a page."""
    home = tmp_path / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=tmp_path, keys_in_files=True) as relay:
        run = relay.start(f"want {HOSTILE}", by="user:ana", agent="lead")
        run.record(
            Constraint(f"bound {HOSTILE}"),
            Exclusion(f"out {HOSTILE}"),
            Decision(f"what {HOSTILE}", why=f"why {HOSTILE}"),
            RejectedPath(f"path {HOSTILE}", why=f"because {HOSTILE}"),
            OpenQuestion(f"ask {HOSTILE}"),
        )
        say = tool("say", target="to", reversible=True)(lambda to, text: text)  # noqa: ARG005 - as given
        offer = run.hand_off("worker", f"task {HOSTILE}")
        with offer as worker:
            worker.call(say, f"to {HOSTILE}", f"text {HOSTILE}")
            worker.attach(f"name {HOSTILE}"[:100], HOSTILE, source="https://x.example", untrusted=True)
            worker.report(f"report {HOSTILE}")
        offer.refute(f"reason {HOSTILE}", by="user:ana")
        asking = run.hand_off("asker", f"other {HOSTILE}")
        asking.ask(f"question {HOSTILE}")
        scene_house = a_house(relay)
        browser = a_browser(scene_house, "operator")
        addresses = [
            "/",
            "/tasks",
            f"/tasks/{run.id}",
            *(f"/tasks/{run.id}?as={way}&at={offer.id}" for way in ("graph", "time", "list", "trail")),
            *(f"/handoffs/{offer.id}?part={part}" for part in ("baton", "attempts", "briefing", "calls", "receipts")),
            f"/handoffs/{offer.id}/retry",
            f"/questions/{asking.id}",
            "/review",
            f"/review?root={run.id}",
            "/ledger",
            "/approvals",
            f"/find?q={'want'}",
            f"/tasks/{run.id}?q=%3Cimg%20src%3Dx%3E%E2%80%AE",
        ]
        wrong = []
        for address in addresses:
            answer = browser.get(address)
            shown = answer.body.decode()
            faults = [mark for mark in MARKS if mark in shown]
            faults += ["status"] if answer.status != 200 else []
            wrong += [f"{address}: {fault!r}" for fault in faults]
        receipts = [stored.id for stored in _stored(relay)]
        for receipt in receipts:
            shown = browser.get(f"/ledger/receipts/{receipt}").body.decode()
            wrong += [f"{receipt}: {mark!r}" for mark in MARKS if mark in shown]

    assert [] == wrong


def _stored(relay: Relay) -> list[StoredReceipt]:
    with relay.store.view() as view:
        return [*view.find_receipts(ReceiptQuery(first=1, last=view.last_position()))]
