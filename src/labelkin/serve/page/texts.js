// The texts of the page in English and German.

const LANGUAGE = "labelkin-language";

const TEXTS = {
  en: {
    skip: "Skip to the record", views: "Views", collection: "Collection", method: "Method",
    language: "Language", token: "Token…", keys: "Keys", record: "Record", worklist: "Work list",
    compare: "Compare methods", dashboard: "Dashboard",
    unreachable: "The service cannot be reached. Is it still running?",
    usualMethod: "usual ({name})",
    title: "Title", text: "Text", suggest: "Suggest headings", suggesting: "Looking for headings…",
    edit: "Edit the text", newRecord: "New record", openId: "Open a record by its id", open: "Open",
    drop: "Paste a text, or drop a file here (.txt, .json, PubMed XML)", choose: "Choose a file…",
    recordOf: "Record {id}", unsavedRecord: "New record", stored: "stored in the collection",
    manyRecords: "The file has {count} records; the first is shown. Use the work list for all.",
    suggestions: "Suggestions", none: "No heading can be suggested for this text.",
    empty: "Paste a text or open a record, then ask for headings. Each comes with the reasons for it.",
    threshold: "Least score", showHidden: "Show hidden headings ({count})",
    showHiddenSome: "Show more headings", hideHidden: "Hide them again",
    acceptAll: "Accept all marked “accept” ({count})",
    accept: "Accept", reject: "Reject", unneeded: "Right but not needed", undo: "Undo",
    acceptShort: "Accept", rejectShort: "Reject", unneededShort: "Not needed", treeShort: "Tree",
    accepted: "accepted", rejected: "rejected", isUnneeded: "right but not needed",
    bandAccept: "accept", bandReview: "review", bandHidden: "hidden",
    score: "score {score}", usedIn: "{count} records", usedInOne: "1 record",
    notUsed: "not used yet",
    evidence: "Why?", closeEvidence: "Close", loading: "Loading…",
    blind: "Hide suggestions until I have chosen {count} headings of my own",
    blindHint: "Choose {count} more headings of your own first; suggestions follow.",
    showAnyway: "Show them now",
    carriers: "{votes} of the {neighbours} most similar records carry it",
    carriersNone: "None of the {neighbours} most similar records carries it",
    distance: "distance {distance}", share: "{share} of the score",
    inferredFrom: "Inferred from", namedAs: "Named in the text", namedIn: "in the {place}",
    placeTitle: "title", placeBody: "text", times: "{count} times", nested: "part of a longer name",
    signals: "Signals (log odds)", unranked: "The method does not rank this heading at all.",
    headings: "Headings of this record", noHeadings: "No heading chosen yet.",
    main: "Main topic", up: "Move up", down: "Move down", remove: "Remove", place: "Place in the tree",
    redundant: "Broader than {name}, which is chosen as well",
    searchLabel: "Add a heading: search all names", searchHint: "name, synonym, id or notation",
    found: "{count} headings found", noneFound: "No heading found", more: "Show more",
    broader: "Broader", narrower: "Narrower", tree: "Place of “{name}” in the vocabulary",
    pick: "Add", pickInstead: "Take this instead", topOfTree: "Top of the vocabulary", close: "Close",
    save: "Save to the collection", saving: "Saving…", id: "Id", idHint: "empty: made from the text",
    saved: "Saved as {id}. It counts from now on (state {generation} of the collection).",
    effect: "The record most similar to this text is now: {title} ({id}), distance {distance}.",
    readOnly: "This service is read-only; export the headings instead.",
    readOnlyLists: "This service is read-only: work lists can be looked at, not changed.",
    unresolved: "Not in the vocabulary, so never suggested: {names}",
    needsToken: "Saving needs the token of the service (LABELKIN_TOKEN).",
    tokenTitle: "Token of the service", tokenHint: "Kept in this tab only.", ok: "OK", cancel: "Cancel",
    export: "Copy or export", copyLabels: "Copy names", copyUris: "Copy URIs",
    copyMarc: "Copy as name$$2vocab/lang$$0uri", json: "JSON file", csv: "CSV file", copied: "Copied.",
    upload: "New work list from a file", uploadHint: "Any corpus file that labelkin reads",
    noWorklists: "No work list yet.", pending: "pending", draft: "draft", done: "done", skipped: "skipped",
    continue: "Continue", exportAll: "Export all", delete: "Delete", confirmDelete: "Delete this work list?",
    confirmReplace: "The collection has a record {id} already: {title}. Replace it?",
    itemOf: "{place} of {total}", previous: "Previous", next: "Next", skipItem: "Skip", doneItem: "Done",
    status: "Status", records: "records", verdictsExport: "Export all verdicts",
    compareHint: "Suggest headings for a record first; then see what each method says of it.",
    heading: "Heading", rank: "rank {rank}",
    documents: "Records", concepts: "Headings", used: "in use", longTail: "Records per heading (the long tail)",
    rankAxis: "headings by rank", documentsAxis: "records", evaluation: "Latest evaluation",
    noEvaluation: "Nothing has been evaluated yet: `labelkin train` does so.",
    reliability: "Reliability: score against observed precision", precisionAxis: "precision",
    scoreAxis: "score", noReliability: "No figures: train the reranker.",
    latent: "Map of the headings (label autoencoder)", noLatent: "No map: train the label autoencoder.",
    models: "Models", since: "{added} records added and {removed} removed since training, {headings} new headings",
    sinceNothing: "up to date", withoutRow: "{count} headings in use are suggested by votes and names only",
    outdated: "training again may help", other: "other",
    perDocument: "headings per record", measure: "Measure", atLeast: "headings with at least {count} records",
    keysTitle: "Keys", keyMove: "next / previous heading", keyDecide: "accept, reject, right but not needed",
    keyWhy: "why (evidence)", keyTree: "place in the tree", keyUndo: "undo", keyAll: "accept all marked “accept”",
    keySearch: "search the vocabulary", keySave: "save", keyHelp: "this list", keySuggest: "suggest headings",
    keyItems: "next / previous record of the work list", keyClose: "close",
  },
  de: {
    skip: "Zum Datensatz springen", views: "Ansichten", collection: "Sammlung", method: "Verfahren",
    language: "Sprache", token: "Token…", keys: "Tasten", record: "Datensatz", worklist: "Arbeitsliste",
    compare: "Verfahren vergleichen", dashboard: "Übersicht",
    unreachable: "Der Dienst ist nicht erreichbar. Läuft er noch?",
    usualMethod: "üblich ({name})",
    title: "Titel", text: "Text", suggest: "Schlagwörter vorschlagen", suggesting: "Suche Schlagwörter…",
    edit: "Text bearbeiten", newRecord: "Neuer Datensatz", openId: "Datensatz über seine Id öffnen", open: "Öffnen",
    drop: "Text einfügen oder eine Datei hierher ziehen (.txt, .json, PubMed-XML)", choose: "Datei wählen…",
    recordOf: "Datensatz {id}", unsavedRecord: "Neuer Datensatz", stored: "in der Sammlung gespeichert",
    manyRecords: "Die Datei hat {count} Datensätze; der erste wird gezeigt. Für alle gibt es die Arbeitsliste.",
    suggestions: "Vorschläge", none: "Für diesen Text lässt sich kein Schlagwort vorschlagen.",
    empty: "Text einfügen oder Datensatz öffnen und Schlagwörter vorschlagen lassen. Jedes kommt mit seinen Gründen.",
    threshold: "Mindestwert", showHidden: "Verborgene Schlagwörter zeigen ({count})",
    showHiddenSome: "Weitere Schlagwörter zeigen", hideHidden: "Wieder verbergen",
    acceptAll: "Alle mit „annehmen“ annehmen ({count})",
    accept: "Annehmen", reject: "Ablehnen", unneeded: "Richtig, aber unnötig", undo: "Rückgängig",
    acceptShort: "Annehmen", rejectShort: "Ablehnen", unneededShort: "Unnötig", treeShort: "Systematik",
    accepted: "angenommen", rejected: "abgelehnt", isUnneeded: "richtig, aber unnötig",
    bandAccept: "annehmen", bandReview: "prüfen", bandHidden: "verborgen",
    score: "Wert {score}", usedIn: "{count} Datensätze", usedInOne: "1 Datensatz", notUsed: "noch nicht vergeben",
    evidence: "Warum?", closeEvidence: "Schließen", loading: "Lädt…",
    blind: "Vorschläge verbergen, bis ich {count} eigene Schlagwörter gewählt habe",
    blindHint: "Bitte zuerst {count} weitere eigene Schlagwörter wählen; dann folgen Vorschläge.",
    showAnyway: "Jetzt zeigen",
    carriers: "{votes} der {neighbours} ähnlichsten Datensätze tragen es",
    carriersNone: "Keiner der {neighbours} ähnlichsten Datensätze trägt es",
    distance: "Abstand {distance}", share: "{share} des Werts",
    inferredFrom: "Abgeleitet von", namedAs: "Im Text genannt", namedIn: "im {place}",
    placeTitle: "Titel", placeBody: "Text", times: "{count}-mal", nested: "Teil eines längeren Namens",
    signals: "Signale (Log-Odds)", unranked: "Das Verfahren ordnet dieses Schlagwort gar nicht ein.",
    headings: "Schlagwörter dieses Datensatzes", noHeadings: "Noch kein Schlagwort gewählt.",
    main: "Hauptthema", up: "Nach oben", down: "Nach unten", remove: "Entfernen", place: "Platz in der Systematik",
    redundant: "Oberbegriff von {name}, das auch gewählt ist",
    searchLabel: "Schlagwort hinzufügen: alle Namen durchsuchen", searchHint: "Name, Synonym, Id oder Notation",
    found: "{count} Schlagwörter gefunden", noneFound: "Kein Schlagwort gefunden", more: "Mehr zeigen",
    broader: "Oberbegriffe", narrower: "Unterbegriffe", tree: "Platz von „{name}“ im Vokabular",
    pick: "Hinzufügen", pickInstead: "Stattdessen nehmen", topOfTree: "Spitze des Vokabulars", close: "Schließen",
    save: "In der Sammlung speichern", saving: "Speichert…", id: "Id", idHint: "leer: aus dem Text gebildet",
    saved: "Gespeichert als {id}. Zählt ab sofort (Stand {generation} der Sammlung).",
    effect: "Der ähnlichste Datensatz zu diesem Text ist jetzt: {title} ({id}), Abstand {distance}.",
    readOnly: "Dieser Dienst ist schreibgeschützt; die Schlagwörter lassen sich exportieren.",
    readOnlyLists: "Dieser Dienst ist schreibgeschützt: Arbeitslisten lassen sich ansehen, nicht ändern.",
    unresolved: "Nicht im Vokabular und daher nie vorgeschlagen: {names}",
    needsToken: "Speichern braucht das Token des Dienstes (LABELKIN_TOKEN).",
    tokenTitle: "Token des Dienstes", tokenHint: "Bleibt nur in diesem Tab.", ok: "OK", cancel: "Abbrechen",
    export: "Kopieren oder exportieren", copyLabels: "Namen kopieren", copyUris: "URIs kopieren",
    copyMarc: "Als name$$2vocab/lang$$0uri kopieren", json: "JSON-Datei", csv: "CSV-Datei", copied: "Kopiert.",
    upload: "Neue Arbeitsliste aus einer Datei", uploadHint: "Jede Korpusdatei, die labelkin liest",
    noWorklists: "Noch keine Arbeitsliste.", pending: "offen", draft: "Entwurf", done: "fertig", skipped: "übersprungen",
    continue: "Fortsetzen", exportAll: "Alle exportieren", delete: "Löschen", confirmDelete: "Diese Arbeitsliste löschen?",
    confirmReplace: "Die Sammlung hat schon einen Datensatz {id}: {title}. Ersetzen?",
    itemOf: "{place} von {total}", previous: "Zurück", next: "Weiter", skipItem: "Überspringen", doneItem: "Fertig",
    status: "Status", records: "Datensätze", verdictsExport: "Alle Urteile exportieren",
    compareHint: "Zuerst Schlagwörter für einen Datensatz vorschlagen lassen; dann zeigt sich, was jedes Verfahren sagt.",
    heading: "Schlagwort", rank: "Rang {rank}",
    documents: "Datensätze", concepts: "Schlagwörter", used: "vergeben", longTail: "Datensätze je Schlagwort (der lange Schwanz)",
    rankAxis: "Schlagwörter nach Rang", documentsAxis: "Datensätze", evaluation: "Letzte Auswertung",
    noEvaluation: "Noch nichts ausgewertet: `labelkin train` tut es.",
    reliability: "Verlässlichkeit: Wert gegen beobachtete Präzision", precisionAxis: "Präzision",
    scoreAxis: "Wert", noReliability: "Keine Zahlen: den Reranker trainieren.",
    latent: "Karte der Schlagwörter (Label-Autoencoder)", noLatent: "Keine Karte: den Label-Autoencoder trainieren.",
    models: "Modelle", since: "{added} Datensätze neu und {removed} entfernt seit dem Training, {headings} neue Schlagwörter",
    sinceNothing: "aktuell", withoutRow: "{count} vergebene Schlagwörter werden nur durch Stimmen und Namen vorgeschlagen",
    outdated: "neues Training kann helfen", other: "andere",
    perDocument: "Schlagwörter je Datensatz", measure: "Maß", atLeast: "Schlagwörter mit mindestens {count} Datensätzen",
    keysTitle: "Tasten", keyMove: "nächstes / voriges Schlagwort", keyDecide: "annehmen, ablehnen, richtig, aber unnötig",
    keyWhy: "warum (Belege)", keyTree: "Platz in der Systematik", keyUndo: "rückgängig", keyAll: "alle mit „annehmen“ annehmen",
    keySearch: "Vokabular durchsuchen", keySave: "speichern", keyHelp: "diese Liste", keySuggest: "Schlagwörter vorschlagen",
    keyItems: "nächster / voriger Datensatz der Arbeitsliste", keyClose: "schließen",
  },
};

let current = "en";

/** The language of the page: chosen before, or the browser's. */
export function initialLanguage() {
  const known = localStorage.getItem(LANGUAGE);
  if (known in TEXTS) return known;
  return navigator.language.startsWith("de") ? "de" : "en";
}

export function setLanguage(language) {
  current = language in TEXTS ? language : "en";
  localStorage.setItem(LANGUAGE, current);
  document.documentElement.lang = current;
  for (const element of document.querySelectorAll("[data-text]")) {
    element.textContent = t(element.dataset.text);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", t(element.dataset.label));
  }
}

export const language = () => current;

/** A text in the language of the page, with values for its {names}. */
export function t(key, values = {}) {
  const text = TEXTS[current][key] ?? TEXTS.en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

export const number = (value) => new Intl.NumberFormat(current).format(value);
export const decimal = (value, digits = 2) =>
  new Intl.NumberFormat(current, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
