"""Which URLs may be asked: one rule for webhooks, push notifications and cards.

A URL that somebody else chose can point at this machine, its network or a cloud's metadata. So a request goes only to
public addresses, over TLS, unless an administrator listed the place. The judged addresses are part of the answer: the
caller dials them, and never asks for the name again, which could be answered differently by then.
"""

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from batonpass.errors import EgressFailedError, EgressRefusedError
from batonpass.model.policy.listed_place import HOST_NAME, NUMBER, Address, ListedPlace

Resolver = Callable[[str, int], Iterable[str]]

_PORTS: Final = {"http": 80, "https": 443}
_FIRST_FREE_PORT: Final = 1024
_LONGEST_URL: Final = 2048
_LONGEST_NAME: Final = 253
_PRINTABLE: Final = re.compile(r"[!-~]+")

# The standard library knows most addresses that are not global; older releases lack these.
_NEVER: Final = tuple(
    ipaddress.ip_network(one)
    for one in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",  # Azure's own services, at an address that looks public
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "::/96",  # IPv4 addresses in a form that was given up
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",  # Teredo among them, which carries an IPv4 address that anybody chooses
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class EgressTarget(Struct, frozen=True, kw_only=True):
    """A URL that may be asked, with the addresses that were judged. Only these may be dialled."""

    scheme: str
    host: str  # for the Host header, SNI and the certificate
    port: int
    path: str  # with the query
    addresses: tuple[str, ...]

    @property
    def where(self) -> str:
        """Return the part of the URL that may be told: scheme, host and port."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def netloc(self) -> str:
        """Return host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def resolve_name(host: str, port: int) -> list[str]:
    """Return the addresses of a name, as the system knows them. Raises `OSError`."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class EgressRule:
    """Judges URLs. It is the only judge: code that makes a request for others asks it first."""

    def __init__(
        self, allowed: Iterable[ListedPlace] = (), *, resolve: Resolver = resolve_name, resolve_seconds: float = 5
    ) -> None:
        self._listed = tuple(allowed)
        self._resolve = resolve
        self._seconds = resolve_seconds

    def judge(self, url: str) -> EgressTarget:
        """Return where a URL leads. Raises `EgressRefusedError`, or `EgressFailedError` if nobody knows the name."""
        target = read_url(url)
        literal = _literal(target.host)
        found = [target.host] if literal is not None else self._addresses(target)
        addresses = [_read(target, one) for one in found]
        # One forbidden address spoils all: whoever answers with a mixture wants us to try them.
        for address in addresses:
            self._require_allowed(target, address)
        return EgressTarget(
            scheme=target.scheme,
            host=target.host,
            port=target.port,
            path=target.path,
            addresses=tuple(dict.fromkeys(str(address) for address in addresses)),
        )

    def _require_allowed(self, target: EgressTarget, address: Address) -> None:
        meant = carried_address(address)
        if any(place.covers(target.host, target.port, meant) for place in self._listed):
            return
        if target.scheme != "https":
            raise EgressRefusedError(target.where, "only https leaves this machine")
        if target.port < _FIRST_FREE_PORT and target.port not in _PORTS.values():
            raise EgressRefusedError(target.where, f"port {target.port} belongs to another service")
        if not is_public(address):
            raise EgressRefusedError(target.where, f"{address} is not a public address")

    def _addresses(self, target: EgressTarget) -> list[str]:
        found: list[str] = []
        problems: list[str] = []

        def look() -> None:
            try:
                found.extend(self._resolve(target.host, target.port))
            except (OSError, UnicodeError) as error:
                problems.append(str(getattr(error, "strerror", None) or error))

        # The system's resolver takes no limit. Whoever does not wait for it leaves it to end by itself.
        looking = threading.Thread(target=look, name="batonpass-egress-name", daemon=True)
        looking.start()
        looking.join(self._seconds)
        if looking.is_alive():
            raise EgressFailedError(target.where, f"the name was not resolved within {self._seconds:g} seconds")
        if not found:
            raise EgressFailedError(target.where, f"the name is not known ({''.join(problems) or 'no address'})")
        return list(found)


def read_url(url: str) -> EgressTarget:
    """Return a URL in its parts, without addresses. Raises `EgressRefusedError` if it is not written plainly."""
    if len(url) > _LONGEST_URL or _PRINTABLE.fullmatch(url) is None or "\\" in url:
        # Letters of other alphabets as well: programs disagree about which name they stand for.
        raise EgressRefusedError(
            "the URL", f"it has more than {_LONGEST_URL} characters or other than printable ASCII; write IDN as xn--"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise EgressRefusedError("the URL", "it is malformed") from None
    if parts.scheme not in _PORTS:
        raise EgressRefusedError("the URL", "it does not begin with https://")
    if parts.username is not None or parts.password is not None:
        raise EgressRefusedError("the URL", "it has a user name; send credentials in a header")
    if port == 0:
        raise EgressRefusedError("the URL", "port 0 is none")
    host = _plain_host(parts)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return EgressTarget(
        scheme=parts.scheme,
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        path=path if path.startswith("/") else f"/{path}",
        addresses=(),
    )


def _plain_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if _literal(host) is not None:
        return host
    name = host.removesuffix(".")
    if len(name) > _LONGEST_NAME or HOST_NAME.fullmatch(name) is None:
        raise EgressRefusedError("the URL", "its host is no name and no address")
    if NUMBER.fullmatch(name.rpartition(".")[2]):
        # 2130706433, 0177.0.0.1, 0x7f.1 and 127.1 are all 127.0.0.1 to some programs and names to others.
        raise EgressRefusedError("the URL", "its host is an address in an unusual spelling; write four decimal numbers")
    return name


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _read(target: EgressTarget, given: str) -> Address:
    try:
        address = ipaddress.ip_address(given)
    except ValueError:
        raise EgressRefusedError(target.where, "its name leads to no address") from None
    if getattr(address, "scope_id", None) is not None:
        raise EgressRefusedError(target.where, f"{given} belongs to one network card")
    return address


def carried_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, else the address itself."""
    if isinstance(address, ipaddress.IPv6Address):
        if (inside := address.ipv4_mapped or address.sixtofour) is not None:
            return inside
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Return whether an address is public, also after mapped and translated addresses are resolved."""
    meant = carried_address(address)
    if any(one in network for one in (address, meant) for network in _NEVER if one.version == network.version):
        return False
    if meant is not address:
        return is_public(meant)
    return address.is_global and not (
        address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )
