/** Follows a board's live stream with a key, and resumes after an interruption. */
import { noteDate } from "../../lib/clock";
import { noAnswer, type Problem, problemOf } from "../../lib/problem";
import { EventReader, type ServerEvent } from "./events";

const SOON = 1_000; // milliseconds: as the server requests
const LONGEST = 20_000;
const SILENCE = 40_000; // the server sends something every 15 seconds

interface Listener {
  onEvent: (event: ServerEvent) => void;
  /** Whether the stream is open; a closed one is retried. */
  onState: (isOpen: boolean) => void;
  /** Do not reconnect. */
  onEnd: (problem: Problem) => void;
}

interface Outcome {
  problem: Problem;
  isFinal: boolean;
}

/** Runs until `signal` is aborted or the server ends the stream; pauses while the page is hidden. */
export function follow(url: string, key: string, listener: Listener, signal: AbortSignal): void {
  let lastId = "";
  let failures = 0;
  let attempt: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const rest = () => {
    clearTimeout(timer);
    attempt?.abort();
    attempt = undefined;
  };

  const run = async () => {
    rest();
    if (document.hidden) return;
    const mine = (attempt = new AbortController());
    const { problem, isFinal } = await listen(mine).catch(() => ({ problem: noAnswer(), isFinal: false }));
    if (mine !== attempt) return;
    if (isFinal) {
      stop();
      listener.onEnd(problem);
      return;
    }
    listener.onState(false);
    timer = setTimeout(run, Math.min(SOON * 2 ** failures++, LONGEST) * (0.75 + Math.random() / 2));
  };

  const listen = async (mine: AbortController): Promise<Outcome> => {
    const headers = { Authorization: `Bearer ${key}`, Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
    const response = await fetch(url, { headers, cache: "no-store", signal: mine.signal });
    noteDate(response.headers.get("Date"));
    if (!response.ok) {
      const problem = problemOf(response.status, await response.json().catch(() => ({})));
      return { problem, isFinal: !problem.isPassing };
    }
    const pieces = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const reader = new EventReader();
    listener.onState(true);
    while (pieces) {
      const silence = setTimeout(() => mine.abort(), SILENCE);
      const { done, value } = await pieces.read().finally(() => clearTimeout(silence));
      if (done) break;
      failures = 0;
      for (const event of reader.read(value)) {
        if (mine !== attempt) break;
        lastId = event.id;
        if (event.name === "end") return { problem: ended(event.data), isFinal: true };
        listener.onEvent(event);
      }
    }
    return { problem: noAnswer(), isFinal: false };
  };

  const turn = () => {
    if (document.hidden) rest();
    else void run();
  };
  const stop = () => {
    rest();
    document.removeEventListener("visibilitychange", turn);
    window.removeEventListener("online", turn);
  };
  document.addEventListener("visibilitychange", turn);
  window.addEventListener("online", turn);
  signal.addEventListener("abort", stop, { once: true });
  void run();
}

function ended(data: string): Problem {
  const said = JSON.parse(data) as { status: number };
  return problemOf(said.status, said);
}
