// The code of a one-time link stands behind the #, so no server has seen it yet. It is sent once, and taken off the address.
const code = location.hash.slice(1);
if (/^[A-Za-z0-9_-]{16,64}$/.test(code)) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("told").hidden = false;
  document.getElementById("code").value = code;
  document.getElementById("enter").submit();
}
