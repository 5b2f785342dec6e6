/**
 * Look at a file in a real VS Code with our extension, and print what a person sees there as JSON.
 *
 *     node look.mjs ROOT EXTENSIONS DATA FILE
 *
 * ROOT is where code-server is installed. It brings the workbench and the extension host of VS Code; a browser shows it.
 * Both listen on and speak to this machine only. The workspace is not trusted, as that of a stranger.
 */

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import * as path from "node:path";
import { pathToFileURL } from "node:url";

const [root, extensions, data, file] = process.argv.slice(2);
const find = createRequire(path.join(root, "package.json"));
const load = async (name) => (await import(pathToFileURL(find.resolve(name)).href)).default;
const chromium = await load("@sparticuz/chromium");
const puppeteer = await load("puppeteer-core");

const port = await freePort();
const vscode = path.join(root, "node_modules", "code-server", "lib", "vscode");
const server = spawn(
  process.execPath,
  [
    path.join(vscode, "out", "server-main.js"),
    ...["--host", "127.0.0.1", "--port", String(port), "--without-connection-token", "--accept-server-license-terms"],
    ...["--server-data-dir", data, "--extensions-dir", extensions, "--telemetry-level", "off"],
  ],
  { stdio: ["ignore", "pipe", "pipe"] },
);
let log = "";
for (const stream of [server.stdout, server.stderr]) {
  stream.on("data", (piece) => (log += piece));
}
await until("the server listens", () => log.includes("listening on"));

const browser = await puppeteer.launch({
  executablePath: await chromium.executablePath(),
  headless: "shell",
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  defaultViewport: { width: 1400, height: 900 },
});
const seen = {};
try {
  const page = await browser.newPage();
  const opened = JSON.stringify([["openFile", `vscode-remote://127.0.0.1:${port}${file}`]]);
  const query = new URLSearchParams({ folder: path.dirname(file), payload: opened });
  await page.goto(`http://127.0.0.1:${port}/?${query}`, { waitUntil: "domcontentloaded" });
  const words = (what) => page.$$eval(what, (found) => found.map((one) => one.textContent.trim()).filter(Boolean));

  seen.bar = await until("the status bar names somebody", async () =>
    (await words(".statusbar-item")).find((one) => one.startsWith("editor ")),
  );
  seen.lenses = await until("there is a lens", async () => nonEmpty(await words(".codelens-decoration")));
  seen.behind = await until("there is an annotation", () =>
    page.$$eval(".view-line span[class*='ced-']", (found) =>
      found.map((one) => getComputedStyle(one, "::after").content).find((one) => one.includes("editor ")),
    ),
  );
  seen.marks = await until("there are marks", () =>
    page.$$eval(".margin *, .glyph-margin-widgets *", (found) =>
      found.filter((one) => getComputedStyle(one).backgroundImage.includes("data:image/svg+xml;base64")).length,
    ),
  );

  // Over the first word of the second line: the first has the lens above it.
  const line = (await page.$$(".view-line"))[1];
  const box = await line.boundingBox();
  await page.mouse.move(box.x + 3, box.y + 5);
  await page.mouse.move(box.x + 5, box.y + 6);
  seen.card = await until("there is a card", async () =>
    (await words(".monaco-hover .hover-contents")).find((one) => one.includes("receipts verified")),
  );
  seen.live = await page.$$eval(".monaco-hover .hover-contents", (found) =>
    found.flatMap((one) => [...one.querySelectorAll("a, img, iframe, script, button, input")].map((live) => live.outerHTML)),
  );
  await page.mouse.move(5, 5);

  // The command, as somebody types it.
  await page.keyboard.press("F1");
  await until("commands can be typed", async () => (await page.$$(".quick-input-widget input")).length > 0);
  await page.keyboard.type("Who Wrote This Line");
  await until("the command is offered", async () => (await words(".quick-input-list .monaco-list-row")).some((one) => one.includes("Who Wrote This Line")));
  await page.keyboard.press("Enter");
  seen.said = await until("a message is shown", async () =>
    (await words(".notification-toast .notification-list-item-message")).find((one) => one.includes("editor ")),
  );
  seen.restricted = (await words(".statusbar-item")).includes("Restricted Mode");
} catch (error) {
  seen.failed = String(error);
  seen.log = log.slice(-3000);
} finally {
  await browser.close();
  server.kill();
}
console.log(JSON.stringify(seen));

function nonEmpty(found) {
  return found.length > 0 ? found : undefined;
}

async function until(what, holds, seconds = 90) {
  const end = Date.now() + 1000 * seconds;
  while (Date.now() < end) {
    const found = await holds();
    if (found) {
      return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`waited in vain until ${what}`);
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
