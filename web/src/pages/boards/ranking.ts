/**
 * A window's entries. Pages are loaded when they come into view, and forgotten long
 * after they left it. The live stream updates the best; when it reports a change, the rest of the view is loaded again.
 */
import { asProblem, type Problem } from "../../lib/problem";
import type { ServerEvent } from "./events";
import { Before, type Change, changed, type Entry, type Page, type TieOrder } from "./top";

export const PAGE = 100; // entries in a page, and in the live stream
const MOST_PAGES = 60; // that are kept
const SCROLLING = 60; // milliseconds between two checks of what is in view
const BEAT = 1_500; // milliseconds, at least, between two reloads of everything in view
const SOON = 150;
const POLL = 3_000; // milliseconds, without a stream
const LATER = 3_000; // milliseconds after a temporary failure

export type State = "loading" | "live" | "polling" | "still";

/** The source of a ranking's entries. */
export interface Source {
  /** The page that begins at this place, from 1. */
  page: (rank: number, signal: AbortSignal) => Promise<Page>;
  /** Calls back until the signal is aborted. */
  follow: (
    on: { onEvent: (event: ServerEvent) => void; onState: (isOpen: boolean) => void; onEnd: (problem: Problem) => void },
    signal: AbortSignal,
  ) => void;
  ties: TieOrder;
}

/** Whether a window is over: then it is neither followed nor loaded again. */
export const hasEnded = (page: Pick<Page, "ends_at" | "next_reset_at">): boolean => page.ends_at !== null && page.ends_at !== page.next_reset_at;

export class Ranking {
  /** The window; null until it is known. */
  head: Page | null = null;
  total = 0;
  problem: Problem | null = null;
  state: State = "loading";
  /** Grows when loaded entries may have moved; not when more are loaded. */
  moves = 0;
  /** Grows now and then while the window changes, for other requests about it. */
  beat = 0;

  #source: Source;
  #pages = new Map<number, readonly Entry[]>();
  #stale = new Set<number>();
  #asking = new Map<number, AbortController>();
  #top: readonly Entry[] | null = null; // from the stream; kept while it is interrupted
  #isOpen = false;
  #beatAt = 0;
  #before = new Before();
  #end = Infinity; // entries available: a snapshot may keep fewer than the window had
  #view = { first: 0, last: PAGE - 1 };
  #version = 0;
  #listeners = new Set<() => void>();
  #timers = new Map<"look" | "beat" | "poll" | "retry", ReturnType<typeof setTimeout>>();
  #abort: AbortController | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  // ---------------------------------------------------------------- for the view

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly version = (): number => this.#version;

