"""Receipts in the words of other systems: events, spans, metrics and provenance, and without content unless asked.

`with traced(traceparent):` records the runs and handoffs within as a part of a caller's trace.
"""

from batonpass.ledger.trace_scope import traced

__all__ = ["traced"]
