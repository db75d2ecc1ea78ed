"use strict";
// The token of the form, or of the address behind "#", which no server sees, becomes a session's cookie.
async function logIn(token) {
  const answer = await fetch("/login", { method: "POST", headers: { "X-Ringmaster": "1" }, body: token });
  if (answer.ok) {
    location.reload();
    return;
  }
  document.getElementById("said").textContent = (await answer.text()).trim();
}
document.getElementById("login").addEventListener("submit", (event) => {
  event.preventDefault();
  logIn(document.getElementById("token").value.trim());
});
if (location.hash.length > 1 && !location.hash.startsWith("#run=")) {
  const token = location.hash.slice(1);
  history.replaceState(null, "", "/");
  logIn(token);
}
