"""Providers that read a secret from the environment, a file, the system keyring, or the output of a command."""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.credentials.port import Credential, CredentialRequest, Secret
from batonpass.errors import CredentialError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_PATIENCE: Final = 30.0


class FromEnvironment(Struct, frozen=True):
    """Reads an environment variable."""

    variable: str
    identity: str | None = None
    environment: Mapping[str, str] | None = None  # None: the environment of this process at the time of the fetch

    def fetch(self, request: CredentialRequest) -> Credential:
        """Return the value of the variable."""
        found = (os.environ if self.environment is None else self.environment).get(self.variable)
        if not found:
            raise CredentialError(request.name, f"the environment variable {self.variable} is not set")
        return _credential(request, found, self.identity or f"environment:{self.variable}")


class FromFile(Struct, frozen=True):
    """Reads a file that only its owner may read."""

    path: Path
    identity: str | None = None

    def fetch(self, request: CredentialRequest) -> Credential:
        """Return the content of the file without the trailing newline."""
        path = Path(self.path)
        try:
            if path.stat().st_mode & _OTHERS:
                raise CredentialError(request.name, f"others can read {path}; run `chmod 600 {path}`")
            found = path.read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise CredentialError(request.name, f"cannot read {path}: {reason}") from None
        if not found:
            raise CredentialError(request.name, f"{path} is empty")
        return _credential(request, found, self.identity or f"file:{path.name}")


class FromKeyring(Struct, frozen=True):
    """Reads the system keyring by service and user name. Needs the package `keyring`, which is not a dependency."""

    service: str
    username: str
    identity: str | None = None

    def fetch(self, request: CredentialRequest) -> Credential:
        """Return the keyring entry."""
        try:
            import keyring  # noqa: PLC0415 - an extra, which most programs never need
        except ImportError:
            raise CredentialError(
                request.name, "reading the keyring needs a package; run: pip install keyring"
            ) from None
        try:
            found = keyring.get_password(self.service, self.username)
        except keyring.errors.KeyringError as error:
            raise CredentialError(request.name, f"the keyring did not answer: {type(error).__name__}") from None
        if not found:
            raise CredentialError(request.name, f"the keyring has no entry for {self.username} at {self.service}")
        return _credential(request, found, self.identity or f"keyring:{self.username}@{self.service}")


class FromCommand(Struct, frozen=True):
    """Runs a command that prints the secret, or JSON with `secret` and `identity`.

    The command gets the request as `BATONPASS_RUN`, `BATONPASS_AGENT`, `BATONPASS_PRINCIPAL`, `BATONPASS_TOOL` and
    `BATONPASS_CREDENTIAL`, so that a vault can issue one secret per run.
    """

    command: Sequence[str]
    identity: str | None = None
    patience: float = _PATIENCE  # in seconds

    def fetch(self, request: CredentialRequest) -> Credential:
        """Return the secret that the command prints."""
        told = {
            "BATONPASS_CREDENTIAL": request.name,
            "BATONPASS_TOOL": request.tool,
            "BATONPASS_RUN": request.run,
            "BATONPASS_AGENT": request.agent,
            "BATONPASS_PRINCIPAL": request.principal,
        }
        import subprocess  # noqa: PLC0415 - slow to import, and most programs run no command

        # Never show the output, not even in an error: it may be the secret.
        try:
            done = subprocess.run(  # noqa: S603 - the operator of the relay configures the command
                list(self.command),
                env={**os.environ, **told},
                capture_output=True,
                check=False,
                timeout=self.patience,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise CredentialError(request.name, f"{self.command[0]} took more than {self.patience:g} seconds") from None
        except OSError as error:
            raise CredentialError(request.name, f"cannot run {self.command[0]}: {error.strerror}") from None
        if done.returncode != 0:
            raise CredentialError(request.name, f"{self.command[0]} ended with {done.returncode}")
        try:
            printed = done.stdout.decode().strip("\r\n")
        except UnicodeDecodeError:
            raise CredentialError(request.name, f"the output of {self.command[0]} is not text") from None
        secret, identity = _read(printed)
        if not secret:
            raise CredentialError(request.name, f"{self.command[0]} printed no secret")
        return _credential(request, secret, identity or self.identity or f"command:{Path(self.command[0]).name}")


def _read(printed: str) -> tuple[str, str | None]:
    """Return the secret, and the identity if the command printed one."""
    try:
        document = json.loads(printed)
    except ValueError:
        return printed, None
    if not isinstance(document, dict):
        return printed, None
    secret, identity = document.get("secret"), document.get("identity")
    return (secret if isinstance(secret, str) else ""), (identity if isinstance(identity, str) else None)


def _credential(request: CredentialRequest, secret: str, identity: str) -> Credential:
    return Credential(name=request.name, identity=identity, secret=Secret(secret))
