/** Which program is started: never one that the workspace chose, and never one that lies in it. */

import * as fs from "node:fs";
import * as path from "node:path";

/** What the settings of VS Code say about one key, layer by layer. */
export interface Layers {
  readonly defaultValue?: unknown;
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

/** Return the program that the person chose; a workspace's word does not count, whatever the editor lets through. */
export function chosenProgram(layers: Layers | undefined): string {
  const chosen = layers?.globalValue ?? layers?.defaultValue;
  return typeof chosen === "string" && chosen.trim() !== "" ? chosen.trim() : "batonpass";
}

/**
 * Return the absolute path of a program; undefined if it is nowhere.
 *
 * A name is looked for on the PATH. Relative entries, and entries inside of a folder that is open, are skipped: what a
 * repository brings along must not be run because of its name.
 */
export function findProgram(
  name: string,
  search: string | undefined,
  folders: readonly string[],
  isProgram: (file: string) => boolean = isExecutable,
): string | undefined {
  if (path.isAbsolute(name)) {
    return isProgram(name) ? name : undefined;
  }
  if (name.includes("/") || name.includes("\\")) {
    return undefined; // relative to what? Nobody knows, and the workspace would be a guess
  }
  const ends = process.platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  for (const place of (search ?? "").split(path.delimiter)) {
    if (!path.isAbsolute(place) || folders.some((folder) => isInside(place, folder))) {
      continue;
    }
    for (const end of ends) {
      const file = path.join(place, name + end);
      if (isProgram(file) && !folders.some((folder) => isInside(real(file), folder))) {
        return file;
      }
    }
  }
  return undefined;
}

function isInside(file: string, folder: string): boolean {
  const way = path.relative(real(folder), real(file));
  return way === "" || (!way.startsWith(`..${path.sep}`) && way !== ".." && !path.isAbsolute(way));
}

function real(file: string): string {
  try {
    return fs.realpathSync(file);
  } catch {
    return path.resolve(file);
  }
}

function isExecutable(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}
