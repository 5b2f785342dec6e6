"""Places that an administrator allows our own requests to reach although they are not public."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.errors import InvalidValueError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

HOST_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")  # a name whose last part is one is an address to some programs


class ListedPlace(Struct, frozen=True, kw_only=True):
    """A place that an administrator allows: a name, an address or a network, maybe with a port."""

    name: str | None = None
    network: Network | None = None
    port: int | None = None

    def covers(self, host: str, port: int, address: Address | None) -> bool:
        """Return whether this is the place."""
        if self.port not in {None, port}:
            return False
        if self.network is not None:
            return address is not None and address in self.network
        return self.name == host


def read_listed(given: str) -> ListedPlace:
    """Return a place as people write it: `hooks.internal`, `10.1.0.0/16`, `127.0.0.1:9000`, `[::1]:9000`.

    Raises `InvalidValueError`.
    """
    problem = f"{given!r} is no place; write a name, an address or a network, such as hooks.internal or 127.0.0.1:9000"
    try:
        return ListedPlace(network=ipaddress.ip_network(given))
    except ValueError:
        pass
    try:
        parts = urlsplit(f"//{given}")
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise InvalidValueError("allow", problem) from None
    if parts.username is not None or parts.path or parts.query or parts.fragment or not host:
        raise InvalidValueError("allow", problem)
    try:
        return ListedPlace(network=ipaddress.ip_network(host), port=port)
    except ValueError:
        if HOST_NAME.fullmatch(host) is None or NUMBER.fullmatch(host.rpartition(".")[2]):
            raise InvalidValueError("allow", problem) from None
    return ListedPlace(name=host, port=port)
