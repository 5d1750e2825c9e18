import { describe, expect, test } from "vitest";
import { EventReader } from "./events";

describe("events", () => {
  test("are read from pieces of any size", () => {
    const text = 'retry: 1000\n\nid: a-1\nevent: snapshot\ndata: {"total":1}\n\n: still here\n\nid: a-2\nevent: change\ndata: {}\n\n';
    for (let size = 1; size <= text.length; size++) {
      const reader = new EventReader();
      const events = [];
      for (let at = 0; at < text.length; at += size) events.push(...reader.read(text.slice(at, at + size)));
      expect(events).toEqual([
        { id: "a-1", name: "snapshot", data: '{"total":1}' },
        { id: "a-2", name: "change", data: "{}" },
      ]);
    }
  });

  test("without an id have that of the previous event", () => {
    expect(new EventReader().read("id: 7\ndata: x\n\nevent: end\ndata: y\n\n").map((event) => event.id)).toEqual(["7", "7"]);
  });

  test("may have many lines, and lines may end in CRLF", () => {
    expect(new EventReader().read("data: one\r\ndata:two\r\n\r\n")).toEqual([{ id: "", name: "message", data: "one\ntwo" }]);
  });

  test("that are incomplete are not returned", () => {
    expect(new EventReader().read("id: 1\ndata: half")).toEqual([]);
  });
});
