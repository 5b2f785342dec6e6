"""A review as Markdown, HTML and SARIF: complete, and inert whatever agents wrote."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from batonpass import Handling
from batonpass.model.base.visible import visible
from batonpass.relay import desk_of
from batonpass.review.catalogue import KINDS
from batonpass.review.report.review_html import render_html_review
from batonpass.review.report.review_markdown import inert, render_markdown
from batonpass.review.report.review_sarif import render_sarif
from batonpass.review.review import Review
from examples.findings import disobeyed_role, repeated_step
from tests.unit.accounts.trees import ANA, HOSTILE, Place, write
from tests.unit.review.reviews import ledger_in, review_of


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile_review(words: str) -> Review:
    place = Place()
    with place.relay().start(words, by=ANA) as lead, lead.hand_off("editor", words) as editor:
        for _ in range(3):
            editor.call(write, words)
        editor.report(words)
    return review_of(place.relay())


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_inert_on_the_page(words: str) -> None:
    """Nothing of it becomes a tag, an attribute or a control character."""
    page = "".join(render_html_review(hostile_review(HOSTILE[words])))
    read = _Tags()
    read.feed(page)

    assert read.tags.isdisjoint({"script", "img", "a", "iframe", "object", "link"})
    assert not any(name.startswith("on") for name in read.names)
    assert page.replace("\n", "") == visible(page.replace("\n", ""))


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_inert_in_markdown(words: str) -> None:
    """Every mark that begins something is escaped, and lines stay lines."""
    text = "\n".join(render_markdown(hostile_review(HOSTILE[words])))

    assert "<script" not in text.replace("\\<", "")
    assert "![" not in text
    assert text.replace("\n", "") == visible(text.replace("\n", ""))


def test_one_line_of_markdown_shows_what_was_written() -> None:
    """A link, an image and a mention are shown as they were typed."""
    assert r"\[x\]\(http\://e\)  \@ana \<b\>".replace("  ", " ") == inert("[x](http://e)\n @ana <b>")


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_words_are_inert_in_sarif(words: str) -> None:
    """A message has no control characters and no links."""
    place = Place()
    with place.relay().start(HOSTILE[words], by=ANA) as lead:
        for number in range(3):
            with lead.hand_off("editor", f"[x](http://e) {HOSTILE[words]}", handling=Handling(again=number)) as editor:
                editor.report("done")
    review = review_of(place.relay())
    with place.store.view() as view:
        document = render_sarif(view, review, "1.0")
    messages = [result["message"]["text"] for result in document["runs"][0]["results"]]

    assert messages
    assert all(message == visible(message) for message in messages)
    assert all("[" not in message.replace("\\[", "") for message in messages)


def test_sarif_names_the_changed_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub shows a finding on the file that the call changed; every rule is declared."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        disobeyed_role.raises(relay)
        repeated_step.raises(relay)
        review = review_of(relay)
        with desk_of(relay).store.view() as view:
            document = json.loads(json.dumps(render_sarif(view, review, "1.0")))
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    wrote = next(result for result in run["results"] if result["ruleId"] == "disobeyed-role")
    place = wrote["locations"][0]["physicalLocation"]

    assert ("2.1.0", list(KINDS)) == (document["version"], rules)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert {"artifactLocation": {"uri": "invoice.py", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}} == place
    assert {"disobeyed-role", "repeated-step"} <= {result["ruleId"] for result in run["results"]}


def test_the_page_has_checklist_and_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sub-agent, exact task, finding, evidence and the next command are on the page."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        disobeyed_role.raises(relay)
        review = review_of(relay)
    read = _Tags()
    read.feed("".join(render_html_review(review)))
    (finding,) = review.findings

    for words in ("rex", "Look at the change", finding.sentence, finding.receipts[0], finding.go_on[0], "MAST 1.2"):
        assert words in read.text
