"""The wheel holds the whole package: code, queries, migrations, the mark that it is typed."""

import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.build import build_wheel

from tests.house.tree import PACKAGE, ROOT, SOURCES, files
from tests.pythons.try_all import VERSIONS


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lies in src/batonpass is installed, not only what ends in .py."""
    monkeypatch.chdir(ROOT)
    expected = {path.relative_to(SOURCES).as_posix() for path in files(PACKAGE)}
    assert "batonpass/py.typed" in expected
    # The examples that the demonstrations play.
    played = ("freight", "poisoned", "quarterly_analysis", "sessions", "support")
    expected |= {f"batonpass/demo/{name}.py" for name in played}

    with ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("batonpass/")}

    assert expected == packed


def test_every_python_that_is_promised_is_tried() -> None:
    """The classifiers name the versions on which `make test-pythons` installs the wheel, and no others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [classifier.removeprefix("Programming Language :: Python :: ") for classifier in project["classifiers"]]

    assert list(VERSIONS) == [version for version in named if version.startswith("3.")]
    assert f">={VERSIONS[0]}" == project["requires-python"]
