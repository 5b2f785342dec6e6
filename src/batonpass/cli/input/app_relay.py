"""The relay of a program, named as MODULE:NAME: with its agents and their cards."""

import importlib
import sys
import traceback
from pathlib import Path

import click

from batonpass.aio import AsyncRelay
from batonpass.cli.output.terminal import tell
from batonpass.errors import BatonpassError
from batonpass.relay import Relay


def relay_of(app: str) -> Relay:
    """Return the relay of `--app`. If there is none, that is a usage error."""
    module, _, attribute = app.partition(":")
    if not module or not attribute:
        raise click.UsageError(f"--app {app}: write MODULE:NAME, such as app:relay")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        made = found() if callable(found) else found
    except BatonpassError:
        raise
    except Exception as error:  # noqa: BLE001 - an error in the user's module is not a bug of ours
        raise click.UsageError(f"--app {app}: {_said_of(error, module, attribute)}") from None
    relay = made.sync if isinstance(made, AsyncRelay) else made
    if not isinstance(relay, Relay):
        raise click.UsageError(f"--app {app}: {type(made).__name__} is not a Relay")
    return relay


def _said_of(error: Exception, module: str, attribute: str) -> str:
    """Return why there is no relay, in a sentence; print where in the user's program the error happened."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"there is no module {error.name} in {Path.cwd()}, and none is installed"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(Path.cwd()))]
    if isinstance(error, AttributeError) and not own:
        return f"the module {module} has no {attribute}"
    for frame in own:
        tell(f"  {frame.filename}, line {frame.lineno}, in {frame.name}: {frame.line}")
    return f"it failed with {type(error).__name__}: {error}"
