import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** `npm run dev` shows the page of a server that runs elsewhere: `rollyard serve`, or what ROLLYARD_URL says. */
const server = process.env.ROLLYARD_URL ?? "http://127.0.0.1:8889";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": here("./src") } },
  build: {
    target: "es2022",
    // The policy of the page allows no data: scripts or styles, and a chunk that is its own file is cached for ever.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": { target: server, changeOrigin: false } } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          environment: "happy-dom",
          include: ["src/**/*.test.{ts,tsx}"],
          setupFiles: ["tests/unit/setup.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          environment: "node",
          include: ["tests/browser/**/*.test.ts"],
          globalSetup: ["tests/browser/setup.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
          // A second is little on a machine that does other work too.
          expect: { poll: { timeout: 10_000 } },
          // Two cores: a browser and a server are enough at once.
          maxWorkers: 2,
          // On two busy cores a browser may miss a moment; what is broken fails five times.
          retry: 4,
        },
      },
    ],
  },
});
