"""A task of hundreds of runs: five regions, each with cities, each with stores; some fail, and five letters wait."""

from contextlib import suppress
from pathlib import Path

from batonpass import Relay, tool
from batonpass.errors import BatonpassError
from batonpass.handoff.live.faces import LiveRun

WORDS = "Bring the catalogue of all regions up to date, and tell the stores what changed."
REGIONS = ("north", "south", "east", "west", "centre")
CITIES = 7
STORES = 11


def fetch(store: int) -> int:
    """Return what a store sells."""
    if store % 37 == 7:
        raise ConnectionError("the register of this store does not answer")
    return store


def play_large(directory: Path) -> None:
    """Record it in a new directory."""
    (directory / "batonpass.toml").write_text("[policy]\nenforce = true\n", encoding="utf-8")
    home = directory / ".batonpass"
    with Relay.open(
        home / "ledger.db", home=home, policy=directory / "batonpass.toml", work_tree=directory, keys_in_files=True
    ) as relay:
        lead = relay.start(WORDS, by="user:ana", agent="lead")
        send = tool("send_mail", reversible=False, target="to", action="send")(lambda to: to)
        for region in REGIONS:
            with lead.hand_off("regional", f"Bring region {region} up to date") as regional:
                for city in range(CITIES):
                    _collect(regional, f"{region}-{city}", city * STORES)
                letter = regional.hand_off("mailer", f"Tell the stores of {region}")
                with suppress(BatonpassError), letter as mailer:
                    mailer.call(send, f"stores@{region}.example")
                regional.report("up to date")
        lead.hand_off("auditor", "Look at all of it again")


def _collect(regional: LiveRun, city: str, first: int) -> None:
    get = tool("fetch", reads=True)(fetch)
    with regional.hand_off("collector", f"Collect what the stores of {city} sell") as collector:
        for store in range(first, first + STORES):
            offer = collector.hand_off("fetcher", f"Fetch the list of store {store}")
            with suppress(ConnectionError, BatonpassError), offer as fetcher:
                fetcher.call(get, store)
                fetcher.report("fetched")
        with collector.hand_off("writer", f"Write the page of {city}") as writer:
            writer.report("written")
        collector.report("collected")
