"""A review as Markdown, HTML and SARIF: complete, and inert whatever agents wrote."""

import json
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest
from click.testing import CliRunner
from jsonschema import Draft4Validator

from batonpass import (
    Brief,
    Constraint,
    Decision,
    Exclusion,
    Handling,
    OpenQuestion,
    RejectedPath,
    Relay,
    WorkItem,
    tool,
)
from batonpass.accounts.inert_markdown import inert
from batonpass.cli.nouns import cli
from batonpass.credentials import FromEnvironment
from batonpass.model.base.visible import visible
from batonpass.relay import desk_of
from batonpass.review.catalogue import KINDS
from batonpass.review.report.review_html import render_html_review
from batonpass.review.report.review_markdown import render_markdown
from batonpass.review.report.review_sarif import render_sarif
from batonpass.review.review import Review
from batonpass.review.reviewed_tree import ReviewedTree
from batonpass.review.story import tell_story
from examples.findings import (
    approval_habit,
    approval_theatre,
    disobeyed_role,
    injection_path,
    over_grant,
    repeated_step,
)
from examples.findings.tools import push
from tests.unit.accounts.trees import ANA, HOSTILE, Place, write
from tests.unit.review.reviews import ledger_in, review_of

SCHEMA: Final = Path(__file__).parents[2] / "vectors" / "sarif" / "sarif-schema-2.1.0.json"


@tool(target="path")
def keep(path: str) -> None:
    """Write a real file, so that the change is recorded."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("kept\n", encoding="utf-8")


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
    """A link, an image, a mention and a formula are shown as they were typed."""
    assert r"\[x\]\(http\://e\) `@`ana \<b\> `##`12" == inert("[x](http://e)\n @ana <b> ##12")
    assert r"`GH`\-12, `gh`\-3 and high\-5" == inert("GH-12, gh-3 and high-5")
    assert "pay `$`5%from the reserve`$`" == inert("pay $5%from the reserve$")


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


def test_every_result_of_sarif_has_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub refuses a whole file with one that has none: the lines of the work it is about, else the policy."""
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    with ledger_in(tmp_path) as relay:
        lead = relay.start("Fix it", by=ANA)
        with lead, lead.hand_off("editor", "Fix the till", may=["write:src/**", "push:main"]) as editor:
            editor.call(keep, "src/till.py")
            editor.report("fixed")
        approval_theatre.raises(relay)
        review = review_of(relay)
        with desk_of(relay).store.view() as view:
            results = render_sarif(view, review, "1.0")["runs"][0]["results"]
    places = {result["ruleId"]: [place["physicalLocation"] for place in result["locations"]] for result in results}
    shown = {
        rule: [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in held]
        for rule, held in places.items()
    }

    assert {"over-grant": [("src/till.py", 1)], "approval-theatre": [("batonpass.toml", 1)]} == shown


@pytest.mark.parametrize("program", [disobeyed_role, injection_path, over_grant, approval_habit, None])
def test_sarif_keeps_to_the_schema_of_oasis(
    program: ModuleType | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With lines, without lines, with findings and without any."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        if program is not None:
            program.raises(relay)
        review = review_of(relay)
        with desk_of(relay).store.view() as view:
            document = json.loads(json.dumps(render_sarif(view, review, "1.0")))
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))

    assert bool(review.findings) == (program is not None)
    assert [] == [error.message for error in Draft4Validator(schema).iter_errors(document)]


