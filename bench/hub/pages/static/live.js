// Updates the page of runs. Each event holds the page's changing part as HTML, rendered and escaped by the hub.
"use strict";
const part = document.getElementById("runs");
const source = new EventSource(part.dataset.events);
source.addEventListener("runs", (event) => {
  const focused = document.activeElement;
  const region = part.contains(focused) ? focused.getAttribute("aria-label") : null;
  part.innerHTML = JSON.parse(event.data);
  document.getElementById("live").hidden = false;
  if (region !== null) part.querySelector(`[aria-label="${CSS.escape(region)}"]`)?.focus();
});
source.addEventListener("error", () => {
  document.getElementById("live").hidden = true;
  // A lost connection is restored by the browser, a rejected one is not.
  if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 15000);
});
addEventListener("pagehide", () => source.close());
