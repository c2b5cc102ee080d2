// The record: paste, drop, open, edit; and its text with the words that name a heading marked.

import { announce, fill, h } from "./dom.js";
import { asDocument, changed, emptyRecord, openRecord, state } from "./state.js";
import { number, t } from "./texts.js";
import { guarded } from "./problem.js";

const FULL = 50;
let asking = 0;
// The id of a record to open, as far as it is typed: drawing again must not lose it.
let typedId = "";

/** Ask for headings; `more` also for those that the method would leave out. */
export async function suggest({ more = false } = {}) {
  if (!asDocument().title && !asDocument().text) {
    document.getElementById("text")?.focus();
    return;
  }
  const mine = ++asking;
  const { record } = state;
  state.isBusy = true;
  state.isEditing = false;
  changed("record", "suggestions");
  announce(t("suggesting"));
  await guarded(async () => {
    const asked = { evidence: false, ...(state.method ? { method: state.method } : {}) };
    const short = more
      ? null
      : await state.collection.suggest(asDocument(), asked);
    const answer = more ? await state.collection.suggest(asDocument(), { ...asked, limit: FULL }) : short;
    // An answer about a record that is not open any more.
    if (mine !== asking || record !== state.record) return;
    const suggestions = answer.results[0].suggestions;
    if (!more) {
      state.shortList = new Set(suggestions.map((one) => one.id));
      state.threshold = 0;
      state.showsHidden = false;
      state.hasAll = false;
      state.evidence = new Map();
      state.open = null;
      state.startedAt = Date.now();
    } else {
      state.hasAll = true;
    }
    state.suggestions = suggestions;
    state.answeredBy = answer.method;
    state.generation = answer.generation;
    state.current = suggestions.length ? 0 : -1;
    announce(`${t("suggestions")}: ${number(suggestions.length)}`);
  });
  if (mine !== asking) return;
  state.isBusy = false;
  changed("record", "suggestions", "decisions");
}

/** Open a stored record by its id. */
export async function openStored(id) {
  await guarded(async () => {
    const stored = await state.collection.document(id);
    const fields = Object.values(stored.fields);
    const record = {
      id: stored.id,
      title: stored.title,
      text: [stored.body, ...fields].filter(Boolean).join("\n"),
      language: stored.language,
      stored,
      given: { metadata: stored.metadata, abstract: stored.body, fields: stored.fields },
    };
    state.item = null;
    typedId = "";
    openRecord(
      record,
      stored.labels.map((one) => ({ id: one.id, name: one.name || one.id, major: one.major })),
    );
    changed("record", "suggestions", "headings");
    await suggest();
  });
}

/** Open what a file holds. */
export async function openFile(file) {
  await guarded(async () => {
    const read = await state.collection.read(file);
    if (!read.records.length) throw new Error(read.skipped[0]?.problem || t("noneFound"));
    const given = read.records[0];
    state.item = null;
    openRecord(fromRecord(given), headingsOf(given.labels));
    state.fileNote = read.total > 1 ? t("manyRecords", { count: number(read.total) }) : "";
    changed("record", "suggestions", "headings");
    await suggest();
  });
}

/** The labels of a record as headings. */
export function headingsOf(labels) {
  return (labels || []).map((one) =>
    typeof one === "string" ? { id: one, name: one } : { id: one.id, name: one.name || one.id, major: Boolean(one.major) });
}

/** The text of a record: all its parts but the title. */
export function textOf(given) {
  const texts = [given.abstract, given.text, given.body, ...Object.values(given.fields || {})];
  return texts.filter(Boolean).join("\n");
}

/** A record of a file as the page holds it. */
export function fromRecord(given) {
  return {
    id: given.id ? String(given.id) : "",
    title: given.title || "",
    text: textOf(given),
    language: given.language || null,
    given,
  };
}

