"""Identifiers: UUIDv7 in TypeID spelling, digests, and the names of parties.

An id is a readable prefix, an underscore and 26 characters of Crockford base32: `run_01jd2m…`. UUIDv7 begins with
the time, so new rows land at the right edge of every index; people quote the *last* characters, which are random.
"""

import os
import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, NewType, TypeVar

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import Form, require_utc

RunId = NewType("RunId", str)
HandoffId = NewType("HandoffId", str)
RelayId = NewType("RelayId", str)
ReceiptId = NewType("ReceiptId", str)
ContentId = NewType("ContentId", str)
CallId = NewType("CallId", str)
LedgerId = NewType("LedgerId", str)
SessionId = NewType("SessionId", str)
WebhookId = NewType("WebhookId", str)
TokenId = NewType("TokenId", str)  # of a token that lets somebody in; the secret is beside it
StreamId = NewType("StreamId", str)  # the id of a run, a handoff or a relay
AgentId = NewType("AgentId", str)
PrincipalId = NewType("PrincipalId", str)
Digest = NewType("Digest", str)  # sha256, lower-case hexadecimal
KeyId = NewType("KeyId", str)  # sha256 of the raw public key, lower-case hexadecimal
PublicKey = NewType("PublicKey", str)  # 32 raw bytes of an Ed25519 public key, lower-case hexadecimal

AnyId = TypeVar("AnyId", bound=str)

RUN: Final = "run"
HANDOFF: Final = "handoff"
RELAY: Final = "relay"
RECEIPT: Final = "receipt"
CONTENT: Final = "content"
CALL: Final = "call"
LEDGER: Final = "ledger"
SESSION: Final = "session"
TOKEN: Final = "token"  # noqa: S105 - a kind of id
WEBHOOK: Final = "webhook"

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_VALUE_OF: Final = {character: value for value, character in enumerate(_ALPHABET)}
_BODY: Final = "[0-7][0-9a-hjkmnp-tv-z]{25}"
_IDS: Final = {
    prefix: Form(f"{prefix}_{_BODY}", f"a {prefix} id", once=prefix in {RECEIPT, CONTENT})
    for prefix in (RUN, HANDOFF, RELAY, RECEIPT, CONTENT, CALL, LEDGER, SESSION, TOKEN, WEBHOOK)
}
_STREAM: Final = Form(f"(?:{RUN}|{HANDOFF}|{RELAY})_{_BODY}", "a stream: the id of a run, a handoff or a relay")
_AGENT: Final = Form(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}", "an agent id: letters, digits and ._:/@+- , at most 128")
_NO_AGENT: Final = re.compile(r"[^A-Za-z0-9._:/@+-]")
_LONGEST_AGENT: Final = 128
_PRINCIPAL: Final = Form(
    r"[a-z][a-z0-9-]{0,31}:[A-Za-z0-9][A-Za-z0-9._@+/-]{0,127}", "a principal such as user:ana or service:nightly"
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CHARACTERS: Final = bytes(ord(_ALPHABET[byte & 31]) for byte in range(256))
_DRAWN_AT_ONCE: Final = 64
_RANDOM: Final = 13  # characters; an id takes two bits of the first, and the other twelve whole
# Random characters are drawn ahead. A system call for each id takes longer than spelling the id, and it releases the
# interpreter lock.
_DRAWN: Final[list[str]] = []
# The last 1,024 milliseconds in which an id was made, and their spelling: many ids are made in a second.
_MOMENT: Final[list[tuple[int, str]]] = [(-1, "")]
_MILLISECOND: Final = timedelta(milliseconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_VERSION_7: Final = 7 << 6  # the version, at its place in the ten bits after the time
_VARIANT: Final = 0b10 << 2  # the variant, at its place in the next ten bits


def _spell(prefix: str, number: int) -> str:
    # No loop: every receipt, call, content and run gets a new id, and a loop takes twice as long.
    return (
        f"{prefix}_{_PAIRS[number >> 120 & 1023]}{_PAIRS[number >> 110 & 1023]}{_PAIRS[number >> 100 & 1023]}"
        f"{_PAIRS[number >> 90 & 1023]}{_PAIRS[number >> 80 & 1023]}{_PAIRS[number >> 70 & 1023]}"
        f"{_PAIRS[number >> 60 & 1023]}{_PAIRS[number >> 50 & 1023]}{_PAIRS[number >> 40 & 1023]}"
        f"{_PAIRS[number >> 30 & 1023]}{_PAIRS[number >> 20 & 1023]}{_PAIRS[number >> 10 & 1023]}"
        f"{_PAIRS[number & 1023]}"
    )


def _draw() -> str:
    """Draw random characters for many ids, and return those for the first."""
    # 256 is a multiple of 32, so each character is as likely as any other.
    drawn = os.urandom(_RANDOM * _DRAWN_AT_ONCE).translate(_CHARACTERS).decode("ascii")
    _DRAWN.extend([drawn[start : start + _RANDOM] for start in range(_RANDOM, len(drawn), _RANDOM)])
    return drawn[:_RANDOM]


# After a fork, parent and child would otherwise use the same characters and make the same ids.
os.register_at_fork(after_in_child=_DRAWN.clear)


def _spell_moment(second: int, at: datetime) -> str:
    """Return the first eight characters of an id; a second has 1,024 milliseconds here."""
    if not 0 <= second < 1 << 38:
        raise InvalidValueError("at", f"{at.isoformat()} does not fit into an identifier")
    spelled = f"{_PAIRS[second >> 30]}{_PAIRS[second >> 20 & 1023]}{_PAIRS[second >> 10 & 1023]}{_PAIRS[second & 1023]}"
    _MOMENT[0] = second, spelled
    return spelled


def new_id(prefix: str, at: datetime) -> str:
    """Return a fresh id that sorts by its time."""
    millis, micros = divmod((at - _EPOCH) // _MICROSECOND, 1000)
    known, moment = _MOMENT[0]
    if (second := millis >> 10) != known:
        moment = _spell_moment(second, at)
    try:
        drawn = _DRAWN.pop()  # atomic: no two threads get the same element
    except IndexError:
        drawn = _draw()
    # UUIDv7, part by part. The first ten characters are 48 bits of time. The next four are version, fraction, variant
    # and two random bits. The rest is random. RFC 9562, method 3: the fraction of the millisecond replaces random bits,
    # so that the ids of one process sort by time.
    fraction = micros * 4096 // 1000
    return (
        f"{prefix}_{moment}{_PAIRS[millis & 1023]}{_PAIRS[_VERSION_7 | fraction >> 6]}"
        f"{_PAIRS[(fraction & 63) << 4 | _VARIANT | _VALUE_OF[drawn[0]] & 3]}{drawn[1:]}"
    )


def new_run_id(at: datetime) -> RunId:
    """Return a fresh run id."""
    return RunId(new_id(RUN, at))


def new_handoff_id(at: datetime) -> HandoffId:
    """Return a fresh handoff id."""
    return HandoffId(new_id(HANDOFF, at))


def new_relay_id(at: datetime) -> RelayId:
    """Return a fresh relay id."""
    return RelayId(new_id(RELAY, at))


def new_content_id(at: datetime) -> ContentId:
    """Return a fresh content id."""
    return ContentId(new_id(CONTENT, at))


def new_call_id(at: datetime) -> CallId:
    """Return a fresh call id."""
    return CallId(new_id(CALL, at))


def new_ledger_id(at: datetime) -> LedgerId:
    """Return a fresh ledger id."""
    return LedgerId(new_id(LEDGER, at))


def new_token_id(at: datetime) -> TokenId:
    """Return a fresh token id."""
    return TokenId(new_id(TOKEN, at))


def new_webhook_id(at: datetime) -> WebhookId:
    """Return a fresh webhook id."""
    return WebhookId(new_id(WEBHOOK, at))


def session_named(name: str) -> SessionId:
    """Return the session id for a caller's name. A session id stays as it is; any other name is hashed to one id."""
    if _IDS[SESSION].pattern.fullmatch(name):
        return SessionId(name)
    number = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:16])
    return SessionId(_spell(SESSION, number))


def content_named(name: str) -> ContentId:
    """Return the content id for a name. A ledger takes an id once, so only one receipt can introduce this name."""
    # It sorts before every id with a time in it: stores look up a new id only if it is not above all that they have.
    number = int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:10])
    return ContentId(_spell(CONTENT, number))


