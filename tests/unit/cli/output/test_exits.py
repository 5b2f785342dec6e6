"""What goes wrong becomes one sentence and an exit code."""

import json
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from batonpass import errors
from batonpass.cli.nouns import NounGroup
from batonpass.cli.output.exits import answer_in_json, exit_code

SEALED = errors.SealError("it covers 9 receipts and 5 are here", stream="seal 9", field="size")
EDITED = errors.EditedError("the row is not what was signed", stream="run_1", seq=3, field="kind")


def door(act: Callable[[], None]) -> NounGroup:
    """Return a front door behind which one thing happens."""

    class OneRoom(NounGroup):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
            return command

    @click.command("act")
    @click.option("--json", "as_json", is_flag=True, is_eager=True, callback=answer_in_json)
    def command(*, as_json: bool) -> None:  # noqa: ARG001 - the callback has taken it
        act()

    return OneRoom("batonpass", homes={})


def after(error: BaseException, *arguments: str) -> Result:
    """Return what is left of a command in which an error was raised."""

    def act() -> None:
        raise error

    return CliRunner().invoke(door(act), ["act", *arguments])


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        pytest.param(1, EDITED, id="a finding is a no"),
        pytest.param(1, errors.NotFoundError("run", "x"), id="so is an id that nothing has"),
        pytest.param(1, errors.AmbiguousIdError("run", "x", ("a", "b")), id="so is one that several have"),
        pytest.param(1, errors.KeyRefusedError("no"), id="so is a key that is refused"),
        pytest.param(1, errors.FencedError("run_1", 1, 2), id="so is an append that is refused"),
        pytest.param(2, errors.InvalidValueError("ledger", "is none"), id="a value that cannot be right is usage"),
        pytest.param(2, errors.UnknownFieldError("x"), id="so is a field that nobody knows"),
        pytest.param(3, errors.StoreBusyError("busy"), id="a store that cannot is broken"),
        pytest.param(3, errors.NotALedgerError("not one"), id="so is what is not a ledger"),
    ],
)
def test_errors_have_exit_codes(expected: int, error: errors.BatonpassError) -> None:
    """The kind of error decides the exit code, in words and in JSON alike."""
    assert [expected] * 3 == [exit_code(error), after(error).exit_code, after(error, "--json").exit_code]


def test_an_error_is_a_sentence_with_its_code_on_stderr() -> None:
    """Data and complaints do not mix."""
    done = after(errors.StoreBusyError("process 7 is writing"))

    assert ("", "batonpass: process 7 is writing [store.busy]\n") == (done.stdout, done.stderr)


def test_an_error_is_an_object_on_stdout_with_json() -> None:
    """A program reads one stream, and always finds the same shape there."""
    done = after(EDITED, "--json")

    expected = {
        "code": "verify.edited",
        "message": "run_1 seq 3 field kind: the row is not what was signed",
        "problem": "the row is not what was signed",
        "stream": "run_1",
        "seq": 3,
        "field": "kind",
    }
    assert ({"error": expected}, "") == (json.loads(done.stdout), done.stderr)


def test_a_finding_says_what_where_and_what_to_do() -> None:
    """Whoever reads a finding knows where to look and what to do next."""
    lines = after(EDITED).stderr.splitlines()

    assert [
        "batonpass: the row is not what was signed [verify.edited]",
        "  stream  run_1",
        "  seq     3",
        "  field   kind",
    ] == lines[:4]
    assert lines[4].startswith("  next    it was changed after it was recorded")


def test_a_finding_outside_any_stream_says_where_first() -> None:
    """A seal and a line of a bundle are no streams, and their findings begin with their name."""
    assert after(SEALED).stderr.startswith("batonpass: seal 9: it covers 9 receipts and 5 are here [verify.seal]\n")


def test_another_root_key_means_another_ledger() -> None:
    """A pinned key that does not fit is not a matter of who may record."""
    finding = errors.UnknownKeyError("the root key is another", field="root_key")

    assert "  next    this is not the ledger that you expect" in after(finding).stderr


def test_every_finding_has_advice() -> None:
    """No code of the verifier leaves a person without a next step."""
    kinds = [kind for kind in errors.VerificationError.__subclasses__() if "next" not in after(kind("x")).stderr]

    assert [] == kinds


def test_hostile_words_in_an_error_are_harmless() -> None:
    """What a model wrote may stand in an error, and does nothing there."""
    done = after(errors.AmbiguousIdError("run", "x", ("\x1b[2J one", "two")))

    assert ["  \\x1b[2J one", "  two"] == done.stderr.splitlines()[1:]


def test_an_unknown_id_says_where_ids_are() -> None:
    """Somebody who mistyped learns which command lists what there is."""
    assert "`batonpass run list` lists all runs" in after(errors.NotFoundError("run", "x")).stderr


def test_an_interrupt_is_130() -> None:
    """Ctrl-C ends with what shells expect, and without a traceback."""
    assert [(130, "batonpass: stopped\n")] * 2 == [
        (done.exit_code, done.stderr) for done in (after(KeyboardInterrupt()), after(click.Abort()))
    ]


def test_an_unexpected_exception_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours is said to be one, with how to report it; the traceback waits for whoever asks."""
    short = after(RuntimeError("boom\x1b"))
    monkeypatch.setenv("BATONPASS_DEBUG", "1")
    long = after(RuntimeError("boom\x1b"))

    assert (3, 1) == (short.exit_code, len(short.stderr.splitlines()))
    assert short.stderr.startswith("batonpass: internal error: RuntimeError: boom\\x1b; ")
    assert "Traceback" in long.stderr
    assert "\x1b" not in long.stderr


def test_a_full_disk_under_the_output_is_said() -> None:
    """An output that cannot be written is broken, and not a mistake of ours."""
    done = after(OSError(28, "No space left on device"))

    assert (3, "batonpass: the output: No space left on device\n") == (done.exit_code, done.stderr)


def test_usage_is_clicks() -> None:
    """Wrong usage is told by usage, with exit code 2."""
    assert 2 == after(click.UsageError("no")).exit_code


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        pytest.param("batonpass: git is not installed here\n", [], id="in words"),
        pytest.param(
            '{\n  "error": {\n    "code": "cli.failed",\n    "message": "git is not installed here"\n  }\n}\n',
            ["--json"],
            id="in JSON",
        ),
    ],
)
def test_what_another_program_refuses_is_a_no(expected: str, arguments: list[str]) -> None:
    """A complaint of another program is passed on in our shape."""
    done = after(click.ClickException("git is not installed here"), *arguments)

    assert (1, expected) == (done.exit_code, done.output)
