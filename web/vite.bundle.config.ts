import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** The page of an exported HTML file: one script and one style, which the server writes into it. */
export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": here("./src") } },
  // Not a module: those are not loaded from a disk.
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    target: "es2022",
    outDir: "dist/bundle",
    copyPublicDir: false,
    // Nothing can be fetched from a file.
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    cssCodeSplit: false,
    lib: { entry: here("./src/bundle/main.tsx"), formats: ["iife"], name: "rollouts", fileName: () => "bundle.js", cssFileName: "bundle" },
  },
});
