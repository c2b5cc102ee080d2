// The vocabulary: search as you type, and the place of a heading in the tree.

import { announce, fill, h, later } from "./dom.js";
import { guarded } from "./problem.js";
import { addHeading, state } from "./state.js";
import { number, t } from "./texts.js";

const PAGE = 20;

let hits = [];
let total = 0;
let active = -1;
let asked = 0;

export function renderSearch(root) {
  const input = h("input", {
    id: "search", type: "search", role: "combobox", autocomplete: "off", spellcheck: false,
    placeholder: t("searchHint"), "aria-expanded": "false", "aria-controls": "hits", "aria-autocomplete": "list",
    oninput: later(40, () => look(input.value)),
    onkeydown: (event) => onKey(event, input),
    onblur: (event) => { if (!root.contains(event.relatedTarget)) close(input); },
  });
  fill(root,
    h("label", { for: "search" }, t("searchLabel"), " ", h("kbd", { "aria-hidden": "true" }, "/")),
    input,
    h("ul", { id: "hits", role: "listbox", "aria-label": t("searchLabel"), hidden: true }),
    h("p", { id: "hit-count", class: "facts" }));
}

async function look(query, offset = 0) {
  const input = document.getElementById("search");
  if (!query.trim()) return close(input);
  const mine = ++asked;
  return guarded(async () => {
    const page = await state.collection.search(query, { offset, limit: PAGE });
    if (mine !== asked) return;
    hits = offset ? [...hits, ...page.concepts] : page.concepts;
    total = page.total;
    active = offset ? active : hits.length ? 0 : -1;
    show(input);
    announce(total ? t("found", { count: number(total) }) : t("noneFound"));
  });
}

function show(input) {
  const list = document.getElementById("hits");
  list.hidden = !hits.length;
  input.setAttribute("aria-expanded", String(hits.length > 0));
  if (active >= 0) input.setAttribute("aria-activedescendant", `hit-${active}`);
  else input.removeAttribute("aria-activedescendant");
  const chosen = new Set(state.chosen.map((one) => one.id));
  fill(list, hits.map((one, place) => h("li", {
    id: `hit-${place}`, role: "option", "aria-selected": String(place === active), class: place === active ? "active" : "",
    onmousedown: (event) => { event.preventDefault(); take(place, input); },
  },
  h("span", {}, one.name, chosen.has(one.id) && " ✓"),
  one.matched !== one.name && h("span", { class: "facts" }, ` ${one.matched}${one.matched_language ? ` (${one.matched_language})` : ""}`),
  h("span", { class: "count" }, number(one.documents)))));
  list.querySelector(".active")?.scrollIntoView({ block: "nearest" });
  fill(document.getElementById("hit-count"),
    input.value.trim() ? (total ? t("found", { count: number(total) }) : t("noneFound")) : "",
    " ",
    hits.length < total && h("button", {
      type: "button", class: "quiet", onclick: () => look(input.value, hits.length),
    }, t("more")));
}

function onKey(event, input) {
  const moves = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in moves && hits.length) {
    event.preventDefault();
    active = (active + moves[event.key] + hits.length) % hits.length;
    if (active >= hits.length - 3 && hits.length < total) look(input.value, hits.length);
    show(input);
  } else if (event.key === "Enter" && active >= 0) {
    event.preventDefault();
    take(active, input);
  } else if (event.key === "Escape") {
    event.preventDefault();
    input.value = "";
    close(input);
    input.blur();
  }
}

function take(place, input) {
  const one = hits[place];
  addHeading(one);
  announce(`${t("pick")}: ${one.name}`);
  input.value = "";
  close(input);
  input.focus();
}

function close(input) {
  hits = [];
  total = 0;
  active = -1;
  asked += 1;
  if (input) show(input);
}

/** Show where a heading stands, with what is around it to pick instead. */
export async function showTree(id) {
  if (document.querySelector("dialog")) return;
  const opener = document.activeElement;
  const dialog = h("dialog", { class: "tree", "aria-labelledby": "tree-heading" });
  dialog.addEventListener("close", () => { dialog.remove(); opener?.focus?.(); });
  document.body.append(dialog);
  const isThere = await guarded(() => fillTree(dialog, id, id));
  if (isThere) dialog.showModal();
  else dialog.remove();
}

async function fillTree(dialog, id, instead) {
  const place = await state.collection.tree(id, { limit: 1000 });
  const take = (concept, other) => {
    addHeading(concept, other);
    announce(`${t("pick")}: ${concept.name}`);
    dialog.close();
  };
  const go = (concept) => guarded(() => fillTree(dialog, concept?.id, instead));
  const isChosen = state.chosen.some((one) => one.id === instead);
  const entry = (concept, facts) => h("li", {},
    h("button", { type: "button", class: "quiet", onclick: () => go(concept) }, concept.name),
    facts && h("span", { class: "facts" }, ` ${facts}`),
    concept.id !== instead && h("button", {
      type: "button", "aria-label": `${t(isChosen ? "pickInstead" : "pick")}: ${concept.name}`,
      onclick: () => take(concept, isChosen ? instead : null),
    }, t(isChosen ? "pickInstead" : "pick")));
  const title = place.concept?.name || t("topOfTree");
  fill(dialog,
    h("h2", { id: "tree-heading", tabIndex: -1 }, t("tree", { name: title })),
    place.paths.length > 0 && h("section", {}, h("h3", {}, t("broader")),
      place.paths.map((path) => h("ol", { class: "path" },
        h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => go(null) }, t("topOfTree"))),
        path.slice(0, -1).map((concept) => entry(concept))))),
    place.concept && h("p", { class: "here" }, place.concept.name, h("span", { class: "facts" }, ` ${number(place.concept.documents)}`),
      place.concept.id !== instead && h("button", {
        type: "button", onclick: () => take(place.concept, isChosen ? instead : null),
      }, t(isChosen ? "pickInstead" : "pick"))),
    place.children.length > 0 && h("section", {}, h("h3", {}, `${t("narrower")} (${number(place.total)})`),
      h("ul", { class: "children" }, place.children.map((concept) => entry(concept, number(concept.documents))))),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, t("close"))));
}
