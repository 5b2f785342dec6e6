"""`batonpass lsp` as a program: with a client that others wrote, and with one that means no good."""

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.unit.accounts.shop import AFTER, ANA, BEFORE, Shop

PROGRAM = str(Path(sys.executable).with_name("batonpass"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file whose second line an editor wrote."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    monkeypatch.chdir(project)
    shop = Shop(project, f"sqlite:///{project}/.batonpass/ledger.db")
    shop.path().write_text(BEFORE, encoding="utf-8")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)
    shop.relay.close()
    return shop.path()


def served(talk: Callable[[LanguageClient], Awaitable[None]]) -> int | None:
    """Start the server for a client, let it say hello, talk and goodbye, and return the server's exit code."""

    async def session() -> int | None:
        client = LanguageClient("batonpass-tests", "1")
        await client.start_io(PROGRAM, "lsp")
        hover = types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown])
        capabilities = types.ClientCapabilities(text_document=types.TextDocumentClientCapabilities(hover=hover))
        await client.initialize_async(types.InitializeParams(capabilities=capabilities))
        client.initialized(types.InitializedParams())
        await talk(client)
        await client.shutdown_async(None)
        client.exit(None)
        process = client._server
        assert process is not None
        await asyncio.wait_for(process.wait(), 20)
        await client.stop()  # type: ignore[no-untyped-call]
        return process.returncode

    return asyncio.run(asyncio.wait_for(session(), 60))


@pytest.mark.slow
def test_a_client_of_others_is_served(file: Path) -> None:
    """The types of the protocol read every answer: hover, lens, changes, and the command of a lens."""
    uri = file.as_uri()
    seen: dict[str, Any] = {}

    async def talk(client: LanguageClient) -> None:
        document = types.TextDocumentIdentifier(uri=uri)
        item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=AFTER)
        client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        insert = types.TextDocumentContentChangePartial(
            range=types.Range(start=types.Position(0, 0), end=types.Position(0, 0)), text="# é 😀\n"
        )
        versioned = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(text_document=versioned, content_changes=[insert])
        )
        for line in range(3):
            where = types.HoverParams(text_document=document, position=types.Position(line=line, character=1))
            seen[f"hover {line}"] = await client.text_document_hover_async(where)
        seen["lenses"] = await client.text_document_code_lens_async(types.CodeLensParams(text_document=document))
        lens = seen["lenses"][0].command
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: said.set_result(params.message))
        await client.workspace_execute_command_async(
            types.ExecuteCommandParams(command=lens.command, arguments=lens.arguments)
        )
        seen["said"] = await asyncio.wait_for(said, 20)

    assert 0 == served(talk)
    kinds = {
        name: one.contents.value.split("**")[1].split()[0] for name, one in seen.items() if name.endswith(("1", "2"))
    }
    assert {"hover 1": "unexplained", "hover 2": "editor"} == kinds
    assert "not saved yet" in seen["hover 0"].contents.value
    assert ([2], True) == (
        [lens.range.start.line for lens in seen["lenses"]],
        seen["lenses"][0].command.title.startswith("editor "),
    )
    assert seen["said"].startswith("editor ")


def _framed(message: Any) -> bytes:  # noqa: ANN401 - whatever a client sends
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _read(stream: io.BufferedIOBase) -> Any:  # noqa: ANN401 - what JSON holds
    length = int(stream.readline().partition(b":")[2])
    stream.readline()
    return json.loads(stream.read(length))


@pytest.mark.slow
def test_a_client_that_means_no_good_gets_answers_and_no_memory(file: Path) -> None:
    """Garbage, floods and a frame of 60 MB are survived; a frame that promises terabytes ends it, and takes nothing."""
    hello = {"id": 0, "method": "initialize", "params": {"capabilities": "x", "processId": "evil"}}
    where = {"textDocument": {"uri": file.as_uri()}, "position": {"line": 1, "character": 10**30}}
    nested = b"[" * 200_000 + b"]" * 200_000
    flood = b"".join(
        _framed({"id": number, "method": "no/such", "params": nested.decode()[:50]}) for number in range(500)
    )
    large = {"uri": file.as_uri(), "version": 2, "languageId": "x", "text": "x\n" * 15_000_000}
    with subprocess.Popen(
        [PROGRAM, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        assert one.stderr is not None
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.extend(_read(one.stdout) for _ in range(505)))  # type: ignore[arg-type]
        reader.start()
        one.stdin.write(_framed(hello) + _framed(nested) + _framed(b"\xff") + flood)
        one.stdin.write(_framed({"id": "h", "method": "textDocument/hover", "params": {**where, "position": 7}}))
        one.stdin.write(_framed({"method": "textDocument/didOpen", "params": {"textDocument": large}}))
        where["position"] = {"line": 1, "character": 0}
        one.stdin.write(_framed({"id": "i", "method": "textDocument/hover", "params": where}))
        one.stdin.flush()
        reader.join(60)
        with Path(f"/proc/{one.pid}/status").open(encoding="ascii") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        one.stdin.write(b"Content-Length: 1099511627776\r\n\r\n{")
        one.stdin.flush()
        code = one.wait(20)
        said = one.stderr.read().decode()

    codes = [each.get("error", {}).get("code") for each in found]
    assert (505, 500, 2, [-32602]) == (
        len(found),
        codes.count(-32601),
        codes.count(-32700),
        [each["error"]["code"] for each in found if each.get("id") == "h"],
    )
    assert (1, True, True) == (code, "cannot be read any more" in said, peak < 800_000)
    assert "Traceback" not in said


@pytest.mark.slow
def test_an_editor_that_dies_takes_the_server_along(file: Path) -> None:
    """Nobody stays behind: the end of the stream is the end."""
    with subprocess.Popen([PROGRAM, "lsp", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdin is not None
        one.stdin.write(_framed({"id": 0, "method": "initialize", "params": {}}))
        one.stdin.close()

        assert 1 == one.wait(20)
    assert Path(file).exists()
