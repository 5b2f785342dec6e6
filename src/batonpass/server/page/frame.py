"""The frame of every page: its templates, its policy, its files, and how it says times and numbers."""

import json
import re
import secrets
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from batonpass.accounts.trail.first_lines import sentence_of
from batonpass.audit.short_ids import ending
from batonpass.model.baton.items import Item
from batonpass.server.page.chart import bars, index_chart
from batonpass.server.page.inert import boxed, finalized, plain
from batonpass.server.page.sign import sign_of

_HERE: Final = "batonpass.server.page"
_MEDIA: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
MENU: Final = (
    ("Now", "/"),
    ("Tasks", "/tasks"),
    ("Approvals", "/approvals"),
    ("Blame", "/blame"),
    ("Review", "/review"),
    ("Drift", "/drift"),
    ("Ledger", "/ledger"),
    ("Agents", "/agents"),
)
SCRIPT: Final = "all.js"
_SCRIPTS: Final = ("htmx.js", "hx-sse.js", "hx-csp.js", "page.js")  # in one file, in this order
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def policy(nonce: str) -> str:
    """Return the content security policy of a page: its own files, scripts with this nonce, and nothing inline."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types htmx"
    )


def ago(duration: timedelta) -> str:
    """Return a duration in words that fit on a card, such as 6 min."""
    seconds = max(0, int(duration.total_seconds()))
    if not seconds:
        return "under 1 s"
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE:02} min"
    days = seconds // _DAY
    return f"{days} day{'s' * (days != 1)}"


def moment(at: datetime, now: datetime | None = None) -> Markup:
    """Return a time: of today to the minute, of another day with its date. It is UTC, and the title says all."""
    today = (now or datetime.now(UTC)).date() == at.date()
    shown = f"{at:%H:%M}" if today else f"{at.day} {at:%b %H:%M}" if _is_near(at, now) else f"{at:%Y-%m-%d %H:%M}"
    return Markup('<time datetime="{exact}" title="{exact}">{shown}</time>').format(
        exact=f"{at:%Y-%m-%dT%H:%M:%S}Z", shown=shown
    )


def _is_near(at: datetime, now: datetime | None) -> bool:
    return (now or datetime.now(UTC)).year == at.year


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: 1 run, 2 runs."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def name_of(principal: str) -> str:
    """Return a principal as people call each other: users and agents by name, anything else in full."""
    return principal.removeprefix("user:").removeprefix("agent:")


class StaticFile:
    """A file of the page: its bytes, its media type, and an address that changes when it does."""

    def __init__(self, name: str, body: bytes) -> None:
        self.body = body
        self.media_type = _MEDIA[f".{name.rpartition('.')[2]}"]
        self.digest = sha256(self.body).hexdigest()
        self.address = f"/static/{self.digest[:12]}/{name}"


@cache
def static_files() -> dict[str, StaticFile]:
    """Return all files of the page by name."""
    found = {one.name: one.read_bytes() for one in files(_HERE).joinpath("static").iterdir()}
    # htmx begins in the task after the one that ran it. As files of their own, its extensions may come later than that,
    # and until then nobody takes attributes away that do not have our nonce.
    found[SCRIPT] = b";\n".join(found[name] for name in _SCRIPTS)
    return {name: StaticFile(name, found[name]) for name in sorted(found) if f".{name.rpartition('.')[2]}" in _MEDIA}


@cache
def environment() -> Environment:
    """Return the templates. Everything that they write is escaped, and made visible."""
    made = Environment(
        loader=PackageLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests.update(gap=lambda code: str(code).startswith("data-gap"))
    made.filters.update(
        ago=ago,
        at=moment,
        boxed=boxed,
        counted=counted,
        ending=ending,
        exact=lambda text: Markup(escape(text)),  # noqa: S704 - for a sheet, which is visible already, and what somebody typed
        first_line=first_line,
        name=name_of,
        plain=plain,
        slug=slug,
        tojson_text=as_json,
        states=lambda members: [(one.handoff.id, one.state) for one in members],
    )
    made.globals.update(
        bars=bars, index_chart=index_chart, item_words=item_words, menu=MENU, new_key=new_key, sign_of=sign_of
    )
    made.globals.update(static={name: one.address for name, one in static_files().items()}, version=_version())
    return made


def new_key() -> str:
    """Return a key for a form: sent twice, it is done once."""
    return secrets.token_urlsafe(12)


def first_line(text: str | None, most: int = 160) -> str:
    """Return the first line of a text that says something, short enough for a list."""
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), "")
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def item_words(item: Item) -> str:
    """Return an item of a baton as a sentence."""
    return "its words were erased" if item.value is None else sentence_of(item.value)


def as_json(value: object) -> str:
    """Return a value as JSON, for people."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def slug(text: str) -> str:
    """Return a name for an element, made of letters, digits and dashes."""
    return re.sub("[^A-Za-z0-9-]+", "-", text)


def render(template: str, nonce: str, said: dict[str, Any]) -> str:
    """Return a page."""
    return environment().get_template(template).render(nonce=nonce, **said)


def _version() -> str:
    return version("batonpass")
