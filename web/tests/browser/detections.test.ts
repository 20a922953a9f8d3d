import { expect, inject, test } from "vitest";
import { asking } from "./files";
import { open, params } from "./page";

interface Detection {
  detector: string;
  why: string;
  message: number | null;
  channel: string | null;
  start: number | null;
  end: number | null;
}

test("what a detector found is listed with its reason, and leads to its text", async () => {
  const ask = await asking(inject("example"));
  const filter = encodeURIComponent("repetition > 0.5");
  const { rows } = (await ask(`/rows?filter=${filter}&limit=1`)) as { rows: { id: string }[] };
  const id = rows[0]?.id ?? "";
  const { detections } = (await ask(`/rollouts/${id}`)) as { detections: Detection[] };
  const at = detections.findIndex(({ detector }) => detector === "repetition");
  const found = detections[at];
  if (!found) throw new Error("the example has no repetition");
  const page = await open(`/?place={example}&r=${id}`);
  const list = page.getByRole("list", { name: "Detections" });
  expect(await list.getByRole("listitem").nth(at).textContent()).toContain(found.why);
  await list.getByRole("button", { name: "Show where: Repetition" }).click();
  expect(params(page).get("m")).toBe(String(found.message));
  expect(params(page).get("c")).toBe(`${found.channel ?? ""}:${found.start ?? ""}-${found.end ?? ""}`);
});

test("a rollout that nothing is wrong with has no such list", async () => {
  const ask = await asking(inject("example"));
  const filter = encodeURIComponent("repetition < 0.01 AND reward > 0 AND reward < 1 AND truncated == false");
  const { rows } = (await ask(`/rows?filter=${filter}&limit=50`)) as { rows: { id: string }[] };
  for (const { id } of rows) {
    const { detections } = (await ask(`/rollouts/${id}`)) as { detections: Detection[] };
    if (detections.length > 0) continue;
    const page = await open(`/?place={example}&r=${id}`);
    await page.getByRole("tab", { name: "Chat" }).waitFor();
    expect(await page.getByRole("list", { name: "Detections" }).count()).toBe(0);
    return;
  }
  throw new Error("every rollout of the example has a detection");
});
