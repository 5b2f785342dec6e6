"""attenu-guard: a child's authority is met with its parent's in the process; a chain of tokens is verified offline."""

from importlib.metadata import version

from attenu_guard import Authority, Guard, Prefix
from attenu_guard.wire import Ed25519Signer, load, serialize_chain

from bench.measure import Act
from bench.peers.serving import serve, settings

_MAY = {"scopes": {"fs.write"}, "ceilings": [Prefix("path", "/data/src/")], "ttl": 80_000}


def main() -> None:
    """Serve one act: to narrow, or to verify a chain of tokens."""
    asked = settings()
    guard = Guard.issue("lead", Authority(**_MAY), task="invoice", chain_id="bench")
    for hop in range(asked["hops"] - 1):
        guard = guard.delegate(f"worker{hop}", Authority(**_MAY), task="invoice")
    signer = Ed25519Signer.generate()
    tokens = serialize_chain(guard, signer)
    held, wanted = guard.authority, Authority(**_MAY)

    def narrows() -> Act:
        # Not `delegate`, which keeps every child in a tree that only grows.
        return lambda: held.meet(wanted)

    def verifies() -> Act:
        return lambda: load(tokens, signer, now=1)

    facts = {"version": version("attenu-guard"), "characters of a chain": sum(map(len, tokens))}
    serve({"narrow": narrows, "verify": verifies}[asked["act"]], {"facts": lambda: facts})


if __name__ == "__main__":
    main()
