"""The language server: what it answers, in which order, and what it does with a client that makes no sense."""

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters import line_blame
from batonpass.adapters.editor import file_answers
from batonpass.adapters.editor.language_server import LanguageServer, path_of
from batonpass.errors import StoreUnavailableError
from batonpass.relay import Relay
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, Shop, write_file

HELLO = {"capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown", "plaintext"]}}}}


def framed(*messages: Any) -> bytes:  # noqa: ANN401 - whatever a client sends
    bodies = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
    return b"".join(b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies)


def answers(printed: bytes) -> Iterator[dict[str, Any]]:
    stream = io.BytesIO(printed)
    while line := stream.readline():
        length = int(line.partition(b":")[2])
        assert b"\r\n" == stream.readline()
        yield json.loads(stream.read(length))


def talk(*messages: Any, hello: Any = HELLO) -> dict[Any, Any]:  # noqa: ANN401 - whatever a client sends
    """Say hello and these messages to a server, and return its answers by id; None has those without one."""
    sink = io.BytesIO()
    source = io.BytesIO(framed({"id": 0, "method": "initialize", "params": hello}, *messages))
    LanguageServer(source, sink).serve()
    found: dict[Any, Any] = {}
    for one in answers(sink.getvalue()):
        assert "2.0" == one["jsonrpc"]
        found[one.get("id")] = one.get("result", one.get("error", one))
    return found


def hover(path: Path, line: int, id_: int = 1) -> dict[str, Any]:
    where = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": 0}}
    return {"id": id_, "method": "textDocument/hover", "params": where}


def about(path: Path, method: str, id_: int = 1) -> dict[str, Any]:
    return {"id": id_, "method": method, "params": {"textDocument": {"uri": path.as_uri()}}}


def opened(path: Path, text: str) -> dict[str, Any]:
    document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
    return {"method": "textDocument/didOpen", "params": {"textDocument": document}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file whose second line an editor wrote, in a project beside the current directory."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project, elsewhere):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    monkeypatch.chdir(project)
    shop = Shop(project, f"sqlite:///{project}/.batonpass/ledger.db")
    shop.path().write_text(BEFORE, encoding="utf-8")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)
    shop.relay.close()
    monkeypatch.chdir(elsewhere)
    return shop.path()


def test_it_says_what_it_can(file: Path) -> None:
    """Hover, code lens, changes by and by, and a command."""
    capabilities = talk(hover(file, 1))[0]["capabilities"]

    assert (True, {"resolveProvider": False}, 2, ["batonpass.whoWroteThis"]) == (
        capabilities["hoverProvider"],
        capabilities["codeLensProvider"],
        capabilities["textDocumentSync"]["change"],
        capabilities["executeCommandProvider"]["commands"],
    )


def test_a_line_has_a_card(file: Path) -> None:
    """From the ledger beside the file, wherever the server was started; beyond the end there is none."""
    found = talk(hover(file, 1), hover(file, 0, 2), hover(file, 99, 3))

    assert ("markdown", True) == (found[1]["contents"]["kind"], found[1]["contents"]["value"].startswith("**editor "))
    assert "**unexplained**" in found[2]["contents"]["value"]
    assert found[3] is None


def test_an_editor_without_markdown_gets_text(file: Path) -> None:
    """As it says when it comes."""
    contents = talk(hover(file, 1), hello={"capabilities": {}})[1]["contents"]

    assert ("plaintext", True) == (contents["kind"], contents["value"].startswith("editor "))


def test_an_unsaved_buffer_is_mapped_to_the_saved_file(file: Path) -> None:
    """Lines below an insertion keep their authors, and what is not saved is said to be so."""
    insert = {
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
        "text": "# a new line\n",
    }
    change = {"textDocument": {"uri": file.as_uri(), "version": 2}, "contentChanges": [insert]}
    said = [opened(file, AFTER), {"method": "textDocument/didChange", "params": change}]
    found = talk(*said, hover(file, 2), hover(file, 0, 2), about(file, "textDocument/codeLens", 3))
    closed = {"method": "textDocument/didClose", "params": {"textDocument": {"uri": file.as_uri()}}}

    assert found[1]["contents"]["value"].startswith("**editor ")
    assert "not saved yet" in found[2]["contents"]["value"]
    assert [2] == [lens["range"]["start"]["line"] for lens in found[3]]
    assert talk(*said, closed, hover(file, 1))[1]["contents"]["value"].startswith("**editor ")


