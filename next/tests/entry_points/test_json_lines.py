"""JSON lines: a program in another language makes the same acts, over two pipes."""

import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.api.json_lines import LARGEST_LINE, serve_lines
from batonpass.testing import a_relay, an_attempt, observe
from tests.entry_points.json_program import Lines, RefusedError, a_server

ANA = {"intent": "Fix rounding", "by": "user:ana"}
DEEP = b'{"id": 1, "act": "start", "request": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lines]:
    """One server for all wrong lines: none of them ends it."""
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("lines")
        patch.setenv("BATONPASS_STATE_DIR", str(directory / "state"))
        with a_server(directory / "ledger.db") as lines:
            yield lines


@pytest.mark.parametrize(
    ("line", "identity", "code", "detail"),
    [
        pytest.param(b"", None, "value.invalid", "not JSON", id="an empty line"),
        pytest.param(b"hello", None, "value.invalid", "not JSON", id="no JSON"),
        pytest.param(b'{"id": 1, "act": "start"', None, "value.invalid", "not JSON", id="half a line"),
        pytest.param(b"\x00\xff\xfe\x80", None, "value.invalid", "not JSON", id="bytes that are no text"),
        pytest.param(b'{"act": "\xff"}', None, "value.invalid", "not JSON", id="text that is no UTF-8"),
        pytest.param(b'{"act": "\\ud800"}', None, "value.invalid", "not JSON", id="half of a surrogate pair"),
        pytest.param(b"null", None, "value.invalid", "Expected `object`, got `null`", id="no object"),
        pytest.param(b"[" * 100_000, None, "value.invalid", "Expected `object`", id="an endless array"),
        pytest.param(DEEP, None, "value.invalid", "nested too deeply", id="a request that is nested too deeply"),
        pytest.param(b"x" * 10_000_000, None, "value.invalid", "not JSON", id="ten megabytes of nothing"),
        pytest.param(
            b"x" * (LARGEST_LINE + 9), None, "content.too_large", "33,554,432", id="more than a line may have"
        ),
        pytest.param(b'{"id": 7}', 7, "value.invalid", "missing required field `act`", id="no act"),
        pytest.param(b'{"id": "a", "act": "nope"}', "a", "value.invalid", "no act 'nope'", id="an unknown act"),
        pytest.param(b'{"id": 8, "act": "start", "hope": 1}', 8, "value.invalid", "`hope`", id="an unknown member"),
        pytest.param(b'{"id": 9, "act": "start"}', 9, "value.invalid", "`intent`", id="a request without a field"),
        pytest.param(
            b'{"id": 10, "act": "start", "request": {"intent": "x", "hope": 1}}',
            10,
            "value.invalid",
            "start: Object contains unknown field `hope`",
            id="an unknown field",
        ),
        pytest.param(
            b'{"id": 11, "act": "start", "request": {"intent": 5}}',
            11,
            "value.invalid",
            "start: Expected `str`, got `int` - at `$.intent`",
            id="a field of another type",
        ),
        pytest.param(
            b'{"id": 12, "act": "show_run", "request": {"run": "run_1"}}',
            12,
            "id.unknown",
            "there is no run run_1 in this ledger",
            id="a run that there is not",
        ),
    ],
)
def test_a_wrong_line_has_an_error_for_an_answer(
    server: Lines, line: bytes, identity: int | str | None, code: str, detail: str
) -> None:
    """Whatever a line says, its answer is one line with an error of the same members, and the next line is answered."""
    server.write(line, b"\n", b'{"id": "next", "act": "list_runs", "request": {"limit": 1}}\n')
    reply = server.read()

    assert {"id", "error"} == reply.keys()
    assert identity == reply["id"]
    assert {"type", "title", "detail", "code"} <= reply["error"].keys()
    assert (code, f"urn:batonpass:error:{code}") == (reply["error"]["code"], reply["error"]["type"])
    assert detail in reply["error"]["detail"]
    assert "next" == server.read()["id"]


def test_answers_come_in_the_order_of_the_lines(server: Lines) -> None:
    """A program may write many lines before it reads an answer."""
    lines = [
        json.dumps({"id": number, "act": "list_runs" if number % 3 else "nope"}).encode() + b"\n"
        for number in range(200)
    ]
    server.write(*lines)

    assert list(range(200)) == [server.read()["id"] for _ in lines]


