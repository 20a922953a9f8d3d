/** One server for all browser tests, with the example run in it. */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Where the server listens. */
    url: string;
    /** A folder that the server may read, for tests that write files of their own. */
    folder: string;
    /** Place of the example run. */
    example: string;
  }
}

const ROOT = resolve(import.meta.dirname, "../../..");
export const BINARY = process.env["ROLLYARD_BIN"] ?? join(ROOT, "target/debug/rollyard");

/** Starts a server, on a free port if nobody says which, and waits until it says where. */
export async function serve(folder: string, flags: string[] = [], listen = "127.0.0.1:0"): Promise<{ url: string; process: ChildProcess }> {
  if (!existsSync(BINARY)) throw new Error(`the browser tests need the program; build it with \`make build-tests\`: ${BINARY}`);
  const args = ["serve", "--listen", listen, "--data", join(folder, "data"), "--cache", join(folder, "cache"), "--root", folder];
  const child = spawn(BINARY, [...args, ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  const url = await new Promise<string>((found, failed) => {
    let heard = "";
    const listen = (chunk: Buffer) => {
      heard += chunk.toString();
      const match = /listening on (http:\/\/\S+)/.exec(heard);
      if (match?.[1] !== undefined) found(match[1]);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("exit", (code) => failed(new Error(`the server ended with ${code ?? "a signal"}: ${heard}`)));
  });
  return { url, process: child };
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGTERM");
  await ended;
}

/** The program carries its page: one that was built before the page changed would be tested in vain. */
async function checkPage(url: string): Promise<void> {
  const answer = await fetch(url, { headers: { accept: "text/html" } });
  const built = join(ROOT, "web/dist/index.html");
  if (existsSync(built) && (await answer.text()) === readFileSync(built, "utf8")) return;
  throw new Error(`the program carries another page than ${built}; build both with \`make build-tests\`: ${BINARY}`);
}

export default async function setup(project: TestProject) {
  // While writing the page: `vite preview` in front of a server that runs already, and an example that it can read.
  const { PAGE_URL: page, EXAMPLE: example, FOLDER: writable } = process.env;
  if (page !== undefined && example !== undefined && writable !== undefined) {
    project.provide("url", page);
    project.provide("folder", writable);
    project.provide("example", example);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "rollyard-browser-"));
  const server = await serve(folder, ["--archive", join(folder, "archive")]);
  await checkPage(server.url).catch(async (problem: unknown) => {
    await stop(server.process);
    throw problem;
  });
  const answer = await fetch(`${server.url}/api/view/example`, { method: "POST" });
  if (!answer.ok) throw new Error(`no example run: ${answer.status} ${await answer.text()}`);
  const { place } = (await answer.json()) as { place: string };
  project.provide("url", server.url);
  project.provide("folder", folder);
  project.provide("example", place);
  return async () => {
    await stop(server.process);
    rmSync(folder, { recursive: true, force: true });
  };
}
