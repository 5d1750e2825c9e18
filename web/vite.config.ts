import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// Shorter files are not compressed.
const LEAST_BYTES = 1024;
const COMPRESSIBLE = /\.(js|css|svg)$/;

/** Adds compressed copies of each file, `name.br` and `name.gz`, except of pages: the server writes into them. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle({ dir = "" }, bundle) {
      for (const name of Object.keys(bundle).filter((name) => COMPRESSIBLE.test(name))) {
        const content = readFileSync(join(dir, name));
        if (content.length < LEAST_BYTES) continue;
        const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        writeFileSync(join(dir, `${name}.br`), brotliCompressSync(content, { params: quality }));
        writeFileSync(join(dir, `${name}.gz`), gzipSync(content, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  base: "./", // the server names the root, so a proxy may serve us under a path
  plugins: [react(), compressed()],
  build: {
    outDir: "../src/laurels/web",
    emptyOutDir: true,
    target: "es2023",
    cssTarget: ["chrome123", "firefox120", "safari17.5"], // light-dark()
    assetsInlineLimit: 0, // the policy allows data: for pictures only
    manifest: true,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { pluginTimings: false },
      input: { index: "index.html", embed: "embed.html", "embed-tag": "src/pages/embed/tag.ts" },
      output: {
        // The tag on other sites has a fixed name.
        entryFileNames: (chunk) => (chunk.name === "embed-tag" ? "embed.js" : "assets/[name]-[hash].js"),
      },
    },
  },
  server: {
    // `npm run dev` beside `laurels serve`: requests that are not for pages go to the API.
    proxy: Object.fromEntries(
      ["/v1", "/leaders/", "/leaderboards/", "/console/session", "/openapi.json", "/healthz", "/readyz", "/metrics"].map((path) => [
        path,
        process.env["API_AT"] ?? "http://127.0.0.1:8000",
      ]),
    ),
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
} as Parameters<typeof defineConfig>[0]);
