/**
 * `<script src="…/embed.js" data-board="project/board" data-key="…">` on other sites inserts a frame with the board
 * after itself, as high as the board. No imports, no globals.
 */
(() => {
  const NAMES = ["period", "slot", "group", "limit", "theme"];
  const SIZE = "laurels:size";

  const isOurs = (script: Element | null): script is HTMLScriptElement => script instanceof HTMLScriptElement && "board" in script.dataset;

  function insert(script: HTMLScriptElement): void {
    const root = new URL(".", script.src);
    const path = (script.dataset["board"] ?? "").split("/").map(encodeURIComponent).join("/");
    const url = new URL(`embed/${path}`, root);
    for (const name of NAMES) {
      const value = script.dataset[name];
      if (value) url.searchParams.set(name, value);
    }
    const key = script.dataset["key"];
    if (key) url.hash = new URLSearchParams({ key }).toString();
    const frame = document.createElement("iframe");
    frame.title = script.dataset["title"] ?? `Leaderboard ${script.dataset["board"]}`;
    frame.loading = "lazy";
    frame.referrerPolicy = "no-referrer";
    frame.src = url.href;
    Object.assign(frame.style, { display: "block", width: "100%", height: "20rem", border: "0", colorScheme: "auto" });
    script.after(frame);
    script.dataset["shown"] = "";
    window.addEventListener("message", ({ source, origin, data }: MessageEvent<{ type?: unknown; height?: unknown } | null>) => {
      if (source !== frame.contentWindow || origin !== url.origin || data?.type !== SIZE) return;
      if (typeof data.height === "number" && data.height > 0) frame.style.height = `${data.height}px`;
    });
  }

  // A module, or a tag inserted by a script, does not know its own tag: then every tag without a frame gets one.
  const current = document.currentScript;
  const scripts = isOurs(current) ? [current] : [...document.querySelectorAll('script[data-board]:not([data-shown])[src*="embed.js"]')].filter(isOurs);
  scripts.forEach(insert);
})();
