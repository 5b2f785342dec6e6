"""The interface as a page for people. It brings everything along: its style is allowed by its digest."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any, Final

from batonpass.server.document.openapi import make_document

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c }
h1 { font-size: 1.6rem } h2 { font-size: 1.1rem; margin-top: 2rem } code, pre { font-family: ui-monospace, monospace }
pre { background: #f4f4f2; padding: .8rem; overflow-x: auto; white-space: pre-wrap; word-break: break-all }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .75rem .25rem 0 }
td, th { border-top: 1px solid #ddd; vertical-align: top } .method { font-weight: 600 }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #e8e8e8 } pre { background: #242424 } }
"""


def docs_policy() -> str:
    """Return the content security policy of the page: its own style, and nothing else."""
    style = f"style-src '{_digest(_STYLE)}'"
    return f"default-src 'none'; {style}; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@cache
def docs_page() -> str:
    """Return the interface as a page: every operation with its parameters."""
    document = make_document()
    parts = [
        _operation(path, method, said)
        for path, operations in document["paths"].items()
        for method, said in operations.items()
    ]
    head = f"<title>{escape(document['info']['title'])} HTTP</title>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}<style>{_STYLE}</style></head><body>'
        f"<h1>Batonpass over HTTP</h1><p>{escape(document['info']['description'])}</p>"
        f'<p><a href="/openapi.json">The same as an OpenAPI document</a></p>{"".join(parts)}</body></html>'
    )


def _operation(path: str, method: str, said: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['in'])}</td>"
        f"<td>{escape(one.get('description', ''))}</td></tr>"
        for one in said["parameters"]
    )
    table = f"<table><tr><th>parameter</th><th>in</th><th></th></tr>{rows}</table>" if rows else ""
    return (
        f'<h2 id="{escape(said["operationId"])}"><span class="method">{escape(method.upper())}</span> '
        f"<code>{escape(path)}</code></h2><p>{escape(said['summary'])} {escape(said['description'])}</p>{table}"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}"
