"""Where credentials come from, and what is said when they do not."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from batonpass.credentials import (
    Credential,
    CredentialRequest,
    FromCommand,
    FromEnvironment,
    FromFile,
    FromKeyring,
    Provider,
    Secret,
)
from batonpass.errors import BatonpassError, CredentialError, InvalidValueError
from batonpass.model.base.ids import AgentId, PrincipalId
from tests.unit.model.examples import CHILD

REQUEST = CredentialRequest(
    name="forge", tool="push", run=CHILD, agent=AgentId("editor"), principal=PrincipalId("user:ana")
)
PLANTED = "s3cr3t-v4lue-nobody-may-see"


def a_file(tmp_path: Path, text: str = f"{PLANTED}\n", mode: int = 0o600) -> Path:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def printing(text: str) -> list[str]:
    return [sys.executable, "-c", f"print({text!r})"]


PROVIDERS: list[tuple[Callable[[Path], Provider], str]] = [
    (lambda _: FromEnvironment("FORGE", environment={"FORGE": PLANTED}), "environment:FORGE"),
    (lambda _: FromEnvironment("FORGE", "bot:ci", environment={"FORGE": PLANTED}), "bot:ci"),
    (lambda place: FromFile(a_file(place)), "file:token"),
    (lambda _: FromCommand(printing(PLANTED), "vault:forge"), "vault:forge"),
    (lambda _: FromCommand(printing(f'{{"secret": "{PLANTED}", "identity": "bot:7"}}')), "bot:7"),
]


@pytest.mark.parametrize(("make", "identity"), PROVIDERS)
def test_a_provider_says_whose_it_is(make: Callable[[Path], Provider], identity: str, tmp_path: Path) -> None:
    """Each gives the secret and an identity that does not hold it."""
    found = make(tmp_path).fetch(REQUEST)

    assert ("forge", identity, PLANTED) == (found.name, found.identity, found.secret.reveal())


def test_a_command_is_told_for_whom() -> None:
    """A backend that can makes one for each run: the run is in what it is asked."""
    program = "import os; print(os.environ['BATONPASS_RUN'], os.environ['BATONPASS_AGENT'])"

    assert f"{CHILD} editor" == FromCommand([sys.executable, "-c", program]).fetch(REQUEST).secret.reveal()


FAILING: list[tuple[Callable[[Path], Provider], str]] = [
    (lambda _: FromEnvironment("FORGE", environment={}), "the environment variable FORGE is not set"),
    (lambda place: FromFile(place / "none"), "No such file"),
    (lambda place: FromFile(a_file(place, mode=0o644)), "others can read"),
    (lambda place: FromFile(a_file(place, "")), "is empty"),
    (lambda _: FromCommand([sys.executable, "-c", f"print('{PLANTED}'); raise SystemExit(3)"]), "ended with 3"),
    (lambda _: FromCommand([sys.executable, "-c", "import time; time.sleep(60)"], patience=0.2), "took more than"),
    (lambda _: FromCommand(["/nowhere/at/all"]), "cannot run"),
    (lambda _: FromCommand([sys.executable, "-c", "pass"]), "printed no secret"),
    (lambda _: FromCommand(printing('{"identity": "bot:7"}')), "no secret"),
    (lambda _: FromCommand([sys.executable, "-c", r"import sys; sys.stdout.buffer.write(b'\xff')"]), "is not text"),
    (lambda _: FromEnvironment("FORGE", f"bot-{PLANTED}", environment={"FORGE": PLANTED}), "contains the secret"),
]


@pytest.mark.parametrize(("make", "problem"), FAILING)
def test_what_cannot_be_had_is_said_without_the_secret(
    make: Callable[[Path], Provider], problem: str, tmp_path: Path
) -> None:
    """One sentence says what is wrong, and nothing in it is what was printed or kept."""
    with pytest.raises(CredentialError, match=problem) as raised:
        make(tmp_path).fetch(REQUEST)

    assert PLANTED not in str(raised.value)


def test_a_keyring_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it holds is given; what it lacks, and that it is not installed, is said."""
    keyring = ModuleType("keyring")
    held = {("forge", "bot"): PLANTED}
    errors = ModuleType("keyring.errors")
    vars(errors)["KeyringError"] = RuntimeError
    vars(keyring).update(get_password=lambda service, user: held.get((service, user)), errors=errors)
    monkeypatch.setitem(sys.modules, "keyring", keyring)

    assert PLANTED == FromKeyring("forge", "bot").fetch(REQUEST).secret.reveal()
    with pytest.raises(CredentialError, match="has no entry for ana"):
        FromKeyring("forge", "ana").fetch(REQUEST)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(CredentialError, match="pip install keyring"):
        FromKeyring("forge", "bot").fetch(REQUEST)


def test_a_secret_does_not_show_itself() -> None:
    """Printed, formatted, compared or inside of others it is not there; it does not leave the process."""
    held = Credential(name="forge", identity="bot:ci", secret=Secret(PLANTED))

    assert not any(PLANTED in shown for shown in (repr(held), str(held.secret), f"{held.secret}", repr([held])))
    assert Secret(PLANTED) != Secret(PLANTED)
    with pytest.raises(InvalidValueError):
        pickle.dumps(held)
    with pytest.raises(BatonpassError):
        Secret("")
