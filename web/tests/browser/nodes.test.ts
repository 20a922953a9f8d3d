import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, test } from "vitest";
import { leave, open } from "./page";
import { serve, stop } from "./setup";

const NATS = process.env["ROLLYARD_NATS_SERVER"] ?? resolve(import.meta.dirname, "../../../.venv/bin/nats-server");

const folder = mkdtempSync(join(tmpdir(), "rollyard-nodes-"));
const programs: ChildProcess[] = [];
let log = "";

/** A real NATS on a free port. */
async function nats(): Promise<string> {
  if (!existsSync(NATS)) throw new Error(`no nats-server to test with: run \`make test\`, or name one in ROLLYARD_NATS_SERVER: ${NATS}`);
  const child = spawn(NATS, ["-js", "-a", "127.0.0.1", "-p", "-1", "-sd", join(folder, "nats")], { stdio: ["ignore", "ignore", "pipe"] });
  programs.push(child);
  return new Promise((found, failed) => {
    let heard = "";
    child.stderr.on("data", (chunk: Buffer) => {
      heard += chunk.toString();
      const port = /Listening for client connections on 127\.0\.0\.1:(\d+)/.exec(heard)?.[1];
      if (port !== undefined && heard.includes("Server is ready")) found(`nats://127.0.0.1:${port}`);
    });
    child.once("exit", () => failed(new Error(`nats-server ended: ${heard}`)));
  });
}

async function node(name: string): Promise<{ url: string; process: ChildProcess }> {
  const server = await serve(join(folder, name), ["--log", log, "--node", name]);
  programs.push(server.process);
  return server;
}

beforeAll(async () => {
  log = await nats();
});

afterAll(async () => {
  for (const program of programs.reverse()) await stop(program);
  rmSync(folder, { recursive: true, force: true });
});

test("two real nodes are shown with their runs, and one that stops gives its own away", { timeout: 60_000 }, async () => {
  const [one, other] = await Promise.all([node("one"), node("other")]);
  for (let number = 0; number < 8; number += 1) {
    const made = await fetch(`${one.url}/api/runs`, { method: "POST", body: JSON.stringify({ name: `run-${number}` }) });
    if (made.status !== 201) throw new Error(await made.text());
  }
  const page = await open("/live", { url: one.url });
  const nodes = page.getByRole("region", { name: "Nodes" });
  await nodes.getByRole("heading", { name: "Nodes: 2 of 2 alive" }).waitFor();
  // Whichever node is asked, all runs are there to look at.
  await page.getByRole("navigation", { name: "Runs" }).getByRole("heading", { name: "9 runs" }).waitFor();
  await nodes.getByRole("row", { name: /^other / }).getByRole("button", { name: /^run-/ }).first().waitFor();
  await nodes.getByRole("row", { name: /^one \(this one\)/ }).getByRole("button", { name: /^run-/ }).first().waitFor();
  await stop(other.process);
  await nodes.getByRole("heading", { name: "Nodes: 1 of 1 alive" }).waitFor();
  for (let number = 0; number < 8; number += 1) await nodes.getByRole("row", { name: /^one / }).getByRole("button", { name: `run-${number}` }).waitFor();
  await leave();
});
