"""`batonpass doctor`: find problems with this ledger, and say how to fix them."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import apsw
import click
from msgspec.structs import asdict

from batonpass import __version__
from batonpass.cli.doctor.check import DoctorCheck, Level
from batonpass.cli.doctor.home_checks import look_at_home, look_at_policy
from batonpass.cli.doctor.hook_checks import look_at_hooks
from batonpass.cli.doctor.ledger_checks import look_at_ledger
from batonpass.cli.doctor.server_checks import look_at_servers
from batonpass.cli.doctor.share_checks import look_at_share
from batonpass.cli.input.ledger_access import settings
from batonpass.cli.input.options import ledger_and_json
from batonpass.cli.output.exits import BROKEN, NO
from batonpass.cli.output.terminal import paint, say, say_json, table
from batonpass.cli.output.units import counted
from batonpass.config import Settings, require_own_ledger
from batonpass.errors import BatonpassError, NoLedgerError, StoreError
from batonpass.relay import Relay
from batonpass.store.factory import SQLITE

_PACKAGES: Final = ("apsw", "click", "google-re2", "msgspec", "PyNaCl", "rich", "psycopg")


@click.command()
@click.option("--fix", is_flag=True, help="Remove files that a crash left behind.")
@ledger_and_json
def command(*, fix: bool, as_json: bool) -> None:
    """Check the ledger and everything around it, and say how to fix problems.

    Exits with 1 if something is bad, with 3 if the ledger cannot be opened.
    """
    found = settings()
    checks = [*look_at_home(found), *look_at_policy(found)]
    broken = False
    try:
        require_own_ledger(found)
        with Relay.open(found.ledger, home=found.home, create=False) as relay:
            checks.insert(0, DoctorCheck(Level.OK, "ledger", _shown(found)))
            checks += look_at_ledger(relay, found, fix=fix)
    except NoLedgerError as error:
        broken = True
        said, _, advice = str(error).partition("; ")
        checks.insert(0, DoctorCheck(Level.BAD, "ledger", said, advice))
    except StoreError as error:
        broken = True
        checks.insert(0, DoctorCheck(Level.BAD, "ledger", _shown(found)))
        checks.append(DoctorCheck(Level.BAD, "open", str(error)))
    except BatonpassError as error:
        checks.append(DoctorCheck(Level.BAD, "ledger", str(error)))
    checks += look_at_hooks(found)
    checks += look_at_servers(found)
    checks += look_at_share(found)
    checks += _versions()
    if as_json:
        say_json([asdict(check) for check in checks])
    else:
        _say(checks)
    worst = any(check.level is Level.BAD for check in checks)
    click.get_current_context().exit(BROKEN if broken else NO if worst else 0)


def _say(checks: list[DoctorCheck]) -> None:
    colours = {Level.OK: "green", Level.WARN: "yellow", Level.BAD: "red"}
    rows = []
    for check in checks:
        rows.append([paint(check.level, colours[check.level]), check.name, check.found])
        if check.advice is not None:
            rows.append(["", "", f"→ {check.advice}"])
    table(rows)
    wrong = [sum(check.level is level for check in checks) for level in (Level.BAD, Level.WARN)]
    say()
    say("all is well" if wrong == [0, 0] else f"{wrong[0]} bad, {counted(wrong[1], 'warning')}")


def _shown(found: Settings) -> str:
    if found.ledger.startswith(SQLITE):
        return found.ledger
    # Never print a password.
    scheme, separator, rest = found.ledger.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _versions() -> Iterator[DoctorCheck]:
    parts = [f"batonpass {__version__}", f"Python {platform.python_version()}", f"SQLite {apsw.sqlite_lib_version()}"]
    for package in _PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    yield DoctorCheck(Level.OK, "versions", ", ".join(parts))
