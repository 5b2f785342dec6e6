"""Pages for people: the way in for whoever started the server, and the interface as a readable page.

They bring everything along. A style or a script is allowed by its digest, and nothing is loaded from anywhere.
"""

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

_SCRIPT: Final = """
const told = document.getElementById("told");
const code = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (!code) { told.textContent = "This page needs the whole link that the server printed."; }
else fetch("/v1/enter", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({code})})
  .then(answer => answer.json())
  .then(said => { told.textContent = said.error
    ? "The link was used before, or its time is over. Start the server again, or run: batonpass token add"
    : said.token; })
  .catch(() => { told.textContent = "The server does not answer."; });
"""

_ENTER: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Batonpass</title>
<style>{style}</style></head><body><h1>You are in</h1>
<p>This token lets you in as an administrator for twelve hours. It is shown this once.</p>
<pre id="told">…</pre>
<p>Send it as <code>Authorization: Bearer TOKEN</code>. <a href="/docs">What there is</a></p>
<script>{script}</script></body></html>
"""


def policy_for(*, script: bool) -> str:
    """Return the content security policy of a page: its own style, maybe its own script, and nothing else."""
    scripts = f"; script-src '{_digest(_SCRIPT)}'; connect-src 'self'" if script else ""
    return (
        f"default-src 'none'; style-src '{_digest(_STYLE)}'{scripts}; frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'"
    )


def enter_page() -> str:
    """Return the page that exchanges the code of a one-time link for a token."""
    return _ENTER.format(style=_STYLE, script=_SCRIPT)


@cache
def docs_page() -> str:
    """Return the interface as a page: every operation with what it takes."""
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
