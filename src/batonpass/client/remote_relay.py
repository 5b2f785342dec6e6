"""The relay of a program whose ledger is elsewhere: `Relay.open("https://…")` returns it.

A control plane judges and records. The keys of runs, the tools and the files are here. So an agent's host needs neither
the database nor the key of a relay.
"""

import os
import ssl
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from batonpass.admin import Admin
from batonpass.audit.short_ids import LAST
from batonpass.client.absent_ledger import AbsentDesk, AbsentStore
from batonpass.client.answered_values import told_run
from batonpass.client.connection import PATIENCE, Connection
from batonpass.client.exchange import PlaneExchange
from batonpass.client.remote_call import RemoteCallHeld
from batonpass.client.remote_handoff import RemoteHandoff
from batonpass.client.remote_run import RemoteRun, told_grant, told_items
from batonpass.client.run_words import start_act
from batonpass.config import TOKEN
from batonpass.errors import HandoffEndedError, InvalidValueError, NotOverHttpError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.live.held_call import LiveCall
from batonpass.model.base.checks import as_member
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import HandoffId, RunId, SessionId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint, Exclusion
from batonpass.model.grants.grant_request import GrantRequest, grant_asked
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Run, RunState
from batonpass.relay import Relay
from batonpass.signing.runkeys import RunKeysInFiles, RunKeysInMemory

if TYPE_CHECKING:
    from batonpass.audit.verification.evidence import Evidence
    from batonpass.handoff.transfer.offer_request import GivenItem
    from batonpass.model.base.ids import ContentId, KeyId, PublicKey
    from batonpass.model.ledger.key import RunKeys
    from batonpass.store.port import LedgerStore

_SAID: Mapping[type, str] = {Constraint: "constraints", Exclusion: "exclusions"}


