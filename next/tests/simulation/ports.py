"""A port whose client sends a key with every act, asks twice sometimes, and compares the answers."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, field
from msgspec.structs import replace

from batonpass.api.port import LocalPort
from batonpass.errors import BatonpassError, CallError, OutcomeUnknownError, StoreError

if TYPE_CHECKING:
    from tests.simulation.world import World


class Request(Struct):
    """A request with a key, and its first answer."""

    act: Any
    request: Any
    key: str
    answer: Any = None
    is_kept: bool = False  # that answer has a receipt: an observed run goes on where nothing can be written
    at_work: Counter[int] = field(default_factory=Counter)  # by process
    refused: str = ""  # while another one like it was at work in the same process


class KeyedPort:
    """Sends a key with every act that writes, unless it is a plain one; it compares the answers."""

    def __init__(self, world: "World", requests: list[Request], context: Any, *, is_keyed: bool) -> None:  # noqa: ANN401 - of the core
        self._is_keyed = is_keyed
        self._world = world
        self._requests = requests
        self._context = context
        self._inner = LocalPort(context)

    def do(self, act: Any, request: Any, key: str | None = None) -> Any:  # noqa: ANN401 - as the port has it
        """Return the answer."""
        sim = self._world.sim
        if act.again is None or not self._is_keyed:
            return self._inner.do(act, request, key)
        made = Request(act, request, f"k{len(self._requests)}")
        self._requests.append(made)
        twin = sim.random.random()
        if twin < 0.1:  # a client that lost patience, while the first one is at work
            sim.spawn(lambda: self.ask(made), sim.task.process).step = sim.task.step
        answer = self.ask(made)
        if twin > 0.95:  # or one that lost the answer
            answer = self.ask(made)
        return answer

    def ask(self, made: Request) -> Any:  # noqa: ANN401 - as the port has it
        """Make a request, again perhaps. Once it has an answer with a receipt, it has no other."""
        world, act = self._world, made.act
        process = world.sim.task.process.number
        is_twin = made.at_work[process] > 0
        made.at_work[process] += 1
        try:
            answer = self._inner.do(act, made.request, made.key)
        except OutcomeUnknownError:
            raise
        except BatonpassError as error:
            # Without a point between the core's own look and this one: what comes later is no fault.
            if act.name == "begin_call" and isinstance(error, CallError):
                raise  # what was begun by a process that is gone is in doubt, also for who asks again
            is_recorded = self._is_recorded(made)
            if is_recorded and made.is_kept and not isinstance(error, StoreError):
                world.wrong.append(f"refused after an answer: {made.key} {act.name}: {error!r}")
            elif is_recorded and not isinstance(error, StoreError) and (second := self._refusal(made)) != _kind(error):
                world.wrong.append(f"refused though recorded: {act.name}: {error!r}, and then {second}")
            elif not isinstance(error, StoreError) and is_twin and made.at_work[process] > 1:
                made.refused = repr(error)
            raise
        finally:
            made.at_work[process] -= 1
        old = made.answer
        if made.refused and self._is_recorded(made):
            world.wrong.append(f"refused at once: {made.key} {act.name}: {made.refused}")
        # A call that has ended meanwhile has its result in the answer: that is as good.
        is_over = isinstance(getattr(answer, "result", None), Raw) and answer.key == getattr(old, "key", "")
        is_due = old is not None and _has_receipt(old) and not is_over and made.is_kept
        if is_due and (first := _plain(old)) != (then := _plain(answer)):
            world.wrong.append(f"another answer to {made.key} {act.name}: {first}, and then {then}")
        if old is None:
            made.answer, made.is_kept = answer, self._is_recorded(made)
        return answer

    def _is_recorded(self, made: Request) -> bool:
        mark = self._context.request("", made.act.name, made.request, made.key)
        return bool(self._world.look("SELECT 1 FROM requests WHERE request = ?", mark.digest))

    def _refusal(self, made: Request) -> str:
        try:
            return repr(self._inner.do(made.act, made.request, made.key))
        except BatonpassError as error:
            return _kind(error)

    def close(self) -> None:
        """Close the ledger."""
        self._inner.close()


def _kind(error: BatonpassError) -> str:
    return f"{type(error).__name__} {error.code}"


def _has_receipt(answer: Any) -> bool:  # noqa: ANN401 - an answer of any act
    """Return whether an answer was recorded; an observed run goes on where nothing can be written."""
    run = getattr(answer, "run", None)
    is_recorded = getattr(answer, "is_recorded", True) and getattr(run, "is_recorded", True)
    return is_recorded and getattr(answer, "call", None) != ""


def _plain(answer: Any) -> Any:  # noqa: ANN401 - an answer of any act
    """Return an answer without what is a look at the ledger as it is now."""
    run = getattr(answer, "run", None)
    if isinstance(run, Struct):
        answer = replace(answer, run=_plain(run))
    now = {"in_doubt": (), "is_replayed": False, "state": ""}
    return replace(answer, **{name: value for name, value in now.items() if hasattr(answer, name)})
