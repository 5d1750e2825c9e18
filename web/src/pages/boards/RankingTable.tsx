/** A window's entries as a table of any length: draws the rows in view, and loads their pages. */
import { type CSSProperties, type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useReducer, useRef, useState } from "react";
import { count as counted, score as scored } from "../../lib/words";
import { Table } from "../../ui";
import styles from "./boards.module.css";
import { showOff, useMoves } from "./moves";
import type { Ranking } from "./ranking";
import { LoadingRow, Row, Space } from "./rows";
import { drawn, firstToSee, rowAfter, type Stretch, stretchAround } from "./stretch";

const ROW = 2.75; // rem
const SETTLED = 250; // milliseconds without scrolling before the address is updated

/** An index to scroll to: on top, or in the middle. */
export interface Target {
  readonly index: number;
  readonly align: "start" | "center";
}

interface RankingTableProps {
  ranking: Ranking;
  caption: string;
  target: Target | null;
  /** Highlighted members. */
  chosen: string;
  me: string;
  onChoose: (member: string) => void;
  /** The index on top. */
  onTop: (index: number) => void;
  /** Controls beside the words that say which rows are in view; they can scroll to an index. */
  children: (go: (index: number) => void) => ReactNode;
}

export function RankingTable({ ranking, caption, target, chosen, me, onChoose, onTop, children }: RankingTableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const { row, inView } = useMeasures(scroller);
  const count = ranking.count;
  const [first, setFirst] = useState(target?.index ?? 0);
  const [held, setHeld] = useState<Stretch>(() => stretchAround(first, count));
  const stretch = stretchAround(Math.min(first, Math.max(count - 1, 0)), count, held);
  const scrollTo = useRef<number | null>(first || null); // an index, and a fraction of a row
  const written = useRef<number | null>(null); // the rank that we wrote into the address
  const focusOn = useRef<number | null>(null);
  const shownOff = useRef<number | null>(null);
  const settling = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [active, setActive] = useState(0);
  const [, draw] = useReducer((times: number) => times + 1, 0);
  const rows = drawn(Math.floor(first), inView, stretch);

  useEffect(() => {
    if (stretch !== held) setHeld(stretch);
  });

  useEffect(() => ranking.look(Math.floor(first), Math.floor(first) + inView), [ranking, first, inView]);

  const whole = Math.max(1, inView - 1); // rows that are fully visible
  const go = (index: number) => {
    clearTimeout(settling.current); // do not write the old position while scrolling to a new one
    scrollTo.current = Math.max(0, Math.min(index, count - whole));
    setFirst(scrollTo.current);
    draw(); // even if the rows are the same, because the scroller may have moved
  };

  // Follows the address, unless we wrote it.
  useEffect(() => {
    if (!target || !count) return;
    if (target.align === "start" && target.index === written.current) return;
    written.current = target.align === "start" ? target.index : null;
    shownOff.current = target.index;
    go(target.align === "center" ? target.index - Math.floor(whole / 2) : target.index);
  }, [ranking, target?.index, target?.align, count > 0]);

  // Maps the scroller's position to rows, once they are drawn.
  const drawnAs = useRef({ stretch, row, count });
  useLayoutEffect(() => {
    drawnAs.current = { stretch, row, count };
    const box = scroller.current;
    if (!box || scrollTo.current === null || !count) return;
    box.scrollTop = (scrollTo.current - stretch.start) * row;
    scrollTo.current = null;
  });

  const tellTop = useRef(onTop);
  tellTop.current = onTop;
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const scrolled = () => {
      const { stretch, row, count } = drawnAs.current;
      const exact = stretch.start + box.scrollTop / row;
      if (stretchAround(Math.floor(exact), count, stretch) !== stretch) scrollTo.current = exact;
      setFirst(Math.floor(exact + 0.01));
      clearTimeout(settling.current);
      settling.current = setTimeout(() => {
        const top = Math.round(exact);
        if (top === written.current) return;
        written.current = top;
        tellTop.current(top);
      }, SETTLED);
    };
    box.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      box.removeEventListener("scroll", scrolled);
      clearTimeout(settling.current);
    };
  }, []);

  useMoves(scroller, ranking, row);

  // Focuses the row that a key moved to once it is drawn; until then, the table.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box || focusOn.current === null) return;
    if (!box.contains(document.activeElement) && document.activeElement !== document.body) {
      focusOn.current = null;
      return;
    }
    const button = box.querySelector<HTMLElement>(`tr[data-index="${focusOn.current}"] button`);
    (button ?? box).focus({ preventScroll: true });
    if (button) focusOn.current = null;
  });

  useLayoutEffect(() => {
    const index = shownOff.current;
    const element = index === null ? null : scroller.current?.querySelector(`tr[data-index="${index}"]:not([data-loading])`);
    if (!element) return;
    shownOff.current = null;
    showOff(element);
  });

  const press = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !count) return;
    const at = (event.target as Element).closest("tr")?.dataset["index"];
    const from = focusOn.current ?? (at === undefined ? Math.floor(first) : Number(at));
    const to = rowAfter(event.key, from, inView, count);
    if (to === null) return;
    event.preventDefault();
    const top = Math.ceil(stretch.start + (scroller.current?.scrollTop ?? 0) / row - 0.01);
    const wanted = firstToSee(to, top, whole);
    if (wanted !== top) go(wanted);
    focusOn.current = to;
    setActive(to);
  };

  const seen = new Set<string>();
  const { best, letters } = largestOf(ranking, rows);
  const measures = { "--row": `${row}px`, "--rank-letters": counted(count).length, "--score-letters": letters } as CSSProperties;
  const tabbable = active >= rows.start && active < rows.end ? active : Math.max(Math.floor(first), rows.start);
  const drawnRows = Array.from({ length: rows.end - rows.start }, (_, offset) => {
    const index = rows.start + offset;
    const entry = ranking.at(index);
    if (!entry) return <LoadingRow key={`#${index}`} index={index} />;
    const key = seen.has(entry.member) ? `#${index}` : `m${entry.member}`; // two pages of different moments may have the same member
    seen.add(entry.member);
    return (
      <Row
        key={key}
        index={index}
        rank={entry.rank}
        member={entry.member}
        name={entry.person?.name}
        avatar={entry.person?.avatar_url}
        score={entry.score}
        change={entry.change}
        share={best ? Math.abs(Number(entry.score)) / best : 0}
        isChosen={entry.member === chosen}
        isMe={entry.member === me}
        isTabbable={index === tabbable}
        onChoose={onChoose}
        onFocus={setActive}
      />
    );
  });
  const last = Math.min(Math.floor(first) + inView, count);
  return (
    <>
      <div ref={scroller} className={styles["scroller"]} style={measures} tabIndex={-1} onKeyDown={press}>
        <Table caption={caption} className={styles["ranking"] ?? ""} aria-rowcount={count + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col" className={styles["rankCell"]}>
                Rank
              </th>
              <th scope="col" className={styles["changeCell"]}>
                <span className="unseen">Change</span>
              </th>
              <th scope="col">Member</th>
              <th scope="col" className={styles["scoreCell"]}>
                Score
              </th>
            </tr>
          </thead>
          <Space rows={rows.start - stretch.start} row={row} />
          <tbody>{drawnRows}</tbody>
          <Space rows={stretch.end - rows.end} row={row} />
        </Table>
      </div>
      <div className={styles["bar"]}>
        <span className="numbers">
          {counted(Math.floor(first) + 1)}–{counted(last)} of {counted(ranking.total)}
        </span>
        {children(go)}
      </div>
    </>
  );
}

