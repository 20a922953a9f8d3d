import { expect, inject, test } from "vitest";
import { expectTrouble, open, params } from "./page";

interface Found {
  id: string;
  message: number;
  channel: string;
  start: number;
  end: number;
  count: number;
}

/** The hits of a search, as the server tells them. */
async function found(body: object): Promise<Found[]> {
  const headers = { "content-type": "application/json" };
  const opened = await fetch(`${inject("url")}/api/view/open`, { method: "POST", headers, body: JSON.stringify({ places: [inject("example")] }) });
  const { view } = (await opened.json()) as { view: string };
  const answer = await fetch(`${inject("url")}/api/view/${view}/search`, { method: "POST", headers, body: JSON.stringify(body) });
  const blocks = (await answer.text()).split("\n\n").filter((block) => block.startsWith("event: hit"));
  return blocks.map((block) => JSON.parse(/data: (.*)/.exec(block)?.[1] ?? "") as Found);
}

const counted = (n: number) => `${n.toLocaleString("en")} ${n === 1 ? "rollout" : "rollouts"}`;

test("words are found in all rollouts, and the URL keeps the search", async () => {
  const hits = await found({ all: [{ text: "wait" }] });
  const page = await open("/?place={example}");
  await page.getByRole("search", { name: "Text" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("wait");
  await page.keyboard.press("Enter");
  const list = page.getByRole("region", { name: "Hits" });
  await list.getByText(counted(hits.length), { exact: true }).waitFor();
  await list.getByText(/[\d,]+ of [\d,]+ scanned/).waitFor();
  expect(params(page).getAll("s")).toEqual(["all:::wait"]);
  expect(params(page).get("list")).toBe("hits");
  const row = list.getByRole("option").first();
  expect((await row.locator("mark").textContent())?.toLowerCase()).toBe("wait");

  await page.reload();
  await list.getByText(counted(hits.length), { exact: true }).waitFor();
  expect(await page.getByLabel("Search text").inputValue()).toBe("wait");
});

test("a hit opens its rollout at the text, and the keys walk through all hits of one before the next", async () => {
  const hits = await found({ all: [{ text: "wait" }] });
  const at = hits.findIndex(({ count }) => count > 1);
  const [several, after] = [hits[at], hits[at + 1]];
  if (!several || !after) throw new Error("the example has no rollout with two hits");
  const page = await open("/?place={example}&list=hits&s=all%3A%3A%3Await");
  const list = page.getByRole("listbox", { name: "Rollouts with hits" });
  await list.getByRole("option").nth(at).click();
  const bar = page.getByRole("group", { name: "Hits of the search" });
  await bar.getByText(`Hit 1 of ${several.count} here, rollout ${at + 1} of ${hits.length}`).waitFor();
  expect(params(page).get("r")).toBe(several.id);
  expect(params(page).get("m")).toBe(String(several.message));
  expect(params(page).get("c")).toBe(`${several.channel}:${several.start}-${several.end}`);
  for (let n = 2; n <= several.count; n += 1) {
    await page.keyboard.press("Shift+N");
    await bar.getByText(`Hit ${n} of ${several.count} here`).waitFor();
    expect(params(page).get("r")).toBe(several.id);
  }
  await page.keyboard.press("Shift+N");
  await bar.getByText(`rollout ${at + 2} of ${hits.length}`).waitFor();
  expect(params(page).get("r")).toBe(after.id);
  // And back to the last hit of the one before.
  await page.keyboard.press("Shift+P");
  await bar.getByText(`Hit ${several.count} of ${several.count} here, rollout ${at + 1}`).waitFor();
});

test("conditions are joined by and, or, not, each in its channels", async () => {
  const hits = await found({ all: [{ text: "wait", channels: ["reasoning"] }], none: [{ text: "bags", case: true }] });
  const everything = await found({ all: [{ text: "wait" }] });
  expect(hits.length).toBeLessThan(everything.length);
  const page = await open("/?place={example}");
  await page.getByLabel("Search text").fill("wait");
  await page.getByRole("button", { name: "in all channels" }).click();
  await page.getByRole("checkbox", { name: "Reasoning" }).check();
  await page.getByRole("button", { name: "Add a condition" }).click();
  await page.getByLabel("Search text 2").fill("bags");
  await page.getByLabel("How condition 2 counts").selectOption("none");
  await page.getByRole("button", { name: "Upper and lower case differ" }).nth(1).click();
  await page.getByLabel("Search text 2").press("Enter");
  await page.getByRole("region", { name: "Hits" }).getByText(counted(hits.length), { exact: true }).waitFor();
  expect(params(page).getAll("s")).toEqual(["all::reasoning:wait", "none:c::bags"]);

  await page.getByRole("button", { name: "Remove condition 2" }).click();
  await page.getByLabel("Search text").press("Enter");
  const fewer = await found({ all: [{ text: "wait", channels: ["reasoning"] }] });
  await page.getByRole("region", { name: "Hits" }).getByText(counted(fewer.length), { exact: true }).waitFor();
});

test("another filter runs the search again", async () => {
  const hits = await found({ all: [{ text: "wait" }], filter: "step <= 9" });
  const page = await open("/?place={example}&list=hits&s=all%3A%3A%3Await&q=step+%3C%3D+9");
  await page.getByRole("region", { name: "Hits" }).getByText(counted(hits.length), { exact: true }).waitFor();
});

test("a regular expression that cannot be read says so at its field, and the old hits stay", async () => {
  expectTrouble(/400/);
  const hits = await found({ all: [{ text: "wa.t", regex: true }] });
  const page = await open("/?place={example}");
  await page.getByLabel("Search text").fill("wa.t");
  await page.getByRole("button", { name: "Regular expression" }).click();
  await page.getByLabel("Search text").press("Enter");
  const list = page.getByRole("region", { name: "Hits" });
  await list.getByText(counted(hits.length), { exact: true }).waitFor();
  await page.getByLabel("Search text").fill("wa(");
  await page.getByLabel("Search text").press("Enter");
  await page.getByRole("search", { name: "Text" }).getByRole("alert").getByText("unclosed group").waitFor();
  expect(await page.getByLabel("Search text").getAttribute("aria-invalid")).toBe("true");
  await list.getByText(counted(hits.length), { exact: true }).waitFor();
});

test("what nobody said is said so", async () => {
  const page = await open("/?place={example}&list=hits&s=all%3A%3A%3Aqqqzzzqqq");
  await page.getByText("No rollout has this").waitFor();
});
