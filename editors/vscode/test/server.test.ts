/** The real server over stdio, with the protocol's own library; and its cards in the renderers that editors use. */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import MarkdownIt from "markdown-it";
import { marked } from "marked";
import { StreamMessageReader, StreamMessageWriter, createMessageConnection } from "vscode-jsonrpc/node";

const PROGRAM = process.env["BATONPASS"] ?? "batonpass";
const PYTHON = process.env["BATONPASS_PYTHON"] ?? "python3";
const HOSTILE = [
  "[click](command:workbench.action.terminal.new)",
  "![x](https://evil.example/pixel.png)",
  "<img src=https://evil.example/x onerror=alert(1)><script>alert(1)</script>",
  "https://evil.example www.evil.example WWW.evil.example eve@evil.example mailto:eve@evil.example ftp://evil.example",
  "&lt;b&gt; &#91;x&#93;(command:x)",
  "\\[x\\](command:x) \\\\[x](command:x) `[x](command:x)`",
  "[x]: command:evil",
  "[^1] [^1]: note",
  "# heading",
  "- item\n+ item\n* item\n1. item",
  "``` js\nfence\n```",
  "a  \n| a | b |\n|---|---|\n| 1 | 2 |",
  "~~x~~ **x** __x__ *x* _x_ $x$ $$x$$",
  "===\n---\n***",
  "<https://evil.example> <eve@evil.example>",
  "https:\\/\\/evil.example",
];

/** Have Python write down one recorded change whose task is these words, and return the file. */
function recorded(words: string): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "batonpass-server-"));
  const program = `
import sys
from pathlib import Path
from batonpass import start
def write_file(path: str, text: str) -> None:
    Path(path).write_text(text)
with start(sys.argv[1], by="user:ana") as lead:
    with lead.hand_off("editor", sys.argv[1]) as editor:
        editor.call(write_file, "a.py", "one\\ntwo\\n")
`;
  execFileSync(PYTHON, ["-c", program, words], { cwd: folder });
  return path.join(folder, "a.py");
}

async function asked(file: string): Promise<{ card: string; lenses: { command: { title: string } }[]; authors: unknown }> {
  const server = spawn(PROGRAM, ["lsp"], { cwd: os.homedir() });
  const connection = createMessageConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
  connection.listen();
  const hover = { contentFormat: ["markdown"] };
  await connection.sendRequest("initialize", { processId: null, rootUri: null, capabilities: { textDocument: { hover } } });
  await connection.sendNotification("initialized", {});
  const textDocument = { uri: pathToFileURL(file).href };
  const position = { line: 0, character: 0 };
  const found: { contents: { value: string } } = await connection.sendRequest("textDocument/hover", { textDocument, position });
  const lenses: { command: { title: string } }[] = await connection.sendRequest("textDocument/codeLens", { textDocument });
  const authors = await connection.sendRequest("batonpass/authors", { textDocument });
  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  const code = await new Promise((resolve) => server.once("exit", resolve));
  connection.dispose();
  assert.equal(code, 0);
  return { card: found.contents.value, lenses, authors };
}

/** Return the tags in what a renderer made, without those that lay out our own lines. */
function tags(html: string): string[] {
  return [...html.matchAll(/<\/?([a-z0-9]+)[^>]*>/gi)].map((found) => found[1] ?? "").filter((tag) => !["p", "br", "strong"].includes(tag));
}

test("the protocol's own library is served", async () => {
  const { card, lenses, authors } = await asked(recorded("Round half-even"));

  assert.match(card, /^\*\*editor .+ recorded and signed/);
  assert.match(lenses[0]?.command.title ?? "", /^editor .* "Round half-even"$/);
  assert.deepEqual((authors as { blocks: { first: number; last: number; kind: string }[] }).blocks.map((one) => [one.first, one.last, one.kind]), [[0, 1, "agent"]]);
});

test("nothing in a card is live, in either renderer", async () => {
  const program = "import json, sys; from batonpass.accounts.blamed_lines.hover_card import inert; print(json.dumps([inert(one) for one in json.load(sys.stdin)]))";
  const said: string[] = JSON.parse(execFileSync(PYTHON, ["-c", program], { input: JSON.stringify(HOSTILE) }).toString());
  const strict = new MarkdownIt({ html: true, linkify: true, typographer: false });
  for (const words of said) {
    const card = `**editor** · written  \n${words}  \n${words}`;
    assert.deepEqual([tags(await marked.parse(card)), tags(strict.render(card))], [[], []], words);
  }
  // The renderers do make something live of the words themselves, so the lines above could fail.
  assert.notDeepEqual(tags(await marked.parse(HOSTILE.join("\n\n"))), []);
});

test("a hostile task is inert in the card that the server sends", async () => {
  const { card } = await asked(recorded(HOSTILE.join(" ")));

  assert.deepEqual([tags(await marked.parse(card)), tags(new MarkdownIt({ html: true, linkify: true }).render(card))], [[], []]);
  assert.match(card, /evil\.example/);
});
