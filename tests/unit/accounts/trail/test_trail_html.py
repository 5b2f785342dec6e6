"""The trail as a page: nothing is loaded, nothing runs, and no word of anybody becomes markup."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from batonpass import Brief
from batonpass.accounts.trail.trail_html import render_html
from batonpass.accounts.trail.trail_values import Trail
from batonpass.model.base.visible import visible
from batonpass.model.baton.items import Constraint, Decision, Exclusion
from tests.unit.accounts.trees import ANA, HOSTILE, Place, break_off, fail, tried, write

TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "p",
        "b",
        "h1",
        "ul",
        "li",
        "main",
        "details",
        "summary",
        "time",
        "span",
        "bdi",
        "code",
        "ol",
        "footer",
        "i",
    ]
)
ATTRIBUTES = frozenset(
    {"lang", "charset", "http-equiv", "content", "name", "class", "open", "datetime", "title"},
)
VOID = frozenset({"meta"})


class Page(HTMLParser):
    """A page as a browser reads it: which elements there are, and which words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.metas: dict[str, str] = {}
        self.words = ""
        self.style = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        given = dict(attrs)
        if tag == "meta":
            self.metas[given.get("http-equiv") or given.get("name") or "charset"] = given.get("content") or ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """See that it closes what is open."""
        assert tag == self._open.pop()

    def handle_data(self, data: str) -> None:
        """Note words."""
        if self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.words += data


@pytest.fixture
def place() -> Place:
    return Place()


def page_of(trail: Trail, *, calls: bool = True) -> Page:
    return Page("".join(render_html(trail, calls=calls)))


def a_tree(place: Place, words: str) -> Trail:
    """Let everybody say the same, wherever something can be said."""
    lead = place.relay().start(words, by=ANA, items=[Constraint(words), Exclusion(words)])
    lead.record(Decision(words, why=words))
    lead.add_intent(words)
    handoff = lead.hand_off("editor", words, brief=Brief(rationale=words), hold=True)
    handoff.approve(by=ANA, reason=words)
    run = handoff.accept()
    run.call(write, words, words)
    tried(lambda: run.call(fail, words))
    tried(lambda: run.call(break_off, words))
    run.fail(RuntimeError(words))
    handoff.retry(by=ANA, reason=words)
    handoff.cancel(by=ANA, reason=words)
    return place.trail(lead.id)


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_words_stay_words(place: Place, words: str) -> None:
    """There are only our elements and attributes, all of them closed, whatever was written."""
    page = page_of(a_tree(place, words))

    assert set() == set(page.tags) - TAGS
    assert set() == page.attributes - ATTRIBUTES
    assert visible(words.strip().splitlines()[0][:100]) in page.words


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_is_obeyed_or_hidden(place: Place, words: str) -> None:
    """Controls and marks that turn text around are spelled out in a page as well."""
    text = "".join(render_html(a_tree(place, words)))

    assert text.replace("\n", "") == visible(text.replace("\n", ""))


def test_a_page_needs_nothing_else(place: Place) -> None:
    """Its policy allows its own style by digest, and nothing else at all."""
    text = "".join(render_html(a_tree(place, "x")))
    page = Page(text)
    digest = b64encode(sha256(page.style.encode()).digest()).decode()

    assert (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        == page.metas["Content-Security-Policy"]
    )
    assert [] == re.findall(r"(?:https?:|//|url\(|@import|\bsrc=|\bhref=|\bstyle=|<script)", text)
    assert "width=device-width, initial-scale=1" == page.metas["viewport"]
    assert "prefers-color-scheme: dark" in page.style


def test_trouble_stands_at_the_top(place: Place) -> None:
    """How many calls failed or are in doubt is seen before anything is opened."""
    words = page_of(a_tree(place, "x")).words

    assert ["1 call failed", "1 call in doubt"] == re.findall(r"\d calls? (?:failed|in doubt|denied)", words)


def test_there_is_one_fold_for_each_run(place: Place) -> None:
    """A run can be folded away; in a large tree those further down are folded already."""
    lead = place.relay().start("x", by=ANA)
    for number in range(45):
        with lead.hand_off("editor", f"task {number}") as editor, editor.hand_off("typist", "type") as typist:
            typist.report("done")
    trail = place.trail(lead.id)
    text = "".join(render_html(trail))

    assert len(trail.runs) == text.count("<details")
    assert 1 + 45 == text.count("<details open")


def test_calls_can_be_left_out(place: Place) -> None:
    """Then the page does not name any."""
    trail = a_tree(place, "x")

    assert ("write" in page_of(trail).words, "write" in page_of(trail, calls=False).words) == (True, False)


def test_a_branch_is_a_page_too(place: Place) -> None:
    """From a handoff downwards, with who is above it."""
    trail = a_tree(place, "x")
    page = page_of(trail.below(next(iter(trail.handoffs))))

    assert f"lead {trail.root[-4:]} ← user:ana" in page.words
