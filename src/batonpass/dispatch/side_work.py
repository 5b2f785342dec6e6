"""Work beside other work: a thread that ends with the block that it belongs to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def side_work(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` in a thread of this name while the block runs, then set its event and wait for it.

    The thread is a daemon: a process that is ended in the middle of the block does not wait for it.
    """
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), name=f"batonpass-{name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
