// Keeps the page of runs up to date. What comes is the page's own part, written and escaped by the hub.
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
  if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 15000); // it was refused, not cut
});
addEventListener("pagehide", () => source.close());
