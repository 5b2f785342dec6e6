"""A pull request in review: whose work each hunk is, what nothing explains, what was found in the runs behind it."""

import json
import os
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batonpass import tool
from batonpass.cli.nouns import cli
from batonpass.demo import pull_request
from batonpass.model.base.visible import visible
from tests.unit.accounts.trail.test_trail_html import ATTRIBUTES, TAGS, Page
from tests.unit.review.reviews import ledger_in

# What a page of a review has besides what a trail has.
DRAWN = frozenset(["article", "section", "h2", "h3", "dl", "dt", "dd", "div", "pre"])
TABLE = frozenset(["table", "thead", "tbody", "tr", "th", "td"])


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the story of a pull request once; then a person commits a line by hand."""
    place = tmp_path_factory.mktemp("pull-request")
    list(pull_request.play(place))
    with (place / "src" / "invoice.py").open("a", encoding="utf-8") as file:
        file.write("\n# by hand\n")
    who = ["-c", "user.name=bo", "-c", "user.email=bo@shop.example"]
    subprocess.run(["git", *who, "commit", "-qam", "by hand"], cwd=place, check=True)
    return place


@tool(target="path", reversible=True)
def keep(path: str, text: str) -> int:
    """Write a file."""
    return Path(path).write_text(text + "\n", encoding="utf-8")


@tool(reads=True, external=True)
def fetch(words: str) -> str:
    """Fetch what anybody can write."""
    return words


def git(*arguments: str) -> None:
    who = ["-c", "user.name=bo", "-c", "user.email=bo@shop.example"]
    subprocess.run(["git", *who, *arguments], check=True)


def asked(repository: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    monkeypatch.chdir(repository)
    return CliRunner().invoke(cli, ["review", "--diff", *words])


def test_each_hunk_has_its_agent_and_the_rest_is_unexplained(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agent, exact task, grant and the way of the ticket's words; the line by hand stands apart."""
    result = asked(repository, monkeypatch, "HEAD~2..HEAD", "--json")
    answer = json.loads(result.output)
    works = {work["agent"]: work for work in answer["works"]}

    assert 1 == result.exit_code
    assert {"tidier", "fixer"} == works.keys()
    assert ["src/invoice.py:6-8"] == works["tidier"]["places"]
    assert ("Make total() add up: round down to the cent, as ticket 118 says", ["write:src/invoice.py"]) == (
        works["fixer"]["task"]["text"],
        works["fixer"]["may"],
    )
    assert [1, 1] == [work["from_outside"] for work in works.values()]
    assert ["src/invoice.py:10-11"] == answer["unexplained"]
    assert ["approval-theatre"] == [finding["kind"] for finding in answer["findings"]]


