// The keyboard: one letter per action, listed under "?".

import { h } from "./dom.js";
import { toggleEvidence } from "./evidence.js";
import { save } from "./headings.js";
import { shown, state } from "./state.js";
import { acceptAll, decideOn, moveTo, undoLast } from "./suggestions.js";
import { t } from "./texts.js";
import { showTree } from "./vocabulary.js";
import { openItem } from "./worklist.js";

const current = () => shown()[state.current];

const ACTIONS = {
  j: () => moveTo(state.current + 1),
  k: () => moveTo(state.current - 1),
  a: () => decideOn(state.current, "accepted"),
  r: () => decideOn(state.current, "rejected"),
  i: () => decideOn(state.current, "unneeded"),
  e: () => current() && toggleEvidence(current().id),
  t: () => current() && showTree(current().id),
  u: undoLast,
  A: acceptAll,
  s: save,
  n: () => state.item && openItem(state.item.list, state.item.place + 1),
  p: () => state.item && openItem(state.item.list, state.item.place - 1),
  "/": () => document.getElementById("search")?.focus(),
  "?": showKeys,
};

// Those that a key that is held down does again.
const REPEATED = new Set(["j", "k"]);

const LISTED = [
  ["j k", "keyMove"], ["a r i", "keyDecide"], ["e", "keyWhy"], ["t", "keyTree"], ["u", "keyUndo"],
  ["A", "keyAll"], ["/", "keySearch"], ["s", "keySave"], ["n p", "keyItems"], ["Ctrl ⏎", "keySuggest"],
  ["Esc", "keyClose"], ["?", "keyHelp"],
];

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const { target } = event;
    if (target.closest("input:not([type=checkbox]):not([type=range]), textarea, select")) return;
    const action = ACTIONS[event.key];
    if (!action || (event.repeat && !REPEATED.has(event.key))) return;
    // Nothing is decided or saved about a record that is not in view.
    const isInView = document.getElementById("search")?.checkVisibility();
    if (!isInView && event.key !== "?") return;
    event.preventDefault();
    action();
  });
}

export function showKeys() {
  const opener = document.activeElement;
  const dialog = h("dialog", { "aria-labelledby": "keys-heading" },
    h("h2", { id: "keys-heading" }, t("keysTitle")),
    h("dl", { class: "keys" }, LISTED.map(([keys, about]) => [
      h("dt", {}, keys.split(" ").map((key) => [h("kbd", {}, key), " "])), h("dd", {}, t(about)),
    ])),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, t("close"))));
  dialog.addEventListener("close", () => { dialog.remove(); opener?.focus?.(); });
  document.body.append(dialog);
  dialog.showModal();
}
