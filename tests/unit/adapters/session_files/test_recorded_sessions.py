"""Every agent's sessions, as the real program kept them: who said what, who started whom, who wrote which line."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from batonpass.adapters.importer.session_import import count_sessions, import_sessions
from batonpass.adapters.line_blame import blame, blame_at
from batonpass.adapters.session_files.conversation import Conversation, read_conversation
from batonpass.adapters.session_files.session_values import SkippedLine
from batonpass.relay import Relay
from tests.unit.adapters.session_files.recorded_sessions import AGENTS, NOBODY, TASK, RecordedAgent, restore


@dataclass(frozen=True)
class Kept:
    """What one program left on a machine."""

    agent: RecordedAgent
    home: Path
    project: Path

    def conversation(self) -> Conversation:
        """Return the only session of the project."""
        reader = self.agent.reader()
        (files,) = reader.find(self.project)
        return read_conversation(reader, files, self.project)

    def bytes(self) -> dict[str, str]:
        """Return digests of all its files."""
        return {str(path): sha256(path.read_bytes()).hexdigest() for path in self.home.rglob("*") if path.is_file()}


PLACES = (
    *("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "GOOSE_PATH_ROOT", "COPILOT_HOME", "QWEN_HOME"),
    *("GEMINI_CLI_HOME", "CLINE_DIR", "CLINE_DATA_DIR"),
)


@pytest.fixture(params=AGENTS, ids=str)
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Return what each program kept, one after the other."""
    home, project = restore(request.param, tmp_path)
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    monkeypatch.chdir(project)
    return Kept(request.param, home, project)


@pytest.fixture
def imported(kept: Kept) -> Iterator[Relay]:
    """Return a relay with the session in it."""
    with Relay.open("memory:") as relay:
        import_sessions(relay, kept.project, kept.agent.reader(), by="user:ana")
        yield relay
        relay.verify()


def test_the_session_is_read_as_it_was(kept: Kept) -> None:
    """The human's words, the program's version, the sub-agent with its exact task and the call that started it."""
    found = kept.conversation()

    assert [kept.agent.prompt] == [prompt.text for prompt in found.prompts]
    assert (0, kept.agent.version) == (found.unread, found.info.version)
    assert [(TASK, True)] * kept.agent.has_sub_agents == [
        (run.task, run.link in kept.agent.links) for run in found.runs if run.agent is not None
    ]


def test_what_went_wrong_is_known(kept: Kept) -> None:
    """An edit that did not fit and a command that failed changed nothing that the session tells of."""
    calls = [call for run in kept.conversation().runs for call in run.calls]
    failed = [call for call in calls if call.result is not None and not call.result.ok]

    assert (kept.agent.failed, []) == (len(failed), [call for call in failed if call.changes])
    assert [] == [call for call in calls if call.result is None]


def test_every_line_has_its_writer(kept: Kept, imported: Relay) -> None:
    """Main conversation or sub-agent; what a shell changed is nobody's, and so is what was there before."""
    said = {path: "".join(_writers(imported, kept, path)) for path in kept.agent.writers}

    assert dict(kept.agent.writers) == said
    assert NOBODY * 4 == "".join(_writers(imported, kept, "notes.txt"))


def test_every_line_knows_the_model_that_wrote_it(kept: Kept, imported: Relay) -> None:
    """As the session says with each call; where it does not, nobody guesses."""
    answers = (blame_at(imported, kept.project / path) for path in kept.agent.writers)
    makers = [maker for answer in answers for maker in answer.makers.values() if maker.source is not None]
    models = {(one.run.parent is None, one.source and one.source.model) for one in makers}

    assert {kept.agent.model} == {model for is_main, model in models if is_main}
    assert {model for is_main, model in models if not is_main} in ({kept.agent.model}, {None})


def _writers(relay: Relay, kept: Kept, path: str) -> Iterator[str]:
    found = blame_at(relay, kept.project / path)
    for line in found.lines:
        maker = found.makers.get(line.calls[0]) if len(line.calls) == 1 and line.run is not None else None
        yield NOBODY if maker is None else "m" if maker.run.handoff is None else "s"


def test_blame_answers_without_any_set_up(kept: Kept) -> None:
    """It reads the sessions, and what it says is hearsay."""
    path = next(path for path, writers in kept.agent.writers.items() if writers.endswith("m"))
    found = blame(kept.project / path)
    (maker, *_) = found.makers.values()

    assert (1, True, kept.agent.reader.program) == (found.transcripts, maker.is_hearsay, maker.run.agent)


def test_importing_twice_is_once(kept: Kept) -> None:
    """And nothing of what the program keeps is touched."""
    before = kept.bytes()
    reader = kept.agent.reader()
    with Relay.open("memory:") as relay:
        foreseen = count_sessions(None, kept.project, reader).counts
        first = import_sessions(relay, kept.project, reader).counts
        again = import_sessions(relay, kept.project, reader).counts
        left = count_sessions(relay.store, kept.project, reader).counts

    assert (1, 0, 0) == (first.sessions, again.sessions, left.sessions)
    assert (foreseen.prompts, foreseen.subagents, foreseen.calls, foreseen.changes) == (
        first.prompts,
        first.subagents,
        first.calls,
        first.changes,
    )
    assert before == kept.bytes()


def test_what_is_broken_is_named_and_the_rest_is_read(kept: Kept) -> None:
    """A file that ends in the middle, or has a line of nonsense, is not a reason to read nothing."""
    reader = kept.agent.reader()
    (files,) = reader.find(kept.project)
    if files.main.suffix != ".jsonl":
        pytest.skip("not kept in lines")
    text = files.main.read_bytes()
    files.main.write_bytes(text + b"{nonsense\n" + text.splitlines(keepends=True)[-1][:20])
    found = list(reader.read(files, kept.project))

    line = len(text.splitlines()) + 1
    assert [f"{files.main}:{line}: is not JSON"] == [str(one) for one in found if isinstance(one, SkippedLine)]
    assert len(found) > len(text.splitlines()) // 10
