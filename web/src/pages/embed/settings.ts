/** The settings of an embedded board, from its address. Pure. */

export interface Settings {
  readonly project: string;
  readonly board: string;
  readonly key: string;
  readonly period: string;
  readonly slot: string;
  readonly group: string;
  readonly limit: number;
  readonly theme: "auto" | "light" | "dark";
}

const LIMIT = 10;
const MOST = 100;

/** Of `…/embed/PROJECT/BOARD?period=&slot=&group=&limit=&theme=#key=…`: the key is in the fragment, which browsers send to no server. */
export function settingsOf(url: URL): Settings {
  const [project = "", board = ""] = url.pathname
    .slice(url.pathname.indexOf("/embed/") + "/embed/".length)
    .split("/")
    .map(decodeURIComponent);
  const said = (name: string) => url.searchParams.get(name) ?? "";
  const limit = Math.trunc(Number(said("limit"))) || LIMIT;
  return {
    project,
    board,
    key: new URLSearchParams(url.hash.slice(1)).get("key") ?? "",
    period: said("period"),
    slot: said("slot"),
    group: said("group"),
    limit: Math.max(1, Math.min(MOST, limit)),
    theme: (["light", "dark"] as const).find((theme) => theme === said("theme")) ?? "auto",
  };
}

/** The path of the API, relative to the root. */
export function apiPath({ project, board, period, slot, group, limit }: Settings, route: "entries" | "live"): string {
  const given = Object.entries({ period, slot, group }).filter(([, value]) => value);
  const query = new URLSearchParams([...given, ["limit", String(limit)]]);
  return `v1/projects/${encodeURIComponent(project)}/boards/${encodeURIComponent(board)}/${route}?${query}`;
}
