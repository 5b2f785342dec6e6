"""A process that checks signatures for another one, and is told nothing but public keys, messages and signatures.

One is started for each core whenever a large ledger is verified. So it loads little: what libsodium needs, and no value
of the model.
"""

import marshal
import sys
from typing import BinaryIO

from batonpass.signing.signature import is_signed

_LENGTH_BYTES = 4

# A message, and the signatures over it: public key, signature.
Question = tuple[bytes, tuple[tuple[bytes, bytes], ...]]


def write_frame(pipe: BinaryIO, data: bytes) -> None:
    """Write bytes so that whoever reads knows where they end."""
    pipe.write(len(data).to_bytes(_LENGTH_BYTES) + data)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> bytes:
    """Return the bytes that were written together; none if there is no more."""
    return pipe.read(int.from_bytes(pipe.read(_LENGTH_BYTES)))


def encode_questions(questions: list[Question]) -> bytes:
    """Return questions as bytes for another process of this very interpreter."""
    # Not msgspec, which would be most of what a helper loads. Both ends are the same program, and the pipe is ours.
    # From version 3 on, what occurs twice is looked for and written once, and hardly anything does.
    return marshal.dumps(questions, 2)


def main() -> None:
    """Answer batches on standard input with the index of the first bad one, or -1, until there is no more."""
    while data := read_frame(sys.stdin.buffer):
        questions: list[Question] = marshal.loads(data)  # noqa: S302 - from our parent, which started us with this pipe
        unsigned = (
            index
            for index, (message, signatures) in enumerate(questions)
            if not all(is_signed(public_key, message, signature) for public_key, signature in signatures)
        )
        write_frame(sys.stdout.buffer, b"%d" % next(unsigned, -1))
