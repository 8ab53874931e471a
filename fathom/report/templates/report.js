"use strict";
// Without this script the page is whole: citations lead to the list of claims, and the table stays as it is.

const card = document.getElementById("card");
const body = card.querySelector(".body");
let opener = null;

function place(link) {
  const line = link.getClientRects()[0];
  const room = document.documentElement;
  card.style.inlineSize = Math.min(30 * 16, room.clientWidth - 24) + "px";
  const left = Math.min(Math.max(12, line.left - 24), room.clientWidth - card.offsetWidth - 12);
  const below = line.bottom + 8;
  const fits = below + card.offsetHeight < room.clientHeight - 12;
  const above = Math.max(12, Math.min(line.top - 8, room.clientHeight - 12) - card.offsetHeight);
  card.style.left = left + "px";
  card.style.top = (fits ? below : above) + "px";
}

function open(link) {
  const claim = document.getElementById(link.hash.slice(1)).cloneNode(true);
  card.setAttribute("aria-label", link.getAttribute("aria-label"));
  body.replaceChildren(...claim.childNodes);
  body.scrollTop = 0;
  opener = link;
  card.showPopover();
  place(link);
  card.querySelector(".close").focus();
}

if (card.showPopover) {
  document.querySelectorAll("main a.cite[href^='#claim-'], main a.mark[href^='#claim-']").forEach((link) => {
    link.setAttribute("role", "button");
    link.setAttribute("aria-haspopup", "dialog");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(link);
    });
    link.addEventListener("keydown", (event) => {
      if (event.key === " ") {
        event.preventDefault();
        open(link);
      }
    });
  });
  card.addEventListener("toggle", (event) => {
    const nowhere = document.hasFocus() && [document.body, null].includes(document.activeElement); // not gone to another frame
    if (event.newState === "closed" && opener && nowhere) opener.focus();
  });
  card.addEventListener("click", (event) => {
    if (event.target.closest("a[href^='#']:not(.copy)")) {
      opener = null;
      card.hidePopover();
    }
  });
}

async function copy(link) {
  const label = link.textContent;
  const said = document.getElementById("said");
  await navigator.clipboard.writeText(link.href);
  link.classList.add("copied");
  link.textContent = said.textContent = said.dataset.copied;
  setTimeout(() => {
    link.classList.remove("copied");
    link.textContent = label;
    said.textContent = "";
  }, 1500);
}

if (navigator.clipboard) {
  document.querySelectorAll(".copy").forEach((link) => (link.hidden = false));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.copy, a.anchor");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.replaceState(null, "", link.hash);
    copy(link).catch(() => location.assign(link.hash));
  });
}

function sort(table, column, heading) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows];
  const text = (row) => row.cells[column].innerText.trim();
  const compare = new Intl.Collator(undefined, { numeric: !rows.every((row) => isFinite(text(row))) }).compare;
  const numbers = rows.every((row) => isFinite(text(row)));
  const order = (a, b) => (numbers ? text(a) - text(b) : compare(text(a), text(b)));
  rows.sort((a, b) => (down ? order(b, a) : order(a, b)));
  table.tBodies[0].append(...rows);
  [...heading.parentElement.cells].forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
}

document.querySelectorAll("table.sortable").forEach((table) => {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, column, heading));
    heading.append(button);
  });
});

if (matchMedia("(max-width: 70rem)").matches) document.querySelector(".contents details").open = false;

// The text that a citation stands for: its row, or the sentence that ends before it.
function cited(cite) {
  const row = cite.closest(".prose tr"), block = row || cite.closest("td, li, p, blockquote");
  const range = document.createRange(), nodes = [];
  range.selectNodeContents(block);
  range.setEndBefore(cite);
  const texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && range.intersectsNode(texts.currentNode)) {
    if (!texts.currentNode.parentElement.closest(".cite, .mark")) nodes.push(texts.currentNode);
  }
  const text = nodes.map((node) => node.data).join("").replace(/\s/g, " ").trimEnd(); // a line break would end a sentence
  let at = [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text)].at(-1)?.index;
  const first = nodes.find((node) => at < node.length || ((at -= node.length), false));
  if (first && !row) range.setStart(first, at);
  return range;
}

const parts = "main > section, main tbody tr, .prose > :not(h2), .prose li, .claims > li";

// Mark the sentences that cite a source, and show no other part of the text and the claims; with no number, show all.
function mark(number) {
  const cites = [...document.querySelectorAll("main a.cite")].filter((cite) => cite.textContent === number);
  const kept = [...cites, ...document.querySelectorAll(`#source-${number || 0}, .claims a[href="#source-${number}"]`)];
  document.querySelectorAll(parts).forEach((part) => (part.hidden = Boolean(number) && !kept.some((one) => part.contains(one))));
  document.body.classList.toggle("chosen", Boolean(number));
  document.querySelectorAll(".contents li").forEach((item) => (item.hidden = document.getElementById(item.firstChild.hash.slice(1)).hidden));
  const texts = cites.map(cited);
  document.querySelectorAll(".cite.on").forEach((cite) => cite.classList.remove("on"));
  cites.forEach((cite) => cite.classList.add("on"));
  if (CSS.highlights) CSS.highlights.set("cited", new Highlight(...texts));
  return { marked: number, filtered: true, places: cites.length, top: texts[0]?.getBoundingClientRect().top };
}

// In the frame of a server's page, which cannot look inside: which source is chosen there, how high the report is, and where a link within it leads to.
if (parent !== window) {
  const tell = (what) => parent.postMessage(what, "*");
  const height = () => tell({ height: Math.ceil(document.documentElement.getBoundingClientRect().height), marks: true });
  new ResizeObserver(height).observe(document.body);
  addEventListener("message", ({ data }) => (data.source === undefined ? height() : tell(mark(data.source))));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    const there = link && !event.defaultPrevented && document.getElementById(link.hash.slice(1));
    if (there) tell({ top: there.getBoundingClientRect().top });
  });
}