def first_id(prefix: str, at: datetime) -> str:
    """Return the lowest id of that millisecond: every id of it sorts at or after this one."""
    millis = max((require_utc("at", at) - _EPOCH) // _MILLISECOND, 0)
    return _spell(prefix, millis << 80)


def time_of(identifier: str) -> datetime:
    """Return the time at which an id was made, to the millisecond."""
    number = 0
    for character in identifier.rpartition("_")[2]:
        number = number << 5 | _VALUE_OF[character]
    return _EPOCH + (number >> 80) * _MILLISECOND


def require_id(field: str, value: AnyId, prefix: str) -> AnyId:
    """Return value if it is an id with this prefix."""
    form = _IDS[prefix]
    # The set is asked here too: that saves a function call, about twenty times in each handoff.
    if type(value) is str and (form.matches(value) is not None if form.once else value in form.known):
        return value
    return form.require(field, value)


def pattern_of(*prefixes: str) -> str:
    """Return a regular expression for ids with one of these prefixes."""
    return f"(?:{'|'.join(prefixes)})_{_BODY}"


def require_stream(field: str, value: AnyId) -> AnyId:
    """Return value if it is the id of a stream: a run, a handoff or a relay."""
    return value if type(value) is str and value in _STREAM.known else _STREAM.require(field, value)


def require_agent(field: str, value: AnyId) -> AnyId:
    """Return value if it is a stable agent id."""
    return value if type(value) is str and value in _AGENT.known else _AGENT.require(field, value)


def as_agent(name: str) -> AgentId:
    """Return any name as an id of an agent or tool; invalid characters become dashes."""
    fitting = _NO_AGENT.sub("-", name)[:_LONGEST_AGENT].lstrip("._:/@+-")
    return AgentId(fitting or "unnamed")


def is_user(principal: str) -> bool:
    """Return whether a principal is a person, and not an agent, a service or another program."""
    return principal.startswith("user:")


# The author of questions that the relay asks itself: of reopened decisions and of open checks, in the words of agents.
BATONPASS: Final = PrincipalId("service:batonpass")


def quotes_models(principal: str) -> bool:
    """Return whether the words of a principal may come from a model: an agent's, or quoted in a question of ours."""
    return principal.startswith("agent:") or principal == BATONPASS


def require_principal(field: str, value: AnyId) -> AnyId:
    """Return value if it is the name of a principal, such as user:ana."""
    return value if type(value) is str and value in _PRINCIPAL.known else _PRINCIPAL.require(field, value)
