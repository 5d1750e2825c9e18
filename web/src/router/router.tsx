/** The address decides which page is shown. Every view has one, so back and forward work. */
import { type AnchorHTMLAttributes, type MouseEvent, useMemo, useSyncExternalStore } from "react";
import { type Address, addressOf, parseAddress, type Query } from "./address";

export { addressOf, type Address, type Query } from "./address";

const listeners = new Set<() => void>();
const tell = () => {
  for (const listener of listeners) listener();
};
window.addEventListener("popstate", tell);

export const root = new URL(document.baseURI);

/** The whole URL of a path below the root. */
export const urlOf = (path: readonly string[], query?: Query | URLSearchParams): string =>
  new URL(addressOf(path, query) || ".", root).href;

/** Navigates; `replace` replaces the current entry of the history. */
export function navigate(path: readonly string[], query?: Query | URLSearchParams, { replace = false } = {}): void {
  const url = urlOf(path, query);
  if (url === location.href) return;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  tell();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useAddress(): Address {
  const href = useSyncExternalStore(subscribe, () => location.href);
  return useMemo(() => parseAddress(new URL(href), root.pathname), [href]);
}

/** The address's query and a function that changes it: empty and default values are left out. */
export function useQuery<Names extends string>(
  defaults: Readonly<Record<Names, string>>,
): [Record<Names, string>, (changes: Partial<Record<Names, string>>, options?: { replace?: boolean }) => void] {
  const { path, query } = useAddress();
  const names = Object.keys(defaults) as Names[];
  const present = Object.fromEntries(names.map((name) => [name, query.get(name) || defaults[name]])) as Record<Names, string>;
  const change = (changes: Partial<Record<Names, string>>, options?: { replace?: boolean }) => {
    const wanted = new URLSearchParams(query);
    for (const [name, value] of Object.entries<string | undefined>(changes)) {
      if (!value || value === defaults[name as Names]) wanted.delete(name);
      else wanted.set(name, value);
    }
    navigate(path, wanted, options);
  };
  return [present, change];
}

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  to: readonly string[];
  query?: Query | URLSearchParams;
  replace?: boolean;
}

export function Link({ to, query, replace = false, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isOurs = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isOurs || rest.target) return;
    event.preventDefault();
    navigate(to, query, { replace });
  };
  return <a {...rest} href={urlOf(to, query)} onClick={follow} />;
}