/** Of the best and the visible entries, the score with the longest bar, and the longest text. */
function largestOf(ranking: Ranking, rows: Stretch): { best: number; letters: number } {
  const entries = [0, ...Array.from({ length: rows.end - rows.start }, (_, offset) => rows.start + offset)].flatMap((index) => ranking.at(index) ?? []);
  return {
    best: Math.max(0, ...entries.map((entry) => Math.abs(Number(entry.score)))),
    letters: Math.max(5, ...entries.map((entry) => scored(entry.score).length)),
  };
}

/** The height of a row, and how many are at least partly in view. */
function useMeasures(scroller: { readonly current: HTMLElement | null }): { row: number; inView: number } {
  const [measures, setMeasures] = useState({ row: ROW * 16, inView: 12 });
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const measure = () => {
      const row = Math.round(ROW * parseFloat(getComputedStyle(document.documentElement).fontSize));
      const most = parseFloat(getComputedStyle(box).maxHeight) || box.clientHeight;
      const head = box.querySelector("thead")?.clientHeight ?? row;
      const inView = Math.max(3, Math.ceil((most - head) / row));
      setMeasures((known) => (known.row === row && known.inView === inView ? known : { row, inView }));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    window.addEventListener("resize", measure);
    measure();
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [scroller]);
  return measures;
}
