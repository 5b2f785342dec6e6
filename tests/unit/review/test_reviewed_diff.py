"""A pull request in review: whose work each hunk is, what nothing explains, what was found in the runs behind it."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli
from batonpass.demo import pull_request


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


@pytest.mark.parametrize("form", ["md", "sarif"])
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


@pytest.mark.parametrize("words", [("nonsense",), ("HEAD", "--html"), ("HEAD", "--since", "1d")])
def test_what_cannot_be_reviewed_is_refused(
    words: tuple[str, ...], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No commit, a form that a diff does not have, and two questions at once."""
    assert 2 == asked(repository, monkeypatch, *words).exit_code
