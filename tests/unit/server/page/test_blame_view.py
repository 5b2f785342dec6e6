"""Blame on the page: who wrote each line, the chain up to the human, and no file that is not to be shown."""

import re
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from markupsafe import Markup

from batonpass.cli.server.shown_repository import ShownRepository
from batonpass.demo import pull_request
from batonpass.relay import Relay
from batonpass.server.page.source_code import coloured
from tests.unit.server.conftest import a_house
from tests.unit.server.page.browser import Browser, a_browser
from tests.unit.server.page.test_views import HOSTILE, INLINE, MARKS

PATCH = """\
--- a/src/invoice.py
+++ b/src/invoice.py
@@ -8,1 +9,1 @@
-    return total.quantize(CENT)
+    return total.quantize(CENT, rounding=ROUND_DOWN)
"""


def _git(place: Path, *words: str) -> None:
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", place, *who, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the story of a pull request once; beside it are files of nobody, hostile ones, and one outside."""
    place = tmp_path_factory.mktemp("work") / "project"
    place.mkdir()
    list(pull_request.play(place))
    (place / ".env").write_text("TOKEN=secret\n")
    (place.parent / "outside.txt").write_text("secret outside\n")
    (place / "link.txt").symlink_to(place.parent / "outside.txt")
    (place / "evil<b>.py").write_text(f"x = 1\n# {HOSTILE}\n{'y' * 3000}\n", encoding="utf-8")
    (place / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 701)))
    (place / "picture.bin").write_bytes(b"\0\1")
    _git(place, "add", "link.txt", "evil<b>.py", "long.txt", "picture.bin")
    _git(place, "commit", "--quiet", "--message=odd files")
    invoice = place / "src/invoice.py"
    invoice.write_text(invoice.read_text() + "\nBONUS = 4711\n")
    return place


@pytest.fixture(scope="module")
def browser(project: Path) -> Iterator[Browser]:
    """Return an auditor at a server that shows the project."""
    home = project / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=project, keys_in_files=True) as relay:
        yield a_browser(a_house(relay), "auditor", files=[ShownRepository(project, home)])


def shown(browser: Browser, address: str) -> str:
    """Return a page as text with markup."""
    answer = browser.get(address)
    assert 200 == answer.status, answer.body
    assert not INLINE.search(answer.body)
    return unescape(answer.body.decode())


def test_each_line_has_its_agent_beside_it(browser: Browser) -> None:
    """Agents, what git tells of older lines, and what nobody explains, each with a sign of its own."""
    page = shown(browser, "/blame?path=src/invoice.py")
    kinds = re.findall(r'<tr class="of-(\w+)', page)

    assert ["outside"] + ["older"] * 4 + ["outside"] * 4 + ["doubt"] * 2 == kinds
    assert re.search(r"fixer \w{4}</a>", page)
    assert "before the record: Ana (git)" in page
    assert ">unexplained<" in page
    assert '<span class="k">return</span>' in page


def test_the_chain_leads_from_the_line_to_the_humans_words(browser: Browser) -> None:
    """The call, the agent with its task and grant, who handed it on, and what Ana said; and what was there before."""
    page = shown(browser, "/blame?path=src/invoice.py&line=8")
    side = page[page.index("<aside") : page.index("</aside>")]
    found = re.findall(r"<b>(this text|[a-z_]+)[^<]*</b>", side)

    assert ["this text", "write_file", "tidier", "planner", "ana"] == found
    for words in (
        "Lines 6–8",
        "“Rename `lines` to `items` and say what total() does”",
        "write:src/**",
        "approval: none needed",
        "Fix ticket 118: invoice totals are off by a cent",
        "5 receipts verified",
        "nobody verified the result",
        "def total(lines):",
        "batonpass blame src/invoice.py:6-8",
    ):
        assert words in side


def test_unexplained_lines_are_said_to_be_so(browser: Browser) -> None:
    """With why, and nothing is guessed."""
    page = shown(browser, "/blame?path=src/invoice.py&line=11")

    assert "<b>Unexplained.</b>" in page
    assert "no recorded change wrote it" in page


def test_before_this_change_is_the_file_as_it_was(browser: Browser) -> None:
    """In the commit before the one that brought the line; of a new line in the latest commit."""
    page = shown(browser, "/blame?path=src/invoice.py&line=8")
    link = re.search(r'href="(/blame\?path=src%2Finvoice.py&at=(\w{40})[^"#]*)', page)
    new = re.search(r"at=(\w{40})", shown(browser, "/blame?path=src/invoice.py&line=11"))

    assert link
    assert new
    assert link[2] != new[1]
    before = shown(browser, link[1])
    assert 'def</span> <span class="nf">total</span>(lines)' in before
    assert f"as of commit {link[2][:8]}" in before


def test_what_is_pasted_leads_to_what_it_is(browser: Browser) -> None:
    """A path with a line, a digest, or words."""
    asked = {
        "src/invoice.py:8": "/blame?path=src%2Finvoice.py&line=8#L8",
        "src": "/blame?path=src",
        "ab" * 32: f"/blame?digest={'ab' * 32}",
        "round down to the cent": "/blame?text=round+down+to+the+cent",
    }

    assert asked == {
        given: browser.ask("GET", f"/blame?what={given.replace(' ', '+')}").headers["location"] for given in asked
    }
    assert asked["src/invoice.py:8"] == browser.ask("GET", "/find?q=src/invoice.py:8").headers["location"]


