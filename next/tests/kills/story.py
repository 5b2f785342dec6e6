"""A program that does every act, and that goes on from wherever it was stopped when it is started again.

It is written as a user would write it: it asks what is open, takes that over, and makes the same offers and calls. Of a
call in doubt it finds out by looking at the world whether it was made, as a person would, and decides.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from batonpass import Decision, Handoff, Relay, Run, RunState, State, tool
from batonpass.errors import CallDeniedError, CallInDoubtError, FencedError, LifecycleError
from batonpass.testing import Faults, a_relay

ANA: Final = "user:ana"
MAY: Final = ("call:**", "change:**", "write:out/**")

# What has to have happened exactly once when all is done, however often the program was killed.
EFFECTS: Final = frozenset(
    {"compile totals", "sum a", "mail cfo", "sign quarter", "publish report", "slow job", "write out/report.txt"}
)


class Interrupted(BaseException):
    """The person at the terminal pressed Ctrl-C."""


class World:
    """What tools change: a file of lines, which outlasts every process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, line: str) -> str:
        """Change the world. A line is written whole or not at all."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{line}\n".encode())
        os.close(file)
        return line

    def lines(self) -> list[str]:
        """Return what has happened."""
        return self._path.read_text().splitlines() if self._path.exists() else []


def refused(*acts: Callable[[], object]) -> None:
    """Try what a run does that was taken over. Raises `AssertionError` if one of them is not refused as fenced."""
    for act in acts:
        try:
            act()
        except FencedError:
            continue
        raise AssertionError("a fenced run was heard")


class Story:
    """One process of the program."""

    def __init__(self, ledger: str, directory: Path, faults: Faults | None = None) -> None:
        self._ledger = ledger
        self._directory = directory
        self._faults = faults
        self._world = World(directory / "world.txt")
        self.relay = self._open()

    def _open(self) -> Relay:
        return a_relay(self._ledger, faults=self._faults, work_tree=self._directory)

    def close(self) -> None:
        """Close the ledger."""
        self.relay.close()

    def play(self) -> None:
        """Do what is to be done, and has not been."""
        root = self._root()
        if root is None:
            return
        root.record(Decision("round half-even"), key="decision")
        self._draft(root)
        root = self._take_over(root)
        self._check(root)
        self._sign(root)
        self._publish(root)
        self._use_a_revoked_grant(root)
        self._work_slowly(root)
        root.hand_off("idle", "Nobody takes this", may=MAY)
        root.report("the quarter is closed", open_questions=["who audits?"])
        root.close()

    def _root(self) -> Run | None:
        """Return the root run: begun, or taken over from a process that is gone; None if it has ended."""
        roots = [info for info in self.relay.runs() if info.handoff is None]
        if not roots:
            return self.relay.start("Close the quarter", by=ANA, may=MAY, may_delegate=MAY, key="root")
        if roots[0].state != RunState.OPEN:
            self.relay.run(roots[0].id).close()  # it may have died between its end and what follows from it
            return None
        root = self.relay.resume(roots[0].id)
        for call in root.in_doubt:
            how = "skip" if self._was_made(call.target) else "repeat"
            root.settle(call.call, how, by=ANA, reason="looked at the world")  # type: ignore[arg-type]
        return root

    def _was_made(self, effect: str) -> bool:
        return bool({effect, f"write {effect}"} & set(self._world.lines()))

    def _attempt(self, handoff: Handoff) -> Run | None:
        """Return an attempt at a handoff; None if it is over."""
        info = handoff.info()
        if info.state == State.COMPLETED:
            handoff.accept(replay=True).close()  # it may have died between its end and what follows from that
            return None
        if info.state in {State.RUNNING, State.FAILED}:
            made = [call.id for call in info.in_doubt if self._was_made(call.target or "")]
            not_made = [call.id for call in info.in_doubt if not self._was_made(call.target or "")]
            handoff.retry(by=ANA, reason="its process is gone", repeat=not_made, skip=made)
        return handoff.accept()

    @contextmanager
    def _beside(self) -> Iterator[Relay]:
        """Open the ledger a second time, as another process would."""
        relay = self._open()
        try:
            yield relay
        finally:
            relay.close()

    def _make(self, run: Run, effect: str) -> None:
        """Change the world through the guard, once."""
        note = self._world.note

        @tool("change", action="change", target="effect")
        def change(effect: str) -> str:
            return note(effect)

        run.call(change, effect)

    def _make_after_an_interrupt(self, run: Run, effect: str) -> None:
        """Do the same, but the first time Ctrl-C is pressed while the tool is at work."""
        world, mark = self._world, f"interrupted: {effect}"

        @tool("change", action="change", target="effect")
        def change(effect: str) -> str:
            if mark not in world.lines():
                world.note(mark)
                raise Interrupted
            return world.note(effect)

        with suppress(Interrupted):
            run.call(change, effect)
            return
        if run.handoff is not None and run.attempt == 1 and run.agent == "checker":
            raise Interrupted
        try:
            run.call(change, effect)
        except CallInDoubtError as error:
            run.settle(error.facts["call"], "repeat", by=ANA, reason="it was interrupted before it did anything")
            run.call(change, effect)

    def _draft(self, root: Run) -> None:
        """Hand off to a child that calls, is denied, has a tool that fails, and delivers."""
        run = self._attempt(root.hand_off("drafter", "Compile the totals", may=MAY))
        if run is None:
            return

        @tool(action="drop")
        def drop(table: str) -> None:
            self._world.note(f"dropped {table}")

        @tool
        def fails(what: str) -> None:
            raise OSError(what)

        @tool(action="write", target="path")
        def write(path: str) -> None:
            self._world.note(f"write {path}")
            (self._directory / path).parent.mkdir(exist_ok=True)
            (self._directory / path).write_text("total 12\n")

        self._make(run, "compile totals")
        with suppress(CallDeniedError):
            run.call(drop, "orders")
        with suppress(OSError):
            run.call(fails, "disk full")
        run.call(write, "out/report.txt")
        run.report("12 totals", completed=["totals"])
        run.close()

    def _take_over(self, root: Run) -> Run:
        """Another process resumes the root; the one that had it can do nothing any more."""
        with self._beside() as relay:
            relay.resume(root.id)
        refused(
            lambda: root.record(Decision("nothing of this is written")),
            lambda: root.hand_off("nobody", "Nothing of this is offered", may=MAY),
            lambda: self._make(root, "nothing of this happens"),
            root.close,
        )
        return self.relay.resume(root.id)

    def _check(self, root: Run) -> None:
        """Hand off to a child that begins with its offer, is interrupted, fails, and is retried with a decision."""
        try:
            run: Run | None = root.hand_off("checker", "Check the sums", may=MAY, accept=True)
        except LifecycleError:
            run = self._attempt(root.hand_off("checker", "Check the sums", may=MAY))
        if run is None or run.is_replayed:
            return
        self._make(run, "sum a")
        try:
            self._make_after_an_interrupt(run, "mail cfo")
        except Interrupted:
            run.close(ValueError("lost the connection"))
            run = self._attempt(self.relay.handoff(run.handoff or ""))
            if run is None:
                return
            self._make(run, "sum a")
            self._make(run, "mail cfo")
        run.close()

    def _sign(self, root: Run) -> None:
        """Make a call of the root itself, which is interrupted, settled, and made again."""
        self._make_after_an_interrupt(root, "sign quarter")

    def _publish(self, root: Run) -> None:
        """Hand off to a child that settles a call of its own, and leaves two children behind: one has begun."""
        run = self._attempt(root.hand_off("publisher", "Publish", may=MAY, may_delegate=MAY))
        if run is None:
            return
        self._make_after_an_interrupt(run, "publish report")
        run.hand_off("later", "Perhaps later", may=MAY)
        with suppress(LifecycleError):  # it is at work already, in a process that is gone
            run.hand_off("busy", "A long job", may=MAY, accept=True)
        run.close()

    def _use_a_revoked_grant(self, root: Run) -> None:
        """Hand off to a child whose grant is revoked while it works: the commit of its next call finds it."""
        handoff = root.hand_off("intern", "Use a key", may=MAY)
        if handoff.state() == State.FAILED:
            return
        run = self._attempt(handoff)
        if run is None:
            raise AssertionError("it never delivers")
        self.relay.revoke_grant(handoff.id, by=ANA, reason="the key leaked")
        with suppress(CallDeniedError):
            self._make(run, "use of a revoked grant")
        run.close(PermissionError("revoked"))

    def _work_slowly(self, root: Run) -> None:
        """Hand off to a child that is retried while it lives: what it delivers afterwards is evidence, no more."""
        handoff = root.hand_off("tortoise", "A slow job", may=MAY)
        run = self._attempt(handoff)
        if run is None:
            return
        begun = run.begin_call("change", action="change", arguments=b'[["slow job"],{}]', target="slow job")
        if begun.is_replayed:
            run.close()
            return
        self._world.note("slow job")
        if run.attempt > 1:
            begun.succeed("slow job")
            run.close()
            return
        with self._beside() as relay:
            relay.handoff(handoff.id).retry(by=ANA, reason="it seemed dead", skip=[begun.id])
        refused(lambda: begun.succeed("slow job"), lambda: self._make(run, "nothing of this happens"), run.close)
        last = handoff.accept()
        last.close()
