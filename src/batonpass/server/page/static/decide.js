// Before somebody decides: what was shown, for how long, and whether its end was reached. No key approves.
const seen = { end: false, same: false, busy: false, said: "", looked: 0, since: document.visibilityState === "visible" ? performance.now() : null };
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
  const closed = approve.dataset.closed ?? (one("#verdict").dataset.passkey && !hasPasskeys() ? "This browser asks no passkeys here: it takes TLS, or localhost" : "");
  const open = seen.end && seen.same && live && !closed && !seen.busy;
  approve.setAttribute("aria-disabled", String(!open));
  one("#hint").textContent = seen.said ? seen.said : closed ? closed : !seen.same ? "What is on this screen is not what the server sent: load the page again"
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
// A passkey signs the digest of the ruling. The ruling has to be about what stands on this screen, so it is read here
// before anybody is asked: the server that made it cannot put another one before the passkey.
async function askPasskey(form) {
  const said = new URLSearchParams([["form", form.elements.form.value], ["decision", "approved"], ["shown", one("#shown").value], ["looked_ms", one("#looked_ms").value]]);
  const answer = await fetch(form.dataset.passkey, { method: "POST", body: said, headers: { Accept: "application/json" } });
  const given = await answer.json();
  if (!answer.ok) throw new Error(given.error?.plain ?? given.error?.message ?? "the server gave no ruling");
  const ruling = JSON.parse(given.ruling);
  const held = form.getAttribute("action").split("/").pop();
  const same = ruling.predicateType === "urn:batonpass:ruling:v0" && ruling.subject[0].name === held && ruling.predicate.decision === "approved"
    && ruling.predicate.shown === one("#shown").value && String(ruling.predicate.looked_ms) === one("#looked_ms").value;
  if (!same) throw new Error("what it was to sign is not what stands on this screen");
  const bytes = new TextEncoder().encode(given.ruling);
  const type = "application/vnd.in-toto+json";
  const head = new TextEncoder().encode(`DSSEv1 ${type.length} ${type} ${bytes.length} `);
  const challenge = await crypto.subtle.digest("SHA-256", new Uint8Array([...head, ...bytes]));
  const signed = await navigator.credentials.get({ publicKey: {
    challenge, rpId: given.site, userVerification: "required", timeout: 300000,
    allowCredentials: [{ type: "public-key", id: fromBase64url(given.credential) }],
  } });
  form.elements.passkey_at.value = given.at;
  form.elements.passkey_client.value = new TextDecoder().decode(signed.response.clientDataJSON);
  form.elements.passkey_authenticator.value = toHex(signed.response.authenticatorData);
  form.elements.passkey_signature.value = toHex(signed.response.signature);
}
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.id !== "verdict" || form.elements.passkey_signature.value) return;
  one("#looked_ms").value = String(lookedMs());
  if (!form.dataset.passkey || event.submitter?.value !== "approved") return;
  event.preventDefault();
  event.stopPropagation();
  if (seen.busy) return;
  seen.busy = true;
  seen.said = "Your passkey is asked…";
  ready();
  try {
    await askPasskey(form);
    seen.busy = false;
    seen.said = "";
    ready();
    form.requestSubmit(one("#approve"));
  } catch (error) {
    seen.busy = false;
    seen.said = whyNot(error);
    ready();
  }
}, true);
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
