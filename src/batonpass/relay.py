"""The relay: the runtime that checks the calls and handoffs of agents, and records them in one ledger.

Every door (Python, the command line, hooks, the MCP proxy) calls these methods and adds no logic of its own. `Relay` is
for programs that run agents. `Relay.admin` is for people who look after the ledger: keys, seals, bundles, erasure.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, Self, TypeVar

from batonpass.admin import Admin, sequence_if_possible
from batonpass.audit.short_ids import LAST
from batonpass.clock import Clock, SystemClock
from batonpass.config import CONTROL_PLANES, find_settings
from batonpass.errors import (
    ContentErasedError,
    LeaseLostError,
    StreamClosedError,
)
from batonpass.model.base.checks import as_member, require_code
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import (
    AgentId,
    ContentId,
    HandoffId,
    KeyId,
    PublicKey,
    RunId,
    SessionId,
    StreamId,
    require_agent,
)
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.key import RunKeys, Signer
from batonpass.model.ledger.lease import Lease
from batonpass.policy.file_place import find_file
from batonpass.store.factory import open_store
from batonpass.store.port import LedgerStore

if TYPE_CHECKING:
    from batonpass.accounts.trail.trail_values import Trail
    from batonpass.audit.verification.evidence import Evidence
    from batonpass.credentials import Provider
    from batonpass.drift.alarms import AlarmCheck
    from batonpass.drift.recall import FleetMemory
    from batonpass.handoff.live.faces import LiveHandoff, LiveRun
    from batonpass.handoff.live.held_call import LiveCall
    from batonpass.handoff.programs.runners import Runner
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.membership import Membership
    from batonpass.handoff.runtime.run_state import Holding
    from batonpass.handoff.sessions.condition_checks import Check
    from batonpass.handoff.taint.left_files import LeftFile
    from batonpass.handoff.transfer.offer_request import GivenItem
    from batonpass.ledger.act_receipts import Recording
    from batonpass.model.baton.card import Card
    from batonpass.model.baton.items import ItemValue
    from batonpass.model.grants.grant_request import GrantRequest
    from batonpass.model.ledger.content import Content
    from batonpass.policy.policy_table import AnyPolicy
    from batonpass.records.remarks.alarm import AlarmRecord
    from batonpass.review.finding import Finding

# The use cases are two thirds of the package, so each method imports its own when it is first called. A program that
# opens a ledger only to read or verify it never loads them, nor the code that signs.

_REMOTE_RELAY: Final = "batonpass.client:RemoteRelay"

AnyRunner = TypeVar("AnyRunner", bound="Runner")
AnyCheck = TypeVar("AnyCheck", bound="Check")
AnyProvider = TypeVar("AnyProvider", bound="Provider")


class Relay:
    """Checks and records the work of agents in one ledger. Safe to use from many threads; refuses use after a fork."""

    def __init__(
        self,
        store: LedgerStore,
        *,
        home: str | PathLike[str] | None = None,
        clock: Clock | None = None,
        run_keys: RunKeys | None = None,
        policy: "AnyPolicy | None" = None,
        work_tree: str | PathLike[str] | None = None,
    ) -> None:
        self._store = store
        self._home = None if home is None else Path(home)
        self._work_tree = Path.cwd() if work_tree is None else Path(work_tree).absolute()
        self._clock = clock or SystemClock()
        self._policy = policy
        self._cards: dict[AgentId, Card] = {}
        self._runners: dict[AgentId, Runner] = {}
        self._checks: dict[str, Check] = {}
        self._providers: dict[str, Provider] = {}
        self._desk: Desk | None = None
        self._member: Membership | None = None
        self._kept_keys = run_keys
        self._entering = threading.Lock()
        self._furnishing = threading.Lock()
        self._admin = Admin(
            store,
            self._clock,
            membership=lambda: self._membership,
            desk=lambda: desk_of(self),
            rotated=self._go_on_under_new_key,
        )

    def __repr__(self) -> str:
        return f"<Relay of {self._store.url}>"

    @classmethod
    def open(
        cls,
        ledger: str | PathLike[str] | None = None,
        *,
        home: str | PathLike[str] | None = None,
        clock: Clock | None = None,
        keys_in_files: bool = False,
        create: bool = True,
        policy: "AnyPolicy | None" = None,
        work_tree: str | PathLike[str] | None = None,
        token: str | None = None,
    ) -> Self:
        """Open a ledger by its URL or file. Without one, open the ledger of this directory.

        A URL that begins with `https://` is a control plane, as `batonpass serve` starts one; `token` lets its holder
        in, by default that in `BATONPASS_TOKEN`. The returned relay has the same names: the control plane judges and
        records, and the keys of runs stay here. Methods that need the ledger itself raise `NotOverHttpError`.

        The settings fill in the rest. The ledger is `BATONPASS_LEDGER`, else the one in the nearest `.batonpass`. The
        keys are in `home`: by default beside the ledger's file, else in the nearest `.batonpass`. With `keys_in_files`,
        the keys of runs outlive this process.

        `policy` is a value or a file, by default the nearest `batonpass.toml` around the home. A policy with mistakes
        raises `PolicyFileError` when a run is started or resumed, but not when the ledger is only read. Paths in grants
        are relative to `work_tree`, by default the current directory.
        """
        settings = find_settings(None if ledger is None else fspath(ledger))
        if not settings.threads_inherit:
            from batonpass.handoff.live.current_run import leave_threads_alone  # noqa: PLC0415 - as above

            leave_threads_alone()
        if settings.ledger.startswith(CONTROL_PLANES):
            # By name: the package is above this one, because what it opens is a relay too.
            remote = resolve_name(_REMOTE_RELAY)
            at = settings.home if home is None else Path(home)
            opened: Self = remote(
                settings.ledger, token=token, home=at, keys_in_files=keys_in_files, work_tree=work_tree
            )
            return opened
        place = settings.home if home is None else Path(home)
        if policy is None:
            policy = settings.policy or (None if place is None else find_file(place.absolute().parent))
        return cls(
            open_store(settings.ledger, create=create),
            home=place,
            clock=clock,
            run_keys=_run_keys_in(place) if keys_in_files and place is not None else None,
            policy=policy,
            work_tree=work_tree,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger, and stop watching files."""
        if self._desk is not None:
            self._desk.files.close()
        if self._member is not None:
            self._member.leave()
        self._store.close()

    @property
    def store(self) -> LedgerStore:
        """Return the store, for reading."""
        return self._store

    @property
    def admin(self) -> Admin:
        """Return the methods that look after the ledger: keys, approvers, seals, bundles, erasure."""
        return self._admin

    @property
    def _membership(self) -> "Membership":
        # There must be only one, hence the lock: two would each join the ledger, and each would keep its own idea of
        # where the streams end.
        with self._entering:
            if self._member is None:
                from batonpass.handoff.runtime.membership import Membership  # noqa: PLC0415 - as above
                from batonpass.signing.keyring import Keyring  # noqa: PLC0415 - as above

                self._member = Membership(self._store, Keyring(self._home, self._clock), self._clock)
            return self._member

    @property
    def _run_keys(self) -> RunKeys:
        with self._entering:
            if self._kept_keys is None:
                from batonpass.signing.runkeys import RunKeysInMemory  # noqa: PLC0415 - as above

                self._kept_keys = RunKeysInMemory()
            return self._kept_keys

    def _recording(self) -> "Recording":
        from batonpass.ledger.act_receipts import Recording  # noqa: PLC0415 - as above

        ledger, _ = self._membership.join()
        return Recording(self._store, ledger, self._run_keys, self._clock)

    def _furnished(self) -> "Desk":
        self._membership.join()
        with self._furnishing:
            if self._desk is None:
                from batonpass.handoff.runtime.desk_setup import furnish  # noqa: PLC0415 - as above
                from batonpass.policy.policy_table import given_policy  # noqa: PLC0415 - as above

                self._desk = furnish(
                    self._store,
                    self._recording(),
                    self._membership,
                    clock=self._clock,
                    gates=given_policy(self._policy),
                    run_keys=self._run_keys,
                    home=self._home,
                    work_tree=self._work_tree,
                    cards=self._cards,
                    checks=self._checks,
                    providers=self._providers,
                )
            return self._desk

    @property
    def runners(self) -> "Mapping[AgentId, Runner]":
        """Return the registered runners, by agent."""
        return self._runners

    def register(self, agent: str, runner: AnyRunner, *, card: "Card | None" = None) -> AnyRunner:
        """Register the runner of an agent: a function, a coroutine function or a `Program`. Return the runner.

        It works on the handoffs to that agent. The agent is held to its `card` from now on.
        """
        self._runners[require_agent("agent", AgentId(agent))] = runner
        from batonpass.model.baton.card import Card  # noqa: PLC0415 - as above

        self.introduce(card or Card(agent=AgentId(agent)))
        return runner

    def introduce(self, card: "Card") -> None:
        """Hold an agent to its card, whether or not it has a runner here."""
        self._cards[card.agent] = card

    def agent(self, name: str, *, card: "Card | None" = None) -> Callable[[AnyRunner], AnyRunner]:
        """Register the decorated function as the runner of an agent: `@relay.agent("editor")`."""
        return lambda runner: self.register(name, runner, card=card)

    def check(self, name: str, check: AnyCheck) -> AnyCheck:
        """Register a check for conditions of decisions. The condition `check:NAME` holds if the check returns True.

        It does not hold if the check returns False, returns a text that says why not, returns anything else, or raises.
        """
        self._checks[require_code("check", name)] = check
        return check

    def credential(self, name: str, provider: AnyProvider) -> AnyProvider:
        """Register a provider of credentials for tools that declare `credential=NAME`.

        The relay asks it for each such call. The secret is never written down.
        """
        self._providers[require_code("credential", name)] = provider
        return provider

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
        grant: "GrantRequest | None" = None,
        key: str | None = None,
    ) -> "LiveRun":
        """Start a root run for a principal. `intent` is their wish, in their own words.

        `items` are further things that they said, such as constraints and exclusions. With `continues` or `series`, the
        run also starts with the decisions, open questions and verified results of the run before it.

        `may` lists the permits of the run. `grant` says more: permits to delegate, limits, an end. With either of them
        the run is enforced. With `mode="observed"` as well, the grant stops nothing, and receipts name the calls that
        it would have stopped.

        With a `key`, the same start is the same run: one whose process is gone is resumed, and one that is completed
        only replays its record. Raises `KeyReusedError` if this agent was given other words under that key.
        """
        from batonpass.handoff.sessions.start import start_run  # noqa: PLC0415 - as above
        from batonpass.handoff.transfer.offer_request import given_items  # noqa: PLC0415 - as above
        from batonpass.model.grants.grant_request import grant_asked  # noqa: PLC0415 - as above

        asked = grant_asked(may, grant)
        desk, continued = self._furnished(), None if continues is None else self._run(continues)

        def begin(contents: "tuple[Content, ...]" = (), before: RunId | None = None) -> "Holding":
            return start_run(
                desk,
                intent,
                by=by,
                agent=agent,
                said=given_items(items),
                continues=continued or (before if series is None else None),
                series=series,
                session=session,
                mode=None if mode is None else as_member("mode", mode, Mode),
                grant=None if asked is None else asked.at(self._clock.now()),
                contents=contents,
            )

        if key is None:
            return self._open(begin())
        from batonpass.handoff.sessions.keyed_root import start_once  # noqa: PLC0415 - as above

        return self._open(start_once(desk, key, intent=intent, by=by, agent=agent, start=begin))

    def resume(self, run: str = LAST) -> "LiveRun":
        """Go on with an open run whose process is gone. The default is the last open root run.

        Name the run by its id or the end of its id. A process that still holds it is fenced: it can record nothing
        more. Raises `NotFoundError` if there is no such run.
        """
        from batonpass.audit.meant_ids import get_open_root, get_run  # noqa: PLC0415 - as above
        from batonpass.handoff.sessions.resume import resume_run  # noqa: PLC0415 - as above

        with self._store.view() as view:
            known = get_open_root(view) if run == LAST else get_run(view, run)
        return self._open(resume_run(self._furnished(), known.id))

    def resume_session(
        self,
        session: str = LAST,
        *,
        by: str,
        intent: str | None = None,
        agent: str | None = None,
        items: "Iterable[GivenItem]" = (),
    ) -> "LiveRun":
        """Start a root run where a session stopped. The default is the last session.

        Name the session by its id, the end of its id, one of its root runs, or a series. `run.session` has the
        inherited items. A decision whose conditions no longer hold comes along as an open question. Raises
        `NotFoundError` and `AmbiguousIdError`.
        """
        from batonpass.handoff.sessions.resume import resume_session  # noqa: PLC0415 - as above
        from batonpass.handoff.transfer.offer_request import given_items  # noqa: PLC0415 - as above

        said = given_items(items)
        return self._open(resume_session(self._furnished(), session, by=by, intent=intent, agent=agent, said=said))

    def handoff(self, handoff: str | Lease) -> "LiveHandoff":
        """Return a handoff, to read it, judge it, answer it or retry it.

        Name it by its id, the end of its id, its agent, or the lease that a worker holds on it. Raises `NotFoundError`
        and `AmbiguousIdError`.
        """
        from batonpass.handoff.live.faces import LiveHandoff  # noqa: PLC0415 - as above

        found = handoff.handoff if isinstance(handoff, Lease) else self._handoff(handoff)
        return LiveHandoff(self._furnished(), found, self._open, runners=self._runners)

    def held_call(self, call: str) -> "LiveCall":
        """Return a held call whose run goes on meanwhile, to approve or deny it.

        Name it by its id, the end of its id, or its tool. Raises `NotFoundError` and `AmbiguousIdError`.
        """
        from batonpass.audit.meant_ids import get_held  # noqa: PLC0415 - as above
        from batonpass.handoff.live.held_call import LiveCall  # noqa: PLC0415 - as above
        from batonpass.records.hold import get_held_call  # noqa: PLC0415 - as above

        with self._store.view() as view:
            found = get_held(view, call).call
            get_held_call(view, found)
        return LiveCall(self._furnished(), found)

    def claim(self, *, holder: str, lease_for: timedelta | str, agents: Collection[str] | None = None) -> Lease | None:
        """Claim the oldest waiting handoff to one of these agents. Return its lease, or None if nothing waits."""
        wanted = None if agents is None else [AgentId(agent) for agent in agents]
        return self._store.claim(holder=holder, lease_for=as_duration("lease_for", lease_for), agents=wanted)

    def heartbeat(self, lease: Lease, lease_for: timedelta | str) -> Lease:
        """Renew a lease.

        Raises `LeaseLostError`, also if the deadline of the handoff has passed; and a `GrantError` if the grant of its
        run has ended or was revoked.
        """
        from batonpass.handoff.grants.certificate_renewal import renew_lease  # noqa: PLC0415 - as above

        holding = None if self._desk is None else self._desk.leased.get(lease.handoff)
        if self._desk is not None and holding is not None and holding.ended is None:
            from batonpass.handoff.transfer.close import end_out_of_time  # noqa: PLC0415 - as above

            try:
                end_out_of_time(self._desk, holding)
            except StreamClosedError:
                raise LeaseLostError(lease.handoff) from None
        return renew_lease(self._store, self._desk, lease, as_duration("lease_for", lease_for))

    def release(self, lease: Lease) -> None:
        """Give a lease back. If the handoff was not begun, it can be claimed again."""
        self._store.release(lease)

    def sweep(self, *, holder: str = "sweeper") -> int:
        """End the attempts whose lease ran out and the handoffs whose deadline passed. Return how many ended."""
        from batonpass.handoff.transfer.sweep import sweep  # noqa: PLC0415 - as above

        return sweep(self._furnished(), holder=holder)

    def _handoff(self, given: str) -> HandoffId:
        from batonpass.audit.meant_ids import get_handoff  # noqa: PLC0415 - as above

        with self._store.view() as view:
            return get_handoff(view, given).id

    def _run(self, given: str) -> RunId:
        from batonpass.audit.meant_ids import get_run  # noqa: PLC0415 - as above

        with self._store.view() as view:
            return get_run(view, given).id

    def _open(self, holding: "Holding") -> "LiveRun":
        from batonpass.handoff.live.faces import LiveRun  # noqa: PLC0415 - as above

        return LiveRun(self._furnished(), holding, self._runners)

    def verify(
        self,
        *,
        seals: Sequence[str] = (),
        root_key: PublicKey | KeyId | None = None,
        progress: Callable[[int, int], None] | None = None,
        since: str | None = None,
    ) -> "Evidence":
        """Verify the whole ledger, and that it still contains all that these seals cover. Raises `VerificationError`.

        `seals` are seals as notes. `since` is a seal over receipts that were verified before: a tree that has not
        changed since then is only compared with it.
        """
        from batonpass.audit.verification.verify import verify_ledger  # noqa: PLC0415 - a fifth of the start of every program, and few programs need it

        sequence_if_possible(self._store)
        return verify_ledger(self._store, seals=seals, root_key=root_key, progress=progress, since=since)

    def endorse_file(self, path: str | PathLike[str], *, by: str, reason: str) -> "tuple[LeftFile, ...]":
        """Endorse the present content of a file: a person answers for it, and reading it taints nobody any more.

        Return the contents that tainted runs had left in the file. Raises `NotPersonError` if `by` is no person, and
        `NotFoundError` if there is nothing to endorse.
        """
        from batonpass.handoff.taint.left_files import endorse_file  # noqa: PLC0415 - as above

        return endorse_file(self._furnished(), path, by=by, reason=reason)

    def acknowledge(self, run: str, finding: str, *, by: str, reason: str) -> "Finding":
        """Acknowledge a finding of the tree that a run belongs to: a person has seen it and answers for leaving it.

        Name it by the beginning of its key, or by its kind if there is one of it. Return it. Raises `NotPersonError`
        if `by` is no person, `NotFoundError` and `AmbiguousIdError`.
        """
        from batonpass.review.acknowledgement import acknowledge  # noqa: PLC0415 - as above

        with self._store.view() as view:
            root = view.get_run(self._run(run)).root
        return acknowledge(self._furnished(), root, finding, by=by, reason=reason)

    @property
    def reads_alarms(self) -> bool:
        """Return whether a rule of the policy reads alarms, so that somebody should check them from time to time."""
        return self._furnished().gates.needs_alarms

    def check_alarms(self) -> "AlarmCheck":
        """Compare the weeks of every agent: raise alarms that are new, and clear those whose cause is over.

        Checking twice changes nothing.
        """
        from batonpass.drift.alarms import check_alarms  # noqa: PLC0415 - as above

        return check_alarms(self._furnished())

    def acknowledge_alarm(self, alarm: str, *, by: str, reason: str) -> "AlarmRecord":
        """Acknowledge an alarm: a person has seen it and lets the agent go on. Return it.

        Name it by the beginning or the end of its key, or by its agent if that has one. Raises `NotPersonError` if
        `by` is no person, `NotFoundError` and `AmbiguousIdError`.
        """
        from batonpass.drift.alarms import acknowledge_alarm  # noqa: PLC0415 - as above

        return acknowledge_alarm(self._furnished(), alarm, by=by, reason=reason)

    def recall(
        self, words: str | None = None, *, kind: str | None = None, agent: str | None = None, limit: int = 10
    ) -> "FleetMemory":
        """Return the outcomes of earlier handoffs, by words of their task, by kind of task or by agent.

        `brief()` of the answer tells it to a model, as data and not as instructions. Raises `InvalidValueError` if
        nothing is asked for.
        """
        from batonpass.drift.recall import recall  # noqa: PLC0415 - as above
        from batonpass.drift.rollup import keep_up  # noqa: PLC0415 - as above

        keep_up(self._store)
        with self._store.view() as view:
            whose = None if agent is None else AgentId(agent)
            return recall(view, words=words, kind=kind, agent=whose, limit=limit)

    def prune_session(
        self,
        session: str,
        items: Iterable[str] = (),
        *,
        by: str,
        reason: str,
        older_than: timedelta | str | None = None,
    ) -> "tuple[ItemValue, ...]":
        """Take items out of the state that a session leaves to the next, as a person. Return these items.

        Name items by id, the end of an id, or the words with which they begin; or all that are older than a duration.
        Raises `NotPersonError` if `by` is no person, `NotFoundError` for a name that fits nothing, and
        `InvalidValueError` if there is nothing to take out.
        """
        from batonpass.audit.meant_ids import get_session  # noqa: PLC0415 - as above
        from batonpass.handoff.sessions.prune import prune  # noqa: PLC0415 - as above

        age = None if older_than is None else as_duration("older_than", older_than)
        with self._store.view() as view:
            found = get_session(view, session)
        desk = self._furnished()
        before = None if age is None else desk.clock.now() - age
        return prune(desk, found, items, by=by, reason=reason, before=before)

    def read(self, content: ContentId) -> bytes:
        """Return the bytes of a content. Raises `ContentErasedError` if it was erased."""
        with self._store.view() as view:
            stored = view.get_content(content)
        if stored.body is None:
            raise ContentErasedError(content)
        return stored.body

    def trail(self, run: str = LAST) -> "Trail":
        """Return the whole tree of a run, as it happened. Name the run by its id, the end of its id, or its agent."""
        from batonpass.accounts.trail.trail import read_trail  # noqa: PLC0415 - as above
        from batonpass.audit.meant_ids import get_run  # noqa: PLC0415 - as above

        with self._store.view() as view:
            return read_trail(view, get_run(view, run).id)

    def revoke_grant(self, of: str, *, by: str, reason: str) -> None:
        """Revoke the grant of a handoff or a run, and every grant below it, from now on. Raises `NotFoundError`."""
        from batonpass.handoff.grants.revocation import revoke_grant  # noqa: PLC0415 - as above

        revoke_grant(self._furnished(), self.admin.identity()[0], of, by=by, reason=reason)

    def _go_on_under_new_key(self) -> None:
        from batonpass.handoff.runtime.desk_setup import issuer_of  # noqa: PLC0415 - as above

        if self._desk is not None:
            self._desk.recording = self._recording()
            self._desk.issuer = issuer_of(self._membership, self._clock)


