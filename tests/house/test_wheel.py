"""The wheel holds the whole package: code, queries, migrations, the mark that it is typed."""

from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.build import build_wheel

from tests.house.tree import PACKAGE, ROOT, SOURCES, files


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
