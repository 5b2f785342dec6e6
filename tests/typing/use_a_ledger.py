"""The public names, as somebody would use them; checked by pyright, never run."""

from batonpass import BatonpassError, Evidence, Relay, Seal, VerificationError, open_store


def record_and_verify(url: str) -> Evidence | str:
    """Record a run, seal it, verify it, and answer with evidence or with what is wrong."""
    with Relay.open(url) as relay:
        lead = relay.start("Fix invoice rounding", by="user:ana")
        with lead.hand_off("editor", "Make total() round half-even") as editor:
            editor.call(len, "2 lines changed")
            editor.report("done")
        lead.close()
        seal: Seal = relay.admin.seal()
        try:
            return relay.verify(seals=[seal.note])
        except VerificationError as error:
            return f"{error.code} {error.stream} {error.seq} {error.field}"


def count(url: str) -> int:
    """Read without recording."""
    try:
        store = open_store(url, create=False)
    except BatonpassError as error:
        return len(error.code)
    with store.view() as view:
        return view.counts().receipts
