// Work lists: a file of records, gone through one by one; drafts are kept by the service.

import { announce, download, fill, h, later } from "./dom.js";
import { guarded, showProblem, withToken } from "./problem.js";
import { fromRecord, headingsOf, suggest } from "./record.js";
import { changed, draft, openRecord, state } from "./state.js";
import { number, t } from "./texts.js";

const STATUSES = ["pending", "draft", "done", "skipped"];
const PAGE = 50;
// Milliseconds until a draft that could not be kept is sent again.
const AGAIN = 3000;

let lists = null;
let items = null;
let offset = 0;
let opening = 0;
let isRefused = false;

/** Look up the lists; the view shows them. */
export async function loadWorklists() {
  const isThere = await withToken(async () => {
    lists = (await state.collection.worklists()).worklists;
    if (state.item) await loadItems(state.item.list.id);
  });
  isRefused = !isThere;
  changed("worklist");
}

async function loadItems(id) {
  items = await state.collection.items(id, { offset, limit: PAGE });
}

export function renderWorklist(root) {
  fill(root,
    h("h2", {}, t("worklist")),
    state.details?.writable
      ? h("p", {}, h("label", { class: "file" }, t("upload"), h("input", {
        type: "file", class: "visually-hidden", id: "worklist-file",
        onchange: (event) => event.target.files[0] && upload(event.target.files[0]),
      })), " ", h("span", { class: "facts" }, t("uploadHint")))
      : h("p", { class: "note" }, t("readOnlyLists")),
    !lists ? !isRefused && h("p", { class: "loading" }, t("loading"))
      : !lists.length ? h("p", { class: "hint" }, t("noWorklists"))
        : h("ul", { class: "worklists" }, lists.map(listEntry)),
    state.item && items && itemTable(),
    h("p", {}, h("button", { type: "button", onclick: exportVerdicts }, t("verdictsExport"))));
}

function listEntry(list) {
  return h("li", {},
    h("strong", {}, list.name), " ",
    h("span", { class: "facts" }, `${number(list.total)} ${t("records")}; `,
      STATUSES.map((status) => `${t(status)} ${number(list[status])}`).join(", ")),
    h("progress", { max: list.total || 1, value: list.done + list.skipped, "aria-label": list.name }),
    h("span", { class: "buttons" },
      h("button", { type: "button", class: "primary", data: { focus: `go-${list.id}` }, onclick: () => goOn(list) }, t("continue")),
      ["jsonl", "csv"].map((format) => h("button", {
        type: "button", onclick: () => exportList(list, format),
      }, `${t("exportAll")} (${format})`)),
      h("button", { type: "button", class: "quiet", onclick: () => removeList(list) }, t("delete"))));
}

async function upload(file) {
  await withToken(async () => {
    const list = await state.collection.newWorklist(file);
    announce(`${list.name}: ${number(list.total)}`);
    await loadWorklists();
    await goOn(list);
  });
}

async function goOn(list) {
  await openItem(list, Math.min(Math.max(list.position ?? 1, 1), list.total));
}

/** Open one record of a work list, with its draft. */
export async function openItem(list, place) {
  if (place < 1 || place > list.total) return;
  const mine = ++opening;
  await withToken(async () => {
    await flushDraft();
    const { collection } = state;
    const item = await collection.item(list.id, place);
    if (mine !== opening || collection !== state.collection) return;
    const record = fromRecord(item.record);
    const kept = item.draft;
    openRecord({ ...record, ...(kept ? { title: kept.title, text: kept.text } : {}) }, kept?.chosen || headingsOf(item.labels || item.record.labels), kept?.decisions || []);
    state.item = { list, place, status: item.status, kept: JSON.stringify(draft()) };
    offset = place - 1 - ((place - 1) % PAGE);
    collection.moveTo(list.id, place).catch(() => { /* the next draft moves it as well */ });
    location.hash = addressOf(state.item);
    changed("record", "suggestions", "headings", "view");
    await suggest();
  });
}

export const addressOf = ({ list, place }) => `#/worklist/${encodeURIComponent(list.id)}/${place}`;

/** The list and place in the address, after a reload. */
export async function resumeItem(id, place) {
  await withToken(async () => {
    const list = await state.collection.worklist(id);
    await openItem(list, place);
  });
}

// What is still to be kept: with its own item, for another one may be open when it is sent.
let pending = null;
let sending = Promise.resolve();
let hasFailed = false;

const saveDraft = later(600, async () => {
  try {
    await flushDraft();
  } catch (error) {
    showProblem(error.message);
    if (pending && error.status !== 401) setTimeout(saveDraft, AGAIN);
  }
});

