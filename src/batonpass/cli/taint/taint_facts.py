"""Traces of content from outside, for programs."""

from batonpass.accounts.taint.taint_values import TaintEntry, TaintHop, Tracing, Way
from batonpass.records.json_shapes import exact


def _entry_facts(entry: TaintEntry) -> dict[str, object]:
    return {
        "source": entry.source,
        "also": entry.also,
        "name": entry.name,
        "words": None if entry.words is None else entry.words.line,
        "label": entry.label,
        "entered": entry.receipt,
        "at": exact(entry.at),
        "run": entry.run,
    }


def way_facts(way: Way) -> dict[str, object]:
    """Return the way of a text for programs: the same keys as for a map, without steps."""
    return {
        **_entry_facts(way.entry),
        "quoted": way.is_quoted,
        "quoted_at_the_end": way.is_quoted_at_the_end,
        "readable": way.readable,
        "hops": [_hop_facts(hop) for hop in way.hops],
        "since": [_hop_facts(hop) for hop in way.since],
        "runs": len({hop.run for hop in way.hops if hop.run is not None}),
        "steps": [],
    }


def _hop_facts(hop: TaintHop) -> dict[str, object]:
    return {
        "way": hop.did,
        "receipt": hop.receipt,
        "at": exact(hop.at),
        "run": hop.run,
        "name": hop.name,
        "what": hop.what,
        "id": hop.id,
        "quoted": hop.is_quoting,
        "in_quarantine": hop.in_quarantine,
        "quotes": hop.quotes,
        "erased": hop.unread,
    }


def tracing_facts(tracing: Tracing) -> dict[str, object]:
    """Return the map of a text for programs: the same keys as for a way, without hops."""
    return {
        **_entry_facts(tracing.entry),
        "quoted": any(step.quoted for step in tracing.steps),
        "quoted_at_the_end": False,
        "readable": tracing.entry.words is not None,
        "hops": [],
        "since": [],
        "runs": tracing.runs,
        "steps": [
            {
                "way": step.did,
                "receipt": step.receipt,
                "at": exact(step.at),
                "run": step.run,
                "name": step.name,
                "what": step.what,
                "id": step.id,
                "quoted": step.quoted,
            }
            for step in tracing.steps
        ],
    }
