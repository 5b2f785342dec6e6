"""Processes of the story that are killed or frozen at a commit: forked, one after the other, from one small process.

It reads a command on each line and answers each with a line. A ledger does not survive a fork, so each child opens it.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from batonpass.errors import BatonpassError, ConflictError, HandoffError, NotFoundError
from batonpass.testing import Faults, Observed, a_relay, kill_at, observe
from tests.kills.story import Story, World

When: TypeAlias = Literal["before", "after"]
_GONE_ON: Final = "gone_on.json"


def in_child(directory: Path, act: Callable[[], Any]) -> int:
    """Fork, do something there, and return the child's id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.environ["BATONPASS_STATE_DIR"] = str(directory / "state")
        answer = act()
        (directory / f"answer.{os.getpid()}").write_text(json.dumps(answer))
        status = 0
    except BaseException:  # noqa: BLE001 - a child tells everything
        (directory / f"answer.{os.getpid()}").write_text(json.dumps({"trace": traceback.format_exc()}))
    finally:
        os._exit(status)


def answer_of(directory: Path, child: int) -> Any:  # noqa: ANN401 - whatever it answered
    """Wait for a child and return its answer. Raises `AssertionError` with its trace."""
    _, status = os.waitpid(child, 0)
    text = (directory / f"answer.{child}").read_text() if status in {0, 256} else "null"
    answer = json.loads(text)
    if status:
        raise AssertionError(f"status {status}: {(answer or {}).get('trace')}")
    return answer


def play(ledger: str, directory: Path, faults: Faults | None) -> None:
    """Play the story to its end, or to its death."""
    story = Story(ledger, directory, faults)
    story.play()
    story.close()


def play_and_count(ledger: str, directory: Path) -> dict[str, Any]:
    """Play the story undisturbed; return the kinds of its receipts, and how many there were after each commit."""
    faults, lengths = Faults(), list[int]()
    for number in range(1, 500):
        faults.at(number, "before", lambda: lengths.append(faults.receipts))
    play(ledger, directory, faults)
    seen = observe(ledger)
    return {"kinds": seen.kinds(), "lengths": [*lengths, len(seen.kinds())], "facts": facts_of(ledger, directory, seen)}


def facts_of(ledger: str, directory: Path, seen: Observed) -> dict[str, Any]:
    """Return what must be so when all is done, of a ledger that is verified first."""
    with a_relay(ledger) as relay:
        checked = relay.verify().receipts
    return {
        "checked": checked,
        "receipts": len(seen.receipts),
        "runs": sorted(set(seen.runs.values())),
        "handoffs": sorted(state.value for state in seen.handoffs.values()),
        "in_doubt": [call.target for call in seen.in_doubt],
        "world": sorted(World(directory / "world.txt").lines()),
    }


def heal(ledger: str, directory: Path) -> dict[str, Any]:
    """Start the program again where another was stopped, and return what there was before and what there is after."""
    before = observe(ledger)
    with a_relay(ledger) as relay:
        relay.verify()
    play(ledger, directory, None)
    after = observe(ledger)
    return {
        "kinds": before.kinds(),
        "is_kept": after.receipts[: len(before.receipts)] == before.receipts,
        "facts": facts_of(ledger, directory, after),
    }


def kill_and_heal(ledger: str, directory: Path, commit: int, when: When) -> dict[str, Any]:
    """Kill the program at a commit, and start it again."""
    child = in_child(directory, lambda: play(ledger, directory, kill_at(commit, when)))
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        raise AssertionError(f"it was not killed: {(directory / f'answer.{child}').read_text()}")
    answer: dict[str, Any] = answer_of(directory, in_child(directory, lambda: heal(ledger, directory)))
    return answer


def freeze_and_heal(ledger: str, directory: Path, commit: int, when: When) -> dict[str, Any]:
    """Freeze the program at a commit, let another go on to the end, and let the first one go on then."""
    frozen = in_child(directory, lambda: play_refused(ledger, directory, kill_at(commit, when, by=signal.SIGSTOP)))
    _, status = os.waitpid(frozen, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise AssertionError(f"it was not frozen: {(directory / f'answer.{frozen}').read_text()}")
    try:
        answer: dict[str, Any] = answer_of(directory, in_child(directory, lambda: heal(ledger, directory)))
    finally:
        os.kill(frozen, signal.SIGCONT)
    answer["heard"] = answer_of(directory, frozen)
    answer["afterwards"] = answer_of(
        directory, in_child(directory, lambda: observe(ledger).kinds()[answer["facts"]["receipts"] - 1 :])
    )
    answer["world_afterwards"] = sorted(World(directory / "world.txt").lines())
    return answer


def play_refused(ledger: str, directory: Path, faults: Faults) -> str:
    """Play the story, and return the error that ended it. A second process may have done everything meanwhile."""
    try:
        play(ledger, directory, faults)
    except (ConflictError, HandoffError, NotFoundError) as error:
        return error.code
    except BatonpassError as error:
        return f"unexpected: {error!r}"
    return "nothing"


def obey(command: dict[str, Any]) -> dict[str, Any]:
    """Do what a command says, and return what came of it, or the trace of what failed."""
    ledger, directory = command["ledger"], Path(command["directory"])
    try:
        if command["how"] == "play":
            answer: dict[str, Any] = answer_of(
                directory, in_child(directory, lambda: play_and_count(ledger, directory))
            )
            return answer
        act = kill_and_heal if command["how"] == "kill" else freeze_and_heal
        return act(ledger, directory, command["commit"], command["when"])
    except (AssertionError, OSError, ValueError) as error:
        return {"trace": str(error)}


def main() -> None:
    """Answer commands until there are no more."""
    for line in sys.stdin:
        sys.stdout.write(json.dumps(obey(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