def test_every_field_with_hostile_words_is_inert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks, targets, files, reasons, grants, credentials, decisions, questions and reports, in every form."""
    monkeypatch.chdir(tmp_path)
    nasty = "\x1b[2J\u202e<script>alert(1)</script> ![x](http://e/x) [y](http://e) `z` | a\r\n# h @ana $(id)"
    with ledger_in(tmp_path) as relay:
        play_hostile(relay, nasty)
        review = review_of(relay)
        with desk_of(relay).store.view() as view:
            document = json.dumps(render_sarif(view, review, "1.0"), ensure_ascii=False)
            told = "\n".join(tell_story(ReviewedTree(view, review.roots[0].root.id), review.findings))
    page = _Tags()
    page.feed("".join(render_html_review(review)))
    lines = [*render_markdown(review)]
    shown = CliRunner().invoke(cli, ["review", "--ledger", str(tmp_path / ".batonpass" / "ledger.db")])
    story = CliRunner().invoke(cli, ["review", "--story", "--ledger", str(tmp_path / ".batonpass" / "ledger.db")])

    assert len(review.findings) > 5
    assert "script" not in page.tags | {name for name in page.names if name.startswith("on")}
    assert all(line == visible(line) for line in lines)
    assert not any("<script" in line.replace("\\<", "") or "![" in line.replace("\\!", "") for line in lines)
    assert not any(mark in document for mark in ("\\u001b", "\x1b", "\u202e"))
    assert "<script" in told  # the story keeps the words; whoever prints them makes them inert
    for output in (shown.output, story.output):
        assert "\x1b[2J" not in output
        assert "\u202e" not in output


def play_hostile(relay: Relay, nasty: str) -> None:
    """Let everybody say the same nasty thing in every field that they have."""
    relay.credential("forge", FromEnvironment("T", "bot:ci", environment={"T": f"secret-{nasty}"}))
    bound = Constraint(nasty, key="n", operator="<=", value="1", binds_to="call:write.text")
    with relay.start(nasty, by=ANA, items=[bound]) as lead:
        lead.record(RejectedPath(nasty), Decision(nasty, conditions=("until 2020-01-01",)))
        item = lead.record(Exclusion(nasty))[0]
        lead.relax(item, by="agent:lead", reason=nasty)
        brief = Brief(rationale=nasty, expects=["src/a.py", nasty], inputs=[nasty], role="critic")
        for number in range(3):
            handling = Handling(again=number)
            handoff = lead.hand_off("editor", nasty, brief=brief, hold=True, handling=handling)
            handoff.approve(by=ANA, reason=nasty)
            with handoff as editor:
                for _ in range(3):
                    editor.call(write, nasty)
                editor.call(push, nasty)
                editor.record(Decision(nasty))
                made = [WorkItem(nasty, outputs=(nasty,), verified_by="agent:editor", how=nasty, evidence=nasty)]
                editor.report(nasty, completed=made, open_questions=[OpenQuestion(nasty, blocking=True)])


def test_of_many_trees_the_worst_comes_first_and_clean_ones_are_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page, in Markdown and in the terminal; what somebody acknowledged is told, with the reason."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        repeated_step.raises(relay)
        with relay.start("Nothing to see", by=ANA) as clean:
            clean.call(write, "a.py")
        disobeyed_role.raises(relay)
        with relay.start("Seen already", by=ANA) as seen:
            for _ in range(3):
                seen.call(write, "b.py")
            seen.call(write, "d.py")
            for _ in range(3):
                seen.call(write, "c.py")
        low = next(one for one in review_of(relay).findings if one.root == seen.id)
        relay.acknowledge(seen.id, low.key, by=ANA, reason="she meant it")
        review = review_of(relay)
    page = _Tags()
    page.feed("".join(render_html_review(review)))
    shown = CliRunner().invoke(cli, ["review", "--since", "1d", "--ledger", str(tmp_path / ".batonpass" / "ledger.db")])

    for text in (page.text, "\n".join(render_markdown(review)).replace("\\", ""), shown.output):
        assert text.index("Disobeyed role") < text.index("Repeated step")
        assert f"acknowledged by {ANA} on " in text
        assert "she meant it" in text
    assert "Nothing to look at: 1 tree" in page.text
    assert "In 1 other tree there is nothing to look at." in [*render_markdown(review)]
    assert "Nothing to see" not in shown.output


def test_the_least_grant_is_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As TOML to paste."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        over_grant.raises(relay)
        review = review_of(relay)
    page = _Tags()
    page.feed("".join(render_html_review(review)))
    shown = CliRunner().invoke(cli, ["review", "--ledger", str(tmp_path / ".batonpass" / "ledger.db")])
    (finding,) = review.findings

    assert any(line.startswith("may = ") for line in finding.details)
    for line in finding.details:
        assert line in page.text
        assert line in shown.output
        assert line in "\n".join(render_markdown(review)).replace("\\:", ":")


def test_the_root_is_in_the_checklist_of_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminal, JSON, Markdown and the page: what the root did itself stands before what others did for it."""
    monkeypatch.chdir(tmp_path)
    with ledger_in(tmp_path) as relay:
        with relay.start("Fix the shop", by=ANA) as lead:
            lead.call(write, "by-root.py")
            handoff = lead.hand_off("editor", "Fix the till")
            with handoff as editor:
                editor.call(write, "by-editor.py")
        review = review_of(relay)
    page = _Tags()
    page.feed("".join(render_html_review(review)))
    ledger = str(tmp_path / ".batonpass" / "ledger.db")
    shown, facts = (CliRunner().invoke(cli, ["review", *form, "--ledger", ledger]).output for form in ([], ["--json"]))
    markdown = "\n".join(render_markdown(review)).replace("\\", "")

    assert f"lead {lead.id[-4:]} · root · completed · observed" in shown
    assert "lead · root · completed" in page.text
    assert "| lead (root · completed) | Fix the shop |" in markdown
    for text in (shown, markdown, page.text):
        assert text.index("write by-root.py") < text.index("write by-editor.py")
    first, second = json.loads(facts)["trees"][0]["checklist"]
    assert (None, lead.id, "lead", ["write by-root.py"]) == tuple(
        first[name] for name in ("handoff", "run", "agent", "effects")
    )
    assert (handoff.id, editor.id) == (second["handoff"], second["run"])


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
