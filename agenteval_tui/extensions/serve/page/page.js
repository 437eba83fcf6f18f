// Before textual.js begins (when all is loaded): where the app is, as the browser sees it, through whatever tunnel.
window.addEventListener("DOMContentLoaded", () => {
  const address = new URL("ws", window.location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  document.getElementById("terminal").dataset.sessionWebsocketUrl = `${address.protocol}//${address.host}${address.pathname}`;
  document.getElementById("again").addEventListener("click", () => window.location.reload());
});
// The terminal measures its letters when it begins: its font must be there by then.
document.fonts.load("16px 'Roboto Mono'");
// Keys go to the app without a click first.
new MutationObserver((_, watching) => {
  const field = document.querySelector(".xterm-helper-textarea");
  if (field && document.body.classList.contains("-first-byte")) {
    field.focus();
    watching.disconnect();
  }
}).observe(document, { attributes: true, childList: true, subtree: true });
