"""Ids as parameters of commands: taken as typed, and completed from the ledger when a shell asks."""

import io
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from batonpass.model.base.ids import CALL, HANDOFF, RECEIPT, RUN, SESSION
from batonpass.model.base.visible import visible

if TYPE_CHECKING:
    from batonpass.store.port import LedgerView

    _Param = click.ParamType[str]
else:
    _Param = click.ParamType  # older versions of click have no parameters for it


class IdType(_Param):
    """An id or a name of some kinds of things. The command looks it up; this type only completes it."""

    name = "id"

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """Return matching endings of ids and names, the latest first, with the task as help.

        Never creates a ledger and never fails: on any error the shell gets no suggestions.
        """
        try:
            with ctx.scope(cleanup=False), redirect_stderr(io.StringIO()):
                from batonpass.cli.input.ledger_access import opened_view  # noqa: PLC0415 - only where a shell asks

                with opened_view() as view:
                    found = {value: words for value, words in self._known(view) if value.startswith(incomplete)}
        except Exception:  # noqa: BLE001 - as promised
            return []
        return [CompletionItem(value, help=visible(words)) for value, words in found.items()]

    def _known(self, view: "LedgerView") -> Iterator[tuple[str, str]]:
        from batonpass.cli.input.known_ids import find_known  # noqa: PLC0415 - as above

        return find_known(view, self.kinds)


class AgentType(IdType):
    """The name of an agent that has worked here."""

    name = "agent"

    def __init__(self) -> None:
        super().__init__(RUN)

    def _known(self, view: "LedgerView") -> Iterator[tuple[str, str]]:
        from batonpass.cli.input.known_ids import find_agents  # noqa: PLC0415 - as above

        return find_agents(view)


RUN_ID: Final = IdType(RUN)
HANDOFF_ID: Final = IdType(HANDOFF)
HELD_ID: Final = IdType(HANDOFF, CALL)
WORK_ID: Final = IdType(RUN, HANDOFF)
RECEIPT_ID: Final = IdType(RECEIPT)
SESSION_ID: Final = IdType(SESSION)
REVIEWED_ID: Final = IdType(RUN, HANDOFF, SESSION)
ANY_ID: Final = IdType(RUN, HANDOFF, CALL)
AGENT_NAME: Final = AgentType()
