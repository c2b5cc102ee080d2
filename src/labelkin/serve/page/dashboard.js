// The collection at a glance: the long tail, the latest evaluation, reliability, a map of headings.

import { fill, h, s } from "./dom.js";
import { guarded } from "./problem.js";
import { changed, state } from "./state.js";
import { decimal, number, t } from "./texts.js";

const WIDTH = 480;
const HEIGHT = 300;
const LEFT = 52;
const BOTTOM = 40;
const COLOURS = 12;

let facts = null;
let map = null;
let of = "";

export async function loadDashboard() {
  if (of !== state.collection.name) facts = map = null;
  of = state.collection.name;
  await guarded(async () => { facts = await state.collection.dashboard(); });
  changed("dashboard");
  try {
    map = await state.collection.latent();
  } catch (error) {
    map = { problem: error.message };
  }
  changed("dashboard");
}

export function renderDashboard(root) {
  if (!facts) {
    fill(root, h("h2", {}, t("dashboard")), h("p", { class: "loading" }, t("loading")));
    return;
  }
  fill(root,
    h("h2", {}, t("dashboard"), h("small", {}, ` ${state.collection.name}`)),
    h("dl", { class: "figures" },
      figure(t("documents"), number(facts.documents)),
      figure(t("concepts"), `${number(facts.concepts)} (${number(facts.concepts_used)} ${t("used")})`),
      figure(t("perDocument"), decimal(facts.per_document.mean, 1)),
      Object.entries(facts.languages).slice(0, 3).map(([name, count]) => figure(name, number(count)))),
    h("div", { class: "charts" },
      section(t("longTail"), longTail(facts.frequencies)),
      section(t("evaluation"), facts.evaluation ? evaluation(facts.evaluation) : h("p", { class: "hint" }, t("noEvaluation"))),
      section(t("reliability"), facts.reliability ? reliability(facts.reliability) : h("p", { class: "hint" }, t("noReliability"))),
      section(t("latent"), !map ? h("p", { class: "loading" }, t("loading")) : map.problem ? h("p", { class: "hint" }, t("noLatent")) : latent(map)),
      section(t("models"), h("ul", {}, facts.models.map(model)))));
}

const figure = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
const section = (title, ...content) => h("section", {}, h("h3", {}, title), ...content);

function model(one) {
  const since = one.problem ? one.problem
    : one.added || one.removed || one.unknown_headings
      ? t("since", { added: number(one.added || 0), removed: number(one.removed || 0), headings: number(one.unknown_headings || 0) + (one.unknown?.length ? ` (${one.unknown.join(", ")})` : "") })
      : t("sinceNothing");
  const without = one.headings_without_row ? `; ${t("withoutRow", { count: number(one.headings_without_row) })}` : "";
  return h("li", {}, h("strong", {}, one.name), `: ${since}${without}`, one.outdated && h("span", { class: "note" }, ` ⚠ ${t("outdated")}`));
}

function evaluation(given) {
  const methods = Object.keys(given.methods || {}).length ? given.methods : { [given.method]: given.measures };
  const names = Object.keys(methods);
  const measures = [...new Set(names.flatMap((name) => Object.keys(methods[name])))];
  return [
    h("p", { class: "facts" }, `${number(given.documents)} ${t("records")}${given.at ? `, ${given.at.slice(0, 10)}` : ""}`),
    h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": t("evaluation") }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("measure")), names.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, measures.map((measure) => h("tr", {}, h("th", { scope: "row" }, measure),
        names.map((name) => h("td", {}, methods[name][measure] == null ? "–" : decimal(methods[name][measure], 3)))))))),
  ];
}