  /** The number of available entries. */
  get count(): number {
    return Math.min(this.total, this.#end);
  }

  /** The entry at this index, from 0; undefined until it is loaded. */
  at(index: number): Entry | undefined {
    const entry = this.#held(index);
    return entry && { ...entry, change: this.#before.gained(entry) };
  }

  /** Reports what is in view, so that it is loaded. */
  look(first: number, last: number): void {
    this.#view = { first, last };
    if (!this.#timers.has("look")) this.#later("look", this.head ? SCROLLING : 0, () => this.#fill());
  }

  start(): () => void {
    this.#abort = new AbortController();
    this.#fill();
    return () => {
      this.#abort?.abort();
      this.#abort = undefined;
      for (const asking of this.#asking.values()) asking.abort();
      this.#asking.clear();
      for (const timer of this.#timers.values()) clearTimeout(timer);
      this.#timers.clear();
    };
  }

  /** Loads everything in view again. */
  readonly again = (): void => {
    this.problem = null;
    for (const page of this.#pages.keys()) this.#stale.add(page);
    this.#fill();
    this.beat++;
    this.#tell();
  };

  // ---------------------------------------------------------------- pages

  #held(index: number): Entry | undefined {
    if (this.#isOpen && this.#top && index < this.#top.length) return this.#top[index];
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Those in view first, then the one below, then the one above. */
  #wanted(): number[] {
    const first = Math.floor(this.#view.first / PAGE);
    const last = Math.floor(Math.max(this.#view.last, 0) / PAGE);
    const seen = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const most = this.head ? Math.max(0, Math.ceil(this.count / PAGE) - 1) : last;
    return [...seen, ...(this.head ? [last + 1, first - 1] : [])].filter((page) => page >= 0 && page <= most);
  }

  #fill(): void {
    if (!this.#abort) return;
    const wanted = this.#wanted();
    for (const [page, asking] of this.#asking) {
      if (wanted.includes(page)) continue;
      asking.abort();
      this.#asking.delete(page);
    }
    for (const page of wanted) {
      if ((!this.#pages.has(page) || this.#stale.has(page)) && !this.#asking.has(page)) void this.#ask(page);
    }
  }

  async #ask(page: number): Promise<void> {
    const asking = new AbortController();
    this.#asking.set(page, asking);
    this.#stale.delete(page);
    try {
      this.#take(page, await this.#source.page(page * PAGE + 1, asking.signal));
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#stale.add(page);
      this.problem = asProblem(error);
      if (this.problem.isPassing) this.#later("retry", LATER, () => this.#fill());
    } finally {
      if (this.#asking.get(page) === asking) this.#asking.delete(page);
    }
    if (!asking.signal.aborted) this.#tell();
  }

  #take(page: number, answer: Page): void {
    const isFirst = this.head === null;
    if (this.head && this.head.slot !== answer.slot) this.#turn();
    this.problem = null;
    this.head = answer;
    this.total = answer.total;
    this.#before.hear(answer.entries);
    const reached = page * PAGE + answer.entries.length;
    if (answer.next === null && reached < answer.total && hasEnded(answer)) this.#end = reached;
    if (this.#pages.has(page)) this.moves++;
    this.#pages.delete(page); // so that it becomes the newest
    this.#pages.set(page, answer.entries);
    for (const oldest of this.#pages.keys()) {
      if (this.#pages.size <= MOST_PAGES) break;
      this.#pages.delete(oldest);
    }
    if (isFirst) this.#begin(answer);
    this.#fill();
  }

  /** Another window: forgets entries and requests of the previous one. */
  #turn(): void {
    for (const asking of this.#asking.values()) asking.abort();
    this.#asking.clear();
    this.#pages.clear();
    this.#stale.clear();
    this.#before.clear();
    this.#end = Infinity;
    this.#top = null;
  }

  // ---------------------------------------------------------------- changes

  #begin(page: Page): void {
    if (hasEnded(page)) {
      this.state = "still";
      return;
    }
    if (!this.#abort) return;
    const onEnd = (problem: Problem) => {
      this.problem = problem;
      this.state = "still";
      this.#isOpen = false;
      this.#tell();
    };
    this.#source.follow({ onEvent: (event) => this.#hear(event), onState: (isOpen) => this.#open(isOpen), onEnd }, this.#abort.signal);
  }

  #open(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.state = isOpen ? "live" : "polling";
    clearTimeout(this.#timers.get("poll"));
    this.#timers.delete("poll");
    if (!isOpen) this.#poll();
    this.#tell();
  }

  #poll(): void {
    this.#later("poll", POLL, () => {
      if (!document.hidden) this.again();
      this.#poll();
    });
  }

  #hear(event: ServerEvent): void {
    const isFirst = this.#top === null;
    if (event.name === "snapshot") {
      const page = JSON.parse(event.data) as Page;
      const hasTurned = this.head !== null && this.head.slot !== page.slot;
      if (hasTurned) this.#turn();
      this.head = page;
      this.total = page.total;
      this.#top = page.entries;
      if (!isFirst || hasTurned) this.#soon();
    } else if (event.name === "change") {
      const change = JSON.parse(event.data) as Change;
      this.total = change.total;
      if (this.#top) this.#top = changed(this.#top, change, this.#source.ties);
      this.#soon();
    }
    this.moves++;
    this.#tell();
  }

  /** Loads everything except the best again, which come from the stream; not at every change. */
  #soon(): void {
    if (this.#timers.has("beat")) return;
    this.#later("beat", Math.max(SOON, this.#beatAt + BEAT - Date.now()), () => {
      this.#beatAt = Date.now();
      const isKnown = this.#top?.every((entry) => this.#before.gained(entry) !== undefined) ?? false;
      for (const page of this.#pages.keys()) if (page > 0 || !isKnown) this.#stale.add(page);
      this.#fill();
      this.beat++;
      this.#tell();
    });
  }

  #later(name: "look" | "beat" | "poll" | "retry", milliseconds: number, run: () => void): void {
    clearTimeout(this.#timers.get(name));
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      run();
    }, milliseconds);
    this.#timers.set(name, timer);
  }

  #tell(): void {
    this.#version++;
    for (const listener of this.#listeners) listener();
  }
}
