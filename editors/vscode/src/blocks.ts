/** What the language server says about the lines of a file, and where it is shown. */

export type Kind = "agent" | "hearsay" | "perhaps" | "committed" | "unexplained" | "broken";

/** Lines below one another with one author, from 0. */
export interface Block {
  readonly first: number;
  readonly last: number;
  readonly kind: Kind;
  readonly label: string;
  readonly title: string;
}

export interface Authors {
  readonly version: number | null;
  readonly from: "ledger" | "transcripts" | null;
  readonly blocks: readonly Block[];
}

export type Where = "line" | "file" | "off";

/** Text behind a line. */
export interface Note {
  readonly line: number;
  readonly text: string;
  readonly kind: Kind;
}

/** The colours of marks beside the numbers; a kind without one has none. */
export const MARKS: ReadonlyMap<Kind, string> = new Map([
  ["agent", "#2da44e"],
  ["hearsay", "#1b7c83"],
  ["perhaps", "#bf8700"],
  ["broken", "#cf222e"],
]);

/** Return the block of a line. */
export function blockAt(blocks: readonly Block[], line: number): Block | undefined {
  return blocks.find((block) => block.first <= line && line <= block.last);
}

/** Return what stands behind which lines: that of the cursor, or the first of each block of an agent. */
export function notes(blocks: readonly Block[], where: Where, cursor: number | undefined): Note[] {
  if (where === "file") {
    return blocks
      .filter((block) => MARKS.has(block.kind))
      .map((block) => ({ line: block.first, text: block.title, kind: block.kind }));
  }
  const block = where === "line" && cursor !== undefined ? blockAt(blocks, cursor) : undefined;
  return block === undefined || cursor === undefined ? [] : [{ line: cursor, text: block.title, kind: block.kind }];
}

/** Return text for the status bar, where `$(name)` is an icon: nobody's words may be one. */
export function plain(words: string): string {
  return words.replaceAll("$(", "$ (");
}

/** Return the picture of a mark: a bar as high as a line. */
export function mark(colour: string): string {
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" width="6" height="18"><rect x="1" width="3" height="18" fill="${colour}"/></svg>`;
  return `data:image/svg+xml;base64,${Buffer.from(picture).toString("base64")}`;
}