def test_words_and_digests_are_found_in_the_ledger(browser: Browser) -> None:
    """Newest first, with who wrote them; what is not there is said with how much was looked through."""
    words = shown(browser, "/blame?text=round+down+to+the+cent")
    nothing = shown(browser, f"/blame?digest={'ab' * 32}")

    assert ["task for fixer", "untrusted", "result of a call"] == re.findall(
        r"<tr><td class=\"words-cell\"><a[^>]*>([^<]+)", words
    )
    assert re.search(r"Not in the latest \d+ receipts", nothing)


def test_a_pasted_diff_has_the_authors_of_its_lines(browser: Browser) -> None:
    """A form that asks and changes nothing; without one of our own pages it is refused."""
    found = browser.submit("/blame/diff", "/blame/diff", patch=PATCH)
    page = unescape(found.body.decode())
    wrong = browser.submit("/blame/diff", "/blame/diff", patch="no diff")
    foreign = browser.post("/blame/diff", {"patch": PATCH, "form": "guessed"})

    assert (200, 403) == (found.status, foreign.status)
    assert "src/invoice.py:9" in page
    assert re.search(r"fixer \w{4}", page)
    assert "has no hunk" in unescape(wrong.body.decode())


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("../outside.txt", "is not a file of this project", id="above the repository"),
        pytest.param("/etc/passwd", "etc/passwd", id="an absolute path"),
        pytest.param("link.txt", "is not a file of this project", id="a link that leads out"),
        pytest.param(".env", "neither git nor the ledger knows", id="a file that nobody recorded"),
        pytest.param(".git/config", "neither git nor the ledger knows", id="git's own"),
        pytest.param(".batonpass/ledger.db", "is not a file of this project", id="the ledger's own"),
        pytest.param("src/\x00", "leads nowhere", id="a zero byte"),
        pytest.param("../outside.txt&at=HEAD", "is not a file of this project", id="above, in a commit"),
        pytest.param("src/none.py&at=HEAD", "there is no", id="not in that commit"),
        pytest.param("src/invoice.py&at=--help", "no commit", id="what looks like an option of git"),
    ],
)
def test_no_file_is_shown_that_is_not_to_be_seen(browser: Browser, path: str, told: str) -> None:
    """Neither its text, nor whether it is there."""
    answer = browser.get(f"/blame?path={path.replace(chr(0), '%00')}")

    assert answer.status in {400, 404}
    assert b"secret" not in answer.body
    assert told in unescape(answer.body.decode())


def test_a_directory_lists_what_git_or_the_ledger_knows(browser: Browser) -> None:
    """With how many changes are recorded; the ledger and files of nobody are left out."""
    page = shown(browser, "/blame")
    names = [name.strip() for name in re.findall(r'<span class="what">([^\n]*?)</span>', page)]
    below = shown(browser, "/blame?path=src")

    assert ["src/", "evil<b>.py", "link.txt", "long.txt", "picture.bin"] == names
    assert "2 recorded changes" in below


def test_text_of_a_file_is_only_text(browser: Browser) -> None:
    """Its name, its lines, characters that cannot be seen, and lines without an end."""
    body = browser.get("/blame?path=evil%3Cb%3E.py&line=2").body.decode()

    assert [] == [mark for mark in MARKS if mark in body]
    assert "U+202E" in body
    assert "(3,000 characters)" in body
    assert "evil<b>" not in body


def test_a_long_file_has_pages_and_a_file_without_lines_says_so(browser: Browser) -> None:
    """Three hundred lines at a time, at whichever line somebody asks about."""
    first, far = shown(browser, "/blame?path=long.txt"), shown(browser, "/blame?path=long.txt&line=650")

    assert (300, 'rel="prev"' in first, "Lines after 300" in first) == (first.count('class="no"'), False, True)
    assert 'id="L650"' in far
    assert "It has no lines to show" in shown(browser, "/blame?path=picture.bin")


def test_without_a_repository_the_page_says_how_to_show_one(project: Path) -> None:
    """A server shows the files of nobody unless whoever starts it names a repository."""
    home = project / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, work_tree=project, keys_in_files=True) as relay:
        visitor = a_browser(a_house(relay), "admin")
        page, asked = visitor.get("/blame?path=src/invoice.py"), visitor.get("/blame/diff")

    assert b"No repository is shown here" in page.body
    assert b"quantize" not in page.body
    assert b"No repository is shown here" in asked.body


def test_colours_change_no_character() -> None:
    """Every language shows exactly the text; what it does not know, or is too long, has no colours."""
    lines = ["def f(): # <b>\u200b", "", '    return """', "text\r", '"""', "x" * 501]
    plain = [re.sub("<[^>]+>", "", one) for one in coloured("a.py", lines, 1, 6)]

    assert [Markup.escape(one) for one in ("def f(): # <b>U+200B", "", '    return """')] == plain[:3]
    assert plain[5].endswith("… (501 characters)")
    assert coloured("a.unknown", lines, 1, 3)[2] == "    return &#34;&#34;&#34;"
    assert coloured("a.py", ["x" * 300_000], 1, 1)[0].startswith("xxx")
