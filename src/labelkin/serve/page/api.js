// The service, as the page uses it.

import { t } from "./texts.js";

const TOKEN = "labelkin-token";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) || "",
  set: (value) => sessionStorage.setItem(TOKEN, value),
};

async function send(method, path, { json, body, params, type, write = false } = {}) {
  const query = new URLSearchParams(
    Object.entries(params || {}).filter(([, value]) => value !== undefined && value !== null),
  ).toString();
  const headers = {};
  if (json !== undefined) headers["Content-Type"] = "application/json";
  else if (type) headers["Content-Type"] = type;
  // Nothing else can be sent in a header; without one the service asks for the token.
  if (write && /^[\x20-\x7e]+$/.test(token.get())) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(`api/v1/${path}${query ? `?${query}` : ""}`, {
      method,
      headers,
      body: json !== undefined ? JSON.stringify(json) : body,
    });
  } catch {
    throw new Problem(0, t("unreachable"));
  }
  if (!answer.ok) {
    let detail = `${answer.status} ${answer.statusText}`;
    try {
      detail = (await answer.json()).detail || detail;
    } catch { /* the status says enough */ }
    throw new Problem(answer.status, detail);
  }
  return answer;
}

const json = async (...given) => (await send(...given)).json();
const part = encodeURIComponent;

/** What can be asked about one collection. */
export class Collection {
  constructor(name) {
    this.name = name;
    this.path = `collections/${part(name)}`;
    // What was written here: any process of the service answers from this state or a later one.
    this.written = undefined;
  }

  details() { return json("GET", this.path); }
  suggest(document, asked) {
    return json("POST", `${this.path}/suggest`, { json: { documents: [document], generation: this.written, ...asked } });
  }
  explain(document, headings, asked) {
    return json("POST", `${this.path}/explain`, { json: { document, headings, ...asked } });
  }
  compare(document, asked) {
    return json("POST", `${this.path}/compare`, { json: { document, ...asked } });
  }
  neighbours(document, asked) {
    return json("POST", `${this.path}/neighbours`, { json: { documents: [document], ...asked } });
  }
  search(query, params) {
    return json("GET", `${this.path}/concepts`, { params: { query, ...params } });
  }
  tree(concept, params) { return json("GET", `${this.path}/tree`, { params: { concept, ...params } }); }
  document(id) { return json("GET", `${this.path}/documents/${part(id)}`, { params: { generation: this.written } }); }
  add(record) {
    return this.write("POST", `${this.path}/documents`, record);
  }
  replace(id, record) {
    return this.write("PUT", `${this.path}/documents/${part(id)}`, record);
  }
  correct(id, labels) {
    return this.write("PATCH", `${this.path}/documents/${part(id)}`, { labels });
  }
  async write(method, path, given) {
    const report = await json(method, path, { json: given, write: true });
    this.written = report.generation;
    return report;
  }
  verdicts(given) { return json("POST", `${this.path}/verdicts`, { json: given, write: true }); }
  read(file) {
    const params = { name: file.name };
    return json("POST", `${this.path}/read`, { body: file, params, type: "application/octet-stream" });
  }
  worklists() { return json("GET", `${this.path}/worklists`, { write: true }); }
  newWorklist(file) {
    const params = { name: file.name };
    const type = "application/octet-stream";
    return json("POST", `${this.path}/worklists`, { body: file, params, type, write: true });
  }
  worklist(id) { return json("GET", `${this.path}/worklists/${part(id)}`, { write: true }); }
  removeWorklist(id) { return send("DELETE", `${this.path}/worklists/${part(id)}`, { write: true }); }
  items(id, params) {
    return json("GET", `${this.path}/worklists/${part(id)}/items`, { params, write: true });
  }
  item(id, place) {
    return json("GET", `${this.path}/worklists/${part(id)}/items/${place}`, { write: true });
  }
  saveItem(id, place, given) {
    return json("PUT", `${this.path}/worklists/${part(id)}/items/${place}`, { json: given, write: true });
  }
  moveTo(id, place) {
    return json("PUT", `${this.path}/worklists/${part(id)}/position`, { json: { position: place }, write: true });
  }
  async export(path, params) {
    return (await send("GET", `${this.path}/${path}`, { params, write: true })).text();
  }
  dashboard() { return json("GET", `${this.path}/dashboard`); }
  latent() { return json("GET", `${this.path}/latent`); }
}

export const collections = async () => (await json("GET", "collections")).collections;
