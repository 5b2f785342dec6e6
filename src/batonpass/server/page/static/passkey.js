// Passkeys: what a browser has to be told in bytes, and its answers as text. The server checks everything again.
const fromHex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const toHex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const toBase64url = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const fromBase64url = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const hasPasskeys = () => window.isSecureContext && "PublicKeyCredential" in window;
// What people see if the browser or they themselves said no; browsers do not say which.
const whyNot = (error) => error.name === "NotAllowedError" ? "The passkey did not sign: it was not there, or you left it. Nothing was recorded."
  : error.name === "InvalidStateError" ? "This device has a passkey for you already."
  : error instanceof DOMException ? `The passkey did not sign: ${error.message}` : `Nothing was recorded: ${error.message}`;

const make = document.querySelector("#make");
if (make) {
  const hint = make.querySelector("#hint");
  if (!hasPasskeys()) {
    hint.textContent = "This browser makes no passkeys here: it takes TLS, or localhost.";
    make.querySelector("#make-button").disabled = true;
  }
  let busy = false;
  make.addEventListener("submit", async (event) => {
    if (make.elements.credential.value) return;
    event.preventDefault();
    event.stopPropagation();
    if (busy) return;
    busy = true;
    try {
      const options = JSON.parse(make.dataset.options);
      options.challenge = fromHex(options.challenge);
      options.user.id = fromHex(options.user.id);
      const made = await navigator.credentials.create({ publicKey: options });
      make.elements.credential.value = toBase64url(made.rawId);
      make.elements.client_data.value = toBase64url(made.response.clientDataJSON);
      make.elements.attestation.value = toBase64url(made.response.attestationObject);
      make.requestSubmit();
    } catch (error) {
      hint.textContent = whyNot(error);
    } finally {
      busy = false;
    }
  });
}
