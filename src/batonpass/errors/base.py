"""The base class of all errors, and errors about values, ids, contents and keys."""

from typing import ClassVar


class BatonpassError(Exception):
    """Batonpass refused something or failed; the message is one sentence, and `code` is stable."""

    code: ClassVar[str] = "batonpass.error"


def error_shape(error: BatonpassError) -> dict[str, object]:
    """Return an error for programs: its code, its sentence and its facts. Every door has this one shape."""
    facts = {name: value for name, value in vars(error).items() if isinstance(value, str | int | tuple)}
    return {"code": error.code, "message": str(error), **facts}


class InvalidValueError(BatonpassError):
    """A field of a value is not valid."""

    code = "value.invalid"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnknownFieldError(InvalidValueError):
    """An input has a field that is not in its schema."""

    code = "value.unknown_field"

    def __init__(self, field: str) -> None:
        super().__init__(field, "there is no such field; was it written by a newer version?")


class MissingExtraError(BatonpassError):
    """A feature needs a package that is not installed with the core."""

    code = "extra.missing"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} need packages that are not installed; run in your clone of Batonpass: pip install '.[{extra}]'"
        )
        self.extra = extra


class PolicyFileError(InvalidValueError):
    """A policy file has an entry that is not valid."""

    code = "policy.invalid"

    def __init__(self, file: str, line: int, key: str, problem: str) -> None:
        super().__init__(f"{file}:{line}", f"{key}: {problem}" if key else problem)
        self.file = file
        self.line = line
        self.key = key


class IllegalTransitionError(BatonpassError):
    """The event is not possible in the handoff's current state."""

    code = "lifecycle.illegal"

    def __init__(self, state: str, event: str, carrier: str) -> None:
        super().__init__(f"'{event}' is not possible for a {carrier}-carried handoff that is {state}")
        self.state = state
        self.event = event
        self.possible: tuple[str, ...] | None = None  # commands to try instead, if they were looked up


class LookupFailedError(BatonpassError):
    """A lookup did not find exactly one match."""


class NotFoundError(LookupFailedError):
    """Nothing has this id."""

    code = "id.not_found"

    def __init__(self, what: str, given: str, *, where: str = "ledger") -> None:
        super().__init__(f"no {what} {given!r} in this {where}")
        self.what = what
        self.given = given


class ShortIdError(NotFoundError):
    """Nothing has this name, and it is too short to be the end of an id."""

    code = "id.too_short"

    def __init__(self, what: str, given: str, shortest: int) -> None:
        super().__init__(what, given)
        self.args = (f"no {what} is called {given!r}; to use the end of an id, give at least {shortest} characters",)
        self.shortest = shortest


class AmbiguousIdError(LookupFailedError):
    """Several things have this name, or an id that ends like this."""

    code = "id.ambiguous"

    def __init__(self, what: str, given: str, candidates: tuple[str, ...]) -> None:
        shown = "\n".join(f"  {candidate}" for candidate in candidates)
        super().__init__(f"{given!r} could be any of these; give the last characters of the one you mean:\n{shown}")
        self.what = what
        self.given = given
        self.candidates = candidates


class ContentTooLargeError(BatonpassError):
    """A text or file is larger than this store accepts."""

    code = "content.too_large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the content has {size:,} bytes and this store accepts at most {limit:,}; "
            "keep it in a file or an object store and attach its digest",
        )
        self.size = size
        self.limit = limit


class ContentErasedError(BatonpassError):
    """The content existed and was erased on purpose."""

    code = "content.erased"

    def __init__(self, content: str) -> None:
        super().__init__(f"{content} was erased; its receipt still proves that it existed")


class KeyFailedError(BatonpassError):
    """A key cannot be used."""


class KeyRefusedError(KeyFailedError):
    """A key is malformed, weak, readable by others, or not allowed for this use."""

    code = "key.refused"


class KeyMissingError(KeyFailedError):
    """A required key is not on this machine."""

    code = "key.missing"
