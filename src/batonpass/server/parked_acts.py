"""Acts whose receipts are signed on another machine: each waits here for its signatures, and nothing is written before.

An act is done in a thread of its own, which waits while its client signs; nobody else waits for it. A client that does
not sign in time loses the act, and repeats it. A client that lost the connection repeats its request, and finds the
same act.
"""

import json
import secrets
import threading
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from contextvars import copy_context
from typing import Final

from msgspec import Struct

from batonpass.errors import (
    OutOfReachError,
    RepeatedKeyError,
    SignatureMissingError,
    SignatureWrongError,
    TooManyRequestsError,
)
from batonpass.model.base.ids import PublicKey, TokenId
from batonpass.model.ledger.content import Content
from batonpass.server.idempotency import GivenAnswer
from batonpass.signing.ed25519 import is_signed
from batonpass.signing.keys_elsewhere import signed_elsewhere

_WAITS: Final = 202
_MOST: Final = 256  # of all clients together
_MOST_OF_ONE: Final = 64
_MOST_OVER: Final = 200  # that are over and remembered, for clients that lost the connection
_LONGEST_ACT: Final = 120.0  # seconds that a request waits for the server itself


class SignatureQuestion(Struct, frozen=True, kw_only=True):
    """The bytes that a client is asked to sign, with everything that they name by digest."""

    number: int  # of the question within its act, from 1
    key: PublicKey
    message: bytes
    contents: tuple[Content, ...]


class ParkedAct:
    """One act of a client that keeps the key of its run itself."""

    def __init__(self, token: TokenId, request: bytes, new_key: PublicKey | None, patience: float) -> None:
        self.id = f"act_{secrets.token_hex(16)}"
        self.token = token
        self.request = request  # so that the same request is recognised
        self.new_key = new_key
        self._patience = patience
        self._changed = threading.Condition()
        self._question: SignatureQuestion | None = None
        self._asked = 0
        self._signature: bytes | None = None
        self._refused = False
        self._answer: GivenAnswer | None = None
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Return whether it is done or has failed."""
        return self._answer is not None or self._error is not None

    @property
    def has_failed(self) -> bool:
        """Return whether it has failed, so that it may be tried again."""
        return self._error is not None

    def do(self, act: Callable[[], GivenAnswer]) -> None:
        """Do the act; its client signs for its own runs."""
        try:
            with signed_elsewhere(self):
                answer = act()
        except BaseException as error:  # noqa: BLE001 - raised again where the client waits for it
            with self._changed:
                self._error, self._question = error, None
                self._changed.notify_all()
            return
        with self._changed:
            self._answer, self._question = answer, None
            self._changed.notify_all()

    def obtain(self, key: PublicKey, message: bytes, contents: tuple[Content, ...]) -> bytes:
        """Ask the client for a signature, and return it. Raises `SignatureMissingError`; nothing is written then."""
        with self._changed:
            self._asked += 1
            self._signature, self._refused = None, False
            self._question = SignatureQuestion(number=self._asked, key=key, message=message, contents=contents)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waits, self._patience)
            self._question = None
        return self._given(key)

    def _given(self, key: PublicKey) -> bytes:
        if self._signature is not None:
            return self._signature
        why = "it refused" if self._refused else f"within {self._patience:g} seconds"
        raise SignatureMissingError(key, why)

    def give(self, number: int, signature: bytes | None) -> None:
        """Take the answer to a question: a signature, or None for a refusal. One that was answered is passed over.

        Raises `SignatureWrongError` if it is not one of exactly these bytes by that key; the act goes on waiting.
        """
        with self._changed:
            asked = self._question
            if asked is None or asked.number != number or self._signature is not None:
                return
            if signature is None:
                self._refused = True
            elif is_signed(bytes.fromhex(asked.key), asked.message, signature):
                self._signature = signature
            else:
                raise SignatureWrongError(asked.key)
            self._changed.notify_all()

    def next_step(self) -> GivenAnswer:
        """Return the answer to the client: the next thing to sign, or that of the act. Raises the errors of the act."""
        with self._changed:
            self._changed.wait_for(lambda: self._waits or self.is_over, _LONGEST_ACT)
            if self._error is not None:
                raise self._error
            if self._answer is not None:
                return self._answer
            if self._question is None:
                raise TooManyRequestsError(1)
            return GivenAnswer(_WAITS, json.dumps({"act": self.id, **_told(self._question)}).encode())

    @property
    def _waits(self) -> bool:
        return self._question is not None and self._signature is None and not self._refused


def _told(asked: SignatureQuestion) -> dict[str, object]:
    return {
        "number": asked.number,
        "key": asked.key,
        "message": b64encode(asked.message).decode("ascii"),
        "contents": [
            {
                "name": one.name,
                "id": one.ref.id,
                "media_type": one.ref.media_type,
                "salt": b64encode(one.salt).decode("ascii"),
                "body": b64encode(one.body).decode("ascii"),
            }
            for one in asked.contents
        ],
    }


class ParkedActs:
    """Keeps the acts that wait for signatures. Safe to use from many threads."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._acts: OrderedDict[str, ParkedAct] = OrderedDict()
        self._by_key: dict[tuple[TokenId, str], ParkedAct] = {}

    def begin(
        self, token: TokenId, key: str, request: bytes, new_key: PublicKey | None, act: Callable[[], GivenAnswer]
    ) -> ParkedAct:
        """Begin an act, or return the one that the same request began before.

        One that failed is begun anew: a refusal may be lifted. Raises `RepeatedKeyError`, and `TooManyRequestsError`.
        """
        with self._lock:
            known = self._by_key.get((token, key))
            if known is not None and known.request != request:
                raise RepeatedKeyError(key)
            if known is not None and not known.has_failed:
                return known
            self._require_room(token)
            parked = ParkedAct(token, request, new_key, self._patience)
            self._acts[parked.id] = self._by_key[token, key] = parked
        # In the context of the request: it says which trace the caller is in.
        inside = copy_context()
        threading.Thread(target=inside.run, args=(parked.do, act), name="batonpass-act", daemon=True).start()
        return parked

    def get(self, token: TokenId, act: str) -> ParkedAct:
        """Return an act of a token. Raises `OutOfReachError` for one that is not there any more, or somebody else's."""
        with self._lock:
            known = self._acts.get(act)
        if known is None or known.token != token:
            raise OutOfReachError(act[:60])
        return known

    def _require_room(self, token: TokenId) -> None:
        waiting = [one for one in self._acts.values() if not one.is_over]
        if len(waiting) >= _MOST or sum(one.token == token for one in waiting) >= _MOST_OF_ONE:
            raise TooManyRequestsError(1)
        over = [one for one in self._acts.values() if one.is_over]
        for one in over[: max(0, len(over) - _MOST_OVER)]:
            del self._acts[one.id]
        if len(self._by_key) > len(self._acts):
            self._by_key = {name: one for name, one in self._by_key.items() if one.id in self._acts}
