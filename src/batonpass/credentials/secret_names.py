"""Decides which names of fields, variables, options and headers mean a secret."""

import re
from functools import lru_cache
from typing import Final

GONE: Final = "[redacted]"  # written in place of a secret

_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "secret", "token", "authorization", "cookie", "credential", "credentials"),
    *("apikey", "accesskey", "privatekey", "signingkey"),
)
# Short endings need a boundary: `bypass` is not a password, and PWD is a directory.
_SHORT: Final = re.compile(r"(?:^|[a-z0-9][_.-])(?:pass|pw)$|[a-z0-9]_?pwd$|(?:^|[_-])(?:store|key)pass$")
_PLACES: Final = frozenset({"oldpwd", "cwd"})
# Prefixes of options that take no secret, such as `--no-password`.
_SAYS: Final = re.compile(r"(?:no|ask|prompt|show|hide|use|with|without|skip|reset|change|require)[_-]")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether the value under a name is a secret."""
    lower = name.lower()
    return re.sub(r"[^a-z0-9]", "", lower).endswith(_ENDINGS) or (
        _SHORT.search(lower) is not None and lower not in _PLACES
    )


def is_secret_option(option: str) -> bool:
    """Return whether an option, such as `--api-key`, takes a secret."""
    name = option.lstrip("-").lower()
    # `--credentials` usually takes a file name.
    return is_secret_name(name) and _SAYS.match(name) is None and not name.endswith(("credential", "credentials"))
