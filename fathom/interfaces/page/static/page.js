"use strict";
// Without this script everything can still be asked, answered and read: a reload shows what has happened since.

const said = document.getElementById("said");
const run = document.querySelector("[data-run]");
const shown = new WeakMap(); // each part as the server made it: what a reader opens or fills in is no news
document.querySelectorAll("[data-live]").forEach((part) => shown.set(part, part.innerHTML));

// A page that was made anew takes the place of the parts that go on; what somebody writes in stays.
function take(fresh, names) {
  document.querySelectorAll("[data-live]").forEach((part) => {
    const next = fresh.getElementById(part.id);
    if (!next || (names && !names.includes(part.id)) || next.innerHTML === shown.get(part)) return;
    if (part.contains(document.activeElement) && part.querySelector("form")) return;
    part.hidden = next.hidden;
    shown.set(part, next.innerHTML);
    part.replaceChildren(...next.childNodes);
    arm(part);
  });
}

async function load(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.status);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function follow() {
  const spoken = new Set(["step_completed", "section", "error"]);
  let last = Number(run.dataset.last), due = 0, wait = 800, stream;
  async function refresh() {
    due = 0;
    try {
      const fresh = await load(location.pathname);
      const now = fresh.querySelector("[data-run]");
      if (now.hasAttribute("data-over")) {
        stream.close();
        if (!document.activeElement.value) location.replace(location.pathname);
        else said.textContent = "The run has ended.";
        return;
      }
      const asked = document.querySelector("#asked form");
      take(fresh);
      if (!asked && document.querySelector("#asked form")) said.textContent = "The run needs your answer.";
    } catch {
      soon(5000); // the server is not there for a moment
    }
  }
  function soon(after = wait) {
    if (!due) due = setTimeout(refresh, after);
  }
  stream = new EventSource(run.dataset.events);
  const kinds = ["state_change", "step_started", "step_completed", "tool_called", "source_found", "note_created"];
  for (const kind of [...kinds, "reflection", "section", "warning", "error", "now"]) {
    stream.addEventListener(kind, (event) => {
      const id = Number(event.lastEventId || 0);
      if (kind !== "now" && id && id <= last) return;
      if (kind !== "now" && id) last = id;
      if (spoken.has(kind) && event.data) said.textContent = JSON.parse(event.data).message;
      soon();
    });
  }
  stream.addEventListener("error", () => soon(2000)); // ended or broken: the page says which
  addEventListener("pagehide", () => stream.close());
  setInterval(() => document.hidden || soon(), 4000);
}

// The report is of another origin, so that nothing in it can act on this page; its script says how high it is, and where
// a link within it leads to.
function fit(frame, told) {
  if (Number.isFinite(told.height)) {
    frame.style.blockSize = Math.min(Math.max(told.height, 100), 1e6) + "px";
    frame.classList.add("whole");
  }
  if (Number.isFinite(told.top)) scrollTo(0, scrollY + frame.getBoundingClientRect().top + told.top - 16);
}

function arm(part) {
  part.querySelectorAll("form[data-once]").forEach((form) =>
    form.addEventListener("submit", () => setTimeout(() => form.querySelectorAll("button").forEach((b) => (b.disabled = true)))),
  );
  part.querySelectorAll("form[data-confirm]").forEach((form) =>
    form.addEventListener("submit", (event) => confirm(form.dataset.confirm) || event.preventDefault()),
  );
  part.querySelectorAll("[data-key]").forEach((field) => (field.value = [...crypto.getRandomValues(new Uint32Array(4))].join("-")));
}

arm(document);
addEventListener("pageshow", () => document.querySelectorAll("button:disabled").forEach((button) => (button.disabled = false)));

document.addEventListener("keydown", (event) => {
  const at = event.target;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && at.matches("textarea")) {
    event.preventDefault();
    at.form.requestSubmit();
  } else if (event.key === "/" && !event.ctrlKey && !event.metaKey && !at.matches("input, textarea, select")) {
    const box = document.querySelector("[data-slash], textarea[data-submit]");
    if (box) {
      event.preventDefault();
      box.focus();
    }
  } else if (event.key === "Escape") {
    document.querySelectorAll("details.menu[open]").forEach((menu) => {
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
});
document.addEventListener("click", (event) => {
  document.querySelectorAll("details.menu[open]").forEach((menu) => menu.contains(event.target) || (menu.open = false));
});

document.querySelectorAll("form[data-swap]").forEach((form) =>
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    button.disabled = true;
    try {
      take(await load(`${form.action}?${button.name}=${button.value}`), [form.dataset.swap]);
    } catch {
      form.submit();
    }
    button.disabled = false;
  }),
);

document.querySelectorAll("[data-about-of]").forEach((about) => {
  const list = document.getElementById(about.dataset.aboutOf);
  const show = () => (about.textContent = list.selectedOptions[0].dataset.about || "");
  list.addEventListener("change", show);
  show();
});

document.querySelectorAll("form[data-offers]").forEach((form) => {
  let typed = 0;
  async function offers() {
    const chosen = form.querySelector("[name=profile]:checked");
    const asked = new URLSearchParams({ question: form.question.value.slice(0, 2000), template: form.template.value, profile: chosen ? chosen.value : "" });
    const fresh = await load(`${form.dataset.offers}?${asked}`).catch(() => null);
    const facts = fresh ? [...fresh.querySelectorAll(".offer .facts")] : [];
    form.querySelectorAll(".offer .facts").forEach((old, at) => facts[at] && (old.textContent = facts[at].textContent));
  }
  const later = () => {
    clearTimeout(typed);
    typed = setTimeout(offers, 500);
  };
  form.question.addEventListener("input", later);
  form.template.addEventListener("change", later);
});

document.querySelectorAll("iframe[data-report]").forEach((frame) => {
  addEventListener("message", (event) => event.source === frame.contentWindow && event.data && fit(frame, event.data));
  frame.contentWindow.postMessage("height", "*"); // it may have been there before this script
});

if (run && !run.hasAttribute("data-over")) follow();
