"""The built-in scanner: all rules in one pass of RE2, over every form of a text."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from batonpass.scan.injection_rules import RULES, ScanRule
from batonpass.scan.port import ScanMatch
from batonpass.scan.text_forms import PLAIN, count_unseen, find_forms

UNSEEN: Final = "hidden.characters"
_UNSEEN_SCORE: Final = 500
_LONGEST_PATTERN_MEMORY: Final = 64 << 20


class PatternScanner:
    """Scans in linear time. Thread-safe; rules are compiled on first use."""

    def __init__(self, rules: Sequence[ScanRule] = RULES) -> None:
        self._rules = tuple(rules)
        self._lock = threading.Lock()
        self._compiled: tuple[Any, tuple[Any, ...]] | None = None

    def scan(self, text: str) -> tuple[ScanMatch, ...]:
        """Return the findings, highest score first; each rule is reported once, for the first form that matches."""
        found: dict[str, ScanMatch] = {}
        if unseen := count_unseen(text):
            found[UNSEEN] = ScanMatch(rule=UNSEEN, count=unseen, score=_UNSEEN_SCORE, form=PLAIN, start=0)
        for form, reading in find_forms(text):
            for finding in self._match(form, reading):
                found.setdefault(finding.rule, finding)
        return tuple(sorted(found.values(), key=lambda one: (-one.score, one.rule)))

    def _match(self, form: str, text: str) -> Iterator[ScanMatch]:
        rules, patterns = self._ready()
        # The set tells which rules match, but not where, so only those are run again.
        for number in rules.Match(text) or ():
            rule = self._rules[number]
            matches = [match.start() for match in patterns[number].finditer(text)]
            if matches:
                yield ScanMatch(rule=rule.id, count=len(matches), score=rule.score, form=form, start=matches[0])

    def _ready(self) -> tuple[Any, tuple[Any, ...]]:
        with self._lock:
            if self._compiled is None:
                import re2  # noqa: PLC0415 - a slow import that most programs never need

                options = re2.Options()
                options.max_mem = _LONGEST_PATTERN_MEMORY
                options.dot_nl = True
                rules = re2.Set.SearchSet(options)
                for rule in self._rules:
                    rules.Add(rule.pattern)
                rules.Compile()
                self._compiled = rules, tuple(re2.compile(rule.pattern, options) for rule in self._rules)
            return self._compiled
