// The headings of the record: order, main topics, redundancy, saving, export.

import { announce, download, fill, h } from "./dom.js";
import { guarded, withToken } from "./problem.js";
import { textOf } from "./record.js";
import { asDocument, changeHeadings, changed, state, verdicts } from "./state.js";
import { decimal, language, number, t } from "./texts.js";
import { showTree } from "./vocabulary.js";
import { finishItem, finishing } from "./worklist.js";

// Ids of everything above a heading, by its id.
const above = new Map();

export function renderHeadings(root) {
  lookUpBroader();
  const redundant = redundancies();
  fill(
    root,
    h("h2", {}, t("headings")),
    state.chosen.length
      ? h("ol", { class: "headings", id: "headings" }, state.chosen.map((one, place) => item(one, place, redundant.get(one.id))))
      : h("p", { class: "hint" }, t("noHeadings")),
    saving(),
    exporting(),
  );
}

function item(one, place, narrower) {
  const move = (by) => changeHeadings((list) => {
    list.splice(place + by, 0, ...list.splice(place, 1));
    return list;
  });
  const button = (key, symbol, action, props = {}) => h("button", {
    type: "button", class: "quiet", title: t(key), "aria-label": `${t(key)}: ${one.name}`,
    data: { focus: `${key}-${one.id}` }, onclick: action, ...props,
  }, symbol);
  return h("li", { class: one.major ? "major" : "" },
    h("div", { class: "line" },
      button("main", one.major ? "★" : "☆", () => changeHeadings((list) => {
        list[place].major = !list[place].major;
        return list;
      }), { "aria-pressed": String(one.major) }),
      h("span", { class: "heading-name" }, one.name),
      h("span", { class: "buttons" },
        button("up", "↑", () => move(-1), { disabled: place === 0 }),
        button("down", "↓", () => move(1), { disabled: place === state.chosen.length - 1 }),
        button("place", "⌥", () => showTree(one.id)),
        button("remove", "✕", () => changeHeadings((list) => list.filter((other) => other.id !== one.id))))),
    narrower && h("p", { class: "note" }, "⚠ ", t("redundant", { name: narrower })));
}

/** Chosen headings that are broader than another chosen one, with its name. */
function redundancies() {
  const found = new Map();
  for (const one of state.chosen) {
    for (const id of above.get(one.id) || []) {
      if (state.chosen.some((other) => other.id === id)) found.set(id, one.name);
    }
  }
  return found;
}

async function lookUpBroader() {
  const wanted = state.chosen.filter((one) => !above.has(one.id));
  for (const one of wanted) above.set(one.id, []);
  for (const one of wanted) {
    try {
      const place = await state.collection.tree(one.id, { limit: 1 });
      above.set(one.id, place.paths.flatMap((path) => path.slice(0, -1).map((each) => each.id)));
    } catch { /* a heading that the vocabulary does not have is not redundant */ }
  }
  if (wanted.some((one) => above.get(one.id).length)) changed("headings");
}

function saving() {
  if (!state.details?.writable) return h("p", { class: "note" }, t("readOnly"));
  return h(
    "form",
    { class: "saving", onsubmit: (event) => { event.preventDefault(); save(); } },
    !state.record.stored && h("label", {}, t("id"), " ", h("input", {
      id: "record-id", value: state.record.id, placeholder: t("idHint"), autocomplete: "off", spellcheck: false,
      oninput: (event) => { state.record.id = event.target.value.trim(); },
    })),
    h("button", { type: "submit", class: "primary", id: "save", disabled: state.isSaving || !hasText() },
      state.isSaving ? t("saving") : t("save"), " ", h("kbd", { "aria-hidden": "true" }, "s")),
    state.saved && h("div", { class: "saved", id: "saved" },
      h("p", {}, "✓ ", t("saved", state.saved)),
      state.saved.unresolved && h("p", { class: "note" }, "⚠ ", t("unresolved", { names: state.saved.unresolved })),
      state.saved.nearest && h("p", {}, t("effect", state.saved.nearest))),
  );
}

const hasText = () => Boolean(state.record.title.trim() || state.record.text.trim());

/** Store the record with its headings and the verdicts; then show that it counts.

    Another record may be open before it is stored: everything is of the one that was open first. */
