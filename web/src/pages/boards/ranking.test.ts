import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Problem } from "../../lib/problem";
import { PAGE, Ranking, type Source } from "./ranking";
import type { Entry, Page } from "./top";

const MINUTE = 60_000;

/** A window of so many entries, `m1` the best; what it is asked for, and how to say what its stream would. */
class Window {
  readonly asked: number[] = [];
  slot = "2025-10-24";
  hasEnded = false;
  kept = Infinity;
  problem: Problem | null = null;
  stream: Parameters<Source["follow"]>[0] | undefined;
  #ids = 0;

  constructor(readonly total: number) {}

  page(rank: number): Page {
    const last = Math.min(rank + PAGE - 1, this.total, this.kept);
    const entries = Array.from({ length: Math.max(0, last - rank + 1) }, (_, offset) => this.entry(rank + offset));
    const ends_at = this.hasEnded ? "2025-10-25T00:00:00Z" : "2025-10-26T00:00:00Z";
    const window = { project: "p", board: "b", period: "daily", slot: this.slot, starts_at: null, ends_at, next_reset_at: "2025-10-26T00:00:00Z" };
    return { ...window, total: this.total, entries, next: last < Math.min(this.total, this.kept) ? "more" : null, previous: null };
  }

  entry(rank: number): Entry {
    return { rank, member: `m${rank}`, score: this.total - rank, change: 1 };
  }

  get source(): Source {
    return {
      page: async (rank, signal) => {
        this.asked.push(rank);
        await new Promise((resolve) => setTimeout(resolve, 10));
        signal.throwIfAborted();
        if (this.problem) throw this.problem;
        return this.page(rank);
      },
      follow: (listener) => {
        this.stream = listener;
      },
      ties: "desc",
    };
  }

  say(name: string, data: object): void {
    this.stream?.onEvent({ id: String(++this.#ids), name, data: JSON.stringify(data) });
  }
}

const members = (ranking: Ranking, ...indexes: number[]) => indexes.map((index) => ranking.at(index)?.member);

async function started(window: Window, first = 0): Promise<Ranking> {
  const ranking = new Ranking(window.source);
  ranking.look(first, first + 10);
  ranking.start();
  await vi.advanceTimersByTimeAsync(100);
  return ranking;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("document", { hidden: false });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("pages", () => {
  test("are loaded when they come into view, with their neighbours", async () => {
    const window = new Window(1000);
    const ranking = await started(window);
    expect(window.asked).toEqual([1, 101]);
    expect([ranking.count, ...members(ranking, 0, 150, 250)]).toEqual([1000, "m1", "m151", undefined]);
    ranking.look(540, 550);
    await vi.advanceTimersByTimeAsync(200);
    expect(window.asked).toEqual([1, 101, 501, 601, 401]);
    expect(members(ranking, 540)).toEqual(["m541"]);
  });

  test("that left the view before they loaded are aborted", async () => {
    const window = new Window(1_000_000);
    const ranking = await started(window);
    for (let first = 1000; first <= 500_000; first += 1000) ranking.look(first, first + 10);
    await vi.advanceTimersByTimeAsync(1000);
    expect(window.asked.length).toBeLessThan(8);
    expect(members(ranking, 500_000)).toEqual(["m500001"]);
  });

  test("begin where the view begins", async () => {
    const window = new Window(1000);
    await started(window, 700);
    expect(window.asked[0]).toBe(701);
  });

  test("end where the archive ends", async () => {
    const window = new Window(1000);
    window.hasEnded = true;
    window.kept = 30;
    const ranking = await started(window);
    expect([ranking.total, ranking.count, ranking.state]).toEqual([1000, 30, "still"]);
    expect(window.stream).toBeUndefined();
  });

  test("that failed temporarily are loaded again", async () => {
    const window = new Window(10);
    window.problem = new Problem(503, "Unavailable", "");
    const ranking = await started(window);
    expect([ranking.head, ranking.problem?.status]).toEqual([null, 503]);
    window.problem = null;
    await vi.advanceTimersByTimeAsync(5000);
    expect([ranking.count, ranking.problem]).toEqual([10, null]);
  });
});

describe("the stream", () => {
  const opened = async (window: Window) => {
    const ranking = await started(window);
    window.stream?.onState(true);
    window.say("snapshot", { ...window.page(1), entries: window.page(1).entries.map(({ rank, member, score }) => ({ rank, member, score })) });
    return ranking;
  };

  test("updates the best, with their gains", async () => {
    const window = new Window(3);
    const ranking = await opened(window);
    const moved = { rank: 1, member: "m3", score: 9, previous_rank: 3 };
    const others = [1, 2].map((rank) => ({ rank: rank + 1, member: `m${rank}`, score: 3 - rank, previous_rank: rank }));
    const moves = ranking.moves;
    window.say("change", { total: 3, entries: [moved, ...others], left: [] });
    expect(members(ranking, 0, 1, 2)).toEqual(["m3", "m1", "m2"]);
    expect([ranking.at(0)?.change, ranking.at(1)?.change]).toEqual([3, 0]);
    expect(ranking.moves).toBe(moves + 1);
  });

  test("loads the rest again, but not at every change", async () => {
    const window = new Window(1000);
    const ranking = await opened(window);
    ranking.look(300, 310);
    await vi.advanceTimersByTimeAsync(1000);
    const [before, beat] = [window.asked.length, ranking.beat];
    for (let change = 0; change < 20; change++) {
      window.say("change", { total: 1001, entries: [], left: [] });
      await vi.advanceTimersByTimeAsync(100);
    }
    await vi.advanceTimersByTimeAsync(2000);
    expect(ranking.total).toBe(1000); // as the last page says
    expect(ranking.beat - beat).toBeLessThanOrEqual(3);
    expect(ranking.beat - beat).toBeGreaterThanOrEqual(2);
    expect(window.asked.slice(before).every((rank) => [201, 301, 401].includes(rank))).toBe(true);
  });

  test("that is interrupted resumes, and the entries are polled meanwhile", async () => {
    const window = new Window(3);
    const ranking = await opened(window);
    window.stream?.onState(false);
    expect(ranking.state).toBe("polling");
    const before = window.asked.length;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(window.asked.length).toBe(before + 3);
    window.stream?.onState(true);
    window.say("change", { total: 4, entries: [{ rank: 4, member: "new", score: -1, previous_rank: null }], left: [] });
    expect([ranking.state, ...members(ranking, 0, 3)]).toEqual(["live", "m1", "new"]);
    const after = window.asked.length;
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(window.asked.length).toBeLessThanOrEqual(after + 1); // for what the new one gained
  });

  test("turns the page to the next window", async () => {
    const window = new Window(300);
    const ranking = await opened(window);
    window.slot = "2025-10-25";
    window.say("snapshot", { ...window.page(1), total: 0, entries: [] });
    expect([ranking.head?.slot, ranking.count, ...members(ranking, 0, 150)]).toEqual(["2025-10-25", 0, undefined, undefined]);
  });

  test("that ends for good says why, and the entries stay", async () => {
    const window = new Window(3);
    const ranking = await opened(window);
    window.stream?.onEnd(new Problem(404, "Not found", "the board is gone"));
    expect([ranking.state, ranking.problem?.message, ...members(ranking, 0)]).toEqual(["still", "the board is gone", "m1"]);
  });
});
