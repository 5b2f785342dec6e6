"""One act at a control plane: requested there, signed here, and repeated safely after a lost connection.

The same key goes with every repetition. A control plane that is still there knows the act by it. One that was started
anew is told which receipt was signed last: if that is in the ledger, the act was done, and is answered from there.
"""

import secrets
import threading
import time
from base64 import b64encode
from typing import Any, Final

from msgspec import Struct, field

from batonpass.client.asked_act import AskedAct, SignatureAsked, opened_question
from batonpass.client.connection import Connection, RemoteReply
from batonpass.errors import (
    OutOfReachError,
    ServerUnreachableError,
    SignatureMissingError,
    SigningRefusedError,
)
from batonpass.model.base.ids import PublicKey, ReceiptId, RunId, TokenId
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.key import RunKeys, Signer
from batonpass.signing.run_proof import make_proof

_WAITS: Final = 202
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0


class _Sent(Struct):
    """How far an act has come."""

    signed: ReceiptId | None = None  # the receipt that was signed last
    places: list[tuple[RunId, int]] = field(default_factory=list)  # where the signed receipts stand


class PlaneExchange:
    """Does acts at a control plane, and signs for the runs whose keys are here. Safe to use from many threads."""

    def __init__(self, connection: Connection, keys: RunKeys) -> None:
        self.connection = connection
        self.keys = keys
        self._lock = threading.Lock()
        self._seqs: dict[RunId, int] = {}

    def read(self, path: str, *, run: RunId | None = None) -> RemoteReply:
        """Return the answer to a GET of a path, in the name of a run or in one's own."""
        return self.connection.send("GET", path, headers=self._proof(run))

    def read_json(self, path: str, *, run: RunId | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON at a path."""
        return self.read(path, run=run).json(self.connection.url)

    def tell(self, path: str, said: object) -> Any:  # noqa: ANN401 - JSON
        """Do an act that no run signs, such as one of a person. Return the answer."""
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        return self.connection.send("POST", path, said, headers).json(self.connection.url)

    def act(self, path: str, said: object, act: AskedAct, *, signer: Signer | None = None) -> Any:  # noqa: ANN401 - JSON
        """Do an act, sign its receipts, and return the answer. Raises the error that the control plane raised.

        `signer` is the key of a run that it begins. Raises `SigningRefusedError` if something else is to be signed than
        was asked for, and `ServerUnreachableError`.
        """
        headers = {
            **self._proof(act.run),
            "Idempotency-Key": secrets.token_hex(16),
            "Batonpass-Signer": "-" if signer is None else signer.public_key,
        }
        until = time.monotonic() + self.connection.patience
        sent, pause = _Sent(), _FIRST_PAUSE
        while True:
            if sent.signed is not None:
                headers["Batonpass-Signed"] = sent.signed
            try:
                reply = self._finished(self.connection.send("POST", path, said, headers), act, signer, sent)
            except (ServerUnreachableError, SignatureMissingError):
                # The act may have been done or not. It is asked for again under the same key.
                if time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            self._settle(sent)
            return reply.json(self.connection.url)

    def _finished(self, reply: RemoteReply, act: AskedAct, signer: Signer | None, sent: _Sent) -> RemoteReply:
        """Sign the requested receipts, step by step, until the act is done."""
        while reply.status == _WAITS:
            asked = opened_question(reply.json(self.connection.url))
            path = f"/v1/acts/{asked.act}"
            try:
                signature = self._signature(asked, act, signer, sent)
            except SigningRefusedError:
                self._refuse(path, asked)
                raise
            answer = {"number": asked.number, "signature": b64encode(signature).decode("ascii")}
            try:
                reply = self.connection.send("POST", path, answer)
            except OutOfReachError as error:
                if getattr(error, "given", None) != asked.act:
                    raise
                why = "it does not know the act any more"
                raise ServerUnreachableError(self.connection.url, why) from None
        return reply

    def _signature(self, asked: SignatureAsked, act: AskedAct, signer: Signer | None, sent: _Sent) -> bytes:
        held, holder = self._held(act.run)
        receipt = act.require_asked(asked, held)
        chosen = signer if signer is not None and asked.key == signer.public_key else holder
        if chosen is None:
            raise SigningRefusedError("a key that is not here")
        if receipt is None:
            return chosen.sign(asked.message)
        run = RunId(receipt.stream)
        with self._lock:
            # A run says one thing after the other: a second receipt in the same place would fork the record.
            if receipt.seq <= self._seqs.get(run, 0):
                raise SigningRefusedError(f"{receipt.kind} in a place where something stands already")
        if signer is not None and chosen is signer:
            self.keys.keep(run, receipt.epoch, signer)  # before it is signed: a run whose key is lost is lost
        signature = chosen.sign(asked.message)
        sent.signed = receipt.id
        if receipt.mode is Mode.ENFORCED:  # an observed run goes on even if its receipt could not be written
            sent.places.append((run, receipt.seq))
        return signature

    def _settle(self, sent: _Sent) -> None:
        """Remember how far runs have come. A receipt that was prepared and never written may be requested again."""
        with self._lock:
            for run, seq in sent.places:
                self._seqs[run] = max(seq, self._seqs.get(run, 0))

    def _held(self, run: RunId | None) -> tuple[PublicKey | None, Signer | None]:
        if run is None:
            return None, None
        signer, _ = self.keys.get(run)
        return signer.public_key, signer

    def _refuse(self, path: str, asked: SignatureAsked) -> None:
        """Let the control plane know, so that it does not wait. If it is gone, the act ends by itself."""
        try:
            self.connection.send_once("POST", path, {"number": asked.number, "signature": None})
        except ServerUnreachableError:
            return

    def _proof(self, run: RunId | None) -> dict[str, str]:
        if run is None:
            return {}
        signer, _ = self.keys.get(run)
        return {"Batonpass-Proof": make_proof(signer, run, TokenId(self.connection.token_id))}
