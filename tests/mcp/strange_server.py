"""A server that does what servers should not do, on stdio and in plain JSON: one tool for each kind of trouble."""

import json
import sys
import time
from pathlib import Path
from typing import Any


def say(message: dict[str, Any]) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def done(identifier: object, text: str = "done") -> None:
    """Answer a call."""
    say({"id": identifier, "result": {"content": [{"type": "text", "text": text}]}})


def act(identifier: object, tool: str, arguments: dict[str, Any]) -> None:
    """Do what a tool is there for."""
    match tool:
        case "huge":
            done(identifier, "x" * 10_000_000)
        case "garbage":
            sys.stdout.write('{"jsonrpc": "2.0", "id": \nLOG: hello\n\n[1, 2\n')
            say({"id": "never-asked", "result": {}})
            done(identifier)
        case "wait":
            Path(arguments["started"]).touch()
            sys.stdin.read()
            sys.exit()
        case "stay":
            Path(arguments["started"]).touch()
            time.sleep(600)
        case _:
            done(identifier, f"{tool} {arguments}")


listed = 0
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "strange"}}
            say({"id": message["id"], "result": about})
        case "tools/list":
            listed += 1
            said = {"name": "look", "description": f"Version {listed}.", "inputSchema": {"type": "object"}}
            say({"id": message["id"], "result": {"tools": [said, {"name": "a\u0000\u001b[2Jb"}]}})
        case "tools/call":
            act(message["id"], message["params"]["name"], message["params"].get("arguments", {}))
        case "logging/setLevel":
            sys.exit(7)
        case _ if "id" in message:
            say({"id": message["id"], "result": {}})