def test_a_line_of_ten_megabytes_is_a_request_like_others(tmp_path: Path) -> None:
    """What a receipt may hold beside it can be said in a line."""
    text = "x" * 10_000_000
    with a_server(tmp_path / "ledger.db") as lines:
        lines.send("start", {**ANA, "items": [{"item": "decision", "text": text}]})

    assert text == observe(tmp_path / "ledger.db").last("run.started").value("items")[0]["text"]


def test_the_end_of_the_lines_ends_the_server(tmp_path: Path) -> None:
    """It closes its ledger and exits well, also after a last line that was cut off."""
    lines = Lines(tmp_path / "ledger.db")
    lines.send("start", ANA)
    lines.write(b'{"act": "start", "request": {"intent": "half')
    assert 0 == lines.end()

    assert ["run.started"] == observe(tmp_path / "ledger.db").kinds()


@pytest.mark.parity("digests-use-one-encoder")
def test_the_same_offer_by_python_and_by_json_is_the_same_handoff(tmp_path: Path) -> None:
    """An offer is known by what it says, however its request was spelled."""
    with a_relay(tmp_path / "ledger.db") as relay:
        run = relay.start("Fix rounding", by="user:ana", may=["read:**"], may_delegate=["read:**"])
        offered = run.hand_off("editor", "Round", may=["read:src/**"], criteria=["tests pass"])
        with a_server(tmp_path / "ledger.db") as lines:
            request = {"run": run.id, "to": "editor", "task": "Round", "grant": {"may": ["read:src/**"]}}
            same = lines.send("hand_off", {**request, "parts": {"criteria": ["tests pass"]}})
            spelled = {"criteria": ["tests pass"], "items": [], "brief": {"inputs": []}}
            long = lines.send("hand_off", {**request, "parts": spelled})
            another = lines.send("hand_off", request)

    assert (offered.id, offered.id) == (same["handoff"], long["handoff"])
    assert offered.id != another["handoff"]


def call(run: str, **fields: object) -> dict[str, Any]:
    return {"run": run, "tool": "write_file", "action": "write", "target": "src/a", "arguments": ["x"], **fields}


@pytest.mark.parity("json-lines-for-a-program-elsewhere")
def test_a_program_elsewhere_hands_work_on(tmp_path: Path) -> None:
    """It starts, hands off, accepts, calls, reports and reads the result; its receipts are those of any program."""
    with a_server(tmp_path / "ledger.db") as lines:
        root = lines.send("start", {**ANA, "grant": {"may": ["write:**"], "may_delegate": ["write:src/**"]}})
        grant = {"may": ["write:src/**"]}
        offered = lines.send("hand_off", {"run": root["run"], "to": "editor", "task": "Round", "grant": grant})
        child = lines.send("accept", {"handoff": offered["handoff"]})
        begun = lines.send("begin_call", call(child["run"]))
        lines.send("finish_call", {"run": child["run"], "call": begun["call"], "result": {"lines": [1, 2]}})
        lines.send("close", {"run": child["run"], "report": {"result": "done", "open_questions": [{"text": "when?"}]}})
        result = lines.send("show_result", {"handoff": offered["handoff"]})
        lines.send("close", {"run": root["run"]})

    assert ("completed", "done", "when?") == (
        result["state"],
        result["report"]["result"],
        result["report"]["open_questions"][0]["text"],
    )
    assert [
        "run.started",
        "handoff.initiated",
        "handoff.accepted",
        "tool.requested",
        "tool.completed",
        "handoff.completed",
        "run.closed",
    ] == observe(tmp_path / "ledger.db").kinds()


@pytest.mark.parametrize("server_dies", [False, True], ids=["the program dies", "its server is killed"])
def test_a_call_goes_on_after_a_restart(tmp_path: Path, *, server_dies: bool) -> None:
    """The run is opened again from its receipts: the call is in doubt, refused a second time, and can be finished."""
    first = Lines(tmp_path / "ledger.db")
    run = first.send("start", ANA)["run"]
    begun = first.send("begin_call", call(run))
    if server_dies:
        first.process.send_signal(signal.SIGKILL)
    first.end()

    with a_server(tmp_path / "ledger.db") as second:
        shown = second.send("show_run", {"run": run})["calls"]
        assert [(begun["call"], True)] == [(each["id"], each["is_in_doubt"]) for each in shown]
        with pytest.raises(RefusedError, match=r"call\.in_doubt"):
            second.send("begin_call", call(run))
        assert "completed" == second.send("finish_call", {"run": run, "call": begun["call"], "result": 5})["outcome"]
        assert 5 == second.send("begin_call", call(run))["result"]
        second.send("close", {"run": run})
    seen = observe(tmp_path / "ledger.db")

    assert ["run.started", "tool.requested", "tool.completed", "run.closed"] == seen.kinds()
    assert () == seen.in_doubt