/** Whether there are decisions that the service does not have yet. */
export const hasPending = () => pending !== null;

/** Keep what was decided so far, soon; a record that was only looked at stays as it is. */
export function touchDraft() {
  if (!state.item) return;
  const now = JSON.stringify(draft());
  if (now === state.item.kept) return;
  state.item.kept = now;
  pending = { collection: state.collection, item: state.item, draft: JSON.parse(now) };
  saveDraft();
}

/** Send what is still to be kept, one draft after the other. */
export function flushDraft() {
  const sent = sending.then(sendDraft);
  sending = sent.catch(() => { /* told to the one who asked */ });
  return sent;
}

async function sendDraft() {
  if (!pending) return;
  const mine = pending;
  pending = null;
  try {
    await mine.collection.saveItem(mine.item.list.id, mine.item.place, { status: "draft", draft: mine.draft });
  } catch (error) {
    hasFailed = true;
    // A list that is gone takes no drafts any more.
    if (error.status !== 404) pending ??= mine;
    throw error;
  }
  if (hasFailed) showProblem("");
  hasFailed = false;
  mine.item.status = "draft";
  changed("item");
}

/** What is needed to leave the record at hand as done or skipped, also when another one is open. */
export function finishing() {
  return {
    collection: state.collection,
    item: state.item,
    draft: JSON.parse(JSON.stringify(draft())),
    labels: state.chosen.map(({ id, name, major }) => ({ id, name, major })),
  };
}

/** Leave a record as done or skipped. */
export async function finishItem(status, { collection, item, draft: kept, labels } = finishing()) {
  if (pending?.item === item) pending = null;
  await sending;
  await collection.saveItem(item.list.id, item.place, { status, draft: kept, labels });
  item.status = status;
  changed("item");
}

export function renderItemBar(root) {
  if (!state.item) return fill(root);
  const { list, place, status } = state.item;
  const go = (by) => openItem(list, place + by);
  const leave = (how) => withToken(async () => {
    await finishItem(how);
    announce(t(how));
    await go(1);
  });
  return fill(root, h("nav", { class: "item-bar", "aria-label": t("worklist") },
    h("strong", {}, list.name), " ",
    h("span", { id: "item-place" }, t("itemOf", { place: number(place), total: number(list.total) })), " ",
    h("span", { class: `status ${status}` }, t(status)),
    h("span", { class: "buttons" },
      h("button", { type: "button", data: { focus: "previous" }, disabled: place === 1, onclick: () => go(-1) }, t("previous"), " ", h("kbd", { "aria-hidden": "true" }, "p")),
      h("button", { type: "button", data: { focus: "next" }, disabled: place >= list.total, onclick: () => go(1) }, t("next"), " ", h("kbd", { "aria-hidden": "true" }, "n")),
      h("button", { type: "button", data: { focus: "skip" }, onclick: (event) => event.detail < 2 && leave("skipped") }, t("skipItem")),
      h("button", { type: "button", data: { focus: "done" }, class: "primary", onclick: (event) => event.detail < 2 && leave("done") }, t("doneItem")))));
}

function itemTable() {
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"), h("th", { scope: "col" }, t("title")), h("th", { scope: "col" }, t("status")))),
    h("tbody", {}, items.items.map((one) => h("tr", {},
      h("td", {}, number(one.place)),
      h("td", {}, h("button", { type: "button", class: "quiet", onclick: () => openItem(state.item.list, one.place) }, one.title || one.id)),
      h("td", { class: `status ${one.status}` }, t(one.status)))))),
  h("p", {}, offset > 0 && h("button", { type: "button", onclick: () => turn(-PAGE) }, t("previous")), " ",
    offset + PAGE < items.total && h("button", { type: "button", onclick: () => turn(PAGE) }, t("next"))));
}

async function turn(by) {
  offset += by;
  await guarded(() => loadItems(state.item.list.id));
  changed("worklist");
}

const exportList = (list, format) => withToken(async () => {
  const text = await state.collection.export(`worklists/${encodeURIComponent(list.id)}/export`, { format });
  download(`${list.name}.${format}`, text, "text/plain");
});

const exportVerdicts = () => withToken(async () => {
  download("verdicts.jsonl", await state.collection.export("verdicts/export", { format: "jsonl" }), "text/plain");
});

async function removeList(list) {
  if (!confirm(t("confirmDelete"))) return;
  const isGone = await withToken(() => state.collection.removeWorklist(list.id));
  if (!isGone) return;
  if (pending?.item.list.id === list.id) pending = null;
  if (state.item?.list.id === list.id) state.item = null;
  await loadWorklists();
}
