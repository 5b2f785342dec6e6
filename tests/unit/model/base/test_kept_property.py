"""A kept property is worked out once for each object."""

from msgspec import Struct

from batonpass.model.base.kept_property import kept_property


class Named(Struct, frozen=True, dict=True):
    """Something whose letters are counted."""

    name: str
    asked: list[str]

    @kept_property
    def letters(self) -> int:
        """Count the letters."""
        self.asked.append(self.name)
        return len(self.name)


def test_it_is_worked_out_once_and_for_each_object_by_itself() -> None:
    """The second time it is an attribute like any other."""
    asked: list[str] = []
    short, long = Named("ana", asked), Named("cleopatra", asked)

    assert [3, 9, 3, 9] == [short.letters, long.letters, short.letters, long.letters]
    assert ["ana", "cleopatra"] == asked


def test_a_class_shows_its_description() -> None:
    """As a property does, for whoever asks the class."""
    assert "Count the letters." == Named.letters.__doc__
