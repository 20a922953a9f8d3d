import { createServer, type Server } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { file, idsOf } from "./files";
import { open, params } from "./page";
import { serve, stop } from "./setup";

const KEY = "sk-only-the-server-knows";

let folder: string;
let grader: Server;
let server: Awaited<ReturnType<typeof serve>>;
/** Keys that the endpoint was shown. */
const keys = new Set<string | undefined>();
/** Answers wait for it while it is there. */
let gate: Promise<void> | null = null;

beforeAll(async () => {
  grader = createServer((request, response) => {
    keys.add(request.headers.authorization);
    request.resume().on("end", () => {
      const grade = { score: 0.5, reasoning: "It is <b>half</b> right.", quotes: ["It is four", "It is five"] };
      const answer = { choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: JSON.stringify(grade) } }] };
      void (gate ?? Promise.resolve()).then(() => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(answer));
      });
    });
  });
  await new Promise<void>((listening) => grader.listen(0, "127.0.0.1", listening));
  folder = mkdtempSync(join(tmpdir(), "rollyard-grades-"));
  const url = `http://127.0.0.1:${(grader.address() as AddressInfo).port}/v1`;
  server = await serve(folder, ["--grader-url", url, "--grader-model", "judge", "--grader-key", KEY]);
});

afterAll(async () => {
  await stop(server.process);
  await new Promise((closed) => {
    grader.close(closed);
    grader.closeAllConnections();
  });
  rmSync(folder, { recursive: true, force: true });
});

let runs = 0;

// New rollouts every time: a test that is tried again must not find them graded.
function run(): string {
  runs += 1;
  const row = (n: number) => ({
    messages: [
      { role: "user", content: `What is 2 + 2? ${n} of ${runs}` },
      { role: "assistant", content: "🎉 It is four." },
    ],
    attributes: { step: 1, reward: 1, rollout_n: n },
  });
  return file(`grades-${runs}`, [0, 1, 2].map((n) => JSON.stringify(row(n))), folder);
}

test("rollouts are graded by a model, and its quotes lead to the text", async () => {
  const place = run();
  const [id = ""] = await idsOf(place, "sort=rollout_n", server.url);
  const page = await open(`/?place=${encodeURIComponent(place)}&r=${id}`, { url: server.url });
  const bodies: Promise<string>[] = [];
  page.on("response", (response) => {
    if (!response.headers()["content-type"]?.includes("event-stream")) bodies.push(response.text().catch(() => ""));
  });
  await page.getByRole("button", { name: "Grade rollouts with a model" }).waitFor();
  await page.keyboard.press("Shift+G");
  const panel = page.getByRole("dialog", { name: "Grade with a model" });
  await panel.getByRole("checkbox", { name: "accuracy" }).check();
  await panel.getByText("3 rollouts").waitFor();
  await panel.getByText(/6 questions/).waitFor();
  await panel.getByLabel("Price of a million tokens in").fill("1000000");
  await panel.getByText(/about [\d,]+\.00/).waitFor();

  await panel.getByRole("button", { name: "Add a metric of your own" }).click();
  const own = panel.getByRole("group", { name: "Metric 1 of your own" });
  await own.getByLabel("Name").fill("brevity");
  await own.getByLabel("What a high score means").fill("As short as can be.");
  await panel.getByText(/9 questions/).waitFor();
  await panel.getByRole("button", { name: "Start grading" }).click();
  await panel.getByText("9 of 9 graded").waitFor();
  await panel.getByText("done", { exact: true }).waitFor();
  await panel.getByRole("button", { name: "Close" }).click();

  const grades = page.getByRole("group", { name: "Graded by models" });
  await grades.getByRole("button", { name: "brevity 0.5" }).click();
  await grades.getByText("It is <b>half</b> right.").waitFor();
  await grades.getByText("“It is five” is not in the rollout").or(grades.getByText("is not in the rollout")).waitFor();
  await grades.getByRole("button", { name: "It is four" }).click();
  expect(params(page).get("m")).toBe("1");
  expect(params(page).get("c")).toBe("assistant:2-12");

  // The key went to the endpoint, and nowhere else.
  expect([...keys]).toEqual([`Bearer ${KEY}`]);
  expect((await Promise.all(bodies)).join("")).not.toContain(KEY);
  expect(await page.content()).not.toContain(KEY);
});

test("a job is stopped, and goes on", async () => {
  let release = () => {};
  gate = new Promise<void>((done) => (release = done));
  const place = run().replace("run.jsonl", "*.jsonl");
  const page = await open(`/?place=${encodeURIComponent(place)}`, { url: server.url });
  await page.getByRole("button", { name: "Grade rollouts with a model" }).click();
  const panel = page.getByRole("dialog", { name: "Grade with a model" });
  await panel.getByRole("checkbox", { name: "helpfulness" }).uncheck();
  await panel.getByRole("checkbox", { name: "coherence" }).check();
  await panel.getByRole("button", { name: "Start grading" }).click();
  const job = panel.getByRole("region", { name: "Jobs" }).getByRole("listitem").first();
  await job.getByText("running").waitFor();
  await job.getByRole("button", { name: "Stop this job" }).click();
  await job.getByText("cancelled").waitFor();
  release();
  gate = null;
  await job.getByRole("button", { name: "Go on with this job" }).click();
  await job.getByText("done", { exact: true }).waitFor();
});

test("without a grader it is said how to set one", async () => {
  const page = await open("/?place={example}");
  await page.getByRole("button", { name: "Grade rollouts with a model" }).click();
  await page.getByText("No model grades here yet").waitFor();
  await page.getByText("--grader-url URL", { exact: true }).waitFor();
});
