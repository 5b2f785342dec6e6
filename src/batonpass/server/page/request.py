"""A request for a view of the page, and a view: its address, its template, and the function that makes its values."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from msgspec import Struct

from batonpass.model.base.kinds import AccessRole
from batonpass.server.control_plane import ControlPlane
from batonpass.server.endpoint import PEOPLE, ApiRequest
from batonpass.server.page.fleet_counts import FleetCounts
from batonpass.server.page.ledger_check import LedgerCheck
from batonpass.server.page.session import PageVisitor
from batonpass.server.page.shown_files import ShownFiles
from batonpass.store.port import LedgerView

Shown = dict[str, Any]


class PageRequest(Struct, frozen=True, kw_only=True, eq=False):
    """A request of somebody who has a session."""

    plane: ControlPlane
    visitor: PageVisitor
    path: str
    names: Mapping[str, str]  # the parts of the path
    query: Mapping[str, str]
    check: LedgerCheck
    counts: FleetCounts
    origin: str  # of this server, as the browser names it
    files: tuple[ShownFiles, ...] = ()  # that whoever started the server lets it show
    fields: Mapping[str, str] = {}  # of a form that only asks
    is_refresh: bool = False  # the page asks again by itself, and nobody has just come to look

    @contextmanager
    def looking(self) -> Iterator[LedgerView]:
        """Open a view of the ledger. People see all of it."""
        with self.plane.relay.store.view() as view:
            yield view

    @property
    def now(self) -> datetime:
        """Return the time."""
        return self.plane.clock.now()

    def asked(self, name: str) -> str:
        """Return a parameter of the address, without spaces around it; empty if it is not there."""
        return self.query.get(name, "").strip()

    def as_api(
        self, *, names: Mapping[str, str] | None = None, query: object = None, body: object = None
    ) -> ApiRequest:
        """Return the same as the HTTP interface would get it, so that the page asks and acts as every other client."""
        return ApiRequest(
            plane=self.plane,
            caller=self.visitor.caller,
            names=self.names if names is None else names,
            query=query,
            body=body,
        )


class PageView(Struct, frozen=True, kw_only=True):
    """One view: who may look, and the function that makes its values."""

    path: str
    name: str  # of the entry in the menu that is marked
    template: str
    make: Callable[[PageRequest], Shown]
    roles: frozenset[AccessRole] = PEOPLE
    takes_form: bool = False  # what is asked is too long for an address, so a form sends it; nothing is changed


class PageMoved(Exception):  # noqa: N818 - it is no error
    """The thing that was asked for has another address."""

    def __init__(self, to: str) -> None:
        super().__init__(to)
        self.to = to
