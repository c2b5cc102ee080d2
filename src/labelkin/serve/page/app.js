// The page: views, choices, and what is drawn again when something has changed.

import { Collection, collections } from "./api.js";
import { loadComparison, renderComparison } from "./compare.js";
import { loadDashboard, renderDashboard } from "./dashboard.js";
import { fill, h } from "./dom.js";
import { renderHeadings } from "./headings.js";
import { listen, showKeys } from "./keys.js";
import { askToken, guarded, showProblem } from "./problem.js";
import { acceptDrops, openStored, renderRecord, suggest } from "./record.js";
import { canUndo, changed, emptyRecord, onChange, openRecord, state } from "./state.js";
import { renderSuggestions } from "./suggestions.js";
import { initialLanguage, setLanguage, t } from "./texts.js";
import { renderSearch } from "./vocabulary.js";
import { addressOf, flushDraft, hasPending, loadWorklists, renderItemBar, renderWorklist, resumeItem, touchDraft } from "./worklist.js";

const VIEWS = ["record", "worklist", "compare", "dashboard"];
// The collection of this tab, for a reload.
const CHOSEN = "labelkin-collection";
// Milliseconds until a service that does not answer is asked again.
const AGAIN = 3000;
let view = "record";
const parts = {};

function show(next) {
  if (next !== view) showProblem("");
  view = VIEWS.includes(next) ? next : "record";
  drawTabs();
  for (const name of VIEWS) parts[name].hidden = name !== view;
  if (view === "worklist") loadWorklists();
  if (view === "compare") loadComparison();
  if (view === "dashboard") loadDashboard();
  draw();
}

function drawTabs() {
  fill(document.getElementById("tabs"), VIEWS.map((name) => h("a", {
    href: `#/${name}`, data: { focus: `tab-${name}` }, "aria-current": name === view ? "page" : undefined,
  }, t(name))));
}

/** Draw what depends on the changed parts; everything if none is named. */
function draw(changedParts = new Set()) {
  const all = changedParts.size === 0;
  const any = (...names) => all || names.some((name) => changedParts.has(name));
  if (changedParts.has("view")) {
    view = "record";
    drawTabs();
    for (const name of VIEWS) parts[name].hidden = name !== view;
  }
  if (any("record")) renderRecord(parts.text);
  if (any("suggestions", "decisions")) renderSuggestions(parts.suggestions);
  if (any("headings", "decisions")) renderHeadings(parts.headings);
  if (any("record", "item", "headings")) renderItemBar(parts.item);
  if (["decisions", "headings", "typed"].some((part) => changedParts.has(part))) touchDraft();
  if (view === "worklist" && any("worklist")) renderWorklist(parts.worklist);
  if (view === "compare" && any("compare", "headings")) renderComparison(parts.compare);
  if (view === "dashboard" && any("dashboard")) renderDashboard(parts.dashboard);
}

function layOut() {
  parts.text = h("section", { class: "text", "aria-labelledby": "record-heading" });
  parts.suggestions = h("section", { class: "suggesting" });
  parts.search = h("section", { class: "searching" });
  parts.headings = h("section", { class: "choosing" });
  parts.item = h("div", {});
  parts.record = h("div", {}, parts.item,
    h("div", { class: "columns" }, parts.text, parts.suggestions, h("div", {}, parts.search, parts.headings)));
  for (const name of ["worklist", "compare", "dashboard"]) parts[name] = h("div", { class: name, hidden: true });
  document.getElementById("main").append(...VIEWS.map((name) => parts[name]));
  acceptDrops(parts.record);
}

async function chooseCollection(name) {
  const next = new Collection(name);
  const details = await next.details();
  state.collection = next;
  state.details = details;
  sessionStorage.setItem(CHOSEN, name);
  state.method = "";
  const select = document.getElementById("method");
  fill(select, h("option", { value: "" }, t("usualMethod", { name: state.details.method })),
    state.details.methods.filter((one) => one.usable).map((one) => h("option", { value: one.name }, one.name)));
}

function translate(language) {
  setLanguage(language);
  drawTabs();
  renderSearch(parts.search);
  draw();
}

async function followAddress() {
  let parts = [];
  try {
    parts = location.hash.split("/").map(decodeURIComponent);
  } catch { /* no address of this page */ }
  const [, next, first, second] = parts;
  if (next === "worklist" && first) {
    const isOpen = state.item?.list.id === first && state.item.place === Number(second);
    if (!isOpen) await resumeItem(first, Number(second));
    else show("record");
  } else if (next === "record" && first) {
    show("record");
    if (state.record.id !== first) await openStored(first);
  } else {
    // A reload is to find the record of the work list again.
    if (next === "record" && state.item) window.history.replaceState(null, "", addressOf(state.item));
    show(next || "record");
  }
}

async function loadCollections(select) {
  state.collections = await collections();
  fill(select, state.collections.map((one) => h("option", { value: one.name }, one.name)));
  const names = state.collections.map((one) => one.name);
  const before = sessionStorage.getItem(CHOSEN);
  select.value = names.includes(before) ? before : names[0];
  await chooseCollection(select.value);
}

async function start() {
  layOut();
  const language = document.getElementById("language");
  language.value = initialLanguage();
  language.addEventListener("change", () => translate(language.value));
  translate(language.value);
  document.getElementById("token").addEventListener("click", askToken);
  document.getElementById("help").addEventListener("click", showKeys);
  document.getElementById("method").addEventListener("change", (event) => {
    state.method = event.target.value;
    if (state.suggestions) suggest();
  });
  listen();
  onChange(draw);
  const select = document.getElementById("collection");
  while (!(await guarded(() => loadCollections(select)))) {
    await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
  }
  select.addEventListener("change", () => guarded(async () => {
    try {
      await chooseCollection(select.value);
    } finally {
      select.value = state.collection.name;
    }
    state.item = null;
    openRecord(emptyRecord());
    window.history.replaceState(null, "", "#/record");
    show("record");
  }));
  changed("record", "headings");
  await followAddress();
  window.addEventListener("hashchange", followAddress);
  window.addEventListener("beforeunload", (event) => {
    const isUnsaved = !state.item && state.details?.writable && canUndo() && !state.saved;
    if (hasPending()) flushDraft().catch(() => {});
    else if (!isUnsaved) return;
    event.preventDefault();
  });
}

start();
