const LEAF = "M0-4.4C2-2 2 2 0 4.4-2 2-2-2 0-4.4Z";
const ANGLES = [24, 56, 88, 120, 152];

/** The logo: a laurel wreath. */
export function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      {ANGLES.flatMap((angle) => [-angle, angle]).map((angle) => (
        <path key={angle} d={LEAF} transform={`rotate(${angle} 16 16) translate(16 4.6) rotate(${angle < 0 ? 62 : -62})`} />
      ))}
      <path d="M16 29.2v-2.4" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" />
    </svg>
  );
}
