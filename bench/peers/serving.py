"""What every peer does: wait for an order on a line of standard input, carry it out, answer with a line of JSON."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from bench.measure import Act, race, time_act


def serve(make: Callable[[], Act], orders: Mapping[str, Callable[[], object]]) -> None:
    """Time acts and race, as asked, until nobody asks any more; `orders` are the other things it can tell."""
    # Whatever a framework prints must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    act = make()
    for line in sys.stdin:
        match json.loads(line):
            case {"time": int(acts)}:
                answer: object = time_act(act, acts)
            case {"race": float(seconds), "threads": int(threads)}:
                answer = race([make() for _ in range(threads)], seconds)
            case {"tell": str(name)}:
                answer = orders[name]()
            case order:
                raise ValueError(order)
        print(json.dumps(answer), file=answers, flush=True)


def settings() -> Any:  # noqa: ANN401 - what the one who started us wrote
    """Return what this peer was started with."""
    return json.loads(sys.argv[1])
