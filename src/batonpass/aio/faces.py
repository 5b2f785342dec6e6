"""How a synchronous object gets an asynchronous face: each method has a twin that runs it in a thread."""

import functools
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from batonpass.aio.threads import in_thread

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
Sync = TypeVar("Sync")
Sync_co = TypeVar("Sync_co", covariant=True)
Opened = TypeVar("Opened")
Opened_co = TypeVar("Opened_co", covariant=True)
Inside = TypeVar("Inside")


class Face(Generic[Sync_co]):
    """The asynchronous face of one object. `sync` is the object itself, for code that runs in a thread."""

    def __init__(self, sync: Sync_co) -> None:
        self._sync = sync

    @property
    def sync(self) -> Sync_co:
        """Return the synchronous object."""
        return self._sync

    def __repr__(self) -> str:
        return f"<Async{repr(self._sync).removeprefix('<')}"


class Opening(Generic[Opened_co]):
    """An object that is being opened. Await it, or enter it at once with `async with`."""

    def __init__(self, opening: Coroutine[Any, Any, Opened_co]) -> None:
        self._opening = opening

    def __repr__(self) -> str:
        return "<Opening: await it, or enter it with `async with`>"

    def __await__(self) -> Generator[Any, Any, Opened_co]:
        return self._opening.__await__()

    async def __aenter__(self: "Opening[AbstractAsyncContextManager[Inside]]") -> Inside:
        self._opened = await self._opening
        return await self._opened.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._opened.__aexit__(kind, error, trace)


def _own(method: Callable[Concatenate[Sync, Arguments], Returned], face: "Face[Sync]") -> Callable[Arguments, Returned]:
    """Return a method as the object behind a face has it: a relay whose ledger is elsewhere has its own."""
    found: Callable[Arguments, Returned] = getattr(face.sync, method.__name__)
    return found


def twin(
    method: Callable[Concatenate[Sync, Arguments], Returned],
) -> Callable[Concatenate[Face[Sync], Arguments], Coroutine[Any, Any, Returned]]:
    """Return an asynchronous method that runs a synchronous one in a thread."""

    @functools.wraps(method)
    async def act(face: Face[Sync], /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        return await in_thread(functools.partial(_own(method, face), *args, **kwargs))

    return act


def at_once(
    method: Callable[Concatenate[Sync, Arguments], Returned],
) -> Callable[Concatenate[Face[Sync], Arguments], Returned]:
    """Return a method that calls a synchronous one directly. Only for methods that touch no ledger."""

    @functools.wraps(method)
    def act(face: Face[Sync], /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        return _own(method, face)(*args, **kwargs)

    return act


def opens(
    method: Callable[Concatenate[Sync, Arguments], Returned],
    face_of: Callable[[Returned], Opened],
    undo: Callable[[Returned], object] | None = None,
) -> Callable[Concatenate[Face[Sync], Arguments], Opening[Opened]]:
    """Return a method that runs a synchronous one in a thread, and wraps the object that it opens in `face_of`.

    `undo` gets that object if the caller was cancelled meanwhile, since nobody else knows that it exists.
    """

    @functools.wraps(method)
    def act(face: Face[Sync], /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Opening[Opened]:
        async def opening() -> Opened:
            return face_of(await in_thread(functools.partial(_own(method, face), *args, **kwargs), undo=undo))

        return Opening(opening())

    return act
