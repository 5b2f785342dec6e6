"""The extra that native agents need: checked where one is about to run, with one sentence that says what to do."""

from importlib.util import find_spec

from batonpass.errors import MissingExtraError


def require_extra(package: str = "pydantic_ai") -> None:
    """Refuse to go on without a package that only the extra brings. Raises `MissingExtraError`."""
    if find_spec(package) is None:
        raise MissingExtraError("native agents", "agents")
