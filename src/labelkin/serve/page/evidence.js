// Why a heading is suggested: records, words, signals.

import { h } from "./dom.js";
import { guarded } from "./problem.js";
import { asDocument, changed, state } from "./state.js";
import { decimal, number, t } from "./texts.js";

const CARRIERS = 8;
const LEAST_WEIGHT = 0.05;

/** Show or hide the evidence for a heading. */
export async function toggleEvidence(id) {
  state.open = state.open === id ? null : id;
  changed("decisions", "record");
  if (state.open !== id || state.evidence.has(id)) return;
  // Those of this record, also when another one is open before the answer comes.
  const { evidence } = state;
  const isThere = await guarded(async () => {
    const asked = { carriers: CARRIERS, ...(state.method ? { method: state.method } : {}) };
    const answer = await state.collection.explain(asDocument(), [id], asked);
    evidence.set(id, answer.headings[0] || { unranked: true });
  });
  if (!isThere && state.open === id) state.open = null;
  changed("decisions", "record");
}

export function renderEvidence(id) {
  const found = state.evidence.get(id);
  if (!found) return h("div", { class: "evidence" }, h("p", { class: "loading" }, t("loading")));
  if (found.unranked) return h("div", { class: "evidence" }, h("p", {}, t("unranked")));
  const { evidence } = found;
  // A part of a longer name tells less than the name itself.
  const whole = evidence.named.filter((one) => !one.nested);
  const named = whole.length ? whole : evidence.named;
  return h(
    "div",
    { class: "evidence" },
    named.length > 0 && h("section", {}, h("h3", {}, t("namedAs")), h("ul", {}, named.map(naming))),
    evidence.inferred_from.length > 0 && h("p", {}, `${t("inferredFrom")}: ${evidence.inferred_from.map((one) => one.name).join(", ")}`),
    evidence.neighbours > 0 && h("section", {},
      h("h3", {}, evidence.votes ? t("carriers", evidence) : t("carriersNone", evidence)),
      h("ul", { class: "carriers" }, evidence.carriers.map(carrier))),
    found.signals && signals(found.signals),
  );
}

function naming(one) {
  const facts = [
    t("namedIn", { place: one.place === "title" ? t("placeTitle") : t("placeBody") }),
    one.count > 1 && t("times", { count: number(one.count) }),
    one.nested && t("nested"),
  ].filter(Boolean).join(", ");
  return h("li", {}, one.before, h("mark", {}, one.words), one.after, h("span", { class: "facts" }, ` (${facts})`));
}

function carrier(one) {
  const address = link(one.id);
  const title = one.title || one.id;
  return h("li", {},
    h("span", { class: "distance", title: t("distance", { distance: decimal(one.distance) }) }, decimal(one.distance)),
    h("span", { class: "year" }, one.year ?? ""),
    h("span", {}, address ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, title) : title,
      !one.carries && h("span", { class: "facts" }, ` (${t("share", { share: `${Math.round(one.share * 100)} %` })})`)));
}

/** The address of a record: PubMed's for its numbers, a URI itself. */
function link(id) {
  if (/^\d{1,8}$/.test(id)) return `https://pubmed.ncbi.nlm.nih.gov/${id}/`;
  return /^https?:\/\/[^\s]+$/.test(id) ? id : "";
}

function signals(given) {
  const strong = given.filter((one) => Math.abs(one.weight) >= LEAST_WEIGHT);
  return h("section", {}, h("h3", {}, t("signals")),
    h("table", { class: "signals" }, h("tbody", {}, strong.map((one) =>
      h("tr", {}, h("th", { scope: "row" }, one.name),
        h("td", { class: one.weight < 0 ? "minus" : "plus" }, `${one.weight < 0 ? "−" : "+"}${decimal(Math.abs(one.weight))}`))))));
}
