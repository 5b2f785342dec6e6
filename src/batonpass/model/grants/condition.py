"""Conditions on the arguments of a call: one of some values, a path below a place, a range, a form of text.

A missing argument meets no condition. A list meets a condition if it is not empty and each element meets it. Values are
compared with their type: the text "5" is not the number 5. Only a range also accepts numbers that are written as text,
because that is how decimals travel.
"""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import Form, require_instance, require_integer, shorten
from batonpass.model.base.decimals import as_decimal, number_of
from batonpass.model.grants.call import Opaque
from batonpass.model.grants.resource import LONGEST, Resource, read_resource, require_readable

Scalar: TypeAlias = str | int | bool | None

PLAIN: Final = re.compile(r'[^\s,;"\[\]]+')
_NAME: Final = Form(
    r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*",
    "the name of an argument, such as path or order.amount",
)
_MOST_VALUES: Final = 256
_STAR: Final = re.compile(r"\\[\\*]|\*")
_HOLE: Final = "\uffff"  # no character; takes the place of a `*`
_LISTS: Final = (list, tuple)
_ABSENT: Final = object()


class OneOf(Struct, frozen=True):
    """The argument is one of these values."""

    argument: str
    values: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        require_argument(self.argument)
        if not 0 < len(require_instance("values", self.values, tuple)) <= _MOST_VALUES:
            raise InvalidValueError("values", f"are not 1 to {_MOST_VALUES}")
        for value in self.values:
            _require_scalar(value)
        unique = {json.dumps(value, ensure_ascii=False): value for value in self.values}
        force_setattr(self, "values", tuple(unique[text] for text in sorted(unique)))

    def allows(self, value: object) -> bool:
        """Return whether one value meets the condition."""
        if isinstance(value, float | Decimal):
            return any(not isinstance(one, str | bool | None) and number_of(value) == one for one in self.values)
        # In Python `True == 1`, but a grant for the one does not mean the other.
        return any(type(value) is type(one) and value == one for one in self.values)

    def contains(self, other: "Condition") -> bool:
        """Return whether every value that meets the other condition meets this one."""
        return isinstance(other, OneOf) and all(map(self.allows, other.values))

    def __str__(self) -> str:
        texts = [json.dumps(value, ensure_ascii=False) for value in self.values]
        return f"{self.argument} is {texts[0]}" if len(texts) == 1 else f"{self.argument} in [{', '.join(texts)}]"


class Under(Struct, frozen=True, dict=True):
    """The argument is a path: this place, or something below it."""

    argument: str
    path: str

    def __post_init__(self) -> None:
        require_argument(self.argument)
        force_setattr(self, "path", str(read_resource("under", self.path)))

    @cached_property
    def place(self) -> Resource:
        """Return the place in the form that is compared."""
        return read_resource("under", self.path)

    def allows(self, value: object) -> bool:
        """Return whether one value meets the condition."""
        if not isinstance(value, str):
            return False
        try:
            found = read_resource("under", value)
        except InvalidValueError:
            return False
        return _is_below(found, self.place)

    def contains(self, other: "Condition") -> bool:
        """Return whether the other place is this one, or below it."""
        if not isinstance(other, Under):
            return False
        return _is_below(other.place, self.place)

    def __str__(self) -> str:
        return f"{self.argument} under {word(self.path)}"


class Between(Struct, frozen=True):
    """The argument is a number from least to most, both included. None: no bound."""

    argument: str
    least: str | None = None
    most: str | None = None

    def __post_init__(self) -> None:
        require_argument(self.argument)
        if self.least is None and self.most is None:
            raise InvalidValueError("range", "has no bound")
        for name in ("least", "most"):
            if (given := getattr(self, name)) is not None:
                force_setattr(self, name, as_decimal(name, given))
        if self.least is not None and self.most is not None and Decimal(self.least) > Decimal(self.most):
            raise InvalidValueError("range", f"no number is at least {self.least} and at most {self.most}")

    def allows(self, value: object) -> bool:
        """Return whether one value meets the condition."""
        number = number_of(value)
        if number is None or (self.least is not None and number < Decimal(self.least)):
            return False
        return self.most is None or number <= Decimal(self.most)

    def contains(self, other: "Condition") -> bool:
        """Return whether every number of the other range is in this one."""
        if not isinstance(other, Between):
            return False
        if self.least is not None and (other.least is None or Decimal(other.least) < Decimal(self.least)):
            return False
        return self.most is None or (other.most is not None and Decimal(other.most) <= Decimal(self.most))

    def __str__(self) -> str:
        if self.least is None:
            return f"{self.argument} <= {self.most}"
        if self.most is None:
            return f"{self.argument} >= {self.least}"
        return f"{self.argument} from {self.least} to {self.most}"


