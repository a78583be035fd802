// Sends changes of a result to the API, with the token that the visitor enters. It is kept until the tab is closed.
"use strict";
const form = document.getElementById("edit");
const answer = form.querySelector("output");
form.token.value = sessionStorage.getItem("devbench-token") ?? "";
form.parentElement.hidden = false;
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const deletes = event.submitter.value === "delete";
  if (deletes && !confirm("Delete this result? This cannot be undone.")) return;
  const headers = { "Content-Type": "application/json" };
  if (form.token.value) headers.Authorization = `Bearer ${form.token.value}`;
  const change = {
    tags: form.tags.value.toLowerCase().split(/[\s,]+/).filter(Boolean),
    note: form.note.value,
    silenced: form.silenced.checked,
  };
  try {
    const request = deletes ? { method: "DELETE", headers } : { method: "PATCH", headers, body: JSON.stringify(change) };
    const response = await fetch(form.dataset.address, request);
    if (response.ok) {
      sessionStorage.setItem("devbench-token", form.token.value);
      location.assign(deletes ? form.dataset.list : location.href);
    } else {
      const problem = await response.json();
      answer.textContent = [problem.detail, problem.hint].filter(Boolean).join(". ");
    }
  } catch {
    answer.textContent = "The hub does not answer. Try again.";
  }
});
