"""Parses the URL of a database, and sets the session settings that we rely on."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from batonpass.errors import InvalidValueError

_SECRET: Final = frozenset({"password", "sslpassword"})

# A dead server or network is noticed within a minute, also by a connection that only waits.
_DEFAULTS: Final[Mapping[str, str]] = {
    "application_name": "batonpass",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}

# An append is one statement, so a session that is idle in a transaction belongs to a process that is frozen or lost. No
# sequential scans, and no joins that read a whole table or index: a plan made while a table was small must not become a
# scan of a large one. One plan for all values: every statement finds its rows in the same way, and planning takes
# longer than running.
_WRITING: Final[Mapping[str, str]] = {
    "default_transaction_isolation": r"read\ committed",
    "synchronous_commit": "on",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": "5s",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}

# A view blocks nobody, so it may take its time. But an old snapshot keeps the server from cleaning up, so one that is
# no longer read is ended as well.
_READING: Final[Mapping[str, str]] = {
    "default_transaction_isolation": r"repeatable\ read",
    "default_transaction_read_only": "on",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "10min",
    "jit": "off",
}


class Address(Struct, frozen=True, kw_only=True):
    """The connection strings of a database. Settings in the URL take precedence over our own."""

    shown: str  # without any password
    writing: str
    reading: str


def parse_address(url: str) -> Address:
    """Return the address that a `postgresql://` URL names.

    Raises `InvalidValueError`, which does not repeat the URL.
    """
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        # Our reading sessions only read, and the driver counts them among those that cannot write. What `read-write`
        # asks of the server, to be the primary, is asked of them by its own name.
        wants = given.get("target_session_attrs")
        reads = {**given, "target_session_attrs": "primary"} if wants == "read-write" else given
        return Address(shown=_shown(url), writing=_told(given, _WRITING), reading=_told(reads, _READING))
    except (psycopg.ProgrammingError, ValueError):
        raise InvalidValueError("ledger", "is not like postgresql://user@host:5432/database") from None


def _told(given: Mapping[str, str], settings: Mapping[str, str]) -> str:
    options = [f"-c {name}={value}" for name, value in settings.items()]
    return make_conninfo("", **{**_DEFAULTS, **given, "options": " ".join([*options, given.get("options", "")])})


def _shown(url: str) -> str:
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET]
    settings = urlencode(query, quote_via=quote, safe="/")
    return f"{parts.scheme}://{user.partition(':')[0]}{at}{hosts}{parts.path}?{settings}".removesuffix("?")
