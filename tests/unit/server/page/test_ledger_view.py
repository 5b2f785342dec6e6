"""The ledger on the page: searched with the filters of the command line, one receipt step by step, and seals."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from urllib.parse import urlencode

import pytest

from batonpass.audit.grep import SearchPattern, find_matches
from batonpass.model.base.ids import StreamId
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from tests.page.scene import play
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Play a task once: nobody changes it here."""
    directory = tmp_path_factory.mktemp("ledger")
    play(directory, stores=3)
    home = directory / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=directory, keys_in_files=True) as relay:
        yield a_house(relay)


@pytest.fixture(scope="module")
def browser(house: House) -> Browser:
    """Return an auditor."""
    return a_browser(house, "auditor")


def listed(browser: Browser, **filters: str) -> list[str]:
    """Return the receipts that the page lists, on all of its pages, the oldest first."""
    address, found = f"/ledger?{urlencode(filters)}", list[str]()
    while address:
        shown = unescape(browser.get(address).body.decode())
        found += re.findall(r'href="/ledger/receipts/(receipt_\w+)"', shown)
        more = re.search(r'rel="next" href="([^"]+)"', shown)
        address = more[1] if more else ""
    return found[::-1]


@pytest.mark.parametrize(
    ("filters", "pattern", "query"),
    [
        pytest.param({"q": "EAST"}, "(?i)east", ReceiptQuery(), id="words, in any case"),
        pytest.param({"q": "store [0-9]+$", "pattern": "yes"}, "(?i)store [0-9]+$", ReceiptQuery(), id="a pattern"),
        pytest.param({"q": "+31 and -24"}, r"\+31 and -24", ReceiptQuery(), id="words that look like a pattern"),
        pytest.param({"q": "store", "kind": "tool"}, "(?i)store", ReceiptQuery(kind="tool"), id="words in a family"),
        pytest.param(
            {"q": "store", "kind": "tool.requested"}, "store", ReceiptQuery(kind="tool.requested"), id="a kind"
        ),
    ],
)
def test_the_search_finds_the_receipts_of_the_command_line(
    house: House, browser: Browser, filters: dict[str, str], pattern: str, query: ReceiptQuery
) -> None:
    """All of them, and no others; in each the first match stands out."""
    with house.relay.store.view() as view:
        grepped = [*dict.fromkeys(match.receipt for match in find_matches(view, SearchPattern(pattern), query))]

    assert grepped
    assert grepped == listed(browser, **filters)
    assert b"<mark>" in browser.get(f"/ledger?{urlencode(filters)}").body


def test_receipts_are_filtered_by_agent_and_age(house: House, browser: Browser) -> None:
    """An agent's are those of its runs; an age and a day mean the same as in a command."""
    with house.relay.store.view() as view:
        runs = {run.id for run in view.find_runs() if run.agent == "analyst"}
        own = [stored.id for run in runs for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run)))]
        every = [stored.id for stored in view.find_receipts(ReceiptQuery())]
    tomorrow = f"{house.plane.clock.now() + timedelta(days=1):%Y-%m-%d}"

    assert sorted(own) == sorted(listed(browser, agent="analyst"))
    assert every == listed(browser, since="2d")
    assert every == listed(browser, since="2026-01-01")
    assert [] == listed(browser, since=tomorrow)


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        pytest.param({"since": "soon"}, "neither an age such as 30m, 12h, 2d or 1w nor a date", id="no time"),
        pytest.param({"q": "(", "pattern": "yes"}, "is not a regular expression of RE2", id="no pattern"),
    ],
)
def test_a_filter_that_is_none_has_the_sentence_of_the_command_line(
    browser: Browser, filters: dict[str, str], sentence: str
) -> None:
    """And what was typed is not searched for."""
    answer = browser.get(f"/ledger?{urlencode(filters)}")

    assert (400, True) == (answer.status, sentence in unescape(answer.body.decode()))


def test_each_row_says_who_it_is_about(browser: Browser) -> None:
    """Also where a receipt has no words of its own."""
    shown = browser.get("/ledger?kind=handoff.accepted").body.decode()
    rows = re.findall(r'<td class="who-cell"><span class="clip">(\w+)</span> <span class="id">', shown)

    assert {"analyst", "scout", "compiler"} <= {*rows}


def test_a_receipt_has_its_raw_form_and_its_verification_step_by_step(house: House, browser: Browser) -> None:
    """The envelope is the one that is signed; every step has a name, a word for its outcome, and holds."""
    with house.relay.store.view() as view:
        stored = next(iter(view.find_receipts(ReceiptQuery(kind="handoff.initiated"))))
    shown = unescape(browser.get(f"/ledger/receipts/{stored.id}").body.decode())
    raw = re.search(r'aria-label="The raw form">(.*?)</pre>', shown, re.DOTALL)
    steps = re.findall(r'<li><svg [^>]*aria-label="([^"]+)"', shown[shown.index('class="checks"') :])

    assert raw
    assert {"payload", "payloadType", "signatures"} <= json.loads(raw[1]).keys()
    assert {"holds", "cannot be told here"} == {*steps}
    assert steps.count("holds") > len(steps) / 2