/** A drawing with axes; `x` and `y` give places for values. */
function chart(label, { x, y, ticksX, ticksY, nameX, nameY }, ...marks) {
  return s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "chart" },
    ticksY.map(([value, name]) => [
      s("line", { class: "grid", x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
      s("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, name)]),
    ticksX.map(([value, name]) => s("text", { x: x(value), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, name)),
    s("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, nameX),
    s("text", { x: 12, y: (HEIGHT - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(HEIGHT - BOTTOM) / 2})` }, nameY),
    ...marks);
}

const scale = (from, to, first, last) => (value) => first + ((value - from) / (to - from || 1)) * (last - first);
const powers = (most) => Array.from({ length: Math.floor(Math.log10(most)) + 1 }, (_, power) => [power, number(10 ** power)]);

function longTail({ points, at_least: atLeast }) {
  if (!points.length) return h("p", { class: "hint" }, "–");
  const most = [Math.max(...points.map(([rank]) => rank)), Math.max(...points.map(([, count]) => count))];
  const x = scale(0, Math.log10(most[0]), LEFT, WIDTH - 12);
  const y = scale(0, Math.log10(most[1]), HEIGHT - BOTTOM, 10);
  const path = points.map(([rank, count], place) => `${place ? "L" : "M"}${x(Math.log10(rank)).toFixed(1)} ${y(Math.log10(Math.max(count, 1))).toFixed(1)}`).join("");
  return [
    chart(t("longTail"), { x, y, ticksX: powers(most[0]), ticksY: powers(most[1]), nameX: t("rankAxis"), nameY: t("documentsAxis") },
      s("path", { class: "curve", d: path })),
    h("ul", { class: "facts" }, Object.entries(atLeast).map(([count, headings]) => h("li", {}, `${number(headings)} ${t("atLeast", { count: number(Number(count)) })}`))),
  ];
}

function reliability({ bins, ece, accept, review }) {
  const x = scale(0, 1, LEFT, WIDTH - 12);
  const y = scale(0, 1, HEIGHT - BOTTOM, 10);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, decimal(value)]);
  const most = Math.max(...bins.map((one) => one.count), 1);
  return [
    chart(t("reliability"), { x, y, ticksX: ticks, ticksY: ticks, nameX: t("scoreAxis"), nameY: t("precisionAxis") },
      s("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }),
      [accept, review].filter((value) => value != null).map((value) => s("line", { class: "limit", x1: x(value), x2: x(value), y1: y(0), y2: y(1) })),
      bins.filter((one) => one.count).map((one) => s("circle", {
        class: "dot", cx: x(one.score), cy: y(one.precision), r: 3 + 7 * Math.sqrt(one.count / most),
      }, s("title", {}, `${decimal(one.score)} → ${decimal(one.precision)} (${number(one.count)})`)))),
    ece != null && h("p", { class: "facts" }, `ECE ${decimal(ece, 3)}`),
  ];
}

function latent({ points, branches }) {
  const xs = points.map((one) => one.x);
  const ys = points.map((one) => one.y);
  const x = scale(Math.min(...xs), Math.max(...xs), 10, WIDTH - 10);
  const y = scale(Math.min(...ys), Math.max(...ys), WIDTH - 10, 10);
  const colour = new Map(branches.filter((one) => one.id).slice(0, COLOURS).map((one, place) => [one.id, `branch-${place}`]));
  const named = [...points].sort((one, other) => other.documents - one.documents).slice(0, 12);
  return [
    s("svg", { viewBox: `0 0 ${WIDTH} ${WIDTH}`, role: "img", "aria-label": t("latent"), class: "chart" },
      points.map((one) => s("circle", {
        class: colour.get(one.branch || "other") || "branch-other", cx: x(one.x).toFixed(1), cy: y(one.y).toFixed(1), r: 1.5 + Math.log10(1 + one.documents),
      }, s("title", {}, `${one.name} (${number(one.documents)})`))),
      named.map((one) => s("text", { class: "name", x: x(one.x).toFixed(1), y: (y(one.y) - 6).toFixed(1), "text-anchor": "middle" }, one.name))),
    h("ul", { class: "legend" }, branches.map((one) => h("li", {},
      s("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, s("circle", { class: colour.get(one.id) || "branch-other", cx: 5, cy: 5, r: 5 })), ` ${one.id ? one.name : t("other")} (${number(one.count)})`))),
  ];
}
