/** Small plots. Each has its values as a sentence or a table for screen readers. */
import { short } from "../lib/words";
import { extent, pathThrough, scale, ticks } from "./plotting";
import styles from "./ui.module.css";

const LEFT = 44; // room for the numbers of the axis
const BOTTOM = 20;
const TOP = 8;

export interface Sample {
  /** The label below it. */
  label: string;
  /** Null for unknown: the line has a gap there. */
  value: number | null;
}

interface PlotProps {
  /** What it shows, in words. */
  label: string;
  samples: readonly Sample[];
  width?: number;
  height?: number;
  /** For ranks: 1, the best, is on top. */
  isUpsideDown?: boolean;
  /** Starts the axis at zero. */
  fromZero?: boolean;
  format?: (value: number) => string;
}

export function LinePlot({ label, samples, width = 480, height = 180, isUpsideDown = false, fromZero = false, format = short }: PlotProps) {
  const values = samples.flatMap((sample) => (sample.value === null ? [] : [sample.value]));
  const [least, most] = extent(values);
  // If all values are zero, the line runs along the bottom.
  const domain: [number, number] = fromZero ? [Math.min(0, least), most || 1] : [least, most];
  const x = scale([0, Math.max(samples.length - 1, 1)], [LEFT, width - 8]);
  const y = scale(domain, isUpsideDown ? [TOP, height - BOTTOM] : [height - BOTTOM, TOP]);
  const points = samples.map((sample, index) => (sample.value === null ? null : { x: x(index), y: y(sample.value) }));
  const last = points.findLast((point) => point !== null);
  return (
    <svg className={styles["plot"]} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {ticks(domain).map((tick) => (
        <g key={tick}>
          <line className={styles["axis"]} x1={LEFT} x2={width - 8} y1={y(tick)} y2={y(tick)} />
          <text x={LEFT - 8} y={y(tick)} textAnchor="end" dominantBaseline="middle">
            {format(tick)}
          </text>
        </g>
      ))}
      <path className={styles["drawn"]} d={pathThrough(points)} />
      {last && <circle className={styles["dot"]} cx={last.x} cy={last.y} r={3} />}
      <Ends samples={samples} width={width} height={height} />
    </svg>
  );
}

interface BarPlotProps extends PlotProps {
  /** The index of the highlighted bar. */
  chosen?: number | undefined;
}

export function BarPlot({ label, samples, width = 480, height = 180, format = short, chosen }: BarPlotProps) {
  const most = Math.max(...samples.map((sample) => sample.value ?? 0), 0);
  const y = scale([0, most || 1], [height - BOTTOM, TOP]);
  const step = (width - 8 - LEFT) / Math.max(samples.length, 1);
  return (
    <svg className={styles["plot"]} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {ticks([0, most || 1]).map((tick) => (
        <g key={tick}>
          <line className={styles["axis"]} x1={LEFT} x2={width - 8} y1={y(tick)} y2={y(tick)} />
          <text x={LEFT - 8} y={y(tick)} textAnchor="end" dominantBaseline="middle">
            {format(tick)}
          </text>
        </g>
      ))}
      {samples.map((sample, index) => (
        <rect
          key={index}
          className={`${styles["column"]} ${index === chosen ? styles["chosen"] : ""}`}
          x={LEFT + index * step + step * 0.1}
          width={step * 0.8}
          y={y(sample.value ?? 0)}
          height={Math.max(height - BOTTOM - y(sample.value ?? 0), 0)}
        >
          <title>{`${sample.label}: ${format(sample.value ?? 0)}`}</title>
        </rect>
      ))}
      <Ends samples={samples} width={width} height={height} />
    </svg>
  );
}

function Ends({ samples, width, height }: { samples: readonly Sample[]; width: number; height: number }) {
  return (
    <>
      <text x={LEFT} y={height - 4}>
        {samples[0]?.label}
      </text>
      {samples.length > 1 && (
        <text x={width - 8} y={height - 4} textAnchor="end">
          {samples.at(-1)?.label}
        </text>
      )}
    </>
  );
}

/** A line without axes, for a row or a card. */
export function Sparkline({ label, values, width = 120, height = 28 }: { label: string; values: readonly number[]; width?: number; height?: number }) {
  const x = scale([0, Math.max(values.length - 1, 1)], [2, width - 2]);
  const y = scale(extent(values), [height - 2, 2]);
  return (
    <svg className={styles["plot"]} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} style={{ width, height }}>
      <path className={styles["drawn"]} d={pathThrough(values.map((value, index) => ({ x: x(index), y: y(value) })))} />
    </svg>
  );
}
