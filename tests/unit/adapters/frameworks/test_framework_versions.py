"""Releases of frameworks: missing, tried, and not tried."""

import warnings

import pytest

from batonpass.adapters.frameworks.framework_versions import FrameworkVersions
from batonpass.errors import MissingExtraError


def _versions(module: str = "msgspec") -> FrameworkVersions:
    return FrameworkVersions(package="msgspec", module=module, extra="some-framework", oldest=(1, 2), below=(2, 0))


@pytest.mark.parametrize("module", ["no_such_module", "no_such_package.inside"])
def test_a_framework_that_is_not_there_is_said_in_a_sentence(module: str) -> None:
    """With the command that installs it, also if not even the package around it is there."""
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[some-framework\]'"):
        _versions(module).require()


@pytest.mark.parametrize("found", ["1.2.0", "1.99rc1", "1.2"])
def test_a_release_that_was_tried_is_no_news(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    """Nothing is said."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: found)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _versions().require()


@pytest.mark.parametrize("found", ["1.1.9", "2.0.0", "2.0rc1", "3"])
def test_a_release_that_was_not_tried_is_warned_about(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    """Once, and it goes on."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: found)

    with pytest.warns(UserWarning, match=f"msgspec {found} was not tried: 1.2 to below 2.0 were") as warned:
        _versions().require()

    assert 1 == len(warned)