export async function save() {
  if (state.isSaving || !hasText() || !state.details?.writable) return;
  const { record, collection, item } = state;
  const labels = state.chosen.map((one) => ({ id: one.id, ...(one.major ? { major: true } : {}) }));
  const document = asDocument();
  const given = withLabels(record, document, labels);
  const finished = item && finishing();
  const decided = {
    method: state.answeredBy || state.details.method,
    generation: state.generation,
    verdicts: verdicts(),
    seconds: Math.round((Date.now() - state.startedAt) / 1000),
    blind: state.isBlind && !state.isRevealed,
  };
  const isSameText = record.stored && record.stored.title === record.title && textOf(record.stored) === record.text;
  state.isSaving = true;
  changed("headings");
  await withToken(async () => {
    let report;
    if (isSameText) report = await collection.correct(document.id, labels);
    else if (!document.id) report = await collection.add(given);
    else if (record.stored || item || (await mayReplace(collection, document.id))) {
      report = await collection.replace(document.id, given);
    } else return;
    if (report.skipped?.length) throw new Error(report.skipped[0].problem);
    const id = document.id || report.ids?.[0];
    record.id = id;
    const { abstract: body = "", text = "", fields = {} } = given;
    record.stored = { ...(record.stored || {}), title: document.title || "", body: [body, text].filter(Boolean).join("\n"), fields, labels };
    await collection.verdicts({ document: { ...document, id }, ...decided });
    const unresolved = Object.keys({ ...report.unresolved, ...report.ambiguous }).join(", ");
    const saved = { id, unresolved, generation: number(report.generation), nearest: await nearest(collection, document, report.generation) };
    if (item) await finishItem("done", finished);
    if (state.record === record) state.saved = saved;
    announce(t("saved", saved));
  });
  state.isSaving = false;
  changed("headings", "record");
}

/** The record as it is stored: with the parts that it came with, unless its text was changed. */
function withLabels(record, document, labels) {
  const given = { ...(record.given || {}), ...document, labels };
  if (!document.title) delete given.title;
  if (record.given && textOf(record.given) === record.text) {
    if (record.given.text === undefined) delete given.text;
    else given.text = record.given.text;
    return given;
  }
  for (const name of ["abstract", "body", "fields"]) delete given[name];
  if (!document.text) delete given.text;
  return given;
}

/** Whether a document that has this id already, if any, is to be replaced. */
async function mayReplace(collection, id) {
  try {
    const there = await collection.document(id);
    return confirm(t("confirmReplace", { id, title: there.title }));
  } catch (error) {
    if (error.status === 404) return true;
    throw error;
  }
}

/** The record that a new text like this one is most similar to: the one that was just saved. */
async function nearest(collection, document, generation) {
  const { id, ...unknown } = document;
  try {
    const answer = await collection.neighbours(unknown, { k: 1, generation });
    const [first] = answer.results[0].neighbours;
    return first && { id: first.id, title: first.title, distance: decimal(first.distance) };
  } catch {
    return null;
  }
}

function exporting() {
  const names = () => state.chosen.map((one) => one.name).join("\n");
  const uris = () => state.chosen.map((one) => one.id).join("\n");
  const marc = () => state.chosen.map((one) => `${one.name}$$2${state.collection.name}/${state.details.heading_language || language()}$$0${one.id}`).join("\n");
  const copy = (make) => guarded(async () => {
    await navigator.clipboard.writeText(make());
    announce(t("copied"));
  });
  const button = (key, action) => h("button", { type: "button", data: { focus: key }, onclick: action, disabled: !state.chosen.length }, t(key));
  return h("details", { class: "exporting", open: state.isExporting, ontoggle: (event) => { state.isExporting = event.target.open; } },
    h("summary", {}, t("export")),
    h("div", { class: "row" },
      button("copyLabels", () => copy(names)),
      button("copyUris", () => copy(uris)),
      button("copyMarc", () => copy(marc)),
      button("json", () => download("record.json", JSON.stringify(exported(), null, 2), "application/json")),
      button("csv", () => download("record.csv", csv(), "text/csv"))));
}

const exported = () => ({
  ...asDocument(),
  labels: state.chosen.map(({ id, name, major }) => ({ id, name, major })),
});

function csv() {
  // A cell that begins like a formula would be one in a spreadsheet.
  const cell = (value) => `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
  const rows = state.chosen.map((one) => [state.record.id, one.id, one.name, one.major ? 1 : 0].map(cell).join(","));
  return ["document,id,name,major", ...rows].join("\r\n") + "\r\n";
}
