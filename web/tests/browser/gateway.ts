/** A server with an engine, and agents that ask in its sessions. */

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { inject } from "vitest";
import { BINARY, serve, stop } from "./setup";

export interface Message {
  role: string;
  content: string;
  tool_calls?: object[];
  tool_call_id?: string;
}

export interface Granted {
  session: string;
  api_key: string;
  reward_key: string;
}

export interface Answered {
  id: string;
  choices: { message: Message; finish_reason: string }[];
}

/** Waits for the address that a program says when it listens. */
async function address(child: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    let heard = "";
    const listen = (chunk: Buffer) => {
      heard += chunk.toString();
      const match = /(http:\/\/\S+)/.exec(heard);
      if (match?.[1] !== undefined) found(match[1]);
    };
    child.stdout?.on("data", listen);
    child.stderr?.on("data", listen);
    child.once("exit", (code) => failed(new Error(`the engine ended with ${code ?? "a signal"}: ${heard}`)));
  });
}

export class Gateway {
  readonly folder = mkdtempSync(join(inject("folder"), "gateway-"));
  url = "";
  engine = "";
  private server: ChildProcess | undefined;
  private engineProcess: ChildProcess | undefined;
  private vocabulary: [string, number][] = [];

  /** With the small model, or with an engine that says what it is told to: a real model with random weights is quick and says nothing. */
  static async start(engine: "tiny" | "scripted"): Promise<Gateway> {
    const gateway = new Gateway();
    const tokenizer = join(gateway.folder, "tokenizer");
    spawnSync(BINARY, ["tiny", "tokenizer", tokenizer]);
    const { model } = JSON.parse(readFileSync(join(tokenizer, "tokenizer.json"), "utf8")) as { model: { vocab: Record<string, number> } };
    gateway.vocabulary = Object.entries(model.vocab).sort(([a], [b]) => b.length - a.length);
    const stdio = ["ignore", "pipe", "pipe"] as ["ignore", "pipe", "pipe"];
    gateway.engineProcess = engine === "tiny" ? spawn(BINARY, ["tiny", "serve", "--listen", "127.0.0.1:0", "--seed", "3"], { stdio }) : spawn(join(dirname(BINARY), "rollyard-test-engine"), ["--dialect", "sglang"], { stdio });
    gateway.engine = await address(gateway.engineProcess);
    await gateway.begin();
    return gateway;
  }

  /** Starts the server, again if it ran before: at the same address, with the same data. */
  async begin() {
    const flags = ["--engine", this.engine, "--tokenizer", join(this.folder, "tokenizer"), "--archive", join(this.folder, "archive"), "--model-alias", "*"];
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const { url, process } = await serve(this.folder, flags, listen);
    const isFirst = this.url === "";
    this.url = url;
    this.server = process;
    if (isFirst) await this.post("/api/runs", { name: "agents" });
  }

  async halt() {
    if (this.server) await stop(this.server);
  }

  async stop() {
    await this.halt();
    if (this.engineProcess) await stop(this.engineProcess);
  }

  async post<T>(path: string, body: unknown, key?: string): Promise<T> {
    const response = await this.send(path, body, key);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  async send(path: string, body: unknown, key?: string): Promise<Response> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (key !== undefined) headers["authorization"] = `Bearer ${key}`;
    return fetch(this.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  /** What the engine says next, and how long it takes for each character. */
  async script(says: string[], latency_ms_per_token = 0) {
    const token_answers = says.map((text) => [...this.ids(text), 1]);
    const response = await fetch(`${this.engine}/control`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token_answers, latency_ms_per_token }) });
    if (!response.ok) throw new Error(await response.text());
  }

  private ids(text: string): number[] {
    const ids: number[] = [];
    for (let at = 0; at < text.length; ) {
      const found = this.vocabulary.find(([piece]) => text.startsWith(piece, at));
      if (!found) throw new Error(`the small tokenizer has no ${JSON.stringify(text[at])}`);
      ids.push(found[1]);
      at += found[0].length;
    }
    return ids;
  }

  open(fields: object = {}): Promise<Granted> {
    return this.post<Granted>("/api/sessions", { run: "agents", instance_id: "prompt-1", ...fields });
  }

  ask({ api_key }: Granted, messages: Message[], more: object = {}): Promise<Answered> {
    return this.post<Answered>("/v1/chat/completions", { model: "any", messages, max_tokens: 400, ...more }, api_key);
  }

  /** Asks with a stream, and gives back what it said when it is over. */
  async stream({ api_key }: Granted, messages: Message[], more: object = {}): Promise<string> {
    const response = await this.send("/v1/chat/completions", { model: "any", messages, max_tokens: 400, stream: true, ...more }, api_key);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response.text();
  }
}

export const user = (content: string): Message => ({ role: "user", content });
