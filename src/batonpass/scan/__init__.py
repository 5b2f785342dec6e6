"""Looks for injected instructions in text. The result is a signal for the record, never a security boundary."""

from batonpass.scan.pattern_scanner import PatternScanner
from batonpass.scan.port import ScanMatch, Scanner

__all__ = ["PatternScanner", "ScanMatch", "Scanner"]