export function renderRecord(root) {
  const { record } = state;
  const heading = record.id ? t("recordOf", { id: record.id }) : t("unsavedRecord");
  fill(
    root,
    h("h2", { id: "record-heading" }, heading, record.stored && h("small", {}, ` ${t("stored")}`)),
    state.fileNote && h("p", { class: "note" }, state.fileNote),
    state.isEditing ? editor() : reader(),
    opener(),
  );
}

function editor() {
  const { record } = state;
  const submit = (event) => {
    event.preventDefault();
    suggest();
  };
  const onKey = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return h(
    "form",
    { onsubmit: submit, onkeydown: onKey, class: "editor" },
    h("label", { for: "title" }, t("title")),
    h("textarea", {
      id: "title", rows: 2, value: record.title,
      oninput: (event) => { record.title = event.target.value; changed("typed"); },
    }),
    h("label", { for: "text" }, t("text")),
    h("textarea", {
      id: "text", rows: 12, value: record.text, placeholder: t("drop"),
      oninput: (event) => { record.text = event.target.value; changed("typed"); },
    }),
    h(
      "div",
      { class: "row" },
      h("button", { type: "submit", class: "primary", id: "suggest" }, t("suggest"), " ", h("kbd", { "aria-hidden": "true" }, "Ctrl ⏎")),
      h("label", { class: "file" }, t("choose"), h("input", {
        type: "file", class: "visually-hidden", id: "file",
        onchange: (event) => event.target.files[0] && openFile(event.target.files[0]),
      })),
    ),
  );
}

function reader() {
  const spans = marks();
  return h(
    "div",
    { class: "reader" },
    h("p", { class: "record-title", lang: state.record.language || undefined }, marked(state.record.title, spans.title)),
    h("p", { class: "record-text", lang: state.record.language || undefined }, marked(state.record.text, spans.body)),
    h(
      "div",
      { class: "row" },
      h("button", {
        type: "button", id: "edit",
        onclick: () => { state.isEditing = true; changed("record"); document.getElementById("text").focus(); },
      }, t("edit")),
      h("button", {
        type: "button", id: "new",
        onclick: () => {
          state.item = null;
          openRecord(emptyRecord());
          changed("record", "suggestions", "headings");
          document.getElementById("title").focus();
        },
      }, t("newRecord")),
    ),
  );
}

/** Where the text names the heading whose evidence is shown. */
function marks() {
  const spans = { title: [], body: [] };
  for (const naming of state.evidence.get(state.open)?.evidence?.named || []) {
    spans[naming.place].push(...naming.spans);
  }
  return spans;
}

/** A text with some spans of it, counted in code points, as marks. */
function marked(text, spans) {
  if (!spans.length) return text;
  const points = [...text];
  const parts = [];
  let end = 0;
  for (const [first, last] of [...spans].sort((one, other) => one[0] - other[0])) {
    if (first < end) continue;
    parts.push(points.slice(end, first).join(""), h("mark", {}, points.slice(first, last).join("")));
    end = last;
  }
  parts.push(points.slice(end).join(""));
  return parts;
}

function opener() {
  return h(
    "form",
    {
      class: "opener",
      onsubmit: (event) => {
        event.preventDefault();
        const id = event.target.elements["open-id"].value.trim();
        if (id) openStored(id);
      },
    },
    h("label", { for: "open-id" }, t("openId")),
    h("div", { class: "row" },
      h("input", {
        id: "open-id", name: "open-id", autocomplete: "off", spellcheck: false, value: typedId,
        oninput: (event) => { typedId = event.target.value; },
      }),
      h("button", { type: "submit", id: "open" }, t("open"))),
  );
}

/** Let files be dropped anywhere on an element. */
export function acceptDrops(element) {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("dropping");
  });
  element.addEventListener("dragleave", () => element.classList.remove("dropping"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("dropping");
    const [file] = event.dataTransfer.files;
    const text = event.dataTransfer.getData("text/plain");
    if (file) openFile(file);
    else if (text) {
      state.item = null;
      openRecord({ ...emptyRecord(), text });
      changed("record", "suggestions", "headings");
      suggest();
    }
  });
}
