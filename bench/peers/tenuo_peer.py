"""tenuo: a warrant is attenuated by its holder, hop by hop; a call is checked against the whole stack and a proof."""

import time
from importlib.metadata import version

from tenuo import Authorizer, SigningKey, Subpath, Warrant, decode_warrant_stack_base64, encode_warrant_stack

from bench.measure import Act
from bench.peers.serving import serve, settings

_ARGUMENTS = {"path": "/data/src/invoice.py"}
_MAY = {"write_file": {"path": Subpath("/data/src")}}


def main() -> None:
    """Serve one act: to narrow, or to verify a call from its text."""
    asked = settings()
    keys = [SigningKey.generate() for _ in range(asked["hops"] + 1)]
    warrant = Warrant.issue(keys[0], capabilities=_MAY, ttl_seconds=86_000, holder=keys[0].public_key)
    stack = [warrant]
    for hop in range(asked["hops"] - 1):
        warrant = warrant.attenuate(_MAY, keys[hop], ttl_seconds=80_000 - hop, holder=keys[hop + 1].public_key)
        stack.append(warrant)
    authorizer = Authorizer(trusted_roots=[keys[0].public_key])
    text = encode_warrant_stack(stack)
    holder = keys[asked["hops"] - 1]

    def narrows() -> Act:
        return lambda: stack[0].attenuate(_MAY, keys[0], ttl_seconds=80_000, holder=keys[1].public_key)

    def verifies() -> Act:
        proven = [0.0, b""]

        def act() -> None:
            # A proof is good for a short while; making a new one is the client's work and hardly ever falls in here.
            if time.monotonic() - proven[0] > 10:
                proven[:] = time.monotonic(), bytes(warrant.sign(holder, "write_file", _ARGUMENTS, int(time.time())))
            authorizer.check_chain(decode_warrant_stack_base64(text), "write_file", _ARGUMENTS, signature=proven[1])

        return act

    facts = {"version": version("tenuo"), "characters of a stack": len(text)}
    serve({"narrow": narrows, "verify": verifies}[asked["act"]], {"facts": lambda: facts})


if __name__ == "__main__":
    main()