def test_people_read_it_as_blame_in_full(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The four questions for each run, then what nothing explains, then findings."""
    text = asked(repository, monkeypatch, "HEAD~2..HEAD").output

    for words in (
        "3 lines · src/invoice.py:6-8",
        "1 who        tidier ",
        "4 outside    read_ticket ",
        "unexplained · src/",
    ):
        assert words in text
    assert text.index("unexplained · ") < text.index("medium · Approval theatre")


def test_a_comment_has_all_of_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary of `git summary`, whose work it is, and the findings, as Markdown."""
    text = asked(repository, monkeypatch, "HEAD~2..HEAD", "--md").output

    assert text.startswith("<!-- batonpass git summary -->")
    assert "**unexplained**: src/invoice\\.py\\:10\\-11" in text
    assert "**medium · Approval theatre**" in text
    for words in (
        r"  - credential none\:",
        r"  - grant may write\:src/invoice\.py \(granted by planner\)",
        "  - approval none needed",
        "  - result unverified",
        r"  - outside read\_ticket ",
    ):
        assert words in text


def test_github_gets_the_findings_of_a_branch(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SARIF, with the findings of the runs behind it and no others."""
    result = asked(repository, monkeypatch, "HEAD~2..HEAD", "--sarif")
    (run,) = json.loads(result.output)["runs"]

    assert (1, ["approval-theatre"]) == (result.exit_code, [one["ruleId"] for one in run["results"]])


def test_a_page_has_all_of_it(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wrote how much, the four questions for each run, what nothing explains, and the findings."""
    result = asked(repository, monkeypatch, "HEAD~2..HEAD", "--html")
    page = Page(result.output)

    assert 1 == result.exit_code
    for words in (
        "1 medium",
        "lines added: ",
        "3 lines · src/invoice.py:6-8",
        "1 who",
        "│ Make total() add up: round down to the cent, as ticket 118 says",
        "none: no secret was given",
        "may write:src/invoice.py (granted by planner)",
        "none needed",
        "unverified",
        "4 outside",
        "read_ticket ",
        "unexplained lines: nothing recorded wrote them",
        "src/invoice.py:10-11",
        "Approval theatre",
        "evidence: receipt_",
    ):
        assert words in page.words
    assert page.words.index("fixer") < page.words.index("Unexplained") < page.words.index("Approval theatre")


def test_the_page_loads_nothing_and_runs_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no address, no script and no form, and a browser is told to fetch none."""
    page = Page(asked(repository, monkeypatch, "HEAD~2..HEAD", "--html").output)
    digest = b64encode(sha256(page.style.encode()).digest()).decode()
    policy = page.metas["Content-Security-Policy"]

    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" == policy
    assert set() == {*page.tags} & {"script", "img", "a", "link", "iframe", "object", "form"}
    assert page.attributes.isdisjoint({"href", "src", "style"})
    assert "url(" not in page.style


def test_hostile_words_are_inert_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a wish, tasks, names of files, agents' reports and content from outside; the page has the whole task."""
    nasty = "\x1b[2J\u202e</title><script>alert(1)</script><img src=x onerror=alert(1)> ![x](http://e/x) @ana `z` | a"
    name = "<img src=x onerror=alert(1)>.py"
    task = "\n".join([nasty] * 6)

    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message=begin")
    with (
        ledger_in(tmp_path) as relay,
        relay.start(nasty, by="user:ana") as lead,
        lead.hand_off("editor", task, may=["call:fetch", "write:**"]) as editor,
    ):
        text = editor.call(fetch, nasty)
        for _ in range(3):
            editor.call(keep, name, text)
        editor.report(nasty)
    (tmp_path / "by-hand.py").write_text("x = 1\n", encoding="utf-8")
    git("add", "--all", "--", ":!.batonpass")
    git("commit", "--quiet", f"--message={nasty}")

    html, markdown, shown = (asked(tmp_path, monkeypatch, "HEAD", *form).output for form in (["--html"], ["--md"], []))
    page = Page(html)

    assert TAGS | DRAWN | TABLE >= {*page.tags}
    assert ATTRIBUTES | {"scope", "tabindex"} >= page.attributes
    assert f"{name}:1" in page.words
    assert visible(nasty) in page.words
    assert "\n".join(visible(line) for line in task.split("\n")) in page.words
    assert html.replace("\n", "") == visible(html.replace("\n", ""))
    assert not any(
        "<script" in line.replace("\\<", "") or "![" in line.replace("\\!", "") for line in markdown.split("\n")
    )
    for output in (markdown, shown):
        assert "\x1b[2J" not in output
        assert "\u202e" not in output


@pytest.mark.parametrize("form", [[], ["--md"], ["--json"], ["--sarif"], ["--html"]], ids=" ".join)
def test_a_name_that_is_not_utf_8_stops_no_review(
    form: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opens a pull request names its files. One that was never there is no internal error either."""
    monkeypatch.chdir(tmp_path)
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message=begin")
    with ledger_in(tmp_path) as relay, relay.start("Write", by="user:ana") as lead:
        lead.call(keep, os.fsdecode(b"caf\xe9.py"), "x = 1")
    git("add", "--all", "--", ":!.batonpass")
    git("commit", "--quiet", "--message=write")

    never = CliRunner().invoke(cli, ["blame", os.fsdecode(b"never\xe9")])

    assert (0, 2) == (asked(tmp_path, monkeypatch, "HEAD", *form).exit_code, never.exit_code)


@pytest.mark.parametrize("form", ["md", "html", "sarif"])
def test_a_file_is_written_if_asked_for(
    form: str, repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All of it, and nothing of it on stdout."""
    printed = asked(repository, monkeypatch, "HEAD~2..HEAD", f"--{form}")
    result = asked(repository, monkeypatch, "HEAD~2..HEAD", f"--{form}", "-o", str(tmp_path / "review"))

    assert (1, "", printed.stdout) == (result.exit_code, result.stdout, (tmp_path / "review").read_text())


def test_severity_decides_what_stops_a_pipeline(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing high was found, so the exit code is 0."""
    assert 0 == asked(repository, monkeypatch, "HEAD~2..HEAD", "--severity", "high").exit_code


@pytest.mark.parametrize("words", [("nonsense",), ("HEAD", "--html", "--json"), ("HEAD", "--since", "1d")])
def test_what_cannot_be_reviewed_is_refused(
    words: tuple[str, ...], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit, two forms, and two questions at once."""
    assert 2 == asked(repository, monkeypatch, *words).exit_code
