"""Signs of injected instructions in a text: normalise, match, score. A signal for the record, never the boundary."""

from batonpass.scan.pattern_scanner import PatternScanner
from batonpass.scan.port import Finding, Scanner

__all__ = ["Finding", "PatternScanner", "Scanner"]
