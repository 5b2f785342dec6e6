"""The demonstration and the example that it plays: what they tell is what happens."""

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass import Relay
from batonpass.demo import story
from batonpass.demo.examples import load_analysis
from batonpass.demo.story import play
from batonpass.errors import VerificationError
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.tool_bodies import ToolRequested
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.cli.shell import PROGRAM, batonpass_in, on_terminal, run_example, surroundings

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "quarterly_analysis.py"
TITLES: Final = (
    "Ana asks",
    "The drafter",
    "Another worker",
    "The trail",
    "Verify everything",
    "Change one",
    "Delete bob",
)
REALLY_DONE: Final = ("pulled the sales of 2026-Q3", "compared the regions", "ordered a chart")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A demonstration that was kept: where, and what it said."""

    place: Path
    said: str


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return a demonstration that was kept, to look at and not to change."""
    place = tmp_path_factory.mktemp("played")
    done = batonpass_in(place.parent, "demo", "--keep", str(place))
    assert (0, "") == (done.returncode, done.stderr)
    return Played(place=place, said=done.stdout)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Return what the example left when it was run as a reader runs it, to look at and not to change."""
    place = tmp_path_factory.mktemp("example")
    done = run_example(EXAMPLE, place)
    assert (0, "") == (done.returncode, done.stderr)
    return Played(place=place, said=done.stdout)


def ledger_in(place: Path) -> Relay:
    """Open the ledger that was kept in a place."""
    return Relay.open(f"sqlite:///{place}/.batonpass/ledger.db", create=False)


def tools_requested(view: LedgerView) -> Iterator[str]:
    """Yield the tools that were really called, once for each call."""
    for stored in view.find_receipts(ReceiptQuery(kind="tool.requested")):
        body = decode_receipt(stored.payload).body
        assert isinstance(body, ToolRequested)
        yield body.tool


@pytest.mark.slow
def test_the_demonstration_tells_what_it_finds(tmp_path: Path) -> None:
    """It hands on, kills, goes on, verifies, changes a byte, deletes a tree, and names each finding."""
    done = batonpass_in(tmp_path, "demo", environment={"TMPDIR": str(tmp_path)})
    titles = tuple(re.findall(r"^\d  (\w+ \w+)", done.stdout, re.MULTILINE))

    assert (0, "", TITLES) == (done.returncode, done.stderr, titles)
    assert "finished: order_chart\n   in doubt: publish:" in done.stdout
    assert "attempt 2: finished calls are not made again" in done.stdout
    assert list(REALLY_DONE) == re.findall(r"done exactly once: (.+)", done.stdout)
    assert "whole: 34 receipts in 9 streams" in done.stdout
    assert re.search(r"stream run_\w{26}, seq 6, field content\.task  \[verify\.content\]", done.stdout)
    assert "whole, 27 receipts" in done.stdout
    assert "[verify.seal]" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("on", ["a pipe", "a terminal"])
@pytest.mark.parametrize("keep", [(), ("--keep", "it's kept")], ids=["in a temporary place", "kept"])
@pytest.mark.slow
def test_it_ends_with_the_line_that_opens_the_page_on_what_it_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, keep: tuple[str, ...]
) -> None:
    """Wherever it is printed, and from wherever it is typed, the line leads to the ledger of this very story."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = ["demo", "pull-request", *keep]
    if on == "a terminal":
        code, shown = on_terminal(tmp_path, options)
    else:
        done = batonpass_in(tmp_path, *options, environment={"TMPDIR": str(tmp_path)})
        code, shown = done.returncode, done.stdout
    last = shown.rstrip().splitlines()[-1].strip()
    there = subprocess.run(
        ["sh", "-c", last.replace("batonpass ui", "pwd")], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert (0, True) == (code, last.endswith(" && batonpass ui"))
    assert "Fix ticket 118" in batonpass_in(Path(there.stdout.rstrip("\n")), "run", "list").stdout


@pytest.mark.slow
def test_what_was_kept_can_be_looked_at(played: Played) -> None:
    """`--keep` leaves three ledgers and a seal, on which every command tells the same story."""
    kept = played.place
    finding = batonpass_in(kept / "flipped", "ledger", "verify", "--json")

    assert [0, 1, 0, 1] == [
        batonpass_in(kept, "ledger", "verify", "--seal", "seal.txt").returncode,
        finding.returncode,
        batonpass_in(kept / "shortened", "ledger", "verify").returncode,
        batonpass_in(kept / "shortened", "ledger", "verify", "--seal", "../seal.txt").returncode,
    ]
    assert ("content.task", 6) == tuple(json.loads(finding.stdout)["error"][name] for name in ("field", "seq"))


@pytest.mark.slow
def test_what_it_says_to_try_can_be_tried(played: Played) -> None:
    """The commands that it names at the end work where it says."""
    named = re.findall(r"^  \(?(?:cd (\w+) && )?batonpass (?!ui$)([^)\n]+)", played.said, re.MULTILINE)
    codes = {
        (where, command): batonpass_in(played.place / where, *command.split()).returncode for where, command in named
    }

    assert {
        ("", "run list"): 0,
        ("", "handoff show drafter"): 0,
        ("", "handoff show drafter --proof"): 0,
        ("flipped", "ledger verify"): 1,
        ("shortened", "ledger verify --seal ../seal.txt"): 1,
    } == codes


@pytest.mark.slow
def test_the_flipped_ledger_differs_in_one_byte(tmp_path: Path) -> None:
    """One byte is one byte."""
    list(play(tmp_path))
    before, after = ((tmp_path / place / ".batonpass" / "ledger.db").read_bytes() for place in ("", "flipped"))
    different = [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]

    assert [(b"A", b"E")] == [(before[at : at + 1], after[at : at + 1]) for at in different]
    assert b"Draft the summary for Ena" in after


def test_a_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    """The demonstration never writes among somebody's files."""
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    done = batonpass_in(tmp_path, "demo", "--keep", ".")

    assert (2, ["mine"]) == (done.returncode, [path.name for path in tmp_path.iterdir()])


@pytest.mark.slow
def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    """On a terminal, what is good is green and what is found is red."""
    code, shown = on_terminal(tmp_path, ["demo"])

    assert (0, True, True) == (code, "\x1b[32mwhole" in shown, "\x1b[31mfound" in shown)


@pytest.mark.slow
def test_what_is_not_found_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If tampering were not noticed, the demonstration would say so and fail."""
    monkeypatch.setattr(story, "change_byte", lambda *_: 0)

    with pytest.raises(VerificationError, match="was not found"):
        list(play(tmp_path))


@pytest.mark.slow
def test_another_summary_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the kill had left a trace in the summary, the demonstration would say so and fail."""
    analysis = load_analysis()
    genuine = analysis.worker_process

    def meddled(directory: Path, **options: Any) -> Any:  # noqa: ANN401 - whatever the example passes and returns
        process = genuine(directory, **options)
        if not options:
            process.wait()
            with (directory / "summary.md").open("a", encoding="utf-8") as summary:
                summary.write("!")
        return process

    monkeypatch.setattr(analysis, "worker_process", meddled)
    monkeypatch.setattr(story, "load_analysis", lambda: analysis)

    with pytest.raises(VerificationError, match="differs from that of an undisturbed run"):
        list(play(tmp_path))


@pytest.mark.slow
def test_it_needs_no_network(tmp_path: Path) -> None:
    """It runs where there is no network at all."""
    try:
        subprocess.run(["unshare", "--net", "true"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("cannot take the network away here")
    done = subprocess.run(
        ["unshare", "--net", *PROGRAM, "demo"],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        check=False,
    )

    assert 0 == done.returncode


def test_example_says_what_was_really_done(example: Played) -> None:
    """Everything outside the ledger happened once, in the order of the story, although one process died."""
    world = (example.place / "world.txt").read_text(encoding="utf-8").splitlines()

    assert list(REALLY_DONE) == world
    assert list(REALLY_DONE) == re.findall(r"done exactly once: (.+)", example.said)
    assert "attempt 2, completed" in example.said


def test_only_the_drafter_was_tried_again(example: Played) -> None:
    """Compiler and analyst ran once; the drafter's first attempt lapsed, and its second delivered."""
    with ledger_in(example.place) as relay, relay.store.view() as view:
        runs = Counter((run.agent, str(run.state)) for run in view.find_runs())
        handoffs = {handoff.to: (handoff.attempt, handoff.state) for handoff in view.find_handoffs()}

    assert {
        ("lead", "completed"): 1,
        ("compiler", "completed"): 1,
        ("analyst", "completed"): 1,
        ("drafter", "lapsed"): 1,
        ("drafter", "completed"): 1,
    } == runs
    assert {
        "compiler": (1, State.COMPLETED),
        "analyst": (1, State.COMPLETED),
        "drafter": (2, State.VERIFIED),
    } == handoffs


@pytest.mark.slow
def test_only_what_was_in_doubt_was_called_again(example: Played) -> None:
    """Finished calls were not made again; the one that says that it may be repeated was."""
    with ledger_in(example.place) as relay, relay.store.view() as view:
        calls = Counter(tools_requested(view))

    assert {"pull_sales": 1, "compare": 1, "order_chart": 1, "publish": 2} == calls


def test_example_leaves_a_ledger_that_is_whole(example: Played) -> None:
    """A kill in the middle of a call breaks nothing, and what travelled is proven to have arrived."""
    with ledger_in(example.place) as relay:
        evidence = relay.verify()
    proof = batonpass_in(example.place, "handoff", "show", "drafter", "--proof")

    assert (5, 3) == (evidence.runs, evidence.handoffs)
    assert (0, True) == (proof.returncode, "whole: 3 items over 1 hop, byte for byte" in proof.stdout)


@pytest.mark.slow
def test_a_killed_drafter_changes_nothing_in_the_summary(
    example: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died by SIGKILL before it published; the summary is that of a run that nobody disturbed."""
    analysis = load_analysis()
    genuine = analysis.worker_process
    started: list[Any] = []

    def noted(directory: Path, **options: Any) -> Any:  # noqa: ANN401 - whatever the example passes and returns
        started.append(genuine(directory, **options))
        return started[-1]

    monkeypatch.setattr(analysis, "worker_process", noted)
    with analysis.opened(tmp_path) as relay:
        _, drafting = analysis.lead(relay)
        pid = analysis.kill_in_second_call(tmp_path)
        (process,) = started
        published = (tmp_path / "summary.md").exists()
        state = relay.handoff(drafting).state()
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    with analysis.opened(undisturbed) as relay:
        analysis.lead(relay)
        analysis.worker_process(undisturbed).wait()

    assert (pid, -signal.SIGKILL, False, State.RUNNING) == (process.pid, process.returncode, published, state)
    assert (example.place / "summary.md").read_bytes() == (undisturbed / "summary.md").read_bytes()


@pytest.mark.slow
def test_the_support_desk_tells_what_it_does(tmp_path: Path) -> None:
    """Three agents hand the customer's words on, a fourth is refused, and what it says to try can be tried."""
    done = batonpass_in(tmp_path, "demo", "support", "--keep", str(tmp_path / "kept"))

    assert (0, "") == (done.returncode, done.stderr)
    assert "handoff.failed: payment-specialist may not hand to bank-agent: handoff.too_deep" in done.stdout
    assert "- I was charged twice in March. I want one of the two back, and no voucher. [user:ana, " in done.stdout
    trail = batonpass_in(tmp_path / "kept", "trail", "last").stdout
    assert ("refused to hand to bank-agent" in trail, "scanned: passed" in trail) == (True, True)
    for command in re.findall(r"^  batonpass (?!ui$)(.+)$", done.stdout, re.MULTILINE):
        assert 0 == batonpass_in(tmp_path / "kept", *command.split()).returncode, command
