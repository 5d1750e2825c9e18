/** A request of a view, and its state. */
import { useCallback, useEffect, useRef, useState } from "react";
import { asProblem, type Problem } from "./problem";

export interface Asked<T> {
  readonly data: T | undefined;
  /** The problem of the last attempt; earlier data may still be there. */
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  /** Whether the data belongs to the previous request while this one loads. */
  readonly isStale: boolean;
  readonly again: () => void;
}

interface Options {
  /** Milliseconds between requests while the page is visible. */
  every?: number;
  /** Keeps the data of the previous request until this one's arrives. */
  keep?: boolean;
}

interface Known<T> {
  question: string;
  data?: T;
  problem?: Problem;
}

const LATER = 3_000; // milliseconds until a temporary failure is retried

/** `question` identifies the request: the same text, the same answer. `null` sends none. */
export function useAsk<T>(
  question: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { every, keep = false }: Options = {},
): Asked<T> {
  const [known, setKnown] = useState<Known<T> | null>(null);
  const [turn, setTurn] = useState(0);
  const asking = useRef(ask);
  asking.current = ask;
  const again = useCallback(() => setTurn((turn) => turn + 1), []);

  useEffect(() => {
    if (question === null) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (milliseconds: number | undefined) => {
      if (milliseconds !== undefined && !document.hidden) timer = setTimeout(run, milliseconds);
    };
    const run = async () => {
      clearTimeout(timer);
      try {
        const data = await asking.current(abort.signal);
        if (abort.signal.aborted) return;
        setKnown({ question, data });
        later(every);
      } catch (error) {
        if (abort.signal.aborted) return;
        const problem = asProblem(error);
        setKnown((known) => ({ question, problem, ...(known?.question === question && known.data !== undefined ? { data: known.data } : {}) }));
        later(problem.isPassing ? Math.max(every ?? 0, LATER) : undefined);
      }
    };
    const seen = () => {
      if (document.hidden) clearTimeout(timer);
      else if (every !== undefined) void run();
    };
    document.addEventListener("visibilitychange", seen);
    window.addEventListener("online", run);
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
      window.removeEventListener("online", run);
    };
  }, [question, every, turn]);

  const isAnswered = known !== null && known.question === question;
  return {
    data: isAnswered || keep ? known?.data : undefined,
    problem: isAnswered ? known.problem : undefined,
    isLoading: question !== null && !isAnswered,
    isStale: !isAnswered && keep && known?.data !== undefined,
    again,
  };
}