KEYED = {
    "start": ("start", {**ANA, "grant": {"may": ["write:src/**"], "may_delegate": ["write:src/**"]}}),
    "record": ("record", {"run": "$start.run", "items": [{"item": "decision", "text": "half-even"}]}),
    "wide": ("hand_off", {"run": "$start.run", "to": "b", "task": "Too much", "grant": {"may": ["write:**"]}}),
    "bare": ("hand_off", {"run": "$start.run", "to": "b", "task": "No grant"}),
    "offer": ("hand_off", {"run": "$start.run", "to": "b", "task": "Round", "grant": {"may": ["write:src/**"]}}),
    "accept": ("accept", {"handoff": "$offer.handoff"}),
    "both": (
        "hand_off",
        {"run": "$start.run", "to": "c", "task": "Check", "grant": {"may": ["write:src/**"]}, "accept": True},
    ),
    "denied": ("begin_call", call("$accept.run", target="etc/passwd")),
    "begin": ("begin_call", call("$accept.run")),
    "finish": ("finish_call", {"run": "$accept.run", "call": "$begin.call", "result": [1]}),
    "doubtful": ("begin_call", call("$accept.run", arguments=["y"])),
    "again": ("begin_call", call("$accept.run", arguments=["z"])),
    "settle": ("settle_run", {"run": "$accept.run", "call": "$doubtful.call", "how": "skip", "by": "user:ana"}),
    "fail": ("close", {"run": "$accept.run", "error": "tests fail"}),
    "retry": (
        "retry",
        {"handoff": "$offer.handoff", "by": "user:ana", "reason": "again", "repeat": ["$again.call"]},
    ),
    "resume": ("resume", {"run": "$start.run"}),
    "close": ("close", {"run": "$start.run"}),
}


