"""Opening a ledger: its place, its keys, its store, and the relay that records in this process."""

from pathlib import Path
from typing import Final

from batonpass.api.acts import Caller
from batonpass.api.port import LocalPort, Port
from batonpass.errors import ConflictError, MissingExtraError, StoreError
from batonpass.log.append import Draft, Recorder, sign
from batonpass.model.bodies import KeyEnrolled
from batonpass.model.ids import derived_id
from batonpass.model.receipt import Place as StreamPlace
from batonpass.place import MEMORY, Place, find_place
from batonpass.reading.history import read_part
from batonpass.runtime.context import Context
from batonpass.signing.keyfile import read_or_make_secret
from batonpass.signing.keys import KeyPair
from batonpass.store.port import Store
from batonpass.store.sqlite.store import SqliteStore
from batonpass.system import RealSystem, System
from batonpass.wire.canonical import genesis

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a private directory is made in it
_SECRET_BYTES: Final = 32


def open_port(
    ledger: str | Path | None = None,
    *,
    work_tree: str | Path | None = None,
    create: bool = True,
    system: System | None = None,
    caller: Caller | None = None,
) -> Port:
    """Return a port to a ledger in this process: the one of this repository, a file, a server's, or `memory:`."""
    own_system: System = system or RealSystem()
    tree = None if work_tree is None else Path(work_tree)
    if str(ledger or "") == MEMORY:
        return _MemoryPort(own_system, tree)
    place = find_place(ledger, work_tree=tree, create=create)
    store = open_store(place, own_system)
    try:
        context = open_context(place, store, own_system)
    except BaseException:
        store.close()
        raise
    return LocalPort(context, caller or Caller())


def open_store(place: Place, system: System) -> Store:
    """Return the store at a place."""
    path = place.sqlite_path
    if path is not None:
        return SqliteStore(path, system=system)
    try:
        from batonpass.store.postgres.store import PostgresStore  # noqa: PLC0415 - only who needs it pays for it
    except ImportError as error:
        raise MissingExtraError("PostgreSQL needs `pip install 'batonpass[postgres]'`") from error
    return PostgresStore(place.url, system=system)


def open_context(place: Place, store: Store, system: System) -> Context:
    """Return what acts work on. The first relay founds the ledger; each is enrolled once, by the root key."""
    key = KeyPair(read_or_make_secret(place.directory / "relay.key", system.entropy))
    relay = derived_id("relay", bytes.fromhex(key.public))
    first = _founding_receipt(store)
    if first is None or store.find_stream(relay) is None:
        root = KeyPair(read_or_make_secret(place.directory / "root.key", system.entropy))
        if first is not None and first.root_key != root.public:
            detail = (
                f"this ledger hangs from another root key than {place.directory / 'root.key'}: bring that file here"
            )
            raise StoreError(detail, code="store.key")
        _enrol(store, system, key, relay, root)
        first = _founding_receipt(store)
    if first is None:
        raise StoreError("the ledger did not keep its first receipt", code="store.not_a_ledger")
    recorder = Recorder(
        store=store,
        system=system,
        key=key,
        relay=relay,
        genesis=genesis(first.root_key),
        secret=first.secret,
    )
    return Context(recorder=recorder, work_tree=place.work_tree)


class _Founding:
    def __init__(self, root_key: str, secret: bytes) -> None:
        self.root_key = root_key
        self.secret = secret


def _founding_receipt(store: Store) -> _Founding | None:
    """Return the root key and the secret that the first receipt of a ledger has."""
    signed = store.first_receipt()
    if signed is None:
        return None
    secret = read_part(signed, "secret")
    if not isinstance(signed.body, KeyEnrolled) or secret is None:
        raise StoreError("the first receipt of this ledger founds nothing", code="store.not_a_ledger")
    return _Founding(signed.body.root_key, secret)


def _enrol(store: Store, system: System, key: KeyPair, relay: str, root: KeyPair) -> None:
    body = KeyEnrolled(subject="relay", relay=relay, owner="this machine", public_key=key.public, root_key=root.public)
    # Only the first of all needs the secret; a relay that comes later carries one that nobody uses.
    contents = {"secret": system.entropy(_SECRET_BYTES)}
    place = StreamPlace(stream=relay, seq=0, head=genesis(root.public))
    recorder = Recorder(store=store, system=system, key=key, relay=relay, genesis=place.head, secret=b"")
    try:
        store.append([sign(recorder, place, Draft(body, contents), root=None, cosigner=root)])
    except ConflictError:
        if store.find_stream(relay) is None:  # not another process with the same keys, which was first
            raise


class _MemoryPort(LocalPort):
    """A ledger that lasts as long as the process: a file in a private directory in memory."""

    def __init__(self, system: System, work_tree: Path | None) -> None:
        import tempfile  # noqa: PLC0415 - only this port needs it

        parent = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
        self._directory = Path(tempfile.mkdtemp(prefix="batonpass-", dir=parent))
        tree = (work_tree or Path.cwd()).resolve()
        place = Place(directory=self._directory, url=f"sqlite:///{self._directory / 'ledger.db'}", work_tree=tree)
        super().__init__(open_context(place, open_store(place, system), system))

    def close(self) -> None:
        import shutil  # noqa: PLC0415 - as above

        super().close()
        shutil.rmtree(self._directory, ignore_errors=True)
