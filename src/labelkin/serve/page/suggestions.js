// The suggested headings: score, band, decision, and the evidence on demand.

import { announce, fill, h } from "./dom.js";
import { renderEvidence, toggleEvidence } from "./evidence.js";
import { suggest } from "./record.js";
import { BLIND_COUNT, bandName, blindRest, canUndo, changed, decide, setBlind, shown, state, undo } from "./state.js";
import { decimal, number, t } from "./texts.js";
import { showTree } from "./vocabulary.js";

const SYMBOLS = { accept: "✓", review: "?", hidden: "·" };
const VERDICTS = [
  ["accepted", "accept", "a", "✓"],
  ["rejected", "reject", "r", "✗"],
  ["unneeded", "unneeded", "i", "~"],
];

export function renderSuggestions(root) {
  fill(root, h("h2", {}, t("suggestions"), state.answeredBy && state.suggestions && h("small", {}, ` ${state.answeredBy}`)), ...content());
}

function content() {
  if (state.isBusy && !state.suggestions) {
    return [h("p", { class: "loading" }, t("suggesting"))];
  }
  if (!state.suggestions) return [blindBox(), h("p", { class: "hint" }, t("empty"))];
  const rest = blindRest();
  if (rest) {
    return [
      blindBox(),
      h("p", { class: "hint" }, t("blindHint", { count: rest })),
      h("button", {
        type: "button", id: "reveal", onclick: () => { state.isRevealed = true; changed("decisions"); },
      }, t("showAnyway")),
    ];
  }
  if (!state.suggestions.length) return [blindBox(), h("p", { class: "hint" }, t("none"))];
  const list = shown();
  state.current = Math.min(Math.max(state.current, 0), list.length - 1);
  return [
    blindBox(),
    toolbar(list),
    h("ol", { class: "suggestions", id: "suggestions" }, list.map(row)),
    moreButton(),
  ];
}

function blindBox() {
  return h("label", { class: "check" }, h("input", {
    type: "checkbox", id: "blind", checked: state.isBlind, onchange: (event) => setBlind(event.target.checked),
  }), " ", t("blind", { count: BLIND_COUNT }));
}

function toolbar() {
  const open = undecided();
  const lowest = Math.min(...state.suggestions.map((one) => one.score), 1);
  return h(
    "div",
    { class: "toolbar" },
    h("label", { class: "slider" }, t("threshold"), " ",
      h("input", {
        type: "range", id: "threshold", min: 0, max: 1, step: 0.01, value: state.threshold,
        "aria-valuetext": decimal(state.threshold),
        oninput: (event) => onThreshold(Number(event.target.value), lowest),
      }),
      h("output", { for: "threshold" }, decimal(state.threshold))),
    h("button", {
      type: "button", id: "accept-all", disabled: !open.length, onclick: acceptAll,
    }, t("acceptAll", { count: open.length }), " ", h("kbd", { "aria-hidden": "true" }, "A")),
    h("button", { type: "button", id: "undo", disabled: !canUndo(), onclick: undoLast },
      t("undo"), " ", h("kbd", { "aria-hidden": "true" }, "u")),
  );
}

function onThreshold(value) {
  state.threshold = value;
  changed("decisions");
}

/** Those of the band accept that nothing was decided about. */
const undecided = () => shown().filter((one) => one.band === "accept" && !state.decisions.has(one.id));

export function acceptAll() {
  const open = undecided();
  if (open.length) decide(open, "accepted");
  announce(`${t("accepted")}: ${number(open.length)}`);
}

export function undoLast() {
  if (undo()) announce(t("undo"));
}

function moreButton() {
  const hidden = (state.suggestions || []).length - shown().length;
  if (state.showsHidden) {
    return h("button", {
      type: "button", id: "more", onclick: () => { state.showsHidden = false; changed("decisions"); },
    }, t("hideHidden"));
  }
  const text = state.hasAll && hidden ? t("showHidden", { count: number(hidden) }) : t("showHiddenSome");
  return h("button", { type: "button", id: "more", onclick: showHidden }, text);
}

async function showHidden() {
  const { current } = state;
  if (!state.hasAll) await suggest({ more: true });
  state.current = current;
  state.showsHidden = true;
  state.threshold = 0;
  changed("decisions");
}

