"""Blame, drift, agents, policy, Now and a task of hundreds of runs, in a real browser."""

import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from batonpass.demo import pull_request
from tests.page.conftest import Opener, ServedPage
from tests.page.large_task import play_large
from tests.page.test_page import AXE, violations

WAYS = [
    ({}, "desktop, light"),
    ({"color_scheme": "dark"}, "dark"),
    ({"forced_colors": "active"}, "forced colours"),
    ({"viewport": {"width": 320, "height": 640}}, "320 pixels"),
    ({"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}, "a phone"),
]
EVIL = "<img src=x onerror='window.harmed = 1'><script>window.harmed = 2</script>\u202e\u200b"


class StoryPage(ServedPage):
    """A server over another story, that shows the files of its directory."""

    options = ("--repository", ".")

    def __init__(self, directory: Path, play: Callable[[Path], object]) -> None:
        self.directory = directory
        play(directory)
        self.relay = self._relay()
        self.tokens = {
            "operator": self.relay.admin.add_token(
                "user:operator", "operator", by="user:ana", lasts=timedelta(hours=1)
            ).text
        }
        with self.relay.store.view() as view:
            self.root = next(iter(view.find_runs(roots=True))).id
            self.handoffs = {str(one.to): one.id for one in view.find_handoffs(root=self.root)}
        self.process = self._start()


def _play_pull_request(directory: Path) -> None:
    list(pull_request.play(directory))
    (directory / "batonpass.toml").write_text("[policy]\n", encoding="utf-8")
    (directory / "evil.py").write_text(f"x = 1\n# {EVIL}\n", encoding="utf-8")
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org", "-c", "commit.gpgsign=false")
    for words in (("add", "evil.py"), ("commit", "--quiet", "--message=more")):
        subprocess.run(["git", "-C", directory, *who, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[StoryPage]:
    """Serve the story of a pull request, with its repository."""
    del chromium
    server = StoryPage(tmp_path_factory.mktemp("story"), _play_pull_request)
    yield server
    server.end()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[StoryPage]:
    """Serve a task of hundreds of runs."""
    del chromium
    server = StoryPage(tmp_path_factory.mktemp("large"), play_large)
    yield server
    server.end()


def faults(page: Page, addresses: list[str]) -> list[str]:
    """Return what axe-core finds, and what is wider than the window."""
    wrong = []
    for address in addresses:
        page.goto(address)
        wrong += [f"{address}: {one}" for one in violations(page)]
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wrong += [f"{address}: {wide} too wide"] if wide > 0 else []
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(("options", "name"), WAYS, ids=[name for _, name in WAYS])
def test_blame_and_the_fleet_are_accessible_and_fit(
    story: StoryPage, somebody: Opener, options: dict[str, object], name: str
) -> None:
    """No violation that axe-core knows, nothing in the console, nothing wider than the window."""
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test-page` installs it")
    del name
    page = somebody(story, "operator", **options)
    addresses = [
        "/",
        "/blame",
        "/blame?path=src/invoice.py&line=8",
        "/blame?path=evil.py&line=2",
        "/blame?text=round+down",
        "/blame?as=digest",
        "/blame/diff",
        "/drift",
        "/drift/fixer?weeks=12",
        "/agents",
        "/agents/fixer",
        "/policy",
        "/policy/try",
    ]

    assert [] == faults(page, addresses)
    assert [] == somebody.said  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "name"), WAYS, ids=[name for _, name in WAYS])
def test_hundreds_of_runs_are_accessible_and_fit(
    large: StoryPage, somebody: Opener, options: dict[str, object], name: str
) -> None:
    """As a graph, in time and as a list."""
    if not AXE.exists():
        pytest.skip("axe-core is not there; `make test-page` installs it")
    del name
    page = somebody(large, "operator", **options)
    task = f"/tasks/{large.root}"

    assert [] == faults(page, [task, f"{task}?as=time", f"{task}?as=list", f"{task}?only=needs"])
    assert [] == somebody.said  # type: ignore[attr-defined]


@pytest.mark.slow
def test_hundreds_of_runs_stay_readable(large: StoryPage, somebody: Opener) -> None:
    """Finished ones that do the same are one card; every failure and every letter that waits is to be seen."""
    page = somebody(large, "operator")
    page.goto(f"/tasks/{large.root}")
    with large.relay.store.view() as view:
        rows = [*view.find_handoffs(root=large.root)]
    urgent = [one.id for one in rows if str(one.state) in {"held", "failed", "asked", "running"}]
    shown = page.content()

    assert len(rows) > 450
    assert page.locator("#tree article").count() <= 300
    assert len(urgent) >= 10
    assert [] == [one for one in urgent if one not in shown]


@pytest.mark.slow
def test_a_large_task_is_walked_by_keys(large: StoryPage, somebody: Opener) -> None:
    """`n` goes from one that needs somebody to the next; arrows go down, in and out; space opens a group."""
    page = somebody(large, "operator")
    page.goto(f"/tasks/{large.root}")
    focused = "document.activeElement.dataset.open || document.activeElement.href"
    needs = []
    for _ in range(5):
        page.keyboard.press("n")
        needs.append(page.evaluate(focused))
    page.keyboard.press("ArrowLeft")
    above = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowRight")
    below = page.evaluate("document.activeElement.textContent")

    assert 5 == len(set(needs))
    assert "regional" == above
    assert "regional" != below
    group = page.locator("[data-card][aria-expanded=false]").first
    group.focus()
    page.keyboard.press("Space")
    expect(page.locator("[data-card][aria-expanded=true]")).to_have_count(1)


@pytest.mark.slow
def test_time_is_folded_where_nobody_worked(large: StoryPage, somebody: Opener) -> None:
    """The root is still open: the time since then is a tear, and the work before it has the room."""
    page = somebody(large, "operator")
    page.wait_for_timeout(2500)
    page.goto(f"/tasks/{large.root}?as=time")

    expect(page.locator(".timeline")).to_contain_text("in which nobody worked")
    assert page.locator(".timeline tbody tr").count() <= 300
    assert page.locator("a[rel=next]").count() == 1


@pytest.mark.slow
def test_a_line_leads_to_the_humans_words_by_keyboard_alone(story: StoryPage, somebody: Opener) -> None:
    """From the menu to the file, to the line, to its chain, to the file before the change."""
    page = somebody(story, "operator")
    page.keyboard.press("g")
    page.keyboard.press("b")
    page.wait_for_url(re.compile("/blame$"))
    page.fill("input[name=what]", "src/invoice.py:8")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("line=8"))
    side = page.locator("aside.side")
    expect(side).to_contain_text("Fix ticket 118: invoice totals are off by a cent")
    expect(side).to_contain_text("5 receipts verified")
    page.locator("#L3").focus()
    page.keyboard.press("Enter")
    expect(side).to_contain_text("Before the record.")
    page.go_back()
    page.get_by_role("link", name="Before this change").focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("as of commit")


@pytest.mark.slow
def test_text_of_a_hostile_file_does_nothing(story: StoryPage, somebody: Opener) -> None:
    """Its tags are text, and what cannot be seen has a box."""
    page = somebody(story, "operator")
    page.goto("/blame?path=evil.py&line=2")

    expect(page.locator("td.code").nth(1)).to_contain_text("<img src=x onerror='window.harmed = 1'>")
    assert (None, ["U+202E", "U+200B"]) == (
        page.evaluate("window.harmed"),
        page.locator("td.code .odd").all_inner_texts(),
    )


@pytest.mark.slow
def test_a_policy_is_tried_and_copied_by_keyboard_alone(story: StoryPage, somebody: Opener) -> None:
    """What is written stays in the form beside the answer, and the button copies it."""
    page = somebody(story, "operator", permissions=["clipboard-read", "clipboard-write"])
    page.goto("/policy/try")
    text = '[grant.fixer]\nmay = ["read:**"]\n'
    page.fill("#policy-text", text)
    page.get_by_role("button", name="Try it").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".tried")).to_contain_text("would have denied")
    assert text == page.input_value("#policy-text")
    page.get_by_role("button", name="Copy").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("It is copied.")

    assert text == page.evaluate("navigator.clipboard.readText()")


@pytest.mark.slow
def test_a_pasted_diff_is_answered(story: StoryPage, somebody: Opener) -> None:
    """With a link to each line."""
    page = somebody(story, "operator")
    page.goto("/blame/diff")
    patch = "+++ b/src/invoice.py\n@@ -8 +8 @@\n+    total = sum(item.price for item in items)\n"
    page.fill("#patch", patch)
    page.get_by_role("button", name="Who wrote it?").click()

    expect(page.locator(".hunk")).to_contain_text("tidier")
    page.locator(".hunk a").click()
    expect(page.locator("aside.side")).to_contain_text("Lines 6–8")


@pytest.mark.slow
def test_a_review_is_printed_whole(story: StoryPage, somebody: Opener) -> None:
    """On A4 there is nothing to press, and no part of the checklist lies behind an edge."""
    page = somebody(story, "operator", viewport={"width": 794, "height": 1123})
    page.emulate_media(media="print")
    page.goto(f"/review?root={story.root}")
    expect(page.locator(".checklist tbody tr")).to_have_count(1 + len(story.handoffs))
    hidden = page.locator(".filters, .button, .bar, .foot")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert hidden.count() > 2
    assert [] == [one.inner_text() for one in hidden.all() if one.is_visible()]
    assert 0 == wide
