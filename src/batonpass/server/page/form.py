"""Forms that a browser sends: small, of one kind, and only from our own pages."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from batonpass.errors import InvalidValueError, MediaTypeError, RequestTooLargeError, WrongOriginError

FORM: Final = "application/x-www-form-urlencoded"
MOST_BYTES: Final = 1024 * 1024
_MOST_FIELDS: Final = 200
_OWN: Final = "same-origin"


def require_own(headers: Mapping[str, str]) -> None:
    """Raise `WrongOriginError` unless our own page sent a form.

    The boundary has refused every other `Origin` already. Here there has to be one, or the browser's word for it.
    """
    if headers.get("origin") is None and headers.get("sec-fetch-site") != _OWN:
        raise WrongOriginError("none")


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises `MediaTypeError`, `RequestTooLargeError` and `InvalidValueError`."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != FORM:
        raise MediaTypeError(given)
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MOST_BYTES:
            raise RequestTooLargeError(MOST_BYTES)
    try:
        fields = parse_qsl(read.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise InvalidValueError("form", "cannot be read") from None
    return {name: text.replace("\r\n", "\n") for name, text in fields}
