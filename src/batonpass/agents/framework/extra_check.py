"""The extra that native agents need, checked before one runs."""

from importlib.util import find_spec

from batonpass.errors import MissingExtraError


def require_extra(package: str = "pydantic_ai") -> None:
    """Require a package of the extra. Raises `MissingExtraError`."""
    if find_spec(package) is None:
        raise MissingExtraError("native agents", "agents")
