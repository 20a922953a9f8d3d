import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { asking, file, idsOf } from "./files";
import { expectTrouble, open, params } from "./page";

function line(n: number, more: object = {}): string {
  const messages = [
    { role: "user", content: `What is ${n} + 1?` },
    { role: "assistant", content: `It is ${n + 1}.` },
  ];
  return JSON.stringify({ messages, attributes: { step: 7, reward: 0.25, data_source: "math", rollout_n: n, ...more } });
}

const link = (place: string, more: string) => `/?place=${encodeURIComponent(place)}&${more}`;

test("the head says what it got, where it is from and what became of it", async () => {
  const place = file("reader", [
    line(1, { reward: { correct: 1, format: 0.5 }, status: "dropped", reason: "too_stale", version: 12, lag: 3, stop_reason: "length" }),
    line(2),
  ]);
  const [id = ""] = await idsOf(place, "filter=rollout_n==1");
  const page = await open(link(place, `r=${id}`));
  const head = page.locator("article > header");
  for (const text of ["step 7", "math", "dropped: too stale", "v12", "truncated", "run.jsonl:1"]) await head.getByText(text, { exact: true }).waitFor();
  const parts = head.getByLabel("Parts of the reward");
  expect(await parts.textContent()).toBe("correct1format0.500");
});

test("the tabs have keys", async () => {
  // The rollout has no tokens, and the browser notes that on its own.
  expectTrouble(/404/);
  const place = file("reader", [line(1)]);
  const [id = ""] = await idsOf(place, "");
  const page = await open(link(place, `r=${id}`));
  await page.getByRole("tab", { name: "Chat", selected: true }).waitFor();
  for (const [key, name] of [["5", "Info"], ["2", "Tokens"], ["g", "Group"], ["i", "Info"], ["t", "Tokens"], ["1", "Chat"]] as const) {
    await page.keyboard.press(key);
    await page.getByRole("tab", { name, selected: true }).waitFor();
  }
});

test("a copied link opens what is shown, and finds others if it is gone", async () => {
  const place = file("reader", [line(1), line(2)]);
  const [id = ""] = await idsOf(place, "filter=rollout_n==2");
  const page = await open(link(place, `r=${id}&m=1`));
  await page.getByRole("button", { name: "Copy a link to what is shown" }).waitFor();
  await page.keyboard.press("y");
  await page.getByText("Copied").first().waitFor();
  const copied = new URL(await page.evaluate(() => navigator.clipboard.readText()));
  expect(copied.searchParams.get("r")).toBe(id);
  expect(copied.searchParams.get("m")).toBe("1");

  expectTrouble(/404/);
  writeFileSync(place, [line(1), line(2, { reward: 0.75 })].join("\n") + "\n");
  const gone = new URLSearchParams(copied.search);
  gone.set("r", "0".repeat(32));
  const again = await open(`/?${gone.toString()}`);
  await again.getByText("This rollout is gone").waitFor();
  const near = again.getByRole("button", { name: /reward 0\.\d+, math, number 2/ });
  await near.click();
  await again.getByRole("article", { name: "Rollout" }).waitFor();
  expect(params(again).get("r")).not.toBe("0".repeat(32));
});

test("a rollout that is gone without a trace offers what is here", async () => {
  expectTrouble(/404/);
  const place = file("reader", [line(1)]);
  const page = await open(link(place, `r=${"0".repeat(32)}`));
  await page.getByText("This rollout is gone").waitFor();
  await page.getByRole("button", { name: "reward 0.250, math, number 1" }).click();
  await page.getByRole("article", { name: "Rollout" }).getByText("It is 2.").waitFor();
});

test("a row that cannot be read shows its bytes as text", async () => {
  const broken = '{"messages": [{"role": "user", "content": "<script>document.title=1</script>';
  const place = file("reader", [line(1), broken, line(2)]);
  const ask = await asking(place);
  const { problems } = (await ask("/problems")) as { problems: { id: string; problem: string }[] };
  const page = await open(link(place, `r=${problems[0]?.id ?? ""}`));
  await page.getByText("This row cannot be read.").waitFor();
  await page.getByText(problems[0]?.problem ?? "?", { exact: false }).waitFor();
  expect(await page.getByRole("region", { name: "Raw row" }).locator("pre").textContent()).toBe(broken);
});

test("without a rollout the reader says what to do", async () => {
  const page = await open(link(file("reader", [line(1)]), ""));
  await page.getByText("No rollout is chosen").waitFor();
});

test("the old rollout stays until the next is there", async () => {
  const place = file("reader", [line(1), line(2)]);
  const [first = "", second = ""] = await idsOf(place, "sort=rollout_n");
  const page = await open(link(place, `r=${first}`));
  await page.getByRole("article").getByText("It is 2.").waitFor();
  let go = () => {};
  const held = new Promise<void>((done) => (go = done));
  await page.route(`**/rollouts/${second}*`, async (route) => {
    await held;
    await route.continue();
  });
  await page.evaluate((id) => {
    history.pushState(null, "", location.search.replace(/r=\w+/, `r=${id}`));
    dispatchEvent(new PopStateEvent("popstate"));
  }, second);
  await page.locator("article[aria-busy=true][data-late=true]").waitFor();
  expect(await page.getByRole("article").getByText("It is 2.").isVisible()).toBe(true);
  go();
  await page.getByRole("article").getByText("It is 3.").waitFor();
});
