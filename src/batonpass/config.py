"""Settings: which ledger, where its keys are, and which policy. They are read once, where a program starts."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.errors import ForeignLedgerError
from batonpass.policy.file_place import find_file
from batonpass.store.factory import MEMORY, SQLITE, home_by_default
from batonpass.store.home import HOME_NAME

LEDGER: Final = "BATONPASS_LEDGER"
HOME: Final = "BATONPASS_HOME"
POLICY: Final = "BATONPASS_POLICY"
HANDOFF: Final = "BATONPASS_HANDOFF"
TOKEN: Final = "BATONPASS_TOKEN"  # noqa: S105 - the name of a variable
THREADS: Final = "BATONPASS_THREADS"
CONTROL_PLANES: Final = ("https://", "http://")  # a ledger that is elsewhere, behind `batonpass serve`
_MEMORY_OF_SQLITE: Final = ":memory:"  # people know it from there, and nobody means a file of that name
_LEFT_ALONE: Final = "off"  # of BATONPASS_THREADS
FILE_NAME: Final = "ledger.db"


class Settings(Struct, frozen=True, kw_only=True):
    """Which ledger to use, where the keys of this relay are, and which policy holds."""

    ledger: str
    home: Path | None
    policy: Path | None = None  # None: the nearest file around the home
    is_named: bool = False  # whether somebody named the ledger, instead of where they are
    threads_inherit: bool = True  # whether threads work for the run that is current where they are started


def find_settings(
    ledger: str | None = None,
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings: as given, else from the environment, else `.batonpass` here or in the nearest parent."""
    environment = os.environ if environment is None else environment
    directory = directory or Path.cwd()
    nearest = _nearest_home(directory)
    named = ledger or environment.get(LEDGER)
    url = named or f"{SQLITE}{nearest / FILE_NAME}"
    if url == _MEMORY_OF_SQLITE:
        url = MEMORY
    if "://" not in url and url != MEMORY:
        # People type a bare path. It can only mean a file.
        url = f"{SQLITE}{directory / _expanded(url)}"
    policy = environment.get(POLICY)
    return Settings(
        ledger=url,
        home=_home(url, nearest, environment),
        policy=None if not policy else directory / _expanded(policy),
        is_named=bool(named),
        threads_inherit=environment.get(THREADS) != _LEFT_ALONE,
    )


def require_own_ledger(settings: Settings, *, environment: Mapping[str, str] | None = None) -> None:
    """Refuse a ledger that is committed in a repository, unless somebody named it. Raises `ForeignLedgerError`.

    Its receipts verify against keys that came with it, so the author of the commits decides everything that it says.
    """
    if settings.is_named or not settings.ledger.startswith(SQLITE):
        return
    path = Path(settings.ledger.removeprefix(SQLITE)).resolve()
    # Git is loaded only where it is asked: whoever names a ledger, or works outside of repositories, needs none of it.
    from batonpass.attribution.changes.sides import find_repository  # noqa: PLC0415

    root = find_repository(path.parent) if path.exists() else None
    if root is None:
        return
    from batonpass.attribution.git.file_git import Repository  # noqa: PLC0415
    from batonpass.attribution.git.git_process import GitSilentError  # noqa: PLC0415

    try:
        if not Repository(root, environment or os.environ).tracks(path.relative_to(root).as_posix()):
            return
        why = "is committed in the repository and speaks for whoever made the commits"
    except GitSilentError as error:  # a repository that git does not read may hold anything
        why = f"may be committed in the repository, which git does not read ({str(error).strip()})"
    raise ForeignLedgerError(f"{path} {why}; if you trust it, name it with --ledger or {LEDGER}")


def find_policy_file(
    given: Path | None = None,
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Path | None:
    """Return the policy file: the given one, else that of the environment, else the nearest. None if there is none."""
    environment = os.environ if environment is None else environment
    directory = directory or Path.cwd()
    if given is not None or environment.get(POLICY):
        return directory / (given or _expanded(environment[POLICY]))
    return find_file(directory)


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)  # `~` of a user that does not exist: opening the path reports it


def _nearest_home(directory: Path) -> Path:
    for place in (directory, *directory.parents):
        if (place / HOME_NAME).is_dir():
            return place / HOME_NAME
    return directory / HOME_NAME


def _home(url: str, nearest: Path, environment: Mapping[str, str]) -> Path | None:
    if given := environment.get(HOME):
        return Path(given).expanduser().absolute()
    return home_by_default(url) if url == MEMORY or url.startswith(SQLITE) else nearest
