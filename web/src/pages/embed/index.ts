/**
 * A board inside another site's page: the best of a window, live. It is small, so without React, and uses no storage,
 * which browsers may refuse in frames.
 */
import { serverNow } from "../../lib/clock";
import { type Problem, problemOf } from "../../lib/problem";
import { count, readable, score, timeLeft } from "../../lib/words";
import { follow } from "../boards/live";
import { type Change, changed, type Entry, type Page } from "../boards/top";
import styles from "./embed.module.css";
import { apiPath, type Settings, settingsOf } from "./settings";

/** The message that gives the surrounding page our height. */
const SIZE = "laurels:size";

function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Record<string, string> = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const style = (name: string): string => styles[name] ?? "";

export function show(place: HTMLElement): void {
  const settings = settingsOf(new URL(location.href));
  if (settings.theme !== "auto") document.documentElement.dataset["theme"] = settings.theme;
  const board = new Board(settings);
  place.replaceChildren(board.element);
  document.title = `${settings.board} · Laurels`;
  const tell = () => window.parent.postMessage({ type: SIZE, height: Math.ceil(board.element.getBoundingClientRect().height) }, "*");
  new ResizeObserver(tell).observe(board.element);
  board.start();
}

class Board {
  readonly #settings: Settings;
  readonly #facts = make("p", { class: style("facts") });
  readonly #clock = make("time", { class: style("clock"), role: "timer" });
  readonly #rows = make("tbody");
  readonly #caption = make("caption", { class: "unseen" });
  readonly #note = make("p", { class: style("note"), role: "status" }, "Loading…");
  readonly #table: HTMLTableElement;
  readonly element: HTMLElement;
  #page: Page | null = null;
  #entries: readonly Entry[] = [];

  constructor(settings: Settings) {
    this.#settings = settings;
    const head = ["Rank", "Member", "Score"].map((word, column) => make("th", { scope: "col", ...(column !== 1 && { class: style("number") }) }, word));
    this.#table = make("table", { class: style("table") }, this.#caption, make("thead", {}, make("tr", {}, ...head)), this.#rows);
    this.#table.hidden = true;
    const root = document.baseURI;
    const title = make("a", { href: new URL(this.#path(), root).href, target: "_blank", rel: "noopener" }, settings.board);
    const by = make("a", { href: root, target: "_blank", rel: "noopener" }, "Laurels");
    this.element = make(
      "main",
      { class: style("board") },
      make("header", {}, make("h1", {}, title), this.#facts, this.#clock),
      this.#table,
      this.#note,
      make("footer", {}, "Ranked by ", by),
    );
  }

  #path(): string {
    const { project, board, period, slot, group } = this.#settings;
    const query = new URLSearchParams(Object.entries({ period, slot, group }).filter(([, value]) => value)).toString();
    return `boards/${encodeURIComponent(project)}/${encodeURIComponent(board)}${query && `?${query}`}`;
  }

  start(): void {
    const { project, board, key } = this.#settings;
    if (!project || !board) return this.#say("The address names no board: use /embed/PROJECT/BOARD.");
    if (!key) return this.#say("This board needs a key that may only read, in data-key.");
    setInterval(() => this.#tick(), 1000);
    follow(
      new URL(apiPath(this.#settings, "live"), document.baseURI).href,
      key,
      {
        onEvent: ({ name, data }) => this.#hear(name, data),
        onState: (isOpen) => {
          if (isOpen) this.#note.hidden = this.#entries.length > 0;
          else void this.#ask();
        },
        onEnd: (problem) => this.#fail(problem),
      },
      new AbortController().signal,
    );
  }

  #hear(name: string, data: string): void {
    if (name === "snapshot") {
      const page = JSON.parse(data) as Page;
      const isSame = this.#page?.slot === page.slot;
      this.#page = page;
      this.#draw(page.entries, page.total, isSame);
    } else if (name === "change" && this.#page) {
      const change = JSON.parse(data) as Change;
      this.#draw(changed(this.#entries, change, this.#direction()), change.total, true);
    }
  }

  /** Whether the highest score is best, judged by the entries. */
  #direction(): "asc" | "desc" {
    const [first, last] = [this.#entries[0], this.#entries.at(-1)];
    return first && last && Number(first.score) < Number(last.score) ? "asc" : "desc";
  }

  /** While there is no stream. */
  async #ask(): Promise<void> {
    try {
      const url = new URL(apiPath(this.#settings, "entries"), document.baseURI);
      const response = await fetch(url, { headers: { Authorization: `Bearer ${this.#settings.key}` } });
      const body: unknown = await response.json();
      if (!response.ok) return this.#fail(problemOf(response.status, body));
      this.#page = body as Page;
      this.#draw(this.#page.entries, this.#page.total, true);
    } catch {
      this.#say("Cannot reach Laurels. Trying again…");
    }
  }

  #fail(problem: Problem): void {
    this.#say(problem.status === 401 ? "The key for this board is not valid." : problem.message);
  }

  #say(words: string): void {
    this.#note.textContent = words;
    this.#note.hidden = false;
  }

  #draw(entries: readonly Entry[], total: number, mayMove: boolean): void {
    const page = this.#page;
    if (!page) return;
    const window = [readable(page.period).toLowerCase(), page.slot].filter(Boolean).join(" ");
    this.#facts.textContent = `${window} · ${count(total)} ranked`;
    this.#caption.textContent = `${page.board}, ${window}: rank, member and score`;
    this.#drawRows(entries, mayMove);
    this.#entries = entries;
    this.#table.hidden = !entries.length;
    this.#note.hidden = entries.length > 0;
    if (!entries.length) this.#note.textContent = "No entries yet. The first score takes the lead.";
    this.#tick();
  }

  #drawRows(entries: readonly Entry[], mayMove: boolean): void {
    const before = new Map([...this.#rows.rows].map((row) => [row.dataset["member"] ?? "", row]));
    const tops = new Map([...before].map(([member, row]) => [member, row.getBoundingClientRect().top]));
    const rows = entries.map((entry) => fill(before.get(entry.member) ?? newRow(entry.member), entry));
    this.#rows.replaceChildren(...rows);
    if (!mayMove || !before.size || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const row of rows) glide(row, tops.get(row.dataset["member"] ?? ""));
  }

  #tick(): void {
    const until = this.#page?.next_reset_at;
    const isOver = this.#page?.ends_at !== until;
    this.#clock.hidden = !until || isOver;
    if (until) this.#clock.textContent = `Resets in ${timeLeft(Date.parse(until) - serverNow())}`;
  }
}

function newRow(member: string): HTMLTableRowElement {
  const row = make("tr", {}, make("td", { class: style("number") }), make("th", { scope: "row", title: member }, make("bdi", {}, member)), make("td", { class: style("number") }));
  row.dataset["member"] = member;
  return row;
}

function fill(row: HTMLTableRowElement, entry: Entry): HTMLTableRowElement {
  const [rank, , points] = row.cells;
  if (rank) rank.textContent = count(entry.rank);
  if (points) points.textContent = score(entry.score);
  row.dataset["place"] = String(entry.rank);
  return row;
}

/** A row glides to its new place. */
function glide(row: HTMLTableRowElement, from: number | undefined): void {
  const timing = { duration: 450, easing: "cubic-bezier(.2,.7,.2,1)" };
  if (from === undefined) {
    row.animate([{ opacity: 0 }, {}], timing);
    return;
  }
  const by = from - row.getBoundingClientRect().top;
  if (Math.abs(by) > 1) row.animate([{ transform: `translateY(${by}px)` }, {}], timing);
}
