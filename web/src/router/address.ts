/** Addresses within Laurels: paths and queries below the root that the server named in `<base>`. */

export interface Address {
  /** The path below the root, decoded, without empty segments: `["boards", "demo", "arcade"]`. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** The address of `url` below `root`, a path that ends in a slash. */
export function parseAddress(url: URL, root: string): Address {
  const below = url.pathname.startsWith(root) ? url.pathname.slice(root.length) : url.pathname;
  const path = below.split("/").filter(Boolean).map(decoded);
  return { path, query: url.searchParams };
}

/** `/boards/demo/arcade?period=daily`, relative to the root; empty values are left out of the query. */
export function addressOf(path: readonly string[], query: Query | URLSearchParams = {}): string {
  const given = query instanceof URLSearchParams ? query : queryOf(query);
  const search = given.toString();
  return path.map(encodeURIComponent).join("/") + (search ? `?${search}` : "");
}

export function queryOf(query: Query): URLSearchParams {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
