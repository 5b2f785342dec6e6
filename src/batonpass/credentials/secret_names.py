"""Names beside which a secret stands: of fields, variables, options and headers."""

import re
from functools import lru_cache
from typing import Final

GONE: Final = "[redacted]"  # what stands in the place of a secret

_ENDINGS: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "clientsecret",
    "authorization",
    "cookie",
    "credential",
    "credentials",
)
# Short ones are words of their own, or the end of others: `bypass`, and PWD, which is a directory.
_SHORT: Final = re.compile(r"(?:^|[a-z0-9][_.-])(?:pass|pw)$|[a-z0-9]_?pwd$|(?:^|[_-])(?:store|key)pass$")
_PLACES: Final = frozenset({"oldpwd", "cwd"})
# An option that takes no value, or none that is secret: `--no-password` says that there is none.
_SAYS: Final = re.compile(r"(?:no|ask|prompt|show|hide|use|with|without|skip|reset|change|require)[_-]")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether what stands under a name is a secret."""
    lower = name.lower()
    return re.sub(r"[^a-z0-9]", "", lower).endswith(_ENDINGS) or (
        _SHORT.search(lower) is not None and lower not in _PLACES
    )


def is_secret_option(option: str) -> bool:
    """Return whether an option of a program, such as `--api-key`, is given a secret."""
    name = option.lstrip("-").lower()
    # `--credentials FILE`: for a program these are a file, more often than not.
    return is_secret_name(name) and _SAYS.match(name) is None and not name.endswith(("credential", "credentials"))
