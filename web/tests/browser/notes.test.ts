import { expect, inject, test } from "vitest";
import { file, idsOf } from "./files";
import { expectTrouble, open } from "./page";

interface Note {
  kind: string;
  by?: string;
  verdict?: string;
  tag?: string;
  text?: string;
  span?: { message: number; start: number; end: number };
}

/** A file with rollouts that nobody else has: notes are kept by content, not by file. */
async function fresh(count = 1): Promise<{ place: string; ids: string[] }> {
  const made = crypto.randomUUID();
  const row = (n: number) => ({
    messages: [
      { role: "user", content: `Say something, ${made} ${n}` },
      { role: "assistant", content: "A 🎉 remarkable answer." },
    ],
    attributes: { step: 1, reward: 1, rollout_n: n },
  });
  const place = file("notes", Array.from({ length: count }, (_, n) => JSON.stringify(row(n))));
  return { place, ids: await idsOf(place, "sort=rollout_n") };
}

async function notesOf(id: string): Promise<Note[]> {
  const answer = await fetch(`${inject("url")}/api/view/annotations?id=${id}`);
  return ((await answer.json()) as { annotations: Note[] }).annotations;
}

const link = (place: string, id: string) => `/?place=${encodeURIComponent(place)}&r=${id}`;

test("one key gives a verdict, another takes it back, and who gave it is asked once", async () => {
  const { place, ids: [id = ""] } = await fresh();
  const page = await open(link(place, id));
  await page.getByRole("button", { name: "Good", exact: true }).waitFor();
  await page.keyboard.press("+");
  const said = page.getByRole("list", { name: "Said by people" }).first();
  await page.getByRole("region", { name: "Notes", exact: true }).getByText("good", { exact: true }).waitFor();
  await expect.poll(async () => (await notesOf(id)).map(({ verdict }) => verdict)).toEqual(["good"]);
  await said.waitFor();

  await page.getByLabel("Your name beside your notes").fill("ann");
  await page.getByLabel("Your name beside your notes").press("Enter");
  await page.getByText("You write as ann").waitFor();
  await page.keyboard.press("-");
  await expect.poll(async () => (await notesOf(id)).map(({ verdict, by = "" }) => `${verdict ?? ""} ${by}`)).toEqual(["bad ann", "good "]);
  await page.keyboard.press("0");
  await expect.poll(async () => (await notesOf(id)).length).toBe(1);

  await page.reload();
  await page.getByRole("region", { name: "Notes", exact: true }).getByText("good", { exact: true }).waitFor();
  expect(await page.getByLabel("Your name beside your notes").count()).toBe(0);
});

test("tags are offered again, and show the rollouts that have them", async () => {
  const { place, ids: [first = "", second = ""] } = await fresh(3);
  const tag = `odd-${first.slice(0, 6)}`;
  const page = await open(link(place, first));
  await page.getByRole("button", { name: "Tag it" }).waitFor();
  await page.keyboard.press("#");
  await page.getByLabel("Tag", { exact: true }).fill(tag);
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await notesOf(first)).map((note) => note.tag)).toEqual([tag]);
  const notes = page.getByRole("region", { name: "Notes", exact: true });
  await notes.getByText(`#${tag}`).waitFor();

  await page.goto(inject("url") + link(place, second));
  await page.getByRole("button", { name: "Tag it" }).click();
  await page.locator(`datalist option[value="${tag}"]`).waitFor({ state: "attached" });
  await page.keyboard.press("Escape");

  await page.getByRole("region", { name: "Notes and grades" }).getByRole("button", { name: `#${tag} 1` }).click();
  expect(new URL(page.url()).searchParams.get("f")).toBe(`id in ("${first}")`);

  await page.goto(inject("url") + link(place, first));
  await notes.getByRole("button", { name: `Take back #${tag}` }).click();
  await expect.poll(async () => (await notesOf(first)).length).toBe(0);
});

test("a comment is of the rollout, or of a stretch of its text", async () => {
  const { place, ids: [id = ""] } = await fresh();
  const page = await open(link(place, id));
  await page.getByRole("button", { name: "Comment on it" }).waitFor();
  await page.keyboard.press("Shift+C");
  await page.getByLabel("Comment", { exact: true }).fill("why <b>so</b>?");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("region", { name: "Notes", exact: true }).getByText("why <b>so</b>?").waitFor();

  await page.getByText("remarkable").first().dblclick();
  await page.getByRole("toolbar", { name: "Selected text" }).getByRole("button", { name: "Comment on this text" }).click();
  await page.getByRole("textbox", { name: "Comment on this text" }).fill("is it?");
  await page.keyboard.press("Control+Enter");
  await expect.poll(async () => (await notesOf(id)).map(({ text }) => text)).toEqual(["is it?", "why <b>so</b>?"]);
  const [comment] = await notesOf(id);
  // An emoji is one character; a double click may take the space after the word.
  expect(comment?.span?.start).toBe(4);
  expect(comment?.span?.message).toBe(1);
  expect(Math.abs((comment?.span?.end ?? 0) - 14)).toBeLessThanOrEqual(1);
  await page.getByRole("region", { name: "Notes", exact: true }).getByRole("button", { name: /in #1, 1\d characters/ }).click();
  expect(new URL(page.url()).searchParams.get("c")).toMatch(/^4-1[45]$/);
});

test("what the server refuses is said, and not shown as kept", async () => {
  expectTrouble(/500/);
  const { place, ids: [id = ""] } = await fresh();
  const page = await open(link(place, id));
  await page.getByRole("button", { name: "Good", exact: true }).waitFor();
  await page.route("**/api/view/annotations", (route) =>
    route.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ error: { code: "disk", message: "the disk is full" } }) }),
  );
  await page.keyboard.press("+");
  await page.getByText("This was not kept: the disk is full").waitFor();
  expect(await page.getByRole("button", { name: "Good", exact: true }).getAttribute("aria-pressed")).toBe("false");
});