class Like(Struct, frozen=True):
    """The argument is a text with these parts in this order, and anything between them.

    It begins with the first part and ends with the last. Characters are compared, and paths have no special meaning:
    `..` is two dots. For paths there is `Under`.
    """

    argument: str
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        require_argument(self.argument)
        if len(require_instance("parts", self.parts, tuple)) < 2:  # noqa: PLR2004 - before the first `*`, and after it
            raise InvalidValueError("matches", "has no *; a whole text is meant by `is`")
        for part in self.parts:
            require_readable("matches", require_instance("matches", part, str))
        if sum(map(len, self.parts)) > LONGEST:
            raise InvalidValueError("matches", f"has more than {LONGEST:,} characters")
        # Two `*` side by side mean the same as one.
        first, *middle, last = self.parts
        force_setattr(self, "parts", (first, *filter(None, middle), last))

    def allows(self, value: object) -> bool:
        """Return whether one value meets the condition."""
        return isinstance(value, str) and self._takes(value)

    def contains(self, other: "Condition") -> bool:
        """Return whether every text that meets the other condition meets this one."""
        # One text decides it: the other form with a character for each `*` that no part contains. Only a `*` of ours
        # can match that character, so if we accept this text, we accept every text of the other form.
        return isinstance(other, Like) and self._takes(_HOLE.join(other.parts))

    def _takes(self, text: str) -> bool:
        first, *middle, last = self.parts
        end = len(text) - len(last)
        if not text.startswith(first) or not text.endswith(last) or end < len(first):
            return False
        at = len(first)
        for part in middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    def __str__(self) -> str:
        if len(self.parts) == 2 and not self.parts[1]:  # noqa: PLR2004 - something, and then anything
            return f"{self.argument} starts with {json.dumps(self.parts[0], ensure_ascii=False)}"
        text = "*".join(re.sub(r"([\\*])", r"\\\1", part) for part in self.parts)
        return f"{self.argument} matches {json.dumps(text, ensure_ascii=False)}"


Condition: TypeAlias = OneOf | Under | Between | Like


def like(argument: str, text: str) -> Like:
    r"""Return the condition for a text with `*`. `\*` and `\\` stand for the character itself."""
    parts, at = [""], 0
    for found in _STAR.finditer(text):
        parts[-1] += text[at : found.start()]
        if found[0] == "*":
            parts.append("")
        else:
            parts[-1] += found[0][1]
        at = found.end()
    parts[-1] += text[at:]
    return Like(argument, tuple(parts))


def holds(condition: Condition, arguments: Mapping[str, object]) -> bool:
    """Return whether the arguments of a call meet a condition."""
    return keeps(condition, argument_of(condition.argument, arguments))


def keeps(condition: Condition, value: object) -> bool:
    """Return whether the value of an argument meets a condition; for a list, whether each element does."""
    if isinstance(value, _LISTS):
        return bool(value) and all(map(condition.allows, value))
    return value is not _ABSENT and condition.allows(value)


def argument_of(name: str, arguments: Mapping[str, object]) -> object:
    """Return an argument, also by a dotted path into objects. Test the result with `is_absent`."""
    if "." not in name:
        return arguments.get(name, _ABSENT)
    value: object = arguments
    for step in name.split("."):
        if isinstance(value, Opaque):
            return value  # it meets no condition, and the denial can name the reason
        if not isinstance(value, Mapping) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def is_absent(value: object) -> bool:
    """Return whether `argument_of` found no such argument."""
    return value is _ABSENT


def implies(held: Sequence[Condition], wanted: Condition) -> bool:
    """Return whether every value that meets all held conditions of one permit meets the wanted one.

    A yes is always right. A no is wrong only where several forms of text imply it together, and none of them alone.
    """
    for condition in held:
        if isinstance(condition, OneOf):
            return all(map(wanted.allows, condition.values))
    return any(map(wanted.contains, held))


def _is_below(place: Resource, other: Resource) -> bool:
    """Return whether a place is the other one, or below it."""
    return place.absolute is other.absolute and place.segments[: len(other.segments)] == other.segments


def word(text: str) -> str:
    """Return a text for a line of a scope: in quotation marks if it would be ambiguous otherwise."""
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def require_argument(name: str) -> str:
    """Return name if it is the name of an argument, or a dotted path into objects. Raises `InvalidValueError`."""
    return _NAME.require("argument", name)


def _require_scalar(value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, int):
        require_integer("value", value, least=-(2**53) + 1)
    elif isinstance(value, str) and len(value) <= LONGEST:
        require_readable("value", value)
    else:
        raise InvalidValueError("value", f"{shorten(value)} is no short text, whole number, true, false or null")
