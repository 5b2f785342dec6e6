"""Every error we raise on purpose has a code, and every code has a line in the reference."""

import re
from collections.abc import Iterator
from functools import cache

from tests.framework_modules import FRAMEWORK_MODULES
from tests.house.tree import PACKAGE, document, files, module

CODE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")


def family(error: type[Exception]) -> Iterator[type[Exception]]:
    """Yield an error and everything that derives from it."""
    yield error
    for child in error.__subclasses__():
        yield from family(child)


@cache
def our_errors() -> list[type[Exception]]:
    """Return our errors after every module had its chance to define one."""
    base: type[Exception] = module("batonpass.errors").BatonpassError
    for path in files(PACKAGE, ".py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        if parts[-1] != "__main__" and not name.startswith(FRAMEWORK_MODULES):
            module(name)
    return list(family(base))


def codes() -> dict[type[Exception], str]:
    """Return the codes that errors declare themselves, not those that they inherit."""
    return {error: vars(error)["code"] for error in our_errors() if "code" in vars(error)}


def test_errors_live_in_one_place() -> None:
    """No error of ours is defined outside of batonpass.errors, where the tree is drawn and every one is exported."""
    home = module("batonpass.errors")
    outside = [error.__qualname__ for error in our_errors() if not error.__module__.startswith("batonpass.errors.")]

    assert [] == outside
    assert sorted(error.__name__ for error in our_errors()) == sorted(home.__all__)


def test_the_tree_has_every_error() -> None:
    """The drawing at the head of batonpass.errors names each error with its code."""
    drawn = dict(
        re.findall(r"(\w+Error)[ ]+([a-z_]+\.[a-z_]+)$", str(module("batonpass.errors").__doc__), re.MULTILINE)
    )
    leaves = {error.__name__: code for error, code in codes().items() if not code.startswith(("verify.", "batonpass."))}

    assert leaves == drawn


def test_every_error_that_is_raised_has_its_own_code() -> None:
    """Only an error that others derive from may do without a code."""
    assert [] == [error.__name__ for error in our_errors() if not error.__subclasses__() and "code" not in vars(error)]


def test_codes_are_unique() -> None:
    """A program that reads a code knows which error it was."""
    found = list(codes().values())

    assert sorted(set(found)) == sorted(found)


def test_codes_are_lower_case_and_dotted() -> None:
    """A code is an area, a dot and a fact: `ledger.stale_head`."""
    assert [] == [code for code in codes().values() if not CODE.fullmatch(code)]


def test_every_code_is_documented() -> None:
    """docs/reference/errors.md has each code, as code."""
    text = document("reference/errors.md")

    assert [] == [code for code in codes().values() if f"`{code}`" not in text]


def test_no_documented_code_is_invented() -> None:
    """A code at the head of a row in the reference is one that we raise."""
    documented = re.findall(r"^\|\s*`([a-z_.]+)`", document("reference/errors.md"), re.MULTILINE)

    assert [] == sorted(set(documented) - set(codes().values()))