def test_a_lens_stands_above_what_an_agent_wrote(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its author, its time and its task; an icon in a task is none."""
    monkeypatch.chdir(file.parent)
    with (
        Relay.open(f"sqlite:///{file.parent}/.batonpass/ledger.db") as relay,
        relay.start("x", by=ANA) as lead,
        lead.hand_off("other", "$(bug)") as other,
    ):
        other.call(write_file, str(file), f"{AFTER}of another\n")
    lens, icon = talk(about(file, "textDocument/codeLens"))[1]

    assert ({"line": 1, "character": 0}, "batonpass.whoWroteThis") == (
        lens["range"]["start"],
        lens["command"]["command"],
    )
    assert (True, True) == (lens["command"]["title"].startswith("editor "), '· "Shout"' in lens["command"]["title"])
    assert '· "$ (bug)"' in icon["command"]["title"]


def test_authors_of_all_lines(file: Path) -> None:
    """In blocks, for annotations beside the text."""
    found = talk(opened(file, f"{AFTER}more\n"), about(file, "batonpass/authors"))[1]

    assert (1, "ledger") == (found["version"], found["from"])
    assert [(0, 0, "unexplained"), (1, 1, "agent"), (2, 2, "unexplained")] == [
        (one["first"], one["last"], one["kind"]) for one in found["blocks"]
    ]


def test_a_command_shows_the_card(file: Path) -> None:
    """For editors that run a lens's command here."""
    params = {"command": "batonpass.whoWroteThis", "arguments": [file.as_uri(), 1]}
    found = talk({"id": 1, "method": "workspace/executeCommand", "params": params})

    assert found[1] is None
    assert found[None]["params"]["message"].startswith("editor ")


def test_where_nothing_is_recorded_there_is_nothing(tmp_path: Path, file: Path) -> None:
    """No card, no lens, no error; and nothing is made."""
    bare = tmp_path / "bare.txt"
    bare.write_text("x\n", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    asked = [hover(bare, 0), about(bare, "textDocument/codeLens", 2), about(bare, "batonpass/authors", 3)]
    found = talk(*asked, hover(tmp_path, 0, 4), hover(tmp_path / "gone", 0, 5))

    assert [None, [], [], None, None] == [found[1], found[2], found[3]["blocks"], found[4], found[5]]
    assert (before, True) == (sorted(tmp_path.iterdir()), file.exists())


def test_an_answer_is_kept_until_something_changes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, the ledger or the commit; a card must never be of yesterday."""
    asked = []
    ask = line_blame.blame_beside

    def counted(path: Path, ledger: str | None) -> Any:  # noqa: ANN401 - what it returns
        asked.append(path)
        return ask(path, ledger)

    monkeypatch.setattr(file_answers, "blame_beside", counted)
    kept = file_answers.FileAnswers(None)
    first = [kept.of(file), kept.of(file)]
    with Relay.open(f"sqlite:///{file.parent}/.batonpass/ledger.db") as relay:
        relay.start("x", by=ANA).close()
    kept.of(file)
    file.write_text(f"{AFTER}more\n", encoding="utf-8")

    assert (True, 4, 3) == (first[0] is first[1], len(kept.of(file).lines), len(asked))


def test_where_nothing_is_recorded_it_is_asked_once(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a while: to look for sessions of all agents takes long, and the mouse rests often. A new ledger is seen."""
    asked = []

    def refuse(path: Path, ledger: str | None) -> None:
        asked.append((path, ledger))
        raise StoreUnavailableError("nothing is recorded")

    monkeypatch.setattr(file_answers, "blame_beside", refuse)
    kept = file_answers.FileAnswers(None)
    bare = tmp_path / "bare.txt"
    for path in (bare, bare, file):
        with pytest.raises(StoreUnavailableError):
            kept.of(path)

    assert [bare, file] == [path for path, _ in asked]
    Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db").close()
    with pytest.raises(StoreUnavailableError):
        kept.of(bare)
    assert 3 == len(asked)


class Gate(io.BytesIO):
    """A stream that opens a gate when everything in it was read."""

    def __init__(self, given: bytes) -> None:
        super().__init__(given)
        self.opened = threading.Event()

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line, or open the gate."""
        found = super().readline(size)
        if not found:
            self.opened.set()
        return found


def test_a_question_can_be_taken_back(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is answered, and while it is; others are answered, and ids that nobody used mean nothing."""
    cancels = [{"method": "$/cancelRequest", "params": {"id": id_}} for id_ in (1, 2, 77, "x")]
    asked = (hover(file, 1, 1), hover(file, 1, 2), hover(file, 1, 3), *cancels, hover(file, 1, 77))
    source, sink = Gate(framed({"id": 0, "method": "initialize", "params": HELLO}, *asked)), io.BytesIO()
    server = LanguageServer(source, sink)
    real = server._answers.hover

    def patient(*given: Any, **named: Any) -> str | None:  # noqa: ANN401 - whatever it is asked
        assert source.opened.wait(20)
        return real(*given, **named)

    monkeypatch.setattr(server._answers, "hover", patient)
    server.serve()
    found = {one["id"]: one.get("error", {}).get("code", "answered") for one in answers(sink.getvalue())}

    assert {0: "answered", 1: -32800, 2: -32800, 3: "answered", 77: "answered"} == found


@pytest.mark.parametrize(
    ("message", "id_", "code"),
    [
        pytest.param(b"{", None, -32700, id="no JSON"),
        pytest.param([], None, -32600, id="a batch"),
        pytest.param({"id": 5, "method": 7}, None, -32600, id="a method that is a number"),
        pytest.param({"id": 1.5, "method": "x"}, None, -32600, id="an id with a fraction"),
        pytest.param({"id": {}, "method": "x"}, None, -32600, id="an id that is an object"),
        pytest.param({"id": 5, "method": "no/such"}, 5, -32601, id="an unknown method"),
        pytest.param({"id": "é", "method": "$/unknown"}, "é", -32601, id="an unknown method with a text for an id"),
        pytest.param({"id": 5, "method": "textDocument/hover"}, 5, -32602, id="no parameters"),
        pytest.param({"id": 5, "method": "textDocument/hover", "params": [1]}, 5, -32602, id="parameters in a list"),
        pytest.param(
            {"id": 5, "method": "workspace/executeCommand", "params": {"command": "rm"}},
            5,
            -32602,
            id="another command",
        ),
        pytest.param({"id": 5, "method": "initialize", "params": {}}, 5, -32600, id="hello again"),
    ],
)
def test_what_makes_no_sense_is_refused(file: Path, message: Any, id_: Any, code: int) -> None:  # noqa: ANN401 - whatever a client sends
    """With the protocol's code for it, and the next question is answered."""
    found = talk(message, hover(file, 1, 9))

    assert (code, True) == (found[id_]["code"], "editor" in found[9]["contents"]["value"])


def test_notifications_that_make_no_sense_are_dropped(file: Path) -> None:
    """And a buffer that we would not know any more is forgotten."""
    broken = {"textDocument": {"uri": file.as_uri(), "version": 2}, "contentChanges": [{"range": 1, "text": "x"}]}
    names = ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/cancelRequest", "x")
    given: list[Any] = [None, 1, [], {}, {"textDocument": 1}, {"textDocument": {"uri": 1}}, {"id": {}}]
    strange = [{"method": name, "params": params} for name in names for params in given]
    found = talk(opened(file, "x"), {"method": "textDocument/didChange", "params": broken}, *strange, hover(file, 1))

    assert found[1]["contents"]["value"].startswith("**editor ")


def test_the_order_of_a_session_is_kept(file: Path) -> None:
    """Nothing is answered before hello or after goodbye; the exit code says whether goodbye was said."""
    sink = io.BytesIO()
    early = LanguageServer(io.BytesIO(framed(hover(file, 1), {"method": "exit"})), sink).serve()
    late = talk({"id": 1, "method": "shutdown"}, hover(file, 1, 2))
    hello = {"id": 0, "method": "initialize", "params": None}
    proper = framed(hello, {"id": 1, "method": "shutdown"}, {"method": "exit"})

    assert (1, -32002) == (early, next(answers(sink.getvalue()))["error"]["code"])
    assert (None, -32600) == (late[1], late[2]["code"])
    assert (0, 1) == (
        LanguageServer(io.BytesIO(proper), io.BytesIO()).serve(),
        LanguageServer(io.BytesIO(b"Content-Length: 999999999999\r\n\r\n"), io.BytesIO()).serve(),
    )


def test_a_failure_of_ours_is_said_and_no_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question that fails leaves the others."""

    def fail(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(file_answers, "blame_beside", fail)

    assert (-32603, None) == (talk(hover(file, 1))[1]["code"], talk({"id": 1, "method": "shutdown"})[1])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%C3%A9.py", "/a b/é.py"),
        ("file://localhost/x", "/x"),
        ("file:///%FF", "/\udcff"),
        ("file://elsewhere/x", None),
        ("untitled:Untitled-1", None),
        ("https://example.org/x", None),
        ("file:relative", None),
        ("file:///a%00b", None),
        ("file://[", None),
        ("", None),
    ],
)
def test_only_files_of_this_machine_are_read(uri: str, path: str | None) -> None:
    """Whatever else an editor shows has no record here."""
    assert (None if path is None else Path(path)) == path_of(uri)
