/** The requests of these pages. */
import { useEffect, useMemo, useSyncExternalStore } from "react";
import { access, forget, useAccess } from "../../lib/access";
import { api, ask, type Schemas } from "../../lib/client";
import { type Asked, useAsk } from "../../lib/useAsk";
import { urlOf } from "../../router/router";
import { follow } from "./live";
import { PAGE, Ranking } from "./ranking";
import { asked, type Where } from "./view";

export type Definition = Schemas["BoardDefinition"];

export interface BoardName {
  readonly project: string;
  readonly board: string;
}

const said = (...words: (string | number)[]): string => JSON.stringify(words);

export const useProjects = (): Asked<string[]> =>
  useAsk(said("projects"), async (signal) => (await ask(api.GET("/v1/projects", { signal }))).projects, { keep: true });

export const useBoards = (project: string | null): Asked<Schemas["Board"][]> =>
  useAsk(project === null ? null : said("boards", project), async (signal) => {
    const path = { project: project ?? "" };
    return (await ask(api.GET("/v1/projects/{project}/boards", { params: { path }, signal }))).boards;
  });

export const useBoard = (path: BoardName): Asked<Schemas["Board"]> =>
  useAsk(said("board", path.project, path.board), (signal) => ask(api.GET("/v1/projects/{project}/boards/{board}", { params: { path: { ...path } }, signal })));

/** `turn` is the current slot; a new one loads again. */
export const useWindows = (path: BoardName, { period, group }: Where, turn: string): Asked<Schemas["WindowInfo"][]> =>
  useAsk(
    said("windows", path.project, path.board, period, group, turn),
    async (signal) => {
      const query = { period, ...(group && { group }), limit: 1000 };
      return (await ask(api.GET("/v1/projects/{project}/boards/{board}/windows", { params: { path: { ...path }, query }, signal }))).windows;
    },
    { keep: true },
  );

/** Snapshots: of one group ("" is the whole board), or of all. */
export const useSnapshots = (path: BoardName, period: string, group: string | undefined, isAsked: boolean): Asked<Schemas["SnapshotInfo"][]> =>
  useAsk(isAsked ? said("snapshots", path.project, path.board, period, group ?? "*") : null, async (signal) => {
    const query = { period, ...(group !== undefined && { group }), limit: 400 };
    return (await ask(api.GET("/v1/projects/{project}/boards/{board}/snapshots", { params: { path: { ...path }, query }, signal }))).snapshots;
  });

export const useSnapshot = (path: BoardName, snapshot: string, cursor: string): Asked<Schemas["SnapshotPage"]> =>
  useAsk(said("snapshot", path.project, path.board, snapshot, cursor), (signal) => {
    const query = { limit: PAGE, people: true, ...(cursor && { cursor }) };
    return ask(api.GET("/v1/projects/{project}/boards/{board}/snapshots/{snapshot}", { params: { path: { ...path, snapshot }, query }, signal }));
  });

const whereWords = ({ period, slot, group }: Where) => [period, slot, group];

export const useStanding = (path: BoardName, member: string, where: Where, beat: number): Asked<Schemas["Standing"]> =>
  useAsk(
    member ? said("standing", path.project, path.board, member, ...whereWords(where), beat) : null,
    (signal) =>
      ask(api.GET("/v1/projects/{project}/boards/{board}/entries/{member}", { params: { path: { ...path, member }, query: { ...asked(where), people: true } }, signal })),
    { keep: true },
  );

export const useAround = (path: BoardName, member: string, where: Where, beat: number): Asked<Schemas["Page"]> =>
  useAsk(
    said("around", path.project, path.board, member, ...whereWords(where), beat),
    (signal) => {
      const query = { ...asked(where), above: 3, below: 3, people: true };
      return ask(api.GET("/v1/projects/{project}/boards/{board}/entries/{member}/around", { params: { path: { ...path, member }, query }, signal }));
    },
    { keep: true },
  );

export const useHistory = (path: BoardName, member: string, period: string | null, group: string, turn: string): Asked<Schemas["History"]> =>
  useAsk(
    period === null ? null : said("history", path.project, path.board, member, period, group, turn),
    (signal) => {
      const query = { ...(period && { period }), ...(group && { group }), limit: 30 };
      return ask(api.GET("/v1/projects/{project}/boards/{board}/entries/{member}/history", { params: { path: { ...path, member }, query }, signal }));
    },
    { keep: true },
  );

export const useAmong = (path: BoardName, members: readonly string[], where: Where, beat: number): Asked<Schemas["Among"]> =>
  useAsk(
    members.length ? said("among", path.project, path.board, ...whereWords(where), beat, ...members) : null,
    (signal) => {
      const body = { members: [...members] };
      return ask(api.POST("/v1/projects/{project}/boards/{board}/entries/among", { params: { path: { ...path }, query: { ...asked(where), people: true } }, body, signal }));
    },
    { keep: true },
  );

const BUCKETS = 24;
const SPREAD_EVERY = 15_000; // milliseconds

export const useSpread = (path: BoardName, where: Where, isLive: boolean): Asked<Schemas["Distribution"]> =>
  useAsk(
    said("distribution", path.project, path.board, ...whereWords(where)),
    (signal) => {
      const query = { ...asked(where), buckets: BUCKETS };
      return ask(api.GET("/v1/projects/{project}/boards/{board}/distribution", { params: { path: { ...path }, query }, signal }));
    },
    isLive ? { every: SPREAD_EVERY } : {},
  );

/** The window's entries, kept up to date while the page is shown. */
export function useRanking({ project, board }: BoardName, where: Where, order: Definition["order"]): Ranking {
  const key = useAccess("key");
  const ranking = useMemo(
    () =>
      new Ranking({
        page: (rank, signal) => {
          const query = { ...asked(where), limit: PAGE, rank, change: true, people: true };
          return ask(api.GET("/v1/projects/{project}/boards/{board}/entries", { params: { path: { project, board }, query }, signal }));
        },
        follow: (listener, signal) => {
          const url = urlOf(["v1", "projects", project, "boards", board, "live"], { ...asked(where), limit: PAGE, people: true });
          const onEnd: typeof listener.onEnd = (problem) => {
            if (problem.status === 401 && key === access("key")) forget("key");
            listener.onEnd(problem);
          };
          follow(url, key, { ...listener, onEnd }, signal);
        },
        ties: order,
      }),
    [key, project, board, where.period, where.slot, where.group, order],
  );
  useEffect(() => ranking.start(), [ranking]);
  useSyncExternalStore(ranking.subscribe, ranking.version);
  return ranking;
}
