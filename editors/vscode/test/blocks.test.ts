/** What is shown behind which line, beside it, and in the status bar. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Block, blockAt, mark, notes, plain } from "../src/blocks";

const BLOCKS: Block[] = [
  { first: 0, last: 3, kind: "committed", label: "Ana (git)", title: "Ana (git) · 2026-11-01" },
  { first: 4, last: 5, kind: "agent", label: "editor 7f3a", title: 'editor 7f3a · 23:14 · "Round"' },
  { first: 7, last: 7, kind: "hearsay", label: "~fixer beef", title: "~fixer beef" },
];

test("a line has the block that it is in, and a line that is not saved has none", () => {
  assert.deepEqual(
    [0, 3, 4, 5, 6, 7, 8].map((line) => blockAt(BLOCKS, line)?.label),
    ["Ana (git)", "Ana (git)", "editor 7f3a", "editor 7f3a", undefined, "~fixer beef", undefined],
  );
});

test("behind the cursor's line stands its author", () => {
  assert.deepEqual(notes(BLOCKS, "line", 5), [{ line: 5, text: 'editor 7f3a · 23:14 · "Round"', kind: "agent" }]);
  assert.deepEqual(notes(BLOCKS, "line", 6), []);
  assert.deepEqual(notes(BLOCKS, "line", undefined), []);
  assert.deepEqual(notes(BLOCKS, "off", 5), []);
});

test("for a whole file, only blocks of agents are annotated", () => {
  assert.deepEqual(
    notes(BLOCKS, "file", 0).map((note) => note.line),
    [4, 7],
  );
});

test("nobody's words are an icon in the status bar", () => {
  assert.equal(plain("$(bug) $(x"), "$ (bug) $ (x");
});

test("a mark is a picture of ours and nothing else", () => {
  const picture = Buffer.from(mark("#2da44e").split(",")[1] ?? "", "base64").toString();

  assert.match(picture, /^<svg [^>]+><rect [^>]+fill="#2da44e"\/><\/svg>$/);
});
