"""The ceiling of a token: whoever asks for nothing gets it, and nobody gets more."""

import pytest

from batonpass.errors import GrantExceededError
from batonpass.guard.grants.token_limit import within_ceiling
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.scope_text import read_scope

CEILING = Grant(may=read_scope(["read:**", "write:src/**"]), may_delegate=read_scope(["read:**"]))


def test_less_is_given_as_asked_and_nothing_means_all() -> None:
    """A run that asks for no grant has that of its token."""
    asked = Grant(may=read_scope(["write:src/a.py"]))

    assert (asked, CEILING) == (within_ceiling("bot", CEILING, asked), within_ceiling("bot", CEILING, None))


def test_more_is_refused_right_by_right() -> None:
    """What may be used is no right to delegate it."""
    asked = Grant(may=read_scope(["write:**"]), may_delegate=read_scope(["write:src/a.py"]))
    with pytest.raises(GrantExceededError) as caught:
        within_ceiling("bot", CEILING, asked)

    assert ("bot", ("may write:**", "may delegate write:src/a.py")) == (caught.value.holder, caught.value.excess)
    assert ("read:**", "write:src/**", "read:**") == caught.value.held
