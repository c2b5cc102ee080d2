// What each method suggests for the record at hand, side by side.

import { fill, h } from "./dom.js";
import { guarded } from "./problem.js";
import { asDocument, changed, state } from "./state.js";
import { decimal, t } from "./texts.js";

const LIMIT = 15;
let answer = null;
let key = "";

/** Ask all methods, unless they have been asked about this text. */
export async function loadComparison() {
  const wanted = JSON.stringify([state.collection.name, asDocument()]);
  if (wanted === key || !hasText()) return;
  answer = null;
  await guarded(async () => {
    answer = await state.collection.compare(asDocument(), { limit: LIMIT, evidence: false });
    key = wanted;
  });
  changed("compare");
}

const hasText = () => Boolean(asDocument().title || asDocument().text);

export function renderComparison(root) {
  if (!hasText()) {
    fill(root, h("h2", {}, t("compare")), h("p", { class: "hint" }, t("compareHint")));
    return;
  }
  if (!answer) {
    fill(root, h("h2", {}, t("compare")), h("p", { class: "loading" }, t("loading")));
    return;
  }
  const rows = new Map();
  for (const { method, suggestions } of answer.results) {
    for (const one of suggestions) {
      if (!rows.has(one.id)) rows.set(one.id, { name: one.name, scores: new Map() });
      rows.get(one.id).scores.set(method, one);
    }
  }
  const rank = (row) => [...row.scores.values()].reduce((sum, one) => sum + 1 / one.rank, 0);
  const sorted = [...rows].sort(([, one], [, other]) => rank(other) - rank(one));
  const chosen = new Set(state.chosen.map((one) => one.id));
  fill(root,
    h("h2", {}, t("compare")),
    h("p", { class: "facts" }, state.record.title || state.record.text.slice(0, 120)),
    h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": t("compare") }, h("table", { class: "comparison" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("heading")), answer.results.map((one) => h("th", { scope: "col" }, one.method)))),
      h("tbody", {}, sorted.map(([id, row]) => h("tr", { class: chosen.has(id) ? "chosen" : "" },
        h("th", { scope: "row" }, row.name, chosen.has(id) && " ✓"),
        answer.results.map(({ method }) => {
          const one = row.scores.get(method);
          return h("td", {}, one ? [h("span", { class: "value" }, decimal(one.score)), h("span", { class: "facts" }, ` ${t("rank", { rank: one.rank })}`)] : "–");
        })))))));
}
