"""Trailers that name agents, and those that only look like it."""

import pytest

from batonpass.notes.foreign.commit_trailers import read_trailers
from batonpass.notes.foreign.hearsay import HearsayReach


@pytest.mark.parametrize(
    ("key", "value", "by", "model"),
    [
        ("Co-Authored-By", "Claude <noreply@anthropic.com>", "Claude", None),
        (
            "co-authored-by",
            "Claude Opus 4.6 (1M context) <noreply@anthropic.com>",
            "Claude Opus 4.6 (1M context)",
            None,
        ),
        ("Co-authored-by", "aider (gpt-4o) <aider@aider.chat>", "aider", "gpt-4o"),
        ("Co-authored-by", "Copilot <223556219+Copilot@users.noreply.github.com>", "Copilot", None),
        ("Co-authored-by", "<cursoragent@cursor.com>", "Cursor", None),
        ("Assisted-by", "Claude:claude-3-opus coccinelle sparse", "Claude", "claude-3-opus"),
        ("Entire-Checkpoint", "a3b2c4d5e6f7", "an agent", None),
    ],
)
def test_trailers_name_agents(key: str, value: str, by: str, model: str | None) -> None:
    """Of the commit as a whole."""
    (said,) = read_trailers([(key, value)])

    assert (by, model, HearsayReach.COMMIT) == (said.by, said.model, said.reach)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Co-Authored-By", "Claude Dupont <claude@dupont.example>"),
        ("Co-Authored-By", "Claude <noreply@anthropic.com.evil.example>"),
        ("Co-Authored-By", "Claude noreply@anthropic.com"),
        ("Co-Authored-By", "x" * 100_000),
        ("Reviewed-by", "Claude <noreply@anthropic.com>"),
        ("Assisted-by", "Ben <ben@example.org>"),
        ("Assisted-by", "a colleague"),
        ("Entire-Checkpoint", "../../../../etc/passwd"),
        ("Claude-Session", "https://claude.ai/code/session_1"),
    ],
)
def test_people_and_nonsense_are_no_agents(key: str, value: str) -> None:
    """People are called Claude too."""
    assert () == read_trailers([(key, value)])


def test_a_session_belongs_to_claude() -> None:
    """It is named beside the trailer that names the agent."""
    said = read_trailers(
        [
            ("Co-Authored-By", "Claude <noreply@anthropic.com>"),
            ("Assisted-by", "Codex:gpt-6"),
            ("Claude-Session", "https://claude.ai/code/session_1"),
        ]
    )

    assert ["https://claude.ai/code/session_1", None] == [one.session for one in said]
