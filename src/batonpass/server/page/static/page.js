// The page's own script: keys, the state of the connection, times of this place. Everything else comes from the server.
const $ = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
// After a lost connection it waits a few seconds at most, and not a minute, until it asks again.
htmx.config.sse = { ...htmx.config.sse, reconnectMaxDelay: 3000 };
let untold;
const tell = (words) => {
  $("#said").textContent = words;
  clearTimeout(untold);
  untold = setTimeout(() => { $("#said").textContent = ""; }, 5000);
};

// Times are UTC in what the server sends, and of this place on the screen.
function localTimes(root = document) {
  const today = new Date().toDateString();
  for (const one of all("time[datetime]", root)) {
    const at = new Date(one.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    const day = at.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(at.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" }) });
    one.textContent = at.toDateString() === today || one.dataset.hour !== undefined ? clock : `${day}, ${clock}`;
    one.title = at.toLocaleString("en-GB", { dateStyle: "full", timeStyle: "long" });
  }
}
localTimes();

// The connection. What is on the screen stays; its age is said.
const live = $("#live");
let lostAt = null;
function isLive(state) {
  if (!live || !$("#stream")) return;
  live.dataset.live = state;
  if (state === "on") { live.textContent = "live"; lostAt = null; document.body.dataset.live = "on"; return; }
  lostAt ??= new Date();
  document.body.dataset.live = "lost";
  live.textContent = `not live since ${lostAt.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" })}, trying again`;
}
document.addEventListener("htmx:sse:after:connection", () => isLive("on"));
document.addEventListener("htmx:sse:error", () => isLive("lost"));
document.addEventListener("htmx:sse:close", () => isLive("lost"));
document.addEventListener("htmx:error", (event) => { if (event.target.id === "stream" || event.target.id === "refresh") isLive("lost"); });
document.addEventListener("htmx:after:swap", () => { localTimes(); document.dispatchEvent(new Event("page:swapped")); });
// A server that stopped ends the stream without an error; asked again, it says so.
let wasLost = false;
new MutationObserver(() => {
  const lost = document.body.dataset.live === "lost";
  if (wasLost && !lost) $("#stream")?.dispatchEvent(new Event("changed"));
  wasLost = lost;
}).observe(document.body, { attributes: true, attributeFilter: ["data-live"] });

// The part that is shown, where there is no room for the names of all.
const part = $(".tabs [aria-current]");
if (part) part.parentElement.scrollLeft = part.offsetLeft - part.parentElement.offsetLeft - 16;

// The menu of a small screen.
$("#menu-button")?.addEventListener("click", (event) => {
  const open = $("#menu").classList.toggle("is-open");
  event.currentTarget.setAttribute("aria-expanded", String(open));
});

// What somebody wrote is copied by a button; nothing is written to a file.
document.addEventListener("click", async (event) => {
  const from = event.target.closest?.("[data-copy]");
  if (!from) return;
  const what = $(from.dataset.copy);
  try {
    await navigator.clipboard.writeText(what.value ?? what.textContent);
    tell("It is copied.");
  } catch {
    tell("This browser does not copy here: copy it by hand.");
  }
});

// A form is sent once: the second press finds it busy. The server would answer the same anyway.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "yes";
  form.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => { delete form.dataset.sent; form.removeAttribute("aria-busy"); }));

// Keys. None of them approves, denies, cancels or revokes.
const places = { n: "/", t: "/tasks", a: "/approvals", b: "/blame", r: "/review", d: "/drift", l: "/ledger" };
let went = -Infinity;
const off = () => localStorage.getItem("batonpass.keys") === "off";
const cards = () => all("[data-card]").filter((one) => one.offsetParent !== null);

function walk(key) {
  const from = document.activeElement?.matches("[data-card]") ? document.activeElement : null;
  if (!from) { ($('.node[aria-current] [data-card]') ?? cards()[0])?.focus(); return; }
  const item = from.closest("li");
  let to = null;
  if (key === "ArrowRight") to = $(":scope > .branch > li [data-card]", item);
  if (key === "ArrowLeft") to = $(":scope > article [data-card]", item.parentElement.closest("li") ?? document.createElement("li"));
  if (key === "ArrowDown" || key === "ArrowUp") {
    const known = cards();
    to = known[known.indexOf(from) + (key === "ArrowDown" ? 1 : -1)];
  }
  to?.focus();
  to?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function nextNeed() {
  const known = all("[data-needs]");
  if (!known.length) { tell("Nothing here needs somebody."); return; }
  const to = known[(known.indexOf(document.activeElement) + 1) % known.length];
  to.focus();
  to.scrollIntoView({ block: "center", inline: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (typing || off() || event.ctrlKey || event.metaKey || event.altKey) return;
  const second = performance.now() - went < 1500 && places[event.key];
  went = -Infinity;
  if (second) { location.href = second; return; }
  if (event.key === "g") { went = performance.now(); return; }
  if (event.key === "/") { event.preventDefault(); $("#find")?.focus(); return; }
  if (event.key === "f" && $("#find-here")) { event.preventDefault(); $("#find-here").focus(); return; }
  if (event.key === "?") { location.href = "/keys"; return; }
  if (event.key === "n") { nextNeed(); return; }
  if (event.key === "y") { (navigator.clipboard?.writeText(location.href) ?? Promise.reject()).then(() => tell("The link is copied."), () => tell("The link could not be copied.")); return; }
  if (event.key === "o" && document.activeElement?.dataset.open) { location.href = document.activeElement.dataset.open; return; }
  if (event.key === "[" || event.key === "]") { const to = $(event.key === "[" ? "[data-hop=before]" : "[data-hop=next]"); if (to) location.href = to.href; return; }
  if (event.key === " " && document.activeElement?.matches("[data-card][aria-expanded]")) { event.preventDefault(); document.activeElement.click(); return; }
  if (event.key.startsWith("Arrow") && $("#tree")) { event.preventDefault(); walk(event.key); }
});
const keys = $("#keys-off");
if (keys) {
  keys.checked = off();
  keys.addEventListener("change", () => localStorage.setItem("batonpass.keys", keys.checked ? "off" : "on"));
}

// A verification that is under way changes no receipt, so nothing tells of its progress: the page asks again.
const again = $("#progress[data-again]");
if (again) setTimeout(() => location.reload(), 1000 * Number(again.dataset.again));
