"""What `import batonpass` offers."""

import inspect

from tests.house.tree import module

AT_MOST = 30


def place_of(name: str) -> tuple[bool, bool, str]:
    """Return where a name belongs in `__all__`: constants, then classes, then the rest, each by the alphabet."""
    return (not name.isupper(), not name[0].isupper(), name)


def test_exports_are_sorted_and_unique() -> None:
    """`__all__` lists every name once: constants, classes, functions, each by the alphabet."""
    exported = list(module("batonpass").__all__)

    assert sorted(set(exported), key=place_of) == exported


def test_exports_are_few() -> None:
    """A newcomer can read the whole list of public names."""
    exported = module("batonpass").__all__

    assert 0 < len(exported) <= AT_MOST


def test_every_export_exists() -> None:
    """Each name in `__all__` can be imported, also those that are loaded on first use."""
    batonpass = module("batonpass")

    assert [] == [name for name in batonpass.__all__ if not hasattr(batonpass, name)]


def test_nothing_public_is_missing_from_the_exports() -> None:
    """A name that `batonpass` defines or imports is public on purpose, or begins with an underscore."""
    batonpass = module("batonpass")
    public = {
        name for name, value in vars(batonpass).items() if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert set() == public - set(batonpass.__all__)