def filled(value: Any, answers: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a request with the ids that earlier answers gave."""
    if isinstance(value, dict):
        return {name: filled(each, answers) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, answers) for each in value]
    if isinstance(value, str) and value.startswith("$"):
        answer, field = value[1:].split(".")
        return answers[answer][field]
    return value


def play(lines: Lines, *names: str) -> dict[str, Any]:
    """Send each request with its key, and return what was answered; refusals too."""
    answers: dict[str, Any] = {}
    for name in names:
        act, request = KEYED[name]
        try:
            answers[name] = lines.send(act, filled(request, answers), key=name)
        except RefusedError as refused:
            answers[name] = {"refused": refused.error, "call": refused.error.get("facts", {}).get("call")}
    return answers


def lasting(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what a run or a call is now: it may have ended since."""
    return {
        name: lasting(each) if isinstance(each, dict) else each
        for name, each in answer.items()
        if name not in {"in_doubt", "is_replayed", "result"}
    }


@pytest.mark.parity("sim-repeats-are-answered-alike")
def test_a_repeated_request_is_answered_from_its_receipt_after_a_restart(tmp_path: Path) -> None:
    """Each act again with its key, to a process that has nothing but the ledger: the same answer, and no receipt more.

    What was refused is refused in the same words.
    """
    open_ones = [name for name in KEYED if name not in {"fail", "retry", "close"}]
    with a_server(tmp_path / "ledger.db") as lines:
        first = play(lines, *open_ones)
    before = observe(tmp_path / "ledger.db")
    with a_server(tmp_path / "ledger.db") as lines:
        second = play(lines, *open_ones)
        with pytest.raises(RefusedError, match=r"idempotency\.key_reused"):
            lines.send("start", {**ANA, "intent": "Another"}, key="start")

    assert {"wide": "grant.exceeded", "bare": "grant.required", "denied": "call.denied"} == {
        name: answer["refused"]["code"] for name, answer in first.items() if "refused" in answer
    }
    begun, asked_again = first.pop("again"), second.pop("again")
    assert [lasting(answer) for answer in first.values()] == [lasting(answer) for answer in second.values()]
    assert [1] == second["begin"]["result"]
    # What a process that is gone began has no outcome: a key makes a request once, and not a tool twice.
    assert ("call.in_doubt", begun["call"]) == (asked_again["refused"]["code"], asked_again["call"])
    assert not any(answer.get("is_replayed") for answer in second.values())
    assert before.receipts == observe(tmp_path / "ledger.db").receipts


def test_a_late_result_is_answered_alike_each_time(tmp_path: Path) -> None:
    """The outcome of a call whose attempt was retried meanwhile is refused, and is refused again."""
    with a_server(tmp_path / "ledger.db") as lines, a_relay(tmp_path / "ledger.db") as relay:
        run = an_attempt(relay)
        begun = lines.send("begin_call", call(run.id))
        relay.handoff(run.handoff or "").retry(by="user:ana", skip=[begun["call"]])
        for _ in range(2):
            with pytest.raises(RefusedError, match=r"ledger\.fenced"):
                lines.send("finish_call", {"run": run.id, "call": begun["call"], "result": 1}, key="late")

    assert 1 == observe(tmp_path / "ledger.db").counts()["tool.late_result"]


def test_arguments_are_the_same_however_they_are_spelled(server: Lines) -> None:
    """A program elsewhere puts its spaces and its keys in another order: it is the same call."""
    run = server.send("start", ANA)["run"]
    server.send("begin_call", call(run, arguments={"a": 1, "b": [1.5, "é"]}))
    spelled = '{"id": 1, "act": "begin_call", "request": {"run": "%s", "tool": "write_file", "action": "write",'
    server.write((spelled % run).encode(), b'"target": "src/a", "arguments": { "b" : [ 1.5,"\\u00e9" ] , "a":1 }}}\n')

    assert "call.in_doubt" == server.read()["error"]["code"]


def test_a_repeated_request_is_answered_after_its_run_has_ended(tmp_path: Path) -> None:
    """Its receipts are there: what they answered is answered, and nothing is added."""
    written = [name for name in KEYED if name not in {"wide", "bare"}]
    with a_server(tmp_path / "ledger.db") as lines:
        first = play(lines, *written)
    before = observe(tmp_path / "ledger.db")
    with a_server(tmp_path / "ledger.db") as lines:
        second = play(lines, *written)

    begun, asked_again = first.pop("again"), second.pop("again")
    assert [lasting(answer) for answer in first.values()] == [lasting(answer) for answer in second.values()]
    assert ("call.not_open", begun["call"]) == (asked_again["refused"]["code"], asked_again["call"])
    assert before.receipts == observe(tmp_path / "ledger.db").receipts
    assert "completed" == first["close"]["outcome"]


class _BrokenPort:
    def do(self, *_: object) -> None:
        raise ZeroDivisionError("secret")

    def close(self) -> None:
        """Nothing is held."""


def test_of_our_own_mistakes_a_program_learns_nothing_but_that_there_was_one(caplog: pytest.LogCaptureFixture) -> None:
    """The log of the server has it; the loop goes on."""
    requests = io.BytesIO(b'{"id": 1, "act": "list_runs"}\n' * 2)
    serve_lines(_BrokenPort(), requests, replies := io.BytesIO())  # type: ignore[arg-type]

    errors = [json.loads(line)["error"] for line in replies.getvalue().splitlines()]
    assert ["internal", "internal"] == [error["code"] for error in errors]
    assert not any("secret" in error["detail"] for error in errors)
    assert "secret" in caplog.text


def test_each_answer_is_flushed_before_the_next_line_is_read() -> None:
    """A program that waits for an answer before it writes on gets it."""
    happened: list[str] = []

    class Requests(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            happened.append("read")
            return super().readline(size)

    class Replies(io.BytesIO):
        def flush(self) -> None:
            happened.append(f"flushed {self.getvalue().count(bytes([10]))}")

    serve_lines(_BrokenPort(), Requests(b"1\n2\n"), Replies())  # type: ignore[arg-type]

    assert ["read", "flushed 1", "read", "flushed 2", "read"] == happened
