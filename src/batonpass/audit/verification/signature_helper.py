"""A helper process that checks signatures. It gets only public keys, messages and signatures.

One is started for each core whenever a large ledger is verified. So it imports little: libsodium, and nothing of the
model.
"""

import marshal
import sys
from typing import BinaryIO

from batonpass.signing.libsodium import is_signed

_LENGTH_BYTES = 4

# A message, and its signatures as pairs of public key and signature.
Question = tuple[bytes, tuple[tuple[bytes, bytes], ...]]


def write_frame(pipe: BinaryIO, data: bytes) -> None:
    """Write bytes with their length before them, so that the reader knows where they end."""
    pipe.write(len(data).to_bytes(_LENGTH_BYTES) + data)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> bytes:
    """Return the bytes of one frame; empty at the end of input."""
    return pipe.read(int.from_bytes(pipe.read(_LENGTH_BYTES)))


def encode_questions(questions: list[Question]) -> bytes:
    """Return questions as bytes for another process of the same interpreter."""
    # Not msgspec, which would be most of a helper's imports. Both ends are the same program, and the pipe is ours.
    # Version 3 and later search for repeated objects to write them once, and there are hardly any.
    return marshal.dumps(questions, 2)


def main() -> None:
    """Answer each batch on standard input with the index of its first bad message, or -1, until the input ends."""
    while data := read_frame(sys.stdin.buffer):
        questions: list[Question] = marshal.loads(data)  # noqa: S302 - from our parent, which started us with this pipe
        unsigned = (
            index
            for index, (message, signatures) in enumerate(questions)
            if not all(is_signed(public_key, message, signature) for public_key, signature in signatures)
        )
        write_frame(sys.stdout.buffer, b"%d" % next(unsigned, -1))
