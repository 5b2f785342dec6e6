// Before somebody decides: what was shown, for how long, and whether its end was reached. No key approves.
const seen = { end: false, same: false, looked: 0, since: document.visibilityState === "visible" ? performance.now() : null };
const one = (selector) => document.querySelector(selector);

// The text is made again from what stands on the screen. Only if it has the digest that the server named is it the same.
function textOnScreen(sheet) {
  const lines = [one("[data-line=first]").textContent];
  for (const line of sheet.querySelectorAll("[data-label]")) lines.push(`  ${line.dataset.label.padEnd(10)}${line.textContent}`);
  lines.push(one("[data-line=last]").textContent);
  return `${lines.join("\n")}\n`;
}

function ready() {
  const approve = one("#approve");
  if (!approve) return;
  const live = document.body.dataset.live !== "lost";
  const open = seen.end && seen.same && live;
  approve.setAttribute("aria-disabled", String(!open));
  one("#hint").textContent = !seen.same ? "What is on this screen is not what the server sent: load the page again"
    : !live ? "The connection is lost: approving opens when the state is known again"
    : !seen.end ? "Approving opens at the end of the text" : "Neither can be taken back.";
}

async function look() {
  const sheet = one("#sheet");
  if (!sheet || !one("#verdict")) return;
  const made = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(textOnScreen(sheet)));
  const digest = [...new Uint8Array(made)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  seen.same = digest === sheet.dataset.shown;
  one("#digest").textContent = `sha256 ${digest.slice(0, 16)}`;
  one("#shown").value = seen.same ? digest : "";
  ready();
}

const lookedMs = () => Math.round(seen.looked + (seen.since === null ? 0 : performance.now() - seen.since));
// Only time in which the page was in front counts.
document.addEventListener("visibilitychange", () => {
  if (seen.since !== null) seen.looked += performance.now() - seen.since;
  seen.since = document.visibilityState === "visible" ? performance.now() : null;
});
setInterval(() => { const shown = one("#looked"); if (shown) shown.textContent = `${Math.round(lookedMs() / 1000)} s`; }, 1000);

let watcher = null;
function watchEnd() {
  watcher?.disconnect();
  const end = one("[data-line=last]");
  if (!end || seen.end) return;
  watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    seen.end = true;
    watcher.disconnect();
    ready();
  }, { rootMargin: "0px 0px -96px 0px" });
  watcher.observe(end);
}

document.addEventListener("click", (event) => {
  const approve = event.target.closest?.("#approve");
  if (approve?.getAttribute("aria-disabled") !== "true") return;
  event.preventDefault();
  one("[data-line=last]").scrollIntoView({ block: "center" });
});
document.addEventListener("submit", (event) => { if (event.target.id === "verdict") one("#looked_ms").value = String(lookedMs()); }, true);
// A changed sheet is another one: its end has to be reached again.
let last = one("#sheet")?.dataset.shown;
document.addEventListener("page:swapped", () => {
  const now = one("#sheet")?.dataset.shown;
  if (now !== last) { seen.end = false; last = now; }
  look();
  watchEnd();
});
new MutationObserver(ready).observe(document.body, { attributes: true, attributeFilter: ["data-live"] });
look();
watchEnd();
