"""A ledger with a story in it, commands run in this process, and the files that know what they print."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from msgspec import json

from batonpass import Constraint, Decision, Handoff, Relay, Run, tool
from batonpass.cli.main import run_command
from batonpass.errors import CallDeniedError
from batonpass.testing import FrozenClock, observe

SNAPSHOTS: Final = Path(__file__).parent / "snapshots"
_ID: Final = re.compile(r"\b(run|handoff|call|relay|receipt)_([0-9a-z]{26})\b")
_WRITTEN_NOW: Final = re.compile(r"(?!2026-01-05)\b20\d\d-\d\d-\d\d( |T)\d\d:\d\d:\d\d(\.\d+Z|Z)?")
_AGO: Final = re.compile(r"\d+h\d\dm ago")
_CURSOR: Final = re.compile(r"(?<=--after )[\w=-]{40,}")


class Answer(NamedTuple):
    """What a command printed, and how it ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return what it printed, as a value."""
        return json.decode(self.out)


class Story:
    """An analysis with three agents. Time goes on by what each tool takes."""

    def __init__(self, *, is_killed: bool = False) -> None:
        self.clock = FrozenClock()
        self.relay = Relay.open(system=self.clock)
        self.lead = self.relay.start(
            "What stood out in the third quarter?",
            by="user:ana",
            may=["read:**"],
            may_delegate=["write:**", "call:**"],
        )
        self.lead.record(Decision("compare with last year", why="seasons"), Constraint("no customer names"))
        self.clock.advance(1)
        self.compiler = self._compile()
        self.drafter = self._draft(is_killed=is_killed)

    def _compile(self) -> Handoff:
        @tool(target="path")
        def write_table(path: str, rows: int) -> int:
            Path(path).write_text("east 12\n" * rows)
            self.clock.advance(0.031)
            return rows

        handoff = self.lead.hand_off("compiler", "Compile the sales", may=["write:sales.csv"])
        with handoff as run:
            run.call(write_table, "sales.csv", 2)
            with pytest.raises(CallDeniedError):
                run.call(write_table, "backup.csv", 2)
            run.report(
                "sales.csv has both regions",
                decisions=[Decision("left out returns", why="they come in October")],
                open_questions=["the east office moved: are its figures complete?"],
                none={"rejected_paths": "first try"},
            )
        self.clock.advance(1)
        return handoff

    def _draft(self, *, is_killed: bool) -> Handoff:
        handoff = self.lead.hand_off(
            "drafter",
            "Draft the summary\nfor Ana",
            may=["call:**"],
            may_delegate=["call:**"],
            criteria=["one page"],
        )
        self.clock.advance(1)
        run = handoff.accept()
        self.make_calls(run)
        if not is_killed:
            run.close(ConnectionError("the line went dead"))
        return handoff

    def make_calls(self, run: Run) -> None:
        """Let a drafter finish one call, return what cannot be given again, and die in the third."""

        def order_chart(region: str) -> dict[str, str]:
            self.clock.advance(192)
            return {"chart": region}

        def pick_colours(palette: str) -> tuple[str, ...]:
            self.clock.advance(0.2)
            return (palette, "grey")

        def publish(title: str, *, to: str) -> None:  # noqa: ARG001 - dies before it uses them
            self.clock.advance(0.5)
            raise KeyboardInterrupt

        run.call(order_chart, "east")
        run.call(pick_colours, "blue")
        with run.hand_off("checker", "Check the figures", may=["call:**"]) as checker:
            checker.report("they add up")
        with pytest.raises(KeyboardInterrupt):
            run.call(publish, "Third quarter", to="ana@example.org")

    def label(self, text: str) -> str:
        """Return a text in which ids are counted and times that a test does not hold are hidden."""
        counts: dict[str, int] = {}
        labels: dict[str, str] = {}
        for kind, suffix in self._ids():
            counts[kind] = counts.get(kind, 0) + 1
            short = f"{kind[:2]}{counts[kind]:02}"
            labels[suffix] = short
        # Whole ids first: four letters of one may stand inside of another.
        for suffix, short in labels.items():
            text = text.replace(suffix, f"…{short}")
        for suffix, short in labels.items():
            text = re.sub(rf"\b{suffix[-4:]}\b", short, text)
        text = text.replace(observe(self.relay).of("key.enrolled")[0].body["root_key"], "ROOT_KEY")
        return _CURSOR.sub("CURSOR", _AGO.sub("LONG ago", _WRITTEN_NOW.sub("NOW", text)))

    def read_file(self) -> bytes:
        """Return the file of the ledger, after its last commit."""
        self.relay.close()
        self.relay = Relay.open(system=self.clock)
        (file,) = Path(os.environ["BATONPASS_STATE_DIR"]).rglob("ledger.db")
        return file.read_bytes()

    def _ids(self) -> list[tuple[str, str]]:
        """Return every id of the ledger in the order of their first receipts."""
        receipts = observe(self.relay).receipts
        texts = (f"{receipt.stream} {json.encode(receipt.body).decode()}" for receipt in receipts)
        return list(dict.fromkeys(match.groups() for text in texts for match in _ID.finditer(text)))  # type: ignore[misc]


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let times be UTC, and the person be known."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LOGNAME", "ana")
    monkeypatch.delenv("BATONPASS_DEBUG", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def story() -> Iterator[Story]:
    """Return a ledger in which a drafter has failed with calls in doubt."""
    told = Story()
    yield told
    told.relay.close()


@pytest.fixture
def killed_story() -> Iterator[Story]:
    """Return a ledger in which a drafter's process is gone, and nothing says so."""
    told = Story(is_killed=True)
    yield told
    told.relay.close()


class Terminal:
    """Runs commands, and remembers what they printed."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.transcript: list[str] = []

    def run(self, *arguments: str) -> Answer:
        """Run a command as the program does."""
        self._capture.readouterr()
        status = run_command(arguments)
        answer = Answer(status, *self._capture.readouterr())
        words = " ".join(f"'{each}'" if " " in each or not each else each for each in arguments)
        self.transcript += [f"$ batonpass {words}", *answer.out.splitlines()]
        self.transcript += [f"! {each}" for each in answer.err.splitlines()]
        self.transcript += [f"[{status}]"] * (status != 0) + [""]
        return answer

    def matches(self, snapshot: str, story: Story | None = None) -> None:
        """Compare everything so far with a file. `BATONPASS_SNAPSHOTS=write` writes it anew, for a person to read."""
        text = "\n".join(self.transcript)
        shown = text if story is None else story.label(text)
        file = SNAPSHOTS / f"{snapshot}.txt"
        if os.environ.get("BATONPASS_SNAPSHOTS") == "write":
            file.write_text(shown, encoding="utf-8")
        assert file.read_text(encoding="utf-8") == shown


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)