function row(one, place) {
  const decision = state.decisions.get(one.id);
  const isCurrent = place === state.current;
  const isOpen = state.open === one.id;
  const used = one.documents === 1 ? t("usedInOne") : one.documents ? t("usedIn", { count: number(one.documents) }) : t("notUsed");
  return h(
    "li",
    {
      class: `suggestion ${decision || "open"}${isCurrent ? " current" : ""}`,
      data: { id: one.id },
      onfocusin: () => moveTo(place, false),
    },
    h("div", { class: "line" },
      h("button", {
        type: "button", class: "name", data: { focus: `name-${one.id}` },
        "aria-expanded": String(isOpen), "aria-label": label(one, decision),
        title: t("evidence"), onclick: () => toggleEvidence(one.id),
      }, one.name),
      decision && h("span", { class: "decision" }, decisionName(decision)),
      h("span", { class: "score" },
        one.band && h("span", { class: `band ${one.band}` }, h("span", { "aria-hidden": "true" }, `${SYMBOLS[one.band]} `), bandName(one.band)),
        h("span", { class: "bar", "aria-hidden": "true" }, bar(one.score)),
        h("span", { class: "value" }, decimal(one.score)))),
    h("div", { class: "line" },
      h("span", { class: "buttons" },
        VERDICTS.map(([verdict, key, letter, symbol]) => h("button", {
          type: "button", class: `verdict ${verdict}`, data: { focus: `${verdict}-${one.id}` },
          "aria-pressed": String(decision === verdict), "aria-label": `${t(key)}: ${one.name}`, title: t(key),
          // The second click of a double click would take the first one back.
          onclick: (event) => event.detail < 2 && decideOn(place, verdict),
        }, h("span", { "aria-hidden": "true" }, `${symbol} `), h("span", { class: "word" }, t(`${key}Short`)), isCurrent && h("kbd", { "aria-hidden": "true" }, letter)))),
      h("span", { class: "buttons" },
        h("button", {
          type: "button", class: "quiet", data: { focus: `why-${one.id}` }, "aria-expanded": String(isOpen),
          "aria-label": `${t("evidence")} ${one.name}`, onclick: () => toggleEvidence(one.id),
        }, t("evidence"), isCurrent && h("kbd", { "aria-hidden": "true" }, "e")),
        h("button", {
          type: "button", class: "quiet", data: { focus: `tree-${one.id}` }, "aria-label": `${t("place")}: ${one.name}`,
          onclick: () => showTree(one.id),
        }, t("treeShort"), isCurrent && h("kbd", { "aria-hidden": "true" }, "t")),
        h("span", { class: "used" }, used))),
    isOpen && renderEvidence(one.id),
  );
}

const label = (one, decision) =>
  [one.name, t("score", { score: decimal(one.score) }), bandName(one.band), decision && decisionName(decision)].filter(Boolean).join(", ");

export const decisionName = (decision) =>
  ({ accepted: t("accepted"), rejected: t("rejected"), unneeded: t("isUnneeded") })[decision];

/** A bar without styles of its own: the content-security policy forbids them. */
function bar(score) {
  const width = Math.round(score * 60);
  const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawing.setAttribute("viewBox", "0 0 60 8");
  for (const [kind, length] of [["rail", 60], ["fill", width]]) {
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    part.setAttribute("class", kind);
    part.setAttribute("width", String(length));
    part.setAttribute("height", "8");
    part.setAttribute("rx", "2");
    drawing.append(part);
  }
  return drawing;
}

/** Make a suggestion the current one. */
export function moveTo(place, focus = true) {
  const list = shown();
  if (!list.length || blindRest()) return;
  const next = Math.min(Math.max(place, 0), list.length - 1);
  const hasMoved = next !== state.current;
  state.current = next;
  if (hasMoved) {
    for (const [index, item] of [...document.querySelectorAll("#suggestions > li")].entries()) {
      item.classList.toggle("current", index === next);
    }
  }
  if (focus) {
    changed("decisions");
    document.querySelector(`#suggestions > li:nth-child(${next + 1}) .name`)?.focus();
  }
}

/** Decide about a suggestion and go on to the next one that is open. */
export function decideOn(place, verdict) {
  const one = shown()[place];
  if (!one || blindRest()) return;
  decide([one], verdict);
  announce(`${one.name}: ${decisionName(state.decisions.get(one.id)) || t("undo")}`);
}
