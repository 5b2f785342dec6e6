"""Chains of handoffs at random, through a relay: what the last one did, everybody above may delegate."""

from datetime import datetime
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batonpass.errors import GrantDeniedError, GrantExceededError, GrantMissingError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant_request import grant_unless_nothing
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_scope
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.testing.clock import NOON
from tests.unit.handoff.places import ANA

LINES: Final = ("write:**", "write:a/**", "write:a/*", "write:a/b", "write:*/b", "write:c", "read:a/**", "*:a/b")
PLACES: Final = ("a/b", "a/c", "a/b/c", "c", "d/b")
SCOPES: Final = st.lists(st.sampled_from(LINES), max_size=3, unique=True).map(tuple)
HOPS: Final = st.lists(st.tuples(SCOPES, SCOPES), min_size=1, max_size=4)

Rights = tuple[Scope, Scope]  # what may be used, and what may be delegated


def does(run: LiveRun) -> set[str]:
    """Let a run try everything; return what it could do."""
    done: set[str] = set()
    write = tool("write", target="path")(lambda path: done.add(f"write:{path}"))
    read = tool("read", target="path", reads=True)(lambda path: done.add(f"read:{path}"))
    for function in (write, read):
        for place in PLACES:
            try:
                run.call(function, place)
            except GrantDeniedError:
                continue
    return done


def covered(chain: list[Rights], at: datetime = NOON) -> set[str]:
    """Return what the last of a chain may do if everybody above may delegate it."""
    *above, last = chain
    calls = [Call("any", action, place) for action in ("write", "read") for place in PLACES]
    return {
        str(call)
        for call in calls
        if last[0].allows(call, at) and all(delegable.allows(call, at) for _, delegable in above)
    }


@settings(max_examples=40, deadline=None)
@given(root=st.tuples(SCOPES, SCOPES), hops=HOPS)
@pytest.mark.slow
def test_nobody_does_what_somebody_above_may_not_delegate(
    root: tuple[tuple[str, ...], tuple[str, ...]], hops: list[tuple[tuple[str, ...], tuple[str, ...]]]
) -> None:
    """Whatever is asked for at each hop, a run does exactly what it may and all above may delegate, or gets no work."""
    relay = Relay(MemoryStore())
    may, may_delegate = root if any(root) else (("read:a/**",), ())
    run = relay.start("Try", by=ANA, grant=grant_unless_nothing(may, may_delegate))
    chain: list[Rights] = [(read_scope(may), read_scope(may_delegate))]
    assert covered(chain) == does(run)
    for number, (may, may_delegate) in enumerate(hops):
        try:
            run = run.hand_off(f"agent-{number}", "Try", grant=grant_unless_nothing(may, may_delegate)).accept()
        except (GrantExceededError, GrantMissingError):
            held = chain[-1][1]
            assert not any((may, may_delegate)) or not all(map(held.covers, map(read_scope, (may, may_delegate))))
            break
        chain.append((read_scope(may), read_scope(may_delegate)))
        assert covered(chain) == does(run)
    relay.verify()