def desk_of(relay: Relay) -> "Desk":
    """Return the desk of a relay: how packages inside batonpass reach the use cases of runs and handoffs."""
    return relay._furnished()  # noqa: SLF001 - the one way in for other packages


def let_keys_be_elsewhere(relay: Relay) -> None:
    """Let programs on other machines keep the keys of their runs, and sign for the acts that they ask for."""
    from batonpass.records.run_key import get_run_key  # noqa: PLC0415 - as above
    from batonpass.signing.keys_elsewhere import RunKeysElsewhere  # noqa: PLC0415 - as above

    def present_key(run: RunId) -> tuple[PublicKey, int]:
        with relay.store.view() as view:
            return get_run_key(view, run), view.get_stream(StreamId(run)).epoch

    kept = relay._run_keys  # noqa: SLF001 - as above
    if not isinstance(kept, RunKeysElsewhere):
        relay._kept_keys = RunKeysElsewhere(kept, present_key)  # noqa: SLF001 - as above
        desk = relay._desk  # noqa: SLF001 - as above
        if desk is not None:
            desk.run_keys, desk.recording = relay._run_keys, relay._recording()  # noqa: SLF001 - as above


def cards_of(relay: Relay) -> "Mapping[AgentId, Card]":
    """Return the cards to which agents are held, for packages inside that tell of them."""
    return relay._cards  # noqa: SLF001 - as above


def home_of(relay: Relay) -> Path | None:
    """Return the directory beside the ledger of a relay, for locks; None if it has none."""
    return relay._home  # noqa: SLF001 - as above


def recording_of(relay: Relay) -> "Recording":
    """Return the recording of a relay, as `desk_of` returns its desk. The first use founds or joins the ledger."""
    return relay._recording()  # noqa: SLF001 - as above


def signer_of(relay: Relay) -> Signer:
    """Return the key of a relay, for statements beside receipts. The first use founds or joins the ledger."""
    _, identity = relay._membership.join()  # noqa: SLF001 - as above
    return identity.signer


def _run_keys_in(home: Path) -> RunKeys:
    from batonpass.signing.runkeys import RunKeysInFiles  # noqa: PLC0415 - as above

    return RunKeysInFiles(home)
