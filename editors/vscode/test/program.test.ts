/** The program that is started is the person's choice, and never something that a workspace brings along. */

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";

import { chosenProgram, findProgram } from "../src/program";

function folder(): string {
  return fs.mkdtempSync(path.join(os.tmpdir(), "batonpass-program-"));
}

function program(place: string, name = "batonpass"): string {
  fs.mkdirSync(place, { recursive: true });
  const file = path.join(place, name);
  fs.writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
  return file;
}

test("a workspace's word does not count", () => {
  const layers = { defaultValue: "batonpass", workspaceValue: "/evil", workspaceFolderValue: "/evil" };

  assert.equal(chosenProgram(layers), "batonpass");
  assert.equal(chosenProgram({ ...layers, globalValue: " /usr/bin/mine " }), "/usr/bin/mine");
  assert.equal(chosenProgram({ ...layers, globalValue: 7 }), "batonpass");
  assert.equal(chosenProgram(undefined), "batonpass");
});

test("a name is found on the PATH, in its order", () => {
  const [one, two] = [folder(), folder()];
  const search = [path.join(one, "nowhere"), two, one].join(path.delimiter);
  program(one);

  assert.equal(findProgram("batonpass", search, []), path.join(one, "batonpass"));
  assert.equal(findProgram("batonpass", search, []) === program(two), false);
  assert.equal(findProgram("batonpass", search, []), path.join(two, "batonpass"));
  assert.equal(findProgram("batonpass", undefined, []), undefined);
});

test("nothing of an open folder is found, under whichever name the folder has", () => {
  const [workspace, elsewhere] = [folder(), folder()];
  const inside = program(path.join(workspace, "bin"));
  const link = path.join(elsewhere, "link");
  fs.symlinkSync(workspace, link);
  fs.symlinkSync(inside, path.join(elsewhere, "batonpass"));
  const search = [path.join(workspace, "bin"), path.join(link, "bin"), elsewhere, ".", "bin", ""].join(path.delimiter);

  assert.equal(findProgram("batonpass", search, [workspace]), undefined);
  assert.equal(findProgram("batonpass", search, [link]), undefined);
  assert.equal(findProgram("batonpass", search, []), inside);
});

test("an absolute path is taken as it is, and a relative one is not", () => {
  const file = program(folder());

  assert.equal(findProgram(file, "", []), file);
  assert.equal(findProgram(`${file}-gone`, "", []), undefined);
  assert.equal(findProgram("./batonpass", path.dirname(file), []), undefined);
  assert.equal(findProgram("../bin/batonpass", path.dirname(file), []), undefined);
});

test("what cannot be executed is no program", () => {
  const place = folder();
  fs.writeFileSync(path.join(place, "batonpass"), "text", { mode: 0o644 });
  fs.mkdirSync(path.join(place, "other"));

  assert.equal(findProgram("batonpass", place, []), undefined);
  assert.equal(findProgram("other", place, []), undefined);
});

test("the settings say that the path is the machine's", () => {
  const told = JSON.parse(fs.readFileSync("package.json", "utf8"));
  const untrusted = told.capabilities.untrustedWorkspaces;

  assert.equal(told.contributes.configuration.properties["batonpass.path"].scope, "machine");
  assert.deepEqual([untrusted.supported, untrusted.restrictedConfigurations], ["limited", ["batonpass.path"]]);
});
