"""Distinctive words, which hardly occur in two texts by chance, however short they are.

These are addresses, hosts, accounts, long numbers, amounts, paths, pipes into a program, and quoted words. Common names
(`README.md`, `pytest`, `github.com`, 10000) do not count.

Each kind is found by a sign that is rare in prose, such as `://` or a digit, and is read from there in both directions
up to a limit. So ten million characters take seconds, whatever the author wrote. If a text lacks the sign, the kind is
not searched for at all.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from batonpass.scan.letters import letters_of


class Token(NamedTuple):
    """A distinctive word in a text in normal form; two are the same if their keys are."""

    start: int
    end: int
    key: str


_MOST: Final = 1 << 17  # per kind and text: a table of a million numbers cannot hide an address of another kind
_LEAST: Final = 6  # letters and digits
_LEAST_QUOTED: Final = 12
_LEAST_WORDS: Final = 3
_LEAST_DIGITS: Final = 5
_LEAST_CODE: Final = 12
_LEAST_AMOUNT: Final = 3
_ROUND: Final = 2  # leading digits of a round number, as in 25000
_ROOTED: Final = 2  # names in an absolute path, as in /etc/passwd

# Hosts that everybody mentions: the host alone is not distinctive, a whole address is.
_EVERYBODYS: Final = re.compile(
    r"(?:[\w-]+\.)*(?:github|gitlab|githubusercontent|google|googleapis|microsoft|apple|amazon|amazonaws|wikipedia|python|pypi|"
    r"npmjs|w3|mozilla|anthropic|openai|youtube|facebook|twitter|linkedin|stackoverflow|example|apache|gnu|gmail|docker|"
    r"kubernetes|schema|ietf|readthedocs)\.(?:com|org|net|io|dev|ai|edu|co)(?:\.[a-z]{2})?|localhost",
)
_EVERYBODYS_PATHS: Final = re.compile(
    r"/(?:usr|bin|sbin|dev|proc|opt)/(?:local/)?(?:bin|sbin|lib|env|bash|sh|zsh|null|zero|stdin|stdout|stderr|tty|u?random|"
    r"share|self)(?:/(?:env|bash|sh|python3?|perl|node))?|/etc/hosts|/tmp/(?:tmp|test|foo|bar)|~/\.(?:bashrc|config|cache|local)",
)
_COUNTED_UP: Final = ("01234567890", "9876543210")
_DAY: Final = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])")
_CURRENCY: Final = {
    **dict.fromkeys(("$", "usd", "dollar", "dollars"), "usd"),
    **dict.fromkeys(("€", "eur", "euro", "euros"), "eur"),
    **dict.fromkeys(("£", "gbp", "pounds"), "gbp"),
    **dict.fromkeys(("¥", "jpy"), "jpy"),
    **{name: name for name in ("chf", "btc", "eth", "usdt")},
}
_UNIT: Final = "|".join(re.escape(unit) for unit in sorted(_CURRENCY, key=len, reverse=True))
_NAMES: Final = "|".join(sorted((unit for unit in _CURRENCY if unit.isalpha()), key=len, reverse=True))
_TLD: Final = (
    "com|org|net|info|biz|xyz|top|site|online|shop|club|live|icu|onion|example|test|invalid|gov|edu|mil|int|dev|app|io|ai|"
    "eu|uk|de|fr|it|es|nl|ch|at|pl|ru|cn|jp|kr|in|br|au|ca|us|se|no|fi|dk|cz|tk|ml|ga|cf|gq|cc|ws|su"
)
_TAIL: Final = ".,;:!?)]}>*'\"_"

_URL: Final = re.compile(r"://[^\s<>\"'`|\\^{}]{3,2048}")
_SCHEME: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+")
_LONGEST_SCHEME: Final = 12
_BARE: Final = re.compile(rf"\.(?:{_TLD})(?![\w-])(?:/[^\s<>\"'`|\\^{{}}]{{0,1024}})?")
_HOST: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
_LONGEST_HOST: Final = 253
_MAIL: Final = re.compile(r"@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,6}")
_MAILBOX: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._%+-")
_LONGEST_MAILBOX: Final = 64
_MACHINE: Final = re.compile(r"[0-9](?<![0-9.][0-9])[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_ACCOUNT: Final = re.compile(
    r"\b[a-z]{2}[0-9]{2}[ -]?[a-z0-9]{4}(?:[ -]?[0-9]{4}){1,6}(?:[ -]?[0-9]{1,4})?(?![a-z0-9])"
)
_DIGITS: Final = re.compile(r"[0-9]{5,128}")
_GROUPED: Final = re.compile(
    r"[0-9](?<![0-9,.'][0-9])"
    r"(?:[0-9]{0,2}(?:[,.' ][0-9]{3}){1,8}|[0-9]{3}(?:[ -][0-9]{4}){1,8}(?:[ -][0-9]{1,4})?)(?![0-9])",
)
_PHONE: Final = re.compile(r"\+[0-9][0-9 ()./-]{6,24}[0-9]")
_CODE: Final = re.compile(r"[0-9](?:[a-z_-]{0,64}[0-9]){4,63}[a-z_-]{0,64}")
_IN_CODE: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST_CODE: Final = 128
_NUMBER: Final = r"[0-9][0-9,.']{0,24}"
_AMOUNT: Final = re.compile(rf"(?P<number>{_NUMBER}) ?(?P<unit>{_UNIT})(?![a-z])")
_SIGNED: Final = re.compile(rf"(?P<unit>[$€£¥]) ?(?P<number>{_NUMBER})")
_NAMED: Final = re.compile(rf"\b(?P<unit>{_NAMES}) ?(?P<number>{_NUMBER})")
_ROUND_AMOUNT: Final = re.compile(r"[0-9]5?0*")  # 500, 1500, 25000 are common
_CENTS: Final = re.compile(r"[.,][0-9]{1,2}$")
_NO_CENTS: Final = re.compile(r"[.,]00$")
_PATH: Final = re.compile(r"[/\\][\w.@+-]{1,128}(?:[/\\][\w.@+-]{1,128}){0,24}")
_PATH_BEFORE: Final = re.compile(r"(?:^|[^\w./\\:~@+-])(~|\.{1,2}|[a-z]:|[\w.@-]{1,64}|)$")
_LONGEST_BEFORE: Final = 66
_PIPED: Final = re.compile(
    r"\| {0,4}(?:sudo )?(?:(?:ba|z|da|k)?sh|python[0-9.]{0,4}|perl|ruby|node|php|nc|ncat|xargs|base64|iex|curl|"
    r"wget|ssh|mail|tee|psql|mysql)\b",
)
_LONGEST_PIPED: Final = 256
_QUOTED: Final = re.compile(r"`[^`\n]{12,240}`|\"[^\"\n]{12,240}\"|“[^”\n]{12,240}”|'(?<!\w')[^'\n]{12,240}'(?!\w)")

_DIGIT: Final = re.compile(r"[0-9]")
# A quick test for the kinds whose only sign is a digit: for each pattern a part that every match contains, without
# lookaround. One pass of RE2 is faster than any of those patterns, and most numbers in prose are too short to match.
_NUMBERS: Final = "|".join(
    (
        r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]",  # _MACHINE
        r"[a-z]{2}[0-9]{2}[ -]?[a-z0-9]{4}[ -]?[0-9]{4}",  # _ACCOUNT
        r"[0-9]{5}",  # _DIGITS
        r"[0-9][,.' ][0-9]{3}|[0-9]{3}[ -][0-9]{4}",  # _GROUPED
        r"[0-9](?:[a-z_-]*[0-9]){4}",  # _CODE
        rf"[0-9][,.']* ?(?:{_UNIT})",  # _AMOUNT
        rf"(?:{_NAMES}) ?[0-9]",  # _NAMED
    )
)


def find_tokens(plain: str) -> Iterator[Token]:
    """Yield the distinctive words of a text in normal form; some overlap."""
    readers = _BY_SIGNS if not _has_numbers(plain) else _READERS
    for signs, pattern, read in readers:
        # A plain loop is faster than a generator per kind.
        for sign in signs:
            if sign in plain:
                for found in islice(pattern.finditer(plain), _MOST):
                    yield from read(found)
                break


def _has_numbers(plain: str) -> bool:
    """Return whether a kind that is known by digits alone may be found."""
    # A lone surrogate is encoded as bytes that match nothing.
    return _DIGIT.search(plain) is not None and _numbers().search(plain.encode("utf-8", "surrogatepass")) is not None


@cache
def _numbers() -> Any:  # noqa: ANN401 - a pattern of RE2, which has no types
    import re2  # noqa: PLC0415 - a slow import that most programs never need

    return re2.compile(_NUMBERS.encode())


def _back(plain: str, at: int, allowed: frozenset[str], most: int) -> int:
    """Return the start of the word that ends at a position."""
    least = max(0, at - most)
    while at > least and plain[at - 1] in allowed:
        at -= 1
    return at


def _url(found: "re.Match[str]") -> Iterator[Token]:
    """Yield an address and its host."""
    start = _back(found.string, found.start(), _SCHEME, _LONGEST_SCHEME)
    rest = found[0][3:].rstrip(_TAIL).rstrip("/")
    return _address(start, found.start() + 3, rest)


def _bare(found: "re.Match[str]") -> Iterator[Token]:
    """Yield an address without a scheme, and its host."""
    start = _back(found.string, found.start(), _HOST, _LONGEST_HOST)
    before = found.string[start - 1 : start]
    name = found.string[start : found.start()]
    if not name.strip(".-") or before in {"/", "@"} or before.isalnum() or before == "_":
        return iter(())  # part of a longer word
    rest = found.string[start : found.end()].rstrip(_TAIL).rstrip("/")
    return _address(start, start, rest)


def _address(start: int, begins: int, rest: str) -> Iterator[Token]:
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2]
    end = begins + len(rest)
    is_common = _EVERYBODYS.fullmatch(host.partition(":")[0]) is not None
    if not is_common or len(rest) > len(authority) + 1:
        yield from _made(start, end, letters_of(rest.removeprefix("www.")))
    if host != rest and not is_common:
        at = begins + len(authority) - len(host)
        yield from _made(at, at + len(host), letters_of(host.removeprefix("www.")))


def _mail(found: "re.Match[str]") -> Iterator[Token]:
    start = _back(found.string, found.start(), _MAILBOX, _LONGEST_MAILBOX)
    if start < found.start():
        yield from _made(start, found.end(), letters_of(found.string[start : found.end()]))


def _machine(found: "re.Match[str]") -> Iterator[Token]:
    if not found[0].startswith(("127.", "0.", "255.", "1.2.3.")):
        yield Token(found.start(), found.end(), found[0])


def _number(found: "re.Match[str]") -> Iterator[Token]:
    digits = letters_of(found[0])
    if len(digits) >= _LEAST_DIGITS and not _is_common(digits):
        yield Token(found.start(), found.end(), digits)


def _is_common(digits: str) -> bool:
    """Return whether a number is common: round, one repeated digit, a sequence, or a date."""
    if len(digits.rstrip("0")) <= _ROUND or len(set(digits)) == 1 or any(digits in each for each in _COUNTED_UP):
        return True
    return _DAY.fullmatch(digits) is not None


def _code(found: "re.Match[str]") -> Iterator[Token]:
    start = _back(found.string, found.start(), _IN_CODE, _LONGEST_CODE)
    letters = letters_of(found.string[start : found.end()])
    digits = sum(map(letters.count, "0123456789"))
    if len(letters) >= _LEAST_CODE and digits >= _LEAST_DIGITS and not letters.isdigit():
        yield Token(start, found.end(), letters)


def _account(found: "re.Match[str]") -> Iterator[Token]:
    yield Token(found.start(), found.end(), letters_of(found[0]))


def _amount(found: "re.Match[str]") -> Iterator[Token]:
    number = found["number"].rstrip(".,'")
    digits = letters_of(_NO_CENTS.sub("", number))
    if len(letters_of(_CENTS.sub("", number))) >= _LEAST_AMOUNT and _ROUND_AMOUNT.fullmatch(digits) is None:
        end = max(found.end("unit"), found.start("number") + len(number))
        yield Token(found.start(), end, f"{digits}{_CURRENCY[found['unit']]}")


def _path(found: "re.Match[str]") -> Iterator[Token]:
    before = _PATH_BEFORE.search(found.string[max(0, found.start() - _LONGEST_BEFORE) : found.start()])
    if before is None:
        return  # part of an address
    text = f"{before[1]}{found[0].rstrip('.')}"
    start = found.start() - len(before[1])
    segments = [segment for segment in re.split(r"[/\\]", text) if segment not in {"", ".", "..", "~"}]
    if not segments:
        return
    is_rooted = before[1] in {"", "~"} or before[1].endswith(":")
    is_file = "." in segments[-1] or any(segment.startswith(".") for segment in segments)
    telling = len(segments) >= _ROOTED if is_rooted else len(segments) > _ROOTED and is_file
    if telling and _EVERYBODYS_PATHS.fullmatch(text) is None:
        yield from _made(start, start + len(text), letters_of(text))


def _piped(found: "re.Match[str]") -> Iterator[Token]:
    """Yield a pipe into a program together with the word before it."""
    before = found.string[max(0, found.start() - _LONGEST_PIPED) : found.start()].rstrip(" ")
    words = before.rsplit(maxsplit=1)
    if words and "|" not in words[-1] and not before.endswith("\n"):
        start = max(0, found.start() - _LONGEST_PIPED) + before.rfind(words[-1])
        yield from _made(start, found.end(), letters_of(found.string[start : found.end()]), "pipe")


def _quoted(found: "re.Match[str]") -> Iterator[Token]:
    words = found[0][1:-1]
    letters = letters_of(words)
    if len(letters) >= _LEAST_QUOTED and len(words.split()) >= _LEAST_WORDS:
        yield Token(found.start() + 1, found.end() - 1, letters)


def _made(start: int, end: int, letters: str, kind: str = "") -> Iterator[Token]:
    if len(letters) >= _LEAST:
        yield Token(start, end, f"{kind}{letters}")


_ANYTHING: Final = ("",)  # a sign that every text has

# Each kind with its signs; every match contains one of them.
_READERS: Final[tuple[tuple[tuple[str, ...], "re.Pattern[str]", Callable[["re.Match[str]"], Iterator[Token]]], ...]] = (
    (("://",), _URL, _url),
    ((".",), _BARE, _bare),
    (("@",), _MAIL, _mail),
    (_ANYTHING, _MACHINE, _machine),
    (_ANYTHING, _ACCOUNT, _account),
    (_ANYTHING, _DIGITS, _number),
    (_ANYTHING, _GROUPED, _number),
    (("+",), _PHONE, _number),
    (_ANYTHING, _CODE, _code),
    (_ANYTHING, _AMOUNT, _amount),
    (("$", "€", "£", "¥"), _SIGNED, _amount),
    (_ANYTHING, _NAMED, _amount),
    (("/", "\\"), _PATH, _path),
    (("|",), _PIPED, _piped),
    (("`", '"', "“", "'"), _QUOTED, _quoted),
)
_BY_SIGNS: Final = tuple(reader for reader in _READERS if reader[0] is not _ANYTHING)
