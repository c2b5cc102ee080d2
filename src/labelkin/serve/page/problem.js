// Errors in one line, and the token that writing needs.

import { token } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { state } from "./state.js";
import { t } from "./texts.js";

export function showProblem(text) {
  const place = document.getElementById("problem");
  place.hidden = !text;
  fill(place, text && h("span", {}, text), text && h("button", {
    type: "button", class: "quiet", "aria-label": t("close"), onclick: () => showProblem(""),
  }, "✕"));
}

/** Do some work; an error is shown. True if there was none. */
export async function guarded(work) {
  // Before the work: what a part of it shows must stay.
  showProblem("");
  try {
    await work();
    return true;
  } catch (error) {
    if (!("status" in error) && !(error instanceof Error)) throw error;
    // Before the page knows the collections it cannot ask anything.
    showProblem(state.collection || "status" in error ? error.message : t("unreachable"));
    return false;
  }
}

/** As `guarded`, for what needs the token: asks for it and tries again. */
export async function withToken(work) {
  return guarded(async () => {
    try {
      await work();
    } catch (error) {
      if (error.status !== 401 || !(await askToken())) throw error;
      await work();
    }
  });
}

/** Ask for the token; false if nothing was given. */
export function askToken() {
  asking ??= tokenGiven().finally(() => { asking = null; });
  return asking;
}

let asking = null;

function tokenGiven() {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", id: "token-value", value: token.get(), autocomplete: "off" });
    const dialog = h(
      "dialog",
      { "aria-labelledby": "token-heading" },
      h("form", { method: "dialog" },
        h("h2", { id: "token-heading" }, t("tokenTitle")),
        h("p", {}, t("needsToken"), " ", t("tokenHint")),
        h("label", { for: "token-value" }, t("token")), input,
        h("div", { class: "row" },
          h("button", { value: "ok", class: "primary" }, t("ok")),
          h("button", { value: "cancel", formNoValidate: true }, t("cancel")))),
    );
    dialog.addEventListener("close", () => {
      const isGiven = dialog.returnValue === "ok" && input.value;
      if (isGiven) token.set(input.value.trim());
      dialog.remove();
      resolve(Boolean(isGiven));
    });
    document.body.append(dialog);
    dialog.showModal();
    announce(t("tokenTitle"));
  });
}
