"""How much is measured: everything, or as much as fits into a coffee break."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The sizes of one run."""

    turns: int  # of each contender, one after the other
    acts: int  # single acts in one turn
    race_turns: int
    race_seconds: float  # of one turn with many threads
    verified: int  # receipts in the ledger that is verified
    verifications: int
    grown: tuple[int, ...]  # receipts at which the cost of an append and of a handoff is measured
    handed: int  # handoffs with which that ledger is filled; tool calls are the rest
    hops: int  # in the chain along which the bytes of a handoff are measured
    starts: int
    pasts: int  # repositories whose past is known, in which lines are attributed
    noted: int  # commits of a repository with notes

    @classmethod
    def full(cls) -> Self:
        """Return what `make bench` measures."""
        return cls(
            turns=80,
            acts=25,
            race_turns=9,
            race_seconds=0.7,
            verified=40_000,
            verifications=5,
            grown=(1_000, 100_000, 1_000_000),
            handed=300_000,
            hops=200,
            starts=15,
            pasts=20,
            noted=50_000,
        )

    @classmethod
    def short(cls) -> Self:
        """Return what is enough to see that something got much slower."""
        return cls(
            turns=16,
            acts=25,
            race_turns=3,
            race_seconds=0.3,
            verified=20_000,
            verifications=2,
            grown=(1_000, 100_000),
            handed=20_000,
            hops=50,
            starts=15,
            pasts=3,
            noted=5_000,
        )
