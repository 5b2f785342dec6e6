"""The way of every receipt: place, sign, append, remember the head. The only module that makes receipts.

A run's stream has one writer, which knows its head: it is signed and appended without reading, and nobody tries again.
A handoff's and a relay's stream belong to nobody, so their receipts are made anew if another came first, here and
nowhere else.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

from msgspec import Struct

from batonpass.errors import BatonpassError, ConflictError, FencedError, NotFoundError, OutcomeUnknownError, StoreError
from batonpass.model.bodies import Body, RunRecorded
from batonpass.model.ids import NEW_ID_ENTROPY, new_id
from batonpass.model.receipt import ENVELOPES, Place, Signed
from batonpass.model.values import Mode
from batonpass.signing.keys import KeyPair
from batonpass.store.port import Store
from batonpass.system import System
from batonpass.wire.canonical import digest, encode
from batonpass.wire.contents import NOTHING, Contents, pack
from batonpass.wire.statements import encode_statement, pre_authentication

_MOST_DRAFTS: Final = 64


class Recorder(Struct, frozen=True, kw_only=True):
    """What a relay needs to write: its ledger, its key, and what everything hangs from."""

    store: Store
    system: System
    key: KeyPair
    relay: str
    genesis: str
    secret: bytes  # of the ledger: keyed digests of requests and of paths

    def __repr__(self) -> str:
        """Return it without its secrets: a traceback may show it to others."""
        return f"Recorder({self.relay})"

    def new_id(self, prefix: str) -> str:
        """Return an id that nobody else has."""
        return new_id(prefix, self.system.now(), self.system.entropy(NEW_ID_ENTROPY))


class Request(NamedTuple):
    """What a receipt says of the request that caused it. Both are keyed digests: nobody reads keys out of a ledger."""

    digest: str  # of the caller and the idempotency key
    fingerprint: str  # of the act and everything that it was asked


CURRENT_REQUEST: Final[ContextVar[Request | None]] = ContextVar("batonpass_request", default=None)


class Draft(NamedTuple):
    """A receipt before it has its place."""

    body: Body
    contents: Contents = NOTHING


def sign(
    recorder: Recorder,
    place: Place,
    draft: Draft,
    *,
    root: str | None,
    mode: Mode = "observed",
    cosigner: KeyPair | None = None,
) -> Signed:
    """Return a receipt at this place: salted contents, canonical bytes, signatures."""
    system, request = recorder.system, CURRENT_REQUEST.get()
    at = system.now()
    digests, packed = pack(draft.contents, system.entropy)
    receipt = ENVELOPES[type(draft.body)](
        id=new_id("receipt", at, system.entropy(NEW_ID_ENTROPY)),
        seq=place.seq + 1,
        epoch=place.epoch,
        at=at,
        mode=mode,
        recorder=recorder.relay,
        body=draft.body,
        root=root,
        request=None if request is None else request.digest,
        fingerprint=None if request is None else request.fingerprint,
        content=digests,
    )
    payload = encode_statement(place.stream, place.head, receipt)
    message = pre_authentication(payload)
    return Signed(
        stream=place.stream,
        previous=place.head,
        receipt=receipt,
        payload=payload,
        digest=digest(payload),
        signature=recorder.key.sign(message),
        cosignature=None if cosigner is None else cosigner.sign(message),
        contents=packed,
    )


class StaleReadingError(Exception):
    """What an act was judged by is not what is recorded: it has to be judged again."""


class StreamWriter:
    """Appends to the stream of one run. It is the only writer of its epoch, so its head is known and seldom read."""

    def __init__(self, recorder: Recorder, place: Place, *, root: str, mode: Mode) -> None:
        self.stream = place.stream
        self.root = root
        self.mode: Mode = mode
        self.epoch = place.epoch
        self.is_unsure = False  # an append was cut short: whatever was remembered of this stream has to be read again
        self.reading = 0  # how often it became unsure: an act that was judged before the last time is judged again
        self.gaps: list[str] = []  # what an observed run did and could not record: written first, next time
        self.is_lost = False  # what began this stream could not be recorded, so neither can what follows
        self._recorder = recorder
        self.lock = recorder.system.lock()  # held while it appends, and while what is remembered of it is read again
        self._place: Place | None = place

    def append(
        self,
        *drafts: Draft,
        cosigner: KeyPair | None = None,
        following: Callable[[Signed], Sequence[Signed]] | None = None,
        judged_in: int | None = None,
    ) -> Signed:
        """Write drafts in one commit, and return the last of them when it is durable. Raises what the store raises.

        `following` makes receipts of other streams out of the last one, for the same commit. `judged_in` is the reading
        by which it was decided that this may be written; after another one `StaleReadingError` is raised.
        """
        recorder = self._recorder
        if self.is_lost:
            raise StoreError(f"{self.stream} has no place in the record: its beginning could not be written")
        with self.lock:
            if judged_in not in {None, self.reading}:
                raise StaleReadingError
            place = self._place or self._read_place()
            # Unknown until the store has answered: after anything else, even Ctrl-C, the next append reads the head.
            self._place = None
            seq, head = place.seq, place.head
            entry: list[Signed] = []
            missing = tuple(self.gaps)
            if missing:
                gap = RunRecorded(run=self.stream, subject="gap", count=len(missing))
                drafts = (Draft(gap, {"gaps": encode(missing)}), *drafts)
            for draft in drafts:
                here = Place(stream=self.stream, seq=seq, head=head, epoch=self.epoch)
                signed = sign(recorder, here, draft, root=self.root, mode=self.mode, cosigner=cosigner)
                entry.append(signed)
                seq, head = seq + 1, signed.digest
            own = entry[-1]
            if following is not None:
                entry += following(own)
            try:
                recorder.store.append(entry)
                del self.gaps[: len(missing)]
                place.seq, place.head = seq, head
                self._place = place
            except BaseException as error:
                if isinstance(error, BatonpassError) and not isinstance(error, OutcomeUnknownError | ConflictError):
                    self._place = place  # nothing was written, and nobody else has
                else:
                    self.doubt()
                raise
        return own

    def doubt(self) -> None:
        """Have the history read before the next act. Only a reading ends it, and waits until no append is at work."""
        self.is_unsure, self.reading = True, self.reading + 1

    def look_again(self) -> None:
        """Read head and history before the next act: another process of this relay may have written in this epoch."""
        self.doubt()
        self._place = None

    def read_head(self) -> None:
        """Read where the next receipt goes. Before the history: what another process writes after it is a conflict."""
        self._place = self._read_place()

    def moved_to(self, signed: Signed) -> None:
        """Go on after a receipt that was written in another writer's commit."""
        self._place = Place(stream=self.stream, seq=signed.receipt.seq, head=signed.digest, epoch=self.epoch)

    def _read_place(self) -> Place:
        row = self._recorder.store.find_stream(self.stream)
        if row is None:
            raise NotFoundError(f"there is no {self.stream} in this ledger")
        # The writer keeps the epoch that it began with. In a later one it has lost its run: it writes nothing, and what
        # the new holder did is not given to it either.
        if row.epoch > self.epoch:
            raise FencedError(f"{self.stream} was taken over: what it does now is not recorded in its name")
        return Place(stream=self.stream, seq=row.seq, head=row.head, epoch=self.epoch)


