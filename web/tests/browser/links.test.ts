import { expect, test } from "vitest";
import { open, params } from "./page";
import { openRollout } from "./rollout";

const filler = (n: number) => Array.from({ length: n }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `Filler ${i}. ${"Words and words. ".repeat(80)}` }));
const TEXT = "Begin 🙂 日本語. The *needle 🙂 here* is what one looks for.";

/** Characters, as the server counts them. */
const at = (text: string, wanted: string): [number, number] => {
  const start = Array.from(text.slice(0, text.indexOf(wanted))).length;
  return [start, start + Array.from(wanted).length];
};

test("a link to some text scrolls to it and marks exactly that", async () => {
  const [start, end] = at(TEXT, "needle 🙂 here");
  const { page } = await openRollout([...filler(60), { role: "assistant", content: TEXT }, ...filler(10)], `&m=60&c=${start}-${end}`);
  const mark = page.locator("mark[data-kind=link]");
  await mark.waitFor();
  expect(await mark.innerText()).toBe("needle 🙂 here");
  await expect.poll(async () => (await mark.boundingBox())?.y ?? -1).toBeGreaterThan(100);
  expect((await mark.boundingBox())?.y).toBeLessThan(800);
});

test("a link by channel opens what is folded", async () => {
  const content = `<think>one</think>said<think>the 🙂 thought</think>`;
  const inReasoning = at("<think>one</think><think>the 🙂 thought</think>", "🙂 thought");
  const { page, place, id } = await openRollout([{ role: "user", content: "?" }, { role: "assistant", content }]);
  await page.getByText("said").waitFor();
  await page.keyboard.press("Shift+Z");
  await page.getByText("the 🙂 thought").waitFor({ state: "detached" });
  await page.goto(new URL(`/?place=${encodeURIComponent(place)}&r=${id}&m=1&c=reasoning:${inReasoning.join("-")}`, page.url()).href);
  const mark = page.locator("mark");
  await mark.waitFor();
  expect(await mark.innerText()).toBe("🙂 thought");
  expect(await page.getByRole("button", { name: /^Reasoning/ }).first().getAttribute("aria-expanded")).toBe("false");
});

test("selected text has a link that shows it again", async () => {
  const { page } = await openRollout([{ role: "user", content: "First." }, { role: "assistant", content: TEXT }]);
  await page.getByText("what one looks for").waitFor();
  await page.locator("em", { hasText: "needle" }).evaluate((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
  });
  await page.getByRole("button", { name: "Copy a link to this text" }).click();
  await page.getByText("Link copied").waitFor();
  const link = new URL(await page.evaluate(() => navigator.clipboard.readText()));
  expect([link.searchParams.get("m"), link.searchParams.get("c")]).toEqual(["1", at(TEXT, "needle 🙂 here").join("-")]);
  const again = await open(link.pathname + link.search);
  await again.locator("mark").waitFor();
  expect(await again.locator("mark").innerText()).toBe("needle 🙂 here");
  expect(params(again).get("m")).toBe("1");
});

test("find counts all, also folded and far away, and steps through them", async () => {
  const { page } = await openRollout([
    { role: "user", content: "A Needle." },
    ...filler(50),
    { role: "assistant", content: "<think>a hidden needle</think>needle and NEEDLE", tool_calls: [{ id: "a", function: { name: "f", arguments: '{"q":"needle"}' } }] },
  ]);
  await page.getByText("A Needle.").waitFor();
  await page.keyboard.press("Shift+Z");
  await page.keyboard.press("f");
  const input = page.getByRole("searchbox", { name: "Text to find in the chat" });
  await input.fill("needle");
  const status = page.getByRole("search").getByRole("status");
  await expect.poll(() => status.innerText()).toBe("5 found");
  const now = page.locator("mark[data-kind=now]");
  await input.press("Enter");
  await expect.poll(() => status.innerText()).toBe("1 of 5");
  await input.press("Enter");
  await expect.poll(() => status.innerText()).toBe("2 of 5");
  await page.getByText("a hidden needle").waitFor();
  expect(await now.innerText()).toBe("needle");
  await input.press("Shift+Enter");
  await input.press("Shift+Enter");
  await expect.poll(() => status.innerText()).toBe("5 of 5");
  await now.waitFor();
  await page.getByRole("button", { name: "Tell upper from lower case" }).click();
  await expect.poll(() => status.innerText()).toBe("3 found");
  await input.press("Escape");
  await page.locator("mark").first().waitFor({ state: "detached" });
});
