"""The table `[egress]`: places that our own requests may reach although they are not public."""

from pathlib import Path

import pytest

from batonpass.errors import PolicyFileError
from batonpass.model.policy.listed_place import read_listed
from batonpass.policy.egress_table import read_egress


def test_places_are_read(tmp_path: Path) -> None:
    """Names, addresses and networks, with a port or without. Without a file or a table there is none."""
    file = tmp_path / "batonpass.toml"
    file.write_text('[egress]\nallow = ["hooks.internal", "127.0.0.1:9000", "10.0.0.0/8"]\n')
    (tmp_path / "empty.toml").write_text("")

    assert tuple(map(read_listed, ("hooks.internal", "127.0.0.1:9000", "10.0.0.0/8"))) == read_egress(file)
    assert ((), ()) == (read_egress(None), read_egress(tmp_path / "empty.toml"))


def test_a_place_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    """Nothing is allowed by accident."""
    file = tmp_path / "batonpass.toml"
    file.write_text('[egress]\nallow = ["hooks.internal",\n  "127.1"]\n')

    with pytest.raises(PolicyFileError, match="is no place") as told:
        read_egress(file)
    assert 3 == told.value.line
