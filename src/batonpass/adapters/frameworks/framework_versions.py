"""Which releases of a framework an adapter was tried with."""

import importlib.metadata
import importlib.util
import re
import warnings
from typing import Final

from msgspec import Struct

from batonpass.errors import MissingExtraError

_NUMBER: Final = re.compile(r"\d+")


class FrameworkVersions(Struct, frozen=True, kw_only=True):
    """The releases of a framework that an adapter was tried with: from the oldest, below the first untried one."""

    package: str  # as it is installed
    module: str  # as it is imported
    extra: str
    oldest: tuple[int, ...]
    below: tuple[int, ...]

    def require(self) -> None:
        """Require the framework. Warns about a release that was not tried. Raises `MissingExtraError`."""
        if not self._is_installed():
            raise MissingExtraError(f"recorded agents of {self.package}", self.extra)
        found = importlib.metadata.version(self.package)
        if not self.oldest <= tuple(map(int, _NUMBER.findall(found)[:3])) < self.below:
            oldest, below = (".".join(map(str, bound)) for bound in (self.oldest, self.below))
            warnings.warn(
                f"{self.package} {found} was not tried: {oldest} to below {below} were. It is recorded as far as that "
                "goes",
                stacklevel=3,
            )

    def _is_installed(self) -> bool:
        try:
            return importlib.util.find_spec(self.module) is not None
        except ModuleNotFoundError:  # not even the package around it
            return False
