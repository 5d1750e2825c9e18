/**
 * A window's entries, whichever are looked at: pages are asked for as they come into view, and forgotten when they are
 * long gone. The best are kept by the live stream; when that tells of a change, what else is in view is asked for again.
 */
import { asProblem, type Problem } from "../../lib/problem";
import type { ServerEvent } from "./events";
import { Before, type Change, changed, type Entry, type Page, type TieOrder } from "./top";

export const PAGE = 100; // entries of a page, and of the live stream
const MOST_PAGES = 60; // that are kept
const SCROLLING = 60; // milliseconds between two looks at what is in view
const BEAT = 1_500; // at the least, between two times that everything in view is asked for again
const SOON = 150;
const POLL = 3_000; // where there is no stream
const LATER = 3_000; // after a question that failed for now

export type State = "loading" | "live" | "polling" | "still";

/** Where a ranking has its entries from. */
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

/** Whether a window is over: then it is neither followed nor asked for again. */
export const hasEnded = (page: Pick<Page, "ends_at" | "next_reset_at">): boolean => page.ends_at !== null && page.ends_at !== page.next_reset_at;

export class Ranking {
  /** The window; null until it is known. */
  head: Page | null = null;
  total = 0;
  problem: Problem | null = null;
  state: State = "loading";
  /** Grows when entries may have moved within what is held; not when more of them come in. */
  moves = 0;
  /** Grows now and then while the window changes: for whatever else is asked about it. */
  beat = 0;

  #source: Source;
  #pages = new Map<number, readonly Entry[]>();
  #stale = new Set<number>();
  #asking = new Map<number, AbortController>();
  #top: readonly Entry[] | null = null; // as the stream tells it; kept when that breaks off, since it goes on behind it
  #isOpen = false;
  #beatAt = 0;
  #before = new Before();
  #end = Infinity; // entries that can be had: an archived window may keep fewer than it had
  #view = { first: 0, last: PAGE - 1 };
  #version = 0;
  #listeners = new Set<() => void>();
  #timers = new Map<"look" | "beat" | "poll" | "retry", ReturnType<typeof setTimeout>>();
  #abort: AbortController | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  // ---------------------------------------------------------------- for whoever draws it

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly version = (): number => this.#version;

  /** How many entries can be looked at. */
  get count(): number {
    return Math.min(this.total, this.#end);
  }

  /** The entry at this index, from 0; undefined while it is not known. */
  at(index: number): Entry | undefined {
    const entry = this.#held(index);
    return entry && { ...entry, change: this.#before.gained(entry) };
  }

  /** Says what is in view, so that it is asked for. */
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

  /** Asks for everything in view again. */
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
    this.#pages.delete(page); // so that it becomes the youngest
    this.#pages.set(page, answer.entries);
    for (const oldest of this.#pages.keys()) {
      if (this.#pages.size <= MOST_PAGES) break;
      this.#pages.delete(oldest);
    }
    if (isFirst) this.#begin(answer);
    this.#fill();
  }

  /** Another window: what is known, and what is on its way, is of the one before. */
  #turn(): void {
    for (const asking of this.#asking.values()) asking.abort();
    this.#asking.clear();
    this.#pages.clear();
    this.#stale.clear();
    this.#before.clear();
    this.#end = Infinity;
    this.#top = null;
  }

  // ---------------------------------------------------------------- what changes

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

  /** Everything but the best, which the stream tells, is asked for again; not at every change. */
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
