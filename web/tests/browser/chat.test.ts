import { expect, test } from "vitest";
import { params } from "./page";
import { openRollout } from "./rollout";

const call = (id: string, name: string, given: unknown) => ({ id, type: "function", function: { name, arguments: JSON.stringify(given) } });

const CONVERSATION = [
  { role: "system", content: "Be careful." },
  { role: "user", content: "How many primes are below **100**?" },
  {
    role: "assistant",
    content: "<think>First thought.</think>Let me look.<reasoning>Second thought.</reasoning>",
    tool_calls: [call("a", "python", { code: "x = 1\nprint(x)" }), call("b", "search", { query: "primes", where: { site: "oeis.org", years: [1990, 2000, 2010] } }), call("c", "shell", {})],
  },
  { role: "tool", tool_call_id: "b", content: '{"total": 12345678901234567, "found": ["A000040", "A006988", "a title that is long enough to need a line"]}' },
  { role: "tool", tool_call_id: "a", content: "\u001b[31mTraceback (most recent call last)\u001b[0m: no" },
  { role: "tool", tool_call_id: "lost", content: "nobody asked" },
  { role: "assistant", reasoning_content: "A field of its own.", content: "There are **25**, so \\(x_1 = \\frac{1}{2}\\).\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(25)\n```\n", advantage: 0.25 },
  { role: "assistant", content: "<think>This was cut" },
];

test("messages stand in order with their role, number and length", async () => {
  const { page } = await openRollout(CONVERSATION, "", { height: 2400 });
  const heads = page.getByRole("heading", { level: 3 });
  await heads.nth(7).waitFor();
  const texts = await heads.allInnerTexts();
  expect(texts[0]).toMatch(/system\s+#0 · 11 characters/);
  expect(texts[1]).toMatch(/user\s+#1 · 34 characters/);
  expect(texts).toHaveLength(CONVERSATION.length);
});

test("reasoning is told apart in all its spellings, folds, and says when it was never closed", async () => {
  const { page } = await openRollout(CONVERSATION, "", { height: 2400 });
  const folds = page.getByRole("button", { name: /^Reasoning/ });
  await page.getByText("A field of its own.").waitFor();
  expect(await folds.count()).toBe(4);
  expect(await page.getByRole("region", { name: "Messages" }).getByText("never closed").count()).toBe(1);
  expect(await page.getByRole("region", { name: "Messages" }).getByText("<think>").count()).toBe(0);
  await folds.first().click();
  await page.getByText("First thought.").waitFor({ state: "detached" });
  expect(await page.getByText("Second thought.").count()).toBe(1);
  await page.keyboard.press("Shift+Z");
  await page.getByText("Second thought.").waitFor({ state: "detached" });
  // The next visit remembers.
  await page.reload();
  await page.getByText("Let me look.").waitFor();
  expect(await page.getByText("Second thought.").count()).toBe(0);
});

test("calls stand with their results, and those without are said", async () => {
  const { page } = await openRollout(CONVERSATION, "", { height: 2400 });
  const python = page.getByRole("button", { name: /^Call python/ });
  await python.waitFor();
  const order = await page.getByRole("region", { name: "Messages" }).innerText();
  const at = (text: string) => order.indexOf(text);
  // The results came the other way round.
  expect(at("Call")).toBeGreaterThan(0);
  expect(at("result of python")).toBeGreaterThan(at("print(x)"));
  expect(at("oeis.org")).toBeGreaterThan(at("result of python"));
  expect(at("result of search")).toBeGreaterThan(at("oeis.org"));
  expect(await page.getByText("no result").count()).toBe(1);
  expect(await page.getByText("no call asked for this result").count()).toBe(1);
  expect(await page.getByText("error in #4").count()).toBe(1);
  // A browser would have made 12345678901234568 of it.
  expect(order).toContain("12345678901234567");
  const red = page.locator("[data-colour=red]");
  expect(await red.innerText()).toBe("Traceback (most recent call last)");
});

test("Markdown is rendered, and shown raw on `r`; other fields are under more", async () => {
  const { page } = await openRollout(CONVERSATION, "", { height: 2400 });
  await page.locator("strong", { hasText: "25" }).waitFor();
  expect(await page.getByRole("table").count()).toBe(1);
  // A formula keeps every sign.
  expect(await page.getByText("\\(x_1 = \\frac{1}{2}\\).").count()).toBe(1);
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await page.getByText("Copied").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("print(25)\n");
  await page.getByRole("button", { name: "More fields" }).click();
  await page.getByText(`"advantage"`).waitFor();
  await page.keyboard.press("r");
  await page.getByText("There are **25**, so").waitFor();
  expect(await page.getByRole("table").count()).toBe(0);
  expect(await page.getByText("<think>First thought.</think>").count()).toBe(1);
  await page.keyboard.press("r");
  await page.locator("strong", { hasText: "25" }).waitFor();
});

test("`z` folds all messages and unfolds them", async () => {
  const { page } = await openRollout(CONVERSATION);
  await page.getByText("How many primes are below").waitFor();
  await page.keyboard.press("z");
  await page.getByRole("button", { name: "Unfold all messages" }).waitFor();
  expect(await page.getByRole("button", { name: /^Call/ }).count()).toBe(0);
  expect(await page.getByRole("heading", { level: 3 }).count()).toBe(CONVERSATION.length);
  await page.keyboard.press("z");
  await page.getByRole("button", { name: /^Call python/ }).waitFor();
});

test("Shift+J and Shift+K go from message to message, and the address with them", async () => {
  const many = Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `Message ${i}\n\n${"Some text. ".repeat(120)}` }));
  const { page } = await openRollout(many);
  await page.getByText("Message 0").waitFor();
  for (const expected of ["1", "2", "3"]) {
    await page.keyboard.press("Shift+J");
    await expect.poll(() => params(page).get("m")).toBe(expected);
  }
  await page.keyboard.press("Shift+K");
  await expect.poll(() => params(page).get("m")).toBe("2");
  const top = async (name: "button" | "region", label: string) => (await page.getByRole(name, { name: label }).boundingBox())?.y ?? 0;
  await expect.poll(async () => (await top("button", "user #2")) - (await top("region", "Messages"))).toBeLessThan(40);
});

test("the minimap jumps", async () => {
  const many = Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `Message ${i}\n\n${"Some text. ".repeat(120)}` }));
  const { page } = await openRollout(many);
  await page.getByText("Message 0").waitFor();
  const map = page.getByTestId("minimap");
  const box = await map.boundingBox();
  if (!box) throw new Error("there is no minimap");
  await map.click({ position: { x: 8, y: box.height - 4 } });
  await page.getByText("Message 59").waitFor();
  expect(await page.getByText("Message 0").count()).toBe(0);
});

test("ten megabytes in one message are shown at once, and only what is in sight is in the page", async () => {
  const line = "the quick brown fox jumps over the lazy dog, again and again\n";
  const { page } = await openRollout([
    { role: "user", content: "Go." },
    { role: "assistant", content: line.repeat(10_000_000 / line.length) + "the very last line" },
  ]);
  await page.getByText("too long to render, shown raw").waitFor({ timeout: 20_000 });
  expect(await page.getByRole("region", { name: "Messages" }).evaluate((element) => element.textContent.length)).toBeLessThan(60_000);
  await page.getByRole("region", { name: "Messages" }).focus();
  await page.keyboard.press("End");
  await page.getByText("the very last line").waitFor();
});

test("a row without messages says so", async () => {
  const { page } = await openRollout('{"attributes": {"step": 1, "reward": 0.5}, "note": "no conversation here"}');
  await page.getByText("This row has no messages").waitFor();
});
