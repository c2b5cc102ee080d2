// What the page knows: the record at hand, its suggestions, the decisions, the chosen headings.

import { t } from "./texts.js";

const BLIND = "labelkin-blind";
// Own headings to choose before suggestions are shown, if that is wanted.
export const BLIND_COUNT = 2;

export const state = {
  collections: [],
  collection: null,
  details: null,
  method: "",
  record: emptyRecord(),
  isEditing: true,
  isBusy: false,
  suggestions: null,
  shortList: new Set(),
  answeredBy: "",
  generation: null,
  threshold: 0,
  showsHidden: false,
  decisions: new Map(),
  chosen: [],
  current: -1,
  evidence: new Map(),
  open: null,
  isBlind: localStorage.getItem(BLIND) === "1",
  isRevealed: false,
  item: null,
  saved: null,
  startedAt: Date.now(),
};

const history = [];
const listeners = new Set();

export function emptyRecord() {
  return { id: "", title: "", text: "", language: null, stored: null };
}

/** Call `listener` after each change. */
export function onChange(listener) {
  listeners.add(listener);
}

export function changed(...parts) {
  for (const listener of listeners) listener(new Set(parts));
}

/** The record as the service takes it; a stored one is not its own evidence. */
export function asDocument(record = state.record) {
  const given = {};
  if (record.id) given.id = record.id;
  if (record.title.trim()) given.title = record.title;
  if (record.text.trim()) given.text = record.text;
  if (record.language) given.language = record.language;
  return given;
}

/** Start over with a record and the headings that it has. */
export function openRecord(record, headings = [], decisions = []) {
  state.record = { ...emptyRecord(), ...record };
  state.isEditing = !(record.title || record.text);
  state.suggestions = null;
  state.decisions = new Map(decisions);
  state.chosen = headings.map((one) => ({ major: false, source: "stored", ...one }));
  state.current = -1;
  state.evidence = new Map();
  state.open = null;
  state.isRevealed = false;
  state.saved = null;
  state.fileNote = "";
  state.startedAt = Date.now();
  history.length = 0;
}

function remember() {
  history.push({ decisions: new Map(state.decisions), chosen: state.chosen.map((one) => ({ ...one })) });
}

/** Take back the last decision; false if there is none. */
export function undo() {
  const before = history.pop();
  if (!before) return false;
  state.decisions = before.decisions;
  state.chosen = before.chosen;
  changed("decisions", "headings");
  return true;
}

export const canUndo = () => history.length > 0;

/** Decide about some suggestions; the same decision again takes it back. */
export function decide(suggestions, verdict) {
  remember();
  for (const one of suggestions) {
    const isSame = suggestions.length === 1 && state.decisions.get(one.id) === verdict;
    if (isSame) state.decisions.delete(one.id);
    else state.decisions.set(one.id, verdict);
    const isChosen = state.chosen.some((heading) => heading.id === one.id);
    if (!isSame && verdict === "accepted" && !isChosen) {
      state.chosen.push({ id: one.id, name: one.name, major: false, source: "suggested" });
    } else if (isChosen && (isSame || verdict !== "accepted")) {
      state.chosen = state.chosen.filter((heading) => heading.id !== one.id);
    }
  }
  state.saved = null;
  changed("decisions", "headings");
}

/** Add a heading of the indexer's own choice, perhaps in the place of another. */
export function addHeading(concept, instead = null) {
  remember();
  const suggestion = state.suggestions?.find((one) => one.id === concept.id);
  if (suggestion) state.decisions.set(concept.id, "accepted");
  if (!state.chosen.some((heading) => heading.id === concept.id)) {
    const source = suggestion ? "suggested" : "added";
    const heading = { id: concept.id, name: concept.name, major: false, source };
    const place = state.chosen.findIndex((one) => one.id === instead);
    if (place >= 0) state.chosen.splice(place, 1, heading);
    else state.chosen.push(heading);
  }
  if (instead && state.decisions.has(instead)) state.decisions.set(instead, "rejected");
  state.saved = null;
  changed("decisions", "headings");
}

/** Change the list of headings; `change` gets a copy. */
export function changeHeadings(change) {
  remember();
  const before = new Set(state.chosen.map((one) => one.id));
  state.chosen = change(state.chosen.map((one) => ({ ...one })));
  for (const one of state.chosen) before.delete(one.id);
  for (const id of before) state.decisions.delete(id);
  state.saved = null;
  changed("decisions", "headings");
}

export function setBlind(value) {
  state.isBlind = value;
  localStorage.setItem(BLIND, value ? "1" : "0");
  changed("decisions");
}

/** How many own headings are still to be chosen before suggestions are shown. */
export function blindRest() {
  if (!state.isBlind || state.isRevealed) return 0;
  const own = state.chosen.filter((one) => one.source !== "suggested").length;
  return Math.max(0, BLIND_COUNT - own);
}

/** The suggestions that are shown: the short list, or more of them. */
export function shown() {
  const all = state.suggestions || [];
  return all.filter(
    (one) =>
      state.decisions.has(one.id) ||
      ((state.showsHidden || (state.shortList.has(one.id) && one.band !== "hidden")) &&
        one.score >= state.threshold),
  );
}

/** What is stored as verdicts: every decision, and every heading that was not suggested. */
export function verdicts() {
  const suggested = new Map((state.suggestions || []).map((one) => [one.id, one]));
  const given = [...state.decisions].map(([id, verdict]) => verdictOn(id, verdict, suggested.get(id)));
  for (const heading of state.chosen) {
    if (state.decisions.has(heading.id)) continue;
    const suggestion = suggested.get(heading.id);
    given.push(verdictOn(heading.id, suggestion ? "accepted" : "added", suggestion));
  }
  return given;
}

function verdictOn(id, verdict, suggestion) {
  return {
    id,
    verdict,
    score: suggestion?.score ?? null,
    rank: suggestion?.rank ?? null,
    band: suggestion?.band ?? null,
  };
}

/** A draft that can be taken up again after a reload. */
export function draft() {
  return {
    title: state.record.title,
    text: state.record.text,
    chosen: state.chosen,
    decisions: [...state.decisions],
  };
}

export const bandName = (band) =>
  ({ accept: t("bandAccept"), review: t("bandReview"), hidden: t("bandHidden") })[band] || "";
