"""The trail as a chart: every line is one of ours, whatever stands in its labels."""

import re

import pytest

from batonpass.accounts.trail.trail_mermaid import label, render_mermaid
from batonpass.model.baton.items import Decision
from tests.unit.accounts.trees import ANA, HOSTILE, Place, break_off, fail, tried, write

TEXT = r"(?:[^\W_]| |#\d+;|<br/>)*"
OURS = re.compile(
    "|".join(
        (
            r"flowchart TD",
            rf'  h\(\["{TEXT}"\]\)',
            rf'  n\d+\["{TEXT}"\]',
            rf'  n\d+\{{\{{"{TEXT}"\}}\}}',
            r"  (?:h|n\d+) --> n\d+",
            rf'  (?:h|n\d+) -->\|"{TEXT}"\| n\d+',
            r"  class n\d+ (?:good|warn|bad)",
            r"  classDef (?:good|warn|bad) stroke:#[0-9a-f]{6},stroke-width:2px",
            r'  more\["and more, which is not drawn"\]',
        ),
    ),
)


@pytest.fixture
def place() -> Place:
    return Place()


def decoded(text: str) -> str:
    """Return a label as a reader sees it."""
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_word_becomes_a_statement(place: Place, words: str) -> None:
    """Quotes, brackets, semicolons, hashes, markup and directives are numbers inside a label."""
    lead = place.relay().start(words, by=ANA)
    lead.record(Decision(words))
    handoff = lead.hand_off("editor", words, hold=True)
    handoff.approve(by=ANA, reason=words)
    run = handoff.accept()
    run.call(write, words)
    tried(lambda: run.call(fail, words))
    tried(lambda: run.call(break_off, words))
    run.fail(RuntimeError(words))
    handoff.retry(by=ANA, reason=words)
    handoff.accept()

    lines = list(render_mermaid(place.trail(lead.id)))

    assert [] == [line for line in lines if OURS.fullmatch(line) is None]


def test_a_chart_says_who_handed_what_to_whom(place: Place) -> None:
    """The human, the runs, the tasks between them, and what came of it."""
    lead = place.relay().start("Fix rounding", by=ANA)
    with lead.hand_off("editor", "Round half-even") as editor:
        editor.call(write, "a.py")
        editor.call(write, "b.py")
        tried(lambda: editor.call(fail, "no"))
    lines = [decoded(line) for line in render_mermaid(place.trail(lead.id))]
    ends = [run[-4:] for run in place.trail(lead.id).runs]
    missing = "missing: rationale, criteria, constraint, exclusion, decisi…"
    node = [f"editor {ends[1]}", "completed · 0ms", missing, "write ×2", "fail: failed value"]

    assert [
        "flowchart TD",
        '  h(["user:ana<br/>"Fix rounding""])',
        f'  n1["lead {ends[0]}<br/>open"]',
        "  h --> n1",
        "  class n1 warn",
        f'  n2["{"<br/>".join(node)}"]',
        '  n1 -->|""Round half-even""| n2',
        "  class n2 good",
    ] == lines[:8]


def test_a_large_tree_is_drawn_in_part(place: Place) -> None:
    """Mermaid draws nothing of a chart that is too large, so what is left out is said."""
    lead = place.relay().start("x", by=ANA)
    for number in range(500):
        lead.hand_off("editor", f"{number}: {'#' * 200}")

    lines = list(render_mermaid(place.trail(lead.id)))

    assert 50_000 > sum(len(line) + 1 for line in lines)
    assert '  more["and more, which is not drawn"]' in lines
    assert [] == [line for line in lines if OURS.fullmatch(line) is None]


def test_calls_can_be_left_out(place: Place) -> None:
    """Then a run says only how it ended."""
    lead = place.relay().start("x", by=ANA)
    lead.call(write, "a.py")
    trail = place.trail(lead.id)

    assert [True, False] == [
        any("write" in line for line in render_mermaid(trail, calls=calls)) for calls in (True, False)
    ]


def test_a_label_has_few_lines(place: Place) -> None:
    """A run that called a hundred tools does not fill the screen."""
    lead = place.relay().start("x", by=ANA)
    for number in range(100):
        lead.call(type(f"tool{number}", (), {"__call__": lambda _: 1, "__name__": f"tool{number}"})())

    node = next(line for line in render_mermaid(place.trail(lead.id)) if line.startswith("  n1["))

    assert (7, True) == (node.count("<br/>"), "95 more" in decoded(node))


def test_letters_of_all_scripts_stay() -> None:
    """Only what is neither a letter, a digit nor a space becomes a number."""
    assert "naïve 漢字 שלום#33;" == label(["naïve 漢字 שלום!"])
