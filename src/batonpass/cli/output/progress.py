"""A progress bar: appears on a terminal if the work takes longer than a moment, and disappears at the end."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_MOMENT: Final = 0.7

Told = Callable[[int, int], None]


@contextmanager
def progress_bar(title: str) -> Iterator[Told | None]:
    """Yield a function that takes the progress; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = Bar(title)
    try:
        yield bar.tell
    finally:
        bar.stop()


class Bar:
    """A bar that appears once the work has taken a moment."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._since = time.monotonic()
        self._drawn: tuple[Progress, TaskID] | None = None

    def tell(self, done: int, total: int) -> None:
        """Show the progress."""
        if self._drawn is None:
            if time.monotonic() - self._since < _MOMENT:
                return
            self._drawn = self._draw(total)
        progress, task = self._drawn
        progress.update(task, completed=done, total=total)

    def stop(self) -> None:
        """Remove the bar."""
        if self._drawn is not None:
            self._drawn[0].stop()

    def _draw(self, total: int) -> "tuple[Progress, TaskID]":
        from rich.console import Console  # noqa: PLC0415 - rich is imported when it draws
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415 - as above

        progress = Progress(
            "{task.description}",
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        progress.start()
        return progress, progress.add_task(self._title, total=total)
