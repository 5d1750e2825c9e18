// The first page: one board, live. What it shows is in the address, so any view can be shared; the key never is.

const REFRESH_SECONDS = 3;
const SOON = 200; // milliseconds that an answer may take before the rows make way for a sign of waiting
const KEY = "laurels.key"; // in sessionStorage: of this tab, until it is closed
const DEFAULTS = { limit: "50", rank: "1" };

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat();
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const still = window.matchMedia("(prefers-reduced-motion: reduce)");

// ---------------------------------------------------------------- the key

function takeKeyFromAddress() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (key) {
    sessionStorage.setItem(KEY, key);
    history.replaceState(null, "", location.pathname + location.search);
  }
}

function askForKey(why = "") {
  clearTimeout(timer);
  at("gate").hidden = false;
  at("view").hidden = at("chooser").hidden = at("forget").hidden = true;
  at("gate-wrong").textContent = why;
  at("key").value = "";
  at("key").focus();
}

// ---------------------------------------------------------------- asking

class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let clockAhead = 0; // milliseconds that the server's clock is ahead of ours

async function ask(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  let response;
  try {
    response = await fetch(`v1/projects${path}${query}`, {
      headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY)}` },
      signal: AbortSignal.timeout(10_000),
    });
  } catch {
    throw new Problem(0, "Laurels does not answer. Trying again…");
  }
  const date = Date.parse(response.headers.get("Date") ?? "");
  if (Math.abs(date - Date.now()) > 2_000) clockAhead = date - Date.now();
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, body.detail ?? `The answer was ${response.status}.`);
  return body;
}

const boardPath = () => `/${encodeURIComponent(view.project)}/boards/${encodeURIComponent(view.board)}`;

// ---------------------------------------------------------------- the view: what the address says

const NAMES = ["project", "board", "period", "slot", "group", "limit", "rank", "member"];
let view = {};
let boards = []; // of the project, with their definitions
let shown = ""; // for which view the rows are

function readAddress() {
  const asked = new URLSearchParams(location.search);
  view = Object.fromEntries(NAMES.map((name) => [name, asked.get(name) ?? DEFAULTS[name] ?? ""]));
}

function writeAddress(remember) {
  const said = NAMES.filter((name) => view[name] && view[name] !== DEFAULTS[name]).map((name) => [name, view[name]]);
  const address = said.length ? `?${new URLSearchParams(said)}` : location.pathname;
  if (address !== location.search) history[remember ? "pushState" : "replaceState"](null, "", address);
}

// What hangs on a choice starts over when it changes: another board has other windows.
const BELOW = {
  project: ["board", "period", "slot", "group", "rank"],
  board: ["period", "slot", "group", "rank"],
  period: ["slot", "rank"],
  slot: ["rank"],
  group: ["rank"],
  limit: ["rank"],
};

function go(name, value) {
  if (view[name] === value) return;
  view[name] = value;
  for (const below of BELOW[name] ?? []) view[below] = DEFAULTS[below] ?? "";
  writeAddress(true);
  start();
}

// ---------------------------------------------------------------- loading

let timer;
let turn = 0; // so that a late answer to an earlier question is dropped

async function start() {
  const mine = ++turn;
  clearTimeout(timer);
  try {
    await settle();
    if (mine === turn) await refresh(mine);
  } catch (problem) {
    if (mine !== turn) return;
    fail(problem);
    if (problem.status !== 401) timer = setTimeout(start, REFRESH_SECONDS * 1000);
  }
}

// Which project and board, where the address does not say.
async function settle() {
  const { projects } = await ask("");
  if (!view.project) view.project = projects.includes("demo") ? "demo" : (projects[0] ?? "");
  fillChoice(at("project"), union(projects, view.project), view.project);
  boards = view.project ? (await ask(`/${encodeURIComponent(view.project)}/boards`)).boards : [];
  const names = boards.map((board) => board.board);
  if (!view.board) view.board = names[0] ?? "";
  fillChoice(at("name"), union(names, view.board), view.board);
  at("gate").hidden = true;
  at("view").hidden = at("forget").hidden = false;
  at("chooser").hidden = !view.board;
  drawTools();
  writeAddress(false);
}

async function refresh(mine = ++turn) {
  clearTimeout(timer);
  if (!view.board) return drawNothing();
  const where = { period: view.period, slot: view.slot, group: view.group };
  const impatience = shown !== address() && setTimeout(drawSkeleton, shown ? SOON : 0);
  try {
    const [page, windows, standing, around] = await Promise.all([
      ask(`${boardPath()}/entries`, { ...where, limit: view.limit, rank: view.rank, change: "true" }),
      ask(`${boardPath()}/windows`, { period: view.period || firstPeriod(), group: view.group }),
      ...askAbout(view.member, where),
    ]);
    clearTimeout(impatience);
    if (mine !== turn) return;
    drawPage(page);
    drawSlots(windows.windows, page);
    drawStanding(standing, around);
    at("notice").hidden = true;
    at("updated").textContent = `Updated ${new Date().toLocaleTimeString()}`;
  } catch (problem) {
    clearTimeout(impatience);
    if (mine === turn) fail(problem);
    if (problem.status === 401) return;
  }
  if (mine === turn) timer = setTimeout(refresh, REFRESH_SECONDS * 1000);
}

function askAbout(member, where) {
  if (!member) return [null, null];
  const path = `${boardPath()}/entries/${encodeURIComponent(member)}`;
  const absent = (problem) => {
    if (problem.status === 404) return null;
    throw problem;
  };
  return [
    ask(path, where).catch(absent),
    ask(`${path}/around`, { ...where, above: "3", below: "3" }).catch(absent),
  ];
}

function fail(problem) {
  if (!(problem instanceof Problem)) throw problem;
  if (problem.status === 401) {
    const had = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    return askForKey(had ? "That key is not in force." : "");
  }
  at("gate").hidden = true;
  at("view").hidden = false;
  at("notice").textContent = problem.message;
  at("notice").hidden = false;
  at("table").parentElement.classList.add("stale");
  if (shown !== address()) at("rows").replaceChildren();
}

const address = () => NAMES.filter((name) => name !== "member").map((name) => view[name]).join("\n");
const definition = () => boards.find((board) => board.board === view.board)?.definition;

// ---------------------------------------------------------------- drawing

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const union = (names, name) => (names.includes(name) || !name ? names : [name, ...names]);

function fillChoice(select, options, chosen) {
  const wanted = options.map((option) => (typeof option === "string" ? [option, option] : option));
  const present = [...select.options].map((option) => [option.value, option.text]);
  if (JSON.stringify(wanted) !== JSON.stringify(present)) {
    select.replaceChildren(...wanted.map(([value, text]) => new Option(text, value)));
  }
  select.value = chosen;
}

const labelOf = (window) =>
  window.name ?? { rolling: `rolling_${window.days}d`, every: `every_${window.seconds}s` }[window.period] ?? window.period;
const firstPeriod = () => (definition() ? labelOf(definition().windows[0]) : "");

function readable(label) {
  const words = label.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function drawTools() {
  const board = definition();
  const labels = board ? board.windows.map(labelOf) : [];
  const chosen = view.period || firstPeriod();
  const radios = union(labels, view.period).map((label) => {
    const input = make("input", { type: "radio", name: "period", value: label });
    input.checked = label === chosen;
    return make("label", {}, input, make("span", {}, readable(label)));
  });
  const focused = at("periods").contains(document.activeElement);
  at("periods").replaceChildren(make("legend", {}, "Period"), make("div", {}, ...radios));
  if (focused) at("periods").querySelector(":checked")?.focus();
  at("limit").value = view.limit;
  if (!at("limit").value) at("limit").append(new Option(view.limit, view.limit, true, true));
  at("member").value = view.member;
  drawCut(board?.groups ?? []);
}

// The group as `country=BR`, with what has a meaning there escaped.
const parseGroup = (group) =>
  group ? group.split(",").map((pair) => pair.split("=")).map(([name, value = ""]) => [name, unescaped(value)]) : [];

function unescaped(value) {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

const escaped = (value) =>
  value.replace(/[%:=,{}|\u0000-\u001f\u007f]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);

function drawCut(groups) {
  at("cut-label").hidden = !groups.length;
  const parsed = parseGroup(view.group);
  const dimensions = parsed.map(([name]) => name).join(",");
  const everyone = [["", "Everyone"]];
  fillChoice(at("cut"), [...everyone, ...groups.map((group) => [group.join(","), group.map(readable).join(", ")])], dimensions);
  drawValues(parsed);
}

function drawValues(pairs) {
  const present = [...at("values").querySelectorAll("input")];
  if (present.map((input) => input.name).join() === pairs.map(([name]) => name).join()) {
    present.forEach((input, index) => (input.value = pairs[index][1]));
    return;
  }
  at("values").replaceChildren(
    ...pairs.map(([name, value]) => {
      const input = make("input", { name, value, autocomplete: "off", placeholder: name === "country" ? "BR" : "" });
      if (name === "country") input.setAttribute("list", "countries");
      return make("label", {}, make("span", {}, readable(name)), input);
    }),
  );
  if (pairs.some(([name]) => name === "country")) at("values").append(countryList());
}

function countryList() {
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  const known = letters.flatMap((a) => letters.map((b) => a + b)).filter((code) => countryName(code) !== code);
  return make("datalist", { id: "countries" }, ...known.map((code) => make("option", { value: code }, countryName(code))));
}

const countries = new Intl.DisplayNames(undefined, { type: "region" });

function countryName(code) {
  try {
    return countries.of(code);
  } catch {
    return code;
  }
}

const groupWords = () =>
  parseGroup(view.group)
    .map(([name, value]) => (name === "country" ? countryName(value) : value))
    .join(", ");

function drawSlots(windows, page) {
  const current = windows[0]?.slot ?? "";
  const options = windows.map((window, index) => [
    index === 0 ? "" : window.slot,
    `${index === 0 ? "Now" : window.slot}${window.slot && index === 0 ? ` · ${window.slot}` : ""}`,
  ]);
  const chosen = page.slot === current ? "" : page.slot;
  fillChoice(at("slot"), options.some(([value]) => value === chosen) ? options : [...options, [chosen, chosen]], chosen);
  at("slot").disabled = options.length < 2;
}

function drawPage(page) {
  const isNew = shown !== address();
  shown = address();
  at("where").textContent = [page.project, groupWords()].filter(Boolean).join(" · ");
  at("title").textContent = page.board;
  document.title = `${page.board} · Laurels`;
  const entries = page.total === 1 ? "1 entry" : `${number.format(page.total)} entries`;
  const window = [readable(page.period).toLowerCase(), page.slot].filter(Boolean).join(" ");
  at("facts").textContent = `${entries} · ${window}`;
  at("caption").textContent = `${page.board}, ${window}: rank, member and score`;
  at("table").parentElement.classList.remove("stale");
  resetsAt = page.next_reset_at && Date.parse(page.next_reset_at);
  hasEnded = page.ends_at !== null && page.ends_at !== page.next_reset_at;
  drawClock();
  drawRows(page, isNew);
  drawEmpty(page);
  drawPager(page);
}

const scoreText = (score) => (typeof score === "string" ? BigInt(score).toLocaleString() : number.format(score));

function drawRows(page, isNew) {
  const body = at("rows");
  const before = new Map([...body.rows].map((row) => [row.dataset.member, row]));
  const places = new Map([...before].map(([member, row]) => [member, row.getBoundingClientRect().top]));
  const best = Math.max(...page.entries.map((entry) => Math.abs(Number(entry.score))), 0);
  const rows = page.entries.map((entry) => drawRow(before.get(entry.member) ?? newRow(entry.member), entry, best));
  replaceRows(body, rows);
  at("table").classList.toggle("unchanging", page.entries.every((entry) => !entry.change));
  if (!isNew && !still.matches) rows.forEach((row) => move(row, places.get(row.dataset.member)));
}

// Whoever is at a row with the keyboard stays there.
function replaceRows(body, rows) {
  if (rows.length === body.rows.length && rows.every((row, index) => row === body.rows[index])) return;
  const focused = body.contains(document.activeElement) && document.activeElement;
  body.replaceChildren(...rows);
  if (focused && focused.isConnected) focused.focus({ preventScroll: true });
}

function newRow(member) {
  const who = make("button", { type: "button", title: member }, make("bdi", {}, member));
  const row = make(
    "tr",
    {},
    make("td", { class: "rank" }, make("span")),
    make("td", { class: "change" }),
    make("th", { scope: "row", class: "who" }, who),
    make("td", { class: "score" }, make("span")),
  );
  row.dataset.member = member;
  return row;
}

function drawRow(row, entry, best) {
  const [rank, change, , score] = row.cells;
  row.dataset.place = entry.rank;
  row.classList.toggle("chosen", entry.member === view.member);
  rank.firstChild.textContent = number.format(entry.rank);
  drawChange(change, entry.change);
  const text = scoreText(entry.score);
  if (score.firstChild.textContent && score.firstChild.textContent !== text && !still.matches) {
    score.firstChild.animate([{ color: "var(--leaf)" }, {}], { duration: 1500 });
  }
  score.firstChild.textContent = text;
  score.style.setProperty("--share", best ? Math.abs(Number(entry.score)) / best : 0);
  return row;
}

function drawChange(cell, change) {
  const text = change > 0 ? `▲ ${number.format(change)}` : change < 0 ? `▼ ${number.format(-change)}` : "";
  if (cell.textContent === text) return;
  cell.textContent = text;
  cell.classList.toggle("rose", change > 0);
  cell.classList.toggle("fell", change < 0);
  cell.title = text && `${change > 0 ? "Up" : "Down"} ${number.format(Math.abs(change))} since the window before`;
}

// A row that changed its place glides there from where it was.
function move(row, from) {
  if (from === undefined) return row.animate([{ opacity: 0 }, {}], { duration: 400 });
  const by = from - row.getBoundingClientRect().top;
  if (Math.abs(by) > 1) {
    row.animate([{ transform: `translateY(${by}px)` }, {}], { duration: 450, easing: "cubic-bezier(.2,.7,.2,1)" });
  }
}

function drawSkeleton() {
  const bone = (tag, name) => make(tag, { class: name }, make("i"));
  const row = () => make("tr", { class: "skeleton" }, bone("td", "rank"), bone("th", "who"), bone("td", "score"));
  at("table").classList.add("unchanging");
  at("table").hidden = false;
  at("rows").replaceChildren(...Array.from({ length: 10 }, row));
  at("empty").hidden = at("pager").hidden = true;
}

function drawEmpty(page) {
  const isEmpty = !page.entries.length;
  at("table").hidden = isEmpty;
  at("empty").hidden = !isEmpty;
  const words = page.total ? "Nobody is ranked this low." : "The first score that arrives leads.";
  at("empty").replaceChildren(make("strong", {}, page.total ? "Past the end" : "Nobody yet"), words);
}

function drawNothing() {
  at("title").textContent = "No boards yet";
  at("empty").replaceChildren(make("strong", {}, "Nothing to show"), make("code", {}, "laurels demo"), " makes a board to look at.");
  at("empty").hidden = false;
  at("table").hidden = at("pager").hidden = true;
  timer = setTimeout(start, REFRESH_SECONDS * 1000);
}

function drawPager(page) {
  const first = Number(view.rank);
  const last = first + page.entries.length - 1;
  at("pager").hidden = first === 1 && last >= page.total;
  at("first").disabled = at("previous").disabled = first === 1;
  at("next").disabled = last >= page.total;
  at("range").textContent = page.entries.length
    ? `${number.format(first)}–${number.format(last)} of ${number.format(page.total)}`
    : "";
}

function drawStanding(standing, around) {
  const place = at("standing");
  if (!view.member) return place.replaceChildren();
  if (!standing || !around) {
    const text = `“${view.member}” has no entry in this window. Names are exact.`;
    if (place.textContent !== text) place.replaceChildren(make("p", { class: "absent" }, text));
    return;
  }
  const share = percent.format(Math.max(standing.rank / standing.total, 0.001));
  const body = make("tbody");
  for (const entry of around.entries) {
    const row = drawRow(newRow(entry.member), entry, 0);
    row.cells[1].remove();
    body.append(row);
  }
  const caption = make("caption", { class: "unseen" }, `Around ${standing.member}`);
  const summary = make(
    "p",
    { class: "standing" },
    make("strong", {}, number.format(standing.rank)),
    make("span", {}, `of ${number.format(standing.total)} · top ${share}`),
  );
  const fresh = make("div", {}, summary, make("table", { class: "around" }, caption, body));
  if (place.firstChild?.isEqualNode(fresh)) return;
  const focused = place.contains(document.activeElement) && document.activeElement.textContent;
  place.replaceChildren(fresh);
  if (focused) [...place.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
}

// ---------------------------------------------------------------- the time to the next reset

let resetsAt = null;
let hasEnded = false;

function drawClock() {
  at("reset").hidden = !resetsAt;
  if (!resetsAt) return;
  at("reset-label").textContent = hasEnded ? "This window" : "Resets in";
  const left = Math.max(0, Math.round((resetsAt - Date.now() - clockAhead) / 1000));
  const pad = (value) => String(value).padStart(2, "0");
  const clock = `${pad(Math.floor((left % 86_400) / 3600))}:${pad(Math.floor((left % 3600) / 60))}:${pad(left % 60)}`;
  at("clock").textContent = hasEnded ? "has ended" : left >= 86_400 ? `${Math.floor(left / 86_400)} d ${clock}` : clock;
}

// ---------------------------------------------------------------- what people do

at("gate").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, at("key").value.trim());
  start();
});
at("forget").addEventListener("click", () => {
  sessionStorage.removeItem(KEY);
  turn++;
  askForKey();
});
at("chooser").addEventListener("submit", (event) => event.preventDefault());
at("project").addEventListener("change", (event) => go("project", event.target.value));
at("name").addEventListener("change", (event) => go("board", event.target.value));
at("periods").addEventListener("change", (event) => go("period", event.target.value));
at("slot").addEventListener("change", (event) => go("slot", event.target.value));
at("limit").addEventListener("change", (event) => go("limit", event.target.value));
at("cut").addEventListener("change", (event) => {
  if (!event.target.value) {
    go("group", "");
    return drawValues([]);
  }
  drawValues(event.target.value.split(",").map((name) => [name, ""]));
  at("values").querySelector("input").focus();
});
at("values").addEventListener("change", () => {
  const inputs = [...at("values").querySelectorAll("input")];
  if (inputs.every((input) => input.value)) {
    go("group", inputs.map((input) => `${input.name}=${escaped(input.value)}`).join(","));
  }
});
at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  go("member", at("member").value);
});
at("member").addEventListener("search", () => go("member", at("member").value));
at("view").addEventListener("click", (event) => {
  const row = event.target.closest(".who button")?.closest("tr");
  if (!row) return;
  at("member").value = row.dataset.member;
  go("member", row.dataset.member);
});
at("first").addEventListener("click", () => go("rank", "1"));
at("previous").addEventListener("click", () => go("rank", String(Math.max(1, Number(view.rank) - Number(view.limit)))));
at("next").addEventListener("click", () => go("rank", String(Number(view.rank) + Number(view.limit))));

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(timer);
  else if (sessionStorage.getItem(KEY)) refresh();
});
window.addEventListener("popstate", () => {
  readAddress();
  start();
});
setInterval(drawClock, 1000);

takeKeyFromAddress();
readAddress();
if (sessionStorage.getItem(KEY)) start();
else askForKey();
