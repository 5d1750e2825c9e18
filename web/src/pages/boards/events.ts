/** Server-sent events, read from any stream of text: the browser's EventSource sends no key. Pure. */

export interface ServerEvent {
  /** The `Last-Event-ID` to reconnect with; the previous event's if this one has none. */
  readonly id: string;
  readonly name: string;
  readonly data: string;
}

/** Takes text as it arrives, in any pieces, and returns complete events. */
export class EventReader {
  #rest = "";
  #id = "";
  #name = "";
  #data: string[] = [];

  read(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.#rest + text).split(/\r\n|\r(?!$)|\n/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line) this.#take(line);
      else events.push(...this.#end());
    }
    return events;
  }

  #take(line: string): void {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.#id = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
  }

  #end(): ServerEvent[] {
    const event = { id: this.#id, name: this.#name || "message", data: this.#data.join("\n") };
    const isEvent = this.#data.length > 0;
    this.#name = "";
    this.#data = [];
    return isEvent ? [event] : [];
  }
}
