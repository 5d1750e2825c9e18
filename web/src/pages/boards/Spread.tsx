/** The distribution of a window's scores. */
import type { Schemas } from "../../lib/client";
import { count, score, short } from "../../lib/words";
import { BarPlot, numberCell, Sheet, Skeleton, Table } from "../../ui";
import { type BoardName, useSpread } from "./asking";
import styles from "./boards.module.css";
import type { Where } from "./view";

interface SpreadProps {
  name: BoardName;
  where: Where;
  isLive: boolean;
  standing: Schemas["Standing"] | undefined;
}

export function Spread({ name, where, isLive, standing }: SpreadProps) {
  const { data, problem } = useSpread(name, where, isLive);
  if ((problem && !data) || data?.total === 0) return null; // archived windows have no distribution
  const buckets = data?.buckets ?? [];
  const at = standing ? bucketOf(buckets, Number(standing.score)) : -1;
  const range = (bucket: Schemas["Bucket"]) => `${rounded(bucket.low)} to ${rounded(bucket.high)}`;
  const tallest = buckets.length ? buckets.reduce((most, bucket) => (bucket.count > most.count ? bucket : most)) : undefined;
  const words = tallest ? `Scores from ${score(buckets[0]?.low ?? 0)} to ${score(buckets.at(-1)?.high ?? 0)}; most, ${count(tallest.count)}, from ${range(tallest)}` : "";
  return (
    <Sheet isPadded aria-label="Scores">
      <h2>Scores</h2>
      {!data && <Skeleton />}
      {data && (
        <>
          <BarPlot label={words} samples={buckets.map((bucket, index) => ({ label: edge(bucket, index === buckets.length - 1), value: bucket.count }))} width={320} height={150} chosen={at < 0 ? undefined : at} />
          {at >= 0 && standing && (
            <p className={styles["absent"]}>
              {standing.member} is one of {count(buckets[at]?.count ?? 0)} from {range(buckets[at] as Schemas["Bucket"])}.
            </p>
          )}
          <details>
            <summary>As a table</summary>
            <Table caption={words} className={styles["around"] ?? ""}>
              <thead>
                <tr>
                  <th scope="col">Scores</th>
                  <th scope="col" className={numberCell}>
                    Entries
                  </th>
                </tr>
              </thead>
              <tbody>
                {buckets.map((bucket) => (
                  <tr key={String(bucket.low)}>
                    <th scope="row">{range(bucket)}</th>
                    <td className={numberCell}>{count(bucket.count)}</td>
                  </tr>
                ))}
              </tbody>
            </Table>
          </details>
        </>
      )}
    </Sheet>
  );
}

/** Buckets divide the scores evenly, so their edges may have many needless digits. */
const rounded = (value: number | string): string => (typeof value === "number" && Math.abs(value) >= 100 ? count(Math.round(value)) : score(value));

/** The label below a bar: its beginning, and for the last its end. */
const edge = (bucket: Schemas["Bucket"], isLast: boolean): string => short(Number(isLast ? bucket.high : bucket.low));

/** The last bucket includes its high score. */
const bucketOf = (buckets: readonly Schemas["Bucket"][], value: number): number =>
  buckets.findIndex((bucket, index) => value >= Number(bucket.low) && (value < Number(bucket.high) || index === buckets.length - 1));