def append_shared(
    recorder: Recorder,
    stream: str,
    make: Callable[[], Sequence[Draft]],
    *,
    root: str | None,
    mode: Mode = "observed",
    cosigner: KeyPair | None = None,
    following: Callable[[Signed], Sequence[Signed]] | None = None,
) -> Signed | None:
    """Write what `make` decides into a stream that has no owner; return the last receipt, or None if it made nothing.

    If another came first, it is decided anew: `make` looks at the ledger each time. The one retry of a lost race.
    """
    for _ in range(_MOST_DRAFTS):
        place = _shared_place(recorder, stream)
        drafts = make()
        if not drafts:
            return None
        entry: list[Signed] = []
        for draft in drafts:
            signed = sign(recorder, place, draft, root=root, mode=mode, cosigner=cosigner)
            entry.append(signed)
            place = Place(stream=stream, seq=place.seq + 1, head=signed.digest, epoch=place.epoch)
        own = entry[-1]
        if following is not None:
            entry += following(own)
        try:
            recorder.store.append(entry)
        except FencedError:
            raise
        except ConflictError as error:
            if error.code != "ledger.stale_head":
                raise
            continue
        return own
    raise ConflictError(f"{stream} has moved on {_MOST_DRAFTS} times while this was decided: try again")


def _shared_place(recorder: Recorder, stream: str) -> Place:
    row = recorder.store.find_stream(stream)
    if row is not None:
        return Place(stream=stream, seq=row.seq, head=row.head, epoch=row.epoch)
    handoff = recorder.store.find_handoff(stream)
    if handoff is not None:  # its stream begins with this act, and hangs from its offer
        return Place(stream=stream, seq=0, head=handoff.last)
    return Place(stream=stream, seq=0, head=recorder.genesis)
