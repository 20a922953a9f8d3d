import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, inject, test } from "vitest";
import { open } from "./page";

/** Exports rollouts as an HTML file, and gives the address of the file on the disk. */
async function exported(place: string, filter: string): Promise<string> {
  const url = inject("url");
  const json = async (path: string, body?: unknown) => {
    const asked = body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    const answer = await fetch(url + path, asked);
    expect(answer.status, path).toBe(200);
    return (await answer.json()) as { view: string; indexing: { done: boolean } };
  };
  const { view } = await json("/api/view/open", { places: [place] });
  await expect.poll(async () => (await json(`/api/view/${view}`)).indexing.done, { timeout: 20_000 }).toBe(true);
  const answer = await fetch(`${url}/api/view/${view}/export?format=html&filter=${encodeURIComponent(filter)}`);
  const text = await answer.text();
  expect(answer.status, text.slice(0, 300)).toBe(200);
  const file = join(inject("folder"), `${view}.html`);
  writeFileSync(file, text);
  return pathToFileURL(file).href;
}

test("an exported file shows its rollouts without a server", async () => {
  const page = await open("", { url: await exported(inject("example"), "step == 12") });
  const rows = page.getByRole("option");
  await expect.poll(() => rows.count()).toBeGreaterThan(10);
  await page.getByText("32 rollouts").waitFor();
  await page.getByRole("searchbox").fill("code/unit-tests");
  await expect.poll(() => rows.count()).toBe(8);
  await rows.nth(3).click();
  await expect.poll(() => rows.nth(3).getAttribute("aria-selected")).toBe("true");
  await page.getByText("Here is the solution").or(page.getByText("```python")).or(page.getByText("def ")).first().waitFor();
  const chosen = new URL(page.url()).hash;
  await page.keyboard.press("Escape");
  await page.getByRole("listbox").focus();
  await page.keyboard.press("j");
  await expect.poll(() => new URL(page.url()).hash).not.toBe(chosen);
});

test("what a rollout says does not run in an exported file", async () => {
  const hostile = "</script><script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\"><!--";
  const row = { messages: [{ role: "user", content: hostile }, { role: "assistant", content: hostile }], attributes: { data_source: hostile } };
  const file = join(inject("folder"), "hostile-bundle.jsonl");
  writeFileSync(file, `${JSON.stringify(row)}\n`);
  const page = await open("", { url: await exported(file, "") });
  await page.getByText("document.title").first().waitFor();
  expect(await page.title()).toBe("hostile-bundle.jsonl");
  expect(await page.locator("img").count()).toBe(0);
  expect(await page.locator("script").count()).toBe(2);
});
