/** Which pictures may be loaded: our own, and those of hosts that the server names in the page. */

/** Whether a host source of a policy, such as `https://*.example.com:8443`, covers a URL. */
export function covers(source: string, url: URL, scheme: string): boolean {
  const found = /^(?:(https?):\/\/)?(\*\.)?([^/:*]+)(?::(\d+))?$/.exec(source.toLowerCase());
  if (!found) return false;
  const [, given, any, host = "", port] = found;
  const isScheme = url.protocol === "https:" || url.protocol === `${given ?? scheme}:`;
  const isHost = any ? url.hostname.endsWith(`.${host}`) : url.hostname === host;
  return isScheme && isHost && (url.port || "") === (port && !isDefault(url.protocol, port) ? port : "");
}

const isDefault = (protocol: string, port: string): boolean => port === (protocol === "https:" ? "443" : "80");

let hosts: readonly string[] | undefined;

function pictureHosts(): readonly string[] {
  hosts ??= (document.querySelector<HTMLMetaElement>('meta[name="image-hosts"]')?.content ?? "").split(" ").filter(Boolean);
  return hosts;
}

/** Others are not loaded: their hosts would learn who looks at what. */
export function mayLoad(text: string): boolean {
  if (!URL.canParse(text, document.baseURI)) return false;
  const url = new URL(text, document.baseURI);
  return url.origin === location.origin || pictureHosts().some((source) => covers(source, url, location.protocol.slice(0, -1)));
}
