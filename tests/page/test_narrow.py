"""What is narrow or long: a phone with a finger, and names and words that fill every line."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from batonpass import Relay
from batonpass.errors import HandoffAskedError
from tests.page.conftest import PATIENCE, Opener, ServedPage
from tests.page.large_task import play_large
from tests.page.test_more_views import WAYS, StoryPage, faults
from tests.page.test_page import AXE, addresses
from tests.page.wire import Wire

expect.set_options(timeout=PATIENCE * 1000)
PHONE: Final = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LONGEST_NAME: Final = "w" * 128
LONG_WORD: Final = "W" * 300
# What is pressed, chosen or written in, and is lower than a finger is wide.
SMALL: Final = """() => [...document.querySelectorAll(
  'main .button, main button, main select, main input:not([type=radio], [type=checkbox], [type=hidden])'
)].filter(one => one.offsetParent && (one.closest('.find') ?? one).getBoundingClientRect().height < 43.5)
  .map(one => one.textContent.trim().slice(0, 20) || one.name)"""

# Words of the bar that take more than its one line.
BROKEN: Final = """() => [...document.querySelectorAll('.bar .brand, .bar nav a, .bar summary')]
  .filter(one => one.offsetParent && one.offsetHeight > 48).map(one => one.textContent.trim())"""


def _play_long(directory: Path) -> None:
    """Record a task whose agents and words are as long as they may be."""
    home = directory / ".batonpass"
    (directory / "batonpass.toml").write_text("[policy]\n", encoding="utf-8")
    with Relay.open(
        home / "ledger.db", home=home, policy=directory / "batonpass.toml", work_tree=directory, keys_in_files=True
    ) as relay:
        lead = relay.start(LONG_WORD, by="user:ana", agent="lead")
        for name in (LONGEST_NAME, f"v{LONGEST_NAME[1:]}"):
            with suppress(RuntimeError), lead.hand_off(name, LONG_WORD):
                raise RuntimeError(LONG_WORD)
        lead.hand_off(f"h{LONGEST_NAME[1:]}", LONG_WORD, hold=True)
        asked = lead.hand_off(f"a{LONGEST_NAME[1:]}", LONG_WORD)
        with suppress(HandoffAskedError):
            asked.ask(LONG_WORD)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[StoryPage]:
    """Serve it."""
    del chromium
    server = StoryPage(tmp_path_factory.mktemp("long"), _play_long)
    yield server
    server.end()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[StoryPage]:
    """Serve a task of hundreds of runs."""
    del chromium
    server = StoryPage(tmp_path_factory.mktemp("large"), play_large)
    yield server
    server.end()


@pytest.mark.slow
@pytest.mark.parametrize(("options", "name"), WAYS, ids=[name for _, name in WAYS])
def test_the_longest_names_and_words_fit(
    long: StoryPage, somebody: Opener, options: dict[str, object], name: str
) -> None:
    """Nothing is wider than the window, and in a list words keep most of their row."""
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test-page` installs it")
    del name
    page = somebody(long, "operator", **options)
    task, handoff = f"/tasks/{long.root}", long.handoffs[LONGEST_NAME]
    views = ["/", "/tasks", task, f"{task}?as=time", f"{task}?as=list", f"/handoffs/{handoff}", "/handoffs"]
    found = faults(page, [*views, "/approvals", "/ledger", "/agents", f"/agents/{LONGEST_NAME}", "/find?q=lead"])
    page.goto(f"{task}?as=list")
    width = page.evaluate(
        "document.querySelector('.words-cell').offsetWidth / document.querySelector('.rows').offsetWidth"
    )

    assert [] == found
    assert width > 0.3


@pytest.mark.slow
def test_everything_that_is_pressed_on_a_phone_is_as_high_as_a_finger_is_wide(
    shown: ServedPage, somebody: Opener
) -> None:
    """Buttons, fields and choices, in every view."""
    page = somebody(shown, "operator", **PHONE)
    small = {}
    for address in addresses(shown):
        page.goto(address)
        small[address] = page.evaluate(SMALL)

    assert {} == {address: found for address, found in small.items() if found}


@pytest.mark.slow
@pytest.mark.parametrize("width", [769, 900, 1024, 1199, 1201, 1280])
def test_the_bar_is_one_line_in_every_window(shown: ServedPage, somebody: Opener, width: int) -> None:
    """Where there is no room for all of it, it has a menu; no word of it is broken."""
    page = somebody(shown, "auditor", viewport={"width": width, "height": 700})
    broken = page.evaluate(BROKEN)
    wide = page.evaluate("document.querySelector('.bar').scrollWidth - innerWidth")

    assert ([], True) == (broken, wide <= 0)
    assert page.locator("#menu-button").is_visible() or page.locator("#find").is_visible()


@pytest.mark.slow
def test_the_menu_of_a_phone_has_what_the_bar_has(served: ServedPage, somebody: Opener) -> None:
    """The views, the box that finds anything, and the way out."""
    page = somebody(served, "operator", **PHONE)
    expect(page.locator("#find")).to_be_hidden()
    page.click("#menu-button")
    expect(page.get_by_role("link", name="Ledger")).to_be_visible()
    page.fill("#find", "board")
    page.press("#find", "Enter")
    expect(page.locator("h1")).to_contain_text("board")
    page.click("#menu-button")
    page.click("#who summary")
    page.get_by_role("button", name="Leave").click()
    page.wait_for_url(f"{served.address}/enter")


@pytest.mark.slow
def test_a_phone_is_told_that_the_connection_is_lost(served: ServedPage, somebody: Opener) -> None:
    """Nothing stands there while it is live."""
    with Wire(served.address) as wire:
        page = somebody(served, "operator", base_url=wire.address, **PHONE)
        page.goto(f"/tasks/{served.root}")
        expect(page.locator("#live")).to_have_attribute("data-live", "on")
        expect(page.locator("#live")).to_be_hidden()
        wire.cut()
        expect(page.get_by_text("not live since")).to_be_visible()


@pytest.mark.slow
def test_depth_is_to_be_seen_in_a_list(shown: ServedPage, somebody: Opener) -> None:
    """What was handed on from a handoff begins further to the right."""
    page = somebody(shown, "auditor")
    page.goto(f"/tasks/{shown.root}?as=list")
    left = page.evaluate(
        "[...document.querySelectorAll('.words-cell a')].slice(0, 2).map(one => one.getBoundingClientRect().left)"
    )

    assert left[1] - left[0] > 15


@pytest.mark.slow
def test_hours_are_those_of_whoever_looks(shown: ServedPage, somebody: Opener) -> None:
    """Where it is half past in other places, so it is under the chart."""
    here, there = (
        somebody(shown, "auditor", timezone_id=zone).locator(".hours time").first.inner_text()
        for zone in ("UTC", "Asia/Kolkata")
    )

    assert (":00", ":30") == (here[2:], there[2:])


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1000, 1280, 1800])
def test_nothing_sticks_out_of_a_card(long: StoryPage, large: StoryPage, somebody: Opener, width: int) -> None:
    """However long a name is, and whatever stands beside it."""
    outside = {}
    for server in (long, large):
        page = somebody(server, "operator", viewport={"width": width, "height": 800})
        page.goto(f"/tasks/{server.root}")
        outside[server.root] = page.evaluate(
            "[...document.querySelectorAll('.node .head > *')].filter(one => one.getBoundingClientRect().right"
            " > one.closest('.node').getBoundingClientRect().right).map(one => one.textContent)"
        )

    assert {} == {root: found for root, found in outside.items() if found}


@pytest.mark.slow
def test_four_levels_stand_beside_each_other(large: StoryPage, somebody: Opener) -> None:
    """On a usual screen nobody has to look for what was handed on in the dark behind an edge."""
    page = somebody(large, "operator")
    page.goto(f"/tasks/{large.root}")
    hidden = page.evaluate(
        "[...document.querySelectorAll('#tree .node')].filter(one => one.getBoundingClientRect().right"
        " > document.querySelector('#tree').getBoundingClientRect().right).length"
    )

    assert 0 == hidden


@pytest.mark.slow
def test_a_cell_of_a_table_stays_beside_its_name_on_a_phone(shown: ServedPage, somebody: Opener) -> None:
    """Who decided something is one line: a sign, and a name beside it."""
    page = somebody(shown, "auditor", **PHONE)
    page.goto(f"/handoffs/{shown.handoffs['writer']}")

    assert page.locator('.stack td[data-name="by"]').first.bounding_box()["height"] < 30  # type: ignore[index]


@pytest.mark.slow
def test_the_part_that_is_shown_is_among_the_parts_in_sight(shown: ServedPage, somebody: Opener) -> None:
    """A phone has no room for the names of all parts of a handoff."""
    page = somebody(shown, "auditor", **PHONE)
    page.goto(f"/handoffs/{shown.handoffs['biller']}?part=calls")

    expect(page.locator(".tabs [aria-current]")).to_be_in_viewport()


@pytest.mark.slow
def test_the_squares_of_a_task_are_to_be_seen_on_a_phone(large: StoryPage, somebody: Opener) -> None:
    """However many there are."""
    page = somebody(large, "operator", **PHONE)
    page.goto(f"/tasks/{large.root}")

    assert page.locator(".overview .strip").bounding_box()["height"] > 30  # type: ignore[index]
    assert page.locator(".overview .strip rect").nth(200).bounding_box()["height"] > 5  # type: ignore[index]