class RemoteRelay(Relay):
    """Checks and records the work of agents through a control plane. Safe to use from many threads."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        home: Path | None = None,
        keys_in_files: bool = False,
        work_tree: str | PathLike[str] | None = None,
        patience: timedelta = timedelta(seconds=PATIENCE),
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(cast("LedgerStore", AbsentStore(url)), home=home, work_tree=work_tree)
        connection = Connection(
            url,
            token or os.environ.get(TOKEN, ""),
            patience=patience.total_seconds(),
            certificates=certificates,
        )
        keys: RunKeys = RunKeysInFiles(home) if keys_in_files and home is not None else RunKeysInMemory()
        self._exchange = PlaneExchange(connection, keys)

    def __repr__(self) -> str:
        return f"<RemoteRelay at {self.url}>"

    @property
    def url(self) -> str:
        """Return the address of the control plane."""
        return self._exchange.connection.url

    def close(self) -> None:
        """Close the connection of this thread."""
        self._exchange.connection.close()

    @property
    def admin(self) -> Admin:
        """Raise `NotOverHttpError`: keys, seals and bundles are looked after where the ledger is."""
        raise NotOverHttpError("to look after the ledger")

    def start(
        self,
        intent: str,
        *,
        by: str,
        agent: str = "lead",
        items: "Iterable[GivenItem]" = (),
        continues: str | None = None,
        series: str | None = None,
        session: SessionId | None = None,
        mode: Mode | str | None = None,
        may: Sequence[str] = (),
        grant: GrantRequest | None = None,
        key: str | None = None,
    ) -> LiveRun:
        """Start a root run of the token's principal. It is enforced, and within the token's ceiling.

        Without a grant it gets all of the ceiling. Raises `AnotherPrincipalError` if `by` is somebody else.
        """
        if continues is not None or series is not None or session is not None:
            raise NotOverHttpError("to continue another run")
        if mode is not None and as_member("mode", mode, Mode) is not Mode.ENFORCED:
            raise NotOverHttpError("a root run that is only observed")
        given = tuple(items)
        if any(type(item) not in _SAID for item in given):
            raise InvalidValueError("items", "of a root run over HTTP are constraints and exclusions")
        signer = self._exchange.keys.new()
        said = {
            **told_items(given),
            **told_grant(grant_asked(may, grant)),
            "intent": intent,
            "by": by,
            "agent": agent,
            "key": key,
        }
        act = start_act(intent, by=by, agent=agent, items=given, new_key=signer.public_key)
        told = self._exchange.act("/v1/runs", said, act, signer=signer)
        run = told_run(told["run"])
        opened = self._opened(told, run)
        opened._holding.replaying = run.state is RunState.COMPLETED  # noqa: SLF001 - a face of the same object
        return opened

    def resume(self, run: str = LAST) -> LiveRun:
        """Go on with an open run whose key is here. Raises `KeyMissingError` if it is not."""
        if run == LAST:
            raise NotOverHttpError("to find the last run")
        wanted = RunId(run)
        self._exchange.keys.get(wanted)
        told = self._exchange.read_json(f"/v1/runs/{quote(run)}", run=wanted)
        known = told_run(told)
        if known.state is not RunState.OPEN:
            raise HandoffEndedError(known.id, known.state)
        return self._opened({"mode": told["mode"], "task": {}}, known)

    def handoff(self, handoff: str | Lease) -> LiveHandoff:
        """Return a handoff, to judge it, answer it or retry it: by its whole id, or by the lease on it."""
        found = handoff.handoff if isinstance(handoff, Lease) else HandoffId(handoff)
        return RemoteHandoff(self._exchange, found, opener=self._opened, runners=self.runners)

    def held_call(self, call: str) -> LiveCall:
        """Return a held call, to approve or deny it: by its whole id."""
        return RemoteCallHeld(self._exchange, call)

    def waiting(self) -> list[Mapping[str, Any]]:
        """Return the calls and handoffs that wait for an approval. Needs the role of an operator."""
        found: list[Mapping[str, Any]] = []
        after: str | None = ""
        while after is not None:
            told = self._exchange.read_json(f"/v1/approvals?limit=200{f'&after={quote(after)}' if after else ''}")
            found += told["items"]
            after = told["next"]
        return found

    def claim(self, *, holder: str, lease_for: timedelta | str, agents: Collection[str] | None = None) -> Lease | None:
        """Claim the oldest waiting handoff to one of these agents. Return its lease, or None if nothing waits."""
        if not agents:
            raise InvalidValueError("agents", "are missing: a worker elsewhere says for whom it works")
        said = {
            "holder": holder,
            "seconds": as_duration("lease_for", lease_for).total_seconds(),
            "agents": sorted(agents),
        }
        told = self._exchange.tell("/v1/claims", said)["lease"]
        return None if told is None else _lease(told)

    def heartbeat(self, lease: Lease, lease_for: timedelta | str) -> Lease:
        """Renew a lease. Raises `LeaseLostError`, and a `GrantError` if the grant of its run has ended."""
        said = {
            "holder": lease.holder,
            "token": lease.token,
            "seconds": as_duration("lease_for", lease_for).total_seconds(),
        }
        return _lease(self._exchange.tell(f"/v1/claims/{lease.handoff}/renewal", said)["lease"])

    def release(self, lease: Lease) -> None:
        """Give a lease back. If the handoff was not begun, it can be claimed again."""
        said = {"holder": lease.holder, "token": lease.token}
        self._exchange.tell(f"/v1/claims/{lease.handoff}/release", said)

    @property
    def reads_alarms(self) -> bool:
        """Return that nobody here has to check alarms: the control plane does."""
        return False

    def sweep(self, *, holder: str = "sweeper") -> int:  # noqa: ARG002 - as of `Relay`
        """Do nothing: the control plane sweeps."""
        return 0

    def verify(
        self,
        *,
        seals: Sequence[str] = (),
        root_key: "PublicKey | KeyId | None" = None,
        progress: Callable[[int, int], None] | None = None,
        since: str | None = None,
    ) -> "Evidence":
        """Raise `NotOverHttpError`: who does not trust the control plane verifies an export of the ledger."""
        del seals, root_key, progress, since
        raise NotOverHttpError("to verify the ledger")

    def revoke_grant(self, of: str, *, by: str, reason: str) -> None:
        """Revoke the grant of a handoff or a run, and every grant below it, from now on."""
        self._exchange.tell(f"/v1/grants/{quote(of)}/revocation", {"by": by, "reason": reason})

    def read(self, content: "ContentId") -> bytes:
        """Raise `NotOverHttpError`: only a run reads its attached contents."""
        raise NotOverHttpError(f"to read {content}")

    def _furnished(self) -> Any:  # noqa: ANN401 - it stands for a desk
        return AbsentDesk(self._work_tree)

    def _opened(self, told: Mapping[str, Any], run: Run) -> RemoteRun:
        return RemoteRun(
            self._exchange,
            run,
            Mode(told["mode"]),
            told=told["task"],
            runners=self.runners,
            work_tree=self._work_tree,
        )


def _lease(told: Mapping[str, Any]) -> Lease:
    return Lease(
        handoff=HandoffId(told["handoff"]),
        holder=told["holder"],
        token=told["token"],
        until=datetime.fromisoformat(told["until"]).astimezone(UTC),
    )
