"use strict";
// Without this script everything can still be asked, answered and read: a reload shows what has happened since.

const said = document.getElementById("said");
const touch = matchMedia("(hover: none)"); // where the key Enter of the keyboard on the screen begins a line
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
  const address = `/runs/${run.dataset.run}`; // a refused remark is answered at another one, which cannot be read again
  let last = Number(run.dataset.last), due = 0, wait = 800, stream;
  async function refresh() {
    due = 0;
    try {
      const fresh = await load(address);
      const now = fresh.querySelector("[data-run]");
      if (now.hasAttribute("data-over")) {
        stream.close();
        if (!document.activeElement.value) location.replace(address);
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

// Until the report is there, its answer stands in its place.
const uncover = (frame) => frame.parentElement.querySelector(".early")?.remove();

// The report is of another origin, so that nothing in it can act on this page; its script says how high it is, and where
// a link within it leads to.
function fit(frame, told) {
  if (Number.isFinite(told.height)) {
    frame.style.blockSize = Math.min(Math.max(told.height, 100), 1e6) + "px";
    frame.classList.add("whole");
    uncover(frame);
  }
  if (Number.isFinite(told.top)) scrollTo(0, scrollY + frame.getBoundingClientRect().top + told.top - 16);
}

// Times of the server are in UTC; the reader's zone only the browser knows.
function local(time) {
  const at = new Date(time.dateTime), now = new Date(), same = (part) => part(at) === part(now);
  if (isNaN(at)) return;
  const day = { day: "numeric", month: "short", ...(same((one) => one.getFullYear()) ? {} : { year: "numeric" }) };
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(time.closest("#log") ? { second: "2-digit" } : {}) };
  const today = time.closest("#log") ? "" : same((one) => one.toDateString()) ? "today " : `${at.toLocaleDateString("en-GB", day)} `;
  time.textContent = today + at.toLocaleTimeString("en-GB", clock);
  time.title = time.dateTime;
}

function arm(part) {
  part.querySelectorAll("time").forEach(local);
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
  const asks = at.matches("[data-submit]") && !event.shiftKey && !event.isComposing && !event.altKey && !touch.matches;
  if (event.key === "Enter" && (asks || ((event.ctrlKey || event.metaKey) && at.matches("textarea")))) {
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
for (const kind of ["click", "focusin"]) {
  document.addEventListener(kind, (event) => {
    document.querySelectorAll("details.menu[open]").forEach((menu) => menu.contains(event.target) || (menu.open = false));
  });
}

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
    const asked = new URLSearchParams({ question: form.question.value.slice(0, 2000), template: form.template.value, model: form.model.value, profile: chosen ? chosen.value : "" });
    const fresh = await load(`${form.dataset.offers}?${asked}`).catch(() => null);
    const facts = fresh ? [...fresh.querySelectorAll(".offer .facts")] : [];
    form.querySelectorAll(".offer .facts").forEach((old, at) => facts[at] && (old.textContent = facts[at].textContent));
    const models = fresh ? [...fresh.querySelectorAll("option")] : [];
    form.querySelectorAll("#model option").forEach((old, at) => models[at] && (old.textContent = models[at].textContent));
  }
  const later = () => {
    clearTimeout(typed);
    typed = setTimeout(offers, 500);
  };
  form.question.addEventListener("input", later);
  for (const part of ["template", "model"]) form[part].addEventListener("change", later);
  form.querySelector("#offers").addEventListener("change", later);
});

// Files that are dropped on the question, and why one is left out, before they are sent. The server judges again.
document.querySelectorAll("form[data-drop]").forEach((form) => {
  const field = form.querySelector("[type=file]"), list = form.querySelector(".dropped"), limit = field.dataset;
  const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
  let kept = [];
  async function refusal(file) {
    const ending = file.name.slice(Math.max(file.name.lastIndexOf("."), 0)).toLowerCase();
    if (!file.size) return "it is empty, or a folder";
    if (file.size > limit.file) return `larger than ${size(limit.file)}`;
    if (limit.ends.split(" ").includes(ending)) return "";
    return new Uint8Array(await file.slice(0, 4096).arrayBuffer()).includes(0) ? "it is not text, nor of a kind that is read" : "";
  }
  async function add(files) {
    list.replaceChildren();
    const names = new Set([...files].map((file) => file.name)), refused = [];
    kept = kept.filter((file) => !names.has(file.name));
    for (const file of files) {
      const why = await refusal(file).catch(() => "it is a folder");
      const full = kept.length >= limit.count || kept.reduce((sum, one) => sum + one.size, file.size) > limit.all;
      if (why || full) refused.push([file, why || "it is too much with the others"]);
      else kept.push(file);
    }
    for (const [file, why] of [...kept.map((file) => [file]), ...refused]) {
      const line = list.appendChild(document.createElement("li"));
      line.append(why ? `${file.name} is left out: ${why}` : `${file.name}, ${size(file.size)}`);
      if (why) line.className = "wrong";
      else line.append(" ", Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "Remove", ariaLabel: `Remove ${file.name}`, onclick: () => { kept = kept.filter((one) => one !== file); add([]); field.focus(); } }));
    }
    const sent = new DataTransfer();
    kept.forEach((file) => sent.items.add(file));
    field.files = sent.files;
  }
  field.addEventListener("change", () => add([...field.files]));
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    form.addEventListener(kind, (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
      if (kind === "drop") add([...event.dataTransfer.files]);
    });
  }
});

document.querySelectorAll("iframe[data-report]").forEach((frame) => {
  const links = [...document.querySelectorAll("a[data-source]")];
  // Of a chosen source, what cites it is marked, and the rest of the report is hidden until it is chosen again; where the script of an older report cannot, its link leads to it.
  function choose(event) {
    const on = event.currentTarget.getAttribute("aria-pressed");
    if (!on || event.ctrlKey || event.metaKey || event.shiftKey || (event.key && event.key !== " ")) return;
    event.preventDefault();
    links.forEach((link) => link.setAttribute("aria-pressed", link === event.currentTarget && on === "false"));
    frame.contentWindow.postMessage({ source: on === "false" ? event.currentTarget.dataset.source : "" }, "*");
  }
  links.forEach((link) => ["click", "keydown"].forEach((kind) => link.addEventListener(kind, choose)));
  addEventListener("message", ({ source, data }) => {
    if (source !== frame.contentWindow || !data) return;
    fit(frame, data);
    if (data.marks) links.filter((link) => !link.role).forEach((link) => Object.assign(link, { role: "button", ariaPressed: "false" }));
    if (data.marks) document.querySelector("[data-choose]").hidden = !links.length;
    const only = data.filtered ? " Only the parts that cite it are shown." : "";
    if (data.marked) said.textContent = `Source ${data.marked} is cited in ${data.places} place${data.places === 1 ? "" : "s"}.${only}`;
    else if (data.filtered) said.textContent = "All of the report is shown.";
  });
  addEventListener("load", () => uncover(frame)); // reports of earlier versions do not say how high they are
  frame.contentWindow.postMessage("height", "*"); // it may have been there before this script
});

if (run && !run.hasAttribute("data-over")) follow();
