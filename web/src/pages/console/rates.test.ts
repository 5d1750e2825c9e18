import { describe, expect, it } from "vitest";
import { bytes, type Figures, MOST_LOOKS, perSecond, recordedBy, withLook } from "./rates";

const look = (second: number, recorded: number, rows: number | null = 0): Figures => ({
  at: new Date(second * 1000).toISOString(),
  valkey: { name: "Valkey", version: "9", nodes: 1, memory_bytes: 1, memory_limit_bytes: null, commands: 1, clients: 1 },
  postgres: rows === null ? null : { version: "18", bytes: 1, rows },
  journal: { recorded, waiting: 0, bytes: 0, watermark: "", age_seconds: 0, dead_letters: 0 },
  boards: [{ project: "acme", board: "arcade", recorded, waiting: 0, watermark: "" }],
});

describe("rates", () => {
  it("are the growth between samples, divided by the time", () => {
    expect(perSecond([look(0, 10), look(2, 30), look(3, 30)], (each) => each.journal.recorded)).toEqual([10, 0]);
  });

  it("are unknown after a restart or without a value", () => {
    expect(perSecond([look(0, 10), look(1, 3)], (each) => each.journal.recorded)).toEqual([null]);
    expect(perSecond([look(0, 1, 5), look(1, 2, null), look(2, 3, 9)], (each) => each.postgres?.rows)).toEqual([null, null]);
    expect(perSecond([look(0, 1), look(1, 2)], recordedBy("acme", "chess"))).toEqual([null]);
  });

  it("need two samples", () => {
    expect(perSecond([look(0, 1)], (each) => each.journal.recorded)).toEqual([]);
  });
});

describe("samples", () => {
  it("are kept up to a number, each once", () => {
    let looks: readonly Figures[] = [];
    for (let second = 0; second < MOST_LOOKS + 5; second++) looks = withLook(withLook(looks, look(second, second)), look(second, second));
    expect(looks.length).toBe(MOST_LOOKS);
    expect(looks[0]?.journal.recorded).toBe(5);
  });
});

describe("bytes", () => {
  it("have a unit that fits", () => {
    expect([0, 512, 2048, 5 * 1024 ** 3].map(bytes)).toEqual(["0 B", "512 B", "2 KiB", "5 GiB"]);
  });
});
