"""The language server: reads messages, answers in order in a thread of its own, and lets a question be taken back.

The thread that reads keeps the open files up to date and notes cancellations; the other one answers. A question carries
the text that the file had when it was asked, so an answer never mixes two states of a file. Nothing that a client sends
ends the server but the end of its stream, a stream that cannot be understood, or `exit`.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

from msgspec import Struct

from batonpass import __version__
from batonpass.adapters.editor.frames import Garbled, MessageWriter, read_message
from batonpass.adapters.editor.line_answers import WHO, AskedBuffer, LineAnswers
from batonpass.adapters.editor.text_buffer import TextBuffer, line_and_character
from batonpass.errors import InvalidValueError

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_UNKNOWN_METHOD: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603
_NOT_INITIALIZED: Final = -32002
_CANCELLED: Final = -32800
_MOST_OPEN: Final = 4096
_INFO: Final = 3
_LAST_ANSWERS_WITHIN: Final = 10.0  # seconds

CAPABILITIES: Final = {
    "positionEncoding": "utf-16",
    "textDocumentSync": {"openClose": True, "change": 2, "save": False},
    "hoverProvider": True,
    "codeLensProvider": {"resolveProvider": False},
    "executeCommandProvider": {"commands": [WHO]},
}


class _Question(Struct, frozen=True):
    id: Any
    answer: Callable[[], Any]


class LanguageServer:
    """One client on two streams."""

    def __init__(self, source: IO[bytes], sink: IO[bytes], *, ledger: str | None = None) -> None:
        self._source = source
        self._writer = MessageWriter(sink)
        self._answers = LineAnswers(ledger)
        self._open: dict[str, TextBuffer] = {}
        self._questions: SimpleQueue[_Question | None] = SimpleQueue()
        self._cancelled: set[str | int] = set()
        self._waiting: set[str | int] = set()
        self._lock = threading.Lock()
        self._is_initialized = self._is_shut_down = False
        self._markdown = False

    def serve(self) -> int:
        """Answer until the client leaves. Return the exit code: 0 if it said goodbye as the protocol asks."""
        worker = threading.Thread(target=self._work, name="batonpass-lsp", daemon=True)
        worker.start()
        try:
            while (message := read_message(self._source)) is not None:
                if isinstance(message, dict) and message.get("method") == "exit":
                    return 0 if self._is_shut_down else 1
                self._take(message)
        except InvalidValueError as error:
            sys.stderr.write(f"batonpass lsp: the stream cannot be read any more: {error}\n")
            return 1
        # The client may still read the answers that it asked for.
        self._questions.put(None)
        worker.join(_LAST_ANSWERS_WITHIN)
        return 0 if self._is_shut_down else 1

    def _take(self, message: dict[str, Any] | list[Any] | Garbled) -> None:
        if isinstance(message, Garbled):
            self._refuse(None, _PARSE_ERROR, "the message is not JSON")
        elif isinstance(message, list) or not isinstance(message.get("method"), str | None):
            self._refuse(None, _INVALID_REQUEST, "the message is not a request")
        elif "method" in message:
            is_question = "id" in message and isinstance(message["id"], str | int)
            if "id" in message and not is_question:
                self._refuse(None, _INVALID_REQUEST, "the id is neither a text nor a number")
            elif is_question:
                self._ask(message["id"], message["method"], message.get("params"))
            else:
                self._note(message["method"], message.get("params"))

    def _ask(self, id_: str | int, method: str, params: Any) -> None:  # noqa: ANN401 - whatever a client sends
        if method == "initialize" and not self._is_initialized:
            self._is_initialized = True
            self._markdown = _takes_markdown(params)
            about = {"name": "batonpass", "version": __version__}
            self._writer.send({"id": id_, "result": {"capabilities": CAPABILITIES, "serverInfo": about}})
        elif not self._is_initialized:
            self._refuse(id_, _NOT_INITIALIZED, "initialize comes first")
        elif self._is_shut_down or method == "initialize":
            self._refuse(id_, _INVALID_REQUEST, "the server was shut down" if self._is_shut_down else "once is enough")
        elif method == "shutdown":
            self._is_shut_down = True
            self._queue(id_, lambda: None)
        else:
            self._question(id_, method, params)

    def _question(self, id_: str | int, method: str, params: Any) -> None:  # noqa: ANN401 - whatever a client sends
        try:
            answer = self._answer_to(method, params)
        except InvalidValueError as error:
            self._refuse(id_, _INVALID_PARAMS, str(error))
            return
        if answer is None:
            self._refuse(id_, _UNKNOWN_METHOD, "there is no such method here")
        else:
            self._queue(id_, answer)

    def _answer_to(self, method: str, params: Any) -> Callable[[], Any] | None:  # noqa: ANN401 - whatever a client sends
        """Return the function that answers a question; None if there is none. Raises `InvalidValueError`."""
        match method:
            case "textDocument/hover":
                asked, (line, _) = self._asked(params), line_and_character(_part(params, "position"))
                return lambda: self._hover(asked, line)
            case "textDocument/codeLens":
                asked = self._asked(params)
                return lambda: [] if asked is None else self._answers.lenses(asked)
            case "batonpass/authors":
                asked = self._asked(params)
                return lambda: None if asked is None else self._answers.authors(asked)
            case "workspace/executeCommand":
                return self._execution(params)
            case _:
                return None

    def _execution(self, params: Any) -> Callable[[], Any]:  # noqa: ANN401 - whatever a client sends
        match params:
            case {"command": command, "arguments": [str(uri), int(line), *_]} if command == WHO and line >= 0:
                asked = self._asked({"textDocument": {"uri": uri}})
            case _:
                raise InvalidValueError("command", f"only {WHO} is known, with a file and a line")

        def show() -> None:
            card = None if asked is None else self._answers.hover(asked, line, markdown=False)
            said = card or "nothing is recorded about this line"
            self._writer.send({"method": "window/showMessage", "params": {"type": _INFO, "message": said}})

        return show

    def _hover(self, asked: AskedBuffer | None, line: int) -> dict[str, Any] | None:
        card = None if asked is None else self._answers.hover(asked, line, markdown=self._markdown)
        if card is None:
            return None
        return {"contents": {"kind": "markdown" if self._markdown else "plaintext", "value": card}}

    def _note(self, method: str, params: Any) -> None:  # noqa: ANN401 - whatever a client sends
        """Take a notification. One that makes no sense is dropped: the protocol has no answer to it."""
        try:
            match method, params:
                case "$/cancelRequest", {"id": str() | int() as id_}:
                    with self._lock:
                        # Only a waiting request can be taken back; other ids would be kept for ever.
                        self._cancelled |= {id_} & self._waiting
                case "textDocument/didOpen", {"textDocument": {"uri": str(uri), "text": str(text), **rest}}:
                    if len(self._open) < _MOST_OPEN or uri in self._open:
                        self._open[uri] = TextBuffer(text=text, version=_version(rest))
                case "textDocument/didChange", {
                    "textDocument": {"uri": str(uri), **rest},
                    "contentChanges": list(new),
                }:
                    if uri in self._open:
                        self._open[uri] = self._open[uri].changed(new, _version(rest))
                case "textDocument/didClose", {"textDocument": {"uri": str(uri)}}:
                    self._open.pop(uri, None)
                case _:
                    return
        except InvalidValueError as error:
            # From here on we would not know the editor's text; no answer is better than a wrong one.
            uri = _part(_part(params, "textDocument"), "uri")
            self._open.pop(uri, None)
            sys.stderr.write(f"batonpass lsp: a change was not understood: {error}\n")

    def _asked(self, params: Any) -> AskedBuffer | None:  # noqa: ANN401 - whatever a client sends
        uri = _part(_part(params, "textDocument"), "uri")
        if not isinstance(uri, str):
            raise InvalidValueError("uri", "is missing")
        path = path_of(uri)
        return None if path is None else AskedBuffer(uri=uri, path=path, buffer=self._open.get(uri))

    def _queue(self, id_: str | int, answer: Callable[[], Any]) -> None:
        with self._lock:
            self._waiting.add(id_)
        self._questions.put(_Question(id_, answer))

    def _work(self) -> None:
        while (question := self._questions.get()) is not None:
            with self._lock:
                is_wanted = question.id not in self._cancelled
            message = self._result_of(question) if is_wanted else {}
            with self._lock:
                is_wanted = question.id not in self._cancelled
                self._waiting.discard(question.id)
                self._cancelled.discard(question.id)
            if is_wanted:
                self._writer.send({"id": question.id, **message})
            else:
                self._refuse(question.id, _CANCELLED, "the request was cancelled")

    def _result_of(self, question: _Question) -> dict[str, Any]:
        try:
            return {"result": question.answer()}
        except Exception as error:  # noqa: BLE001 - one question that fails must not end the others
            return {"error": {"code": _INTERNAL, "message": f"{type(error).__name__}: {error}"}}

    def _refuse(self, id_: str | int | None, code: int, why: str) -> None:
        self._writer.send({"id": id_, "error": {"code": code, "message": why}})


def path_of(uri: str) -> Path | None:
    """Return the file that a URI names; None if it is not a file of this machine."""
    try:
        parts = urlsplit(uri)
        host = parts.netloc.lower()
    except ValueError:
        return None
    path = unquote_to_bytes(parts.path)
    if parts.scheme != "file" or host not in {"", "localhost"} or not path.startswith(b"/") or b"\0" in path:
        return None
    return Path(path.decode("utf-8", "surrogateescape"))


def _part(value: Any, name: str) -> Any:  # noqa: ANN401 - whatever a client sends
    return value.get(name) if isinstance(value, dict) else None


def _version(rest: Mapping[Any, Any]) -> int:
    version = rest.get("version")
    return version if isinstance(version, int) else 0


def _takes_markdown(params: Any) -> bool:  # noqa: ANN401 - whatever a client sends
    hover = _part(_part(_part(params, "capabilities"), "textDocument"), "hover")
    formats = _part(hover, "contentFormat")
    return isinstance(formats, list) and "markdown" in formats
