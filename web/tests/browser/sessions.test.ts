import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { Gateway, user, type Granted, type Message } from "./gateway";
import { expectTrouble, leave, open, params } from "./page";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await Gateway.start("scripted");
});
afterEach(leave);
afterAll(() => gateway.stop());

const look = (path: string, more = {}) => open(path, { url: gateway.url, ...more });
const watch = ({ session }: Granted, query = "", more = {}) => look(`/live?session=${session}${query}`, more);
const chat = (page: Page) => page.getByRole("region", { name: "Messages" });
const node = (page: Page, turn: number) => page.locator(`[role="treeitem"][data-turn="${turn}"]`);
const chosen = (page: Page) => page.locator('[role="treeitem"][aria-selected="true"]').getAttribute("data-turn");

const said = (content: string): Message => ({ role: "assistant", content });

/** The same prompt twice, one that goes on from the first answer, one with a history that was written anew. */
async function branching(): Promise<Granted> {
  const granted = await gateway.open({ instance_id: "branches" });
  await gateway.script(["First answer.", "Second answer.", "It goes on.", "Anew."]);
  const prompt = [user("What is the capital of France, and why is it not Lyon?")];
  await gateway.ask(granted, prompt);
  await gateway.ask(granted, prompt);
  await gateway.ask(granted, [...prompt, said("First answer."), user("And then?")]);
  await gateway.ask(granted, [...prompt, said("Some other answer."), user("Really?")]);
  return granted;
}

test("open and closed sessions are listed with what is known of them, and a row opens its session", async () => {
  const granted = await gateway.open({ instance_id: "listed", slot: 2 });
  await gateway.script(["Yes."]);
  await gateway.ask(granted, [user("Is it?")]);
  const page = await look("/live");
  const table = page.getByRole("region", { name: "Sessions" });
  const row = table.getByRole("row").filter({ hasText: granted.session });
  await row.getByText("open", { exact: true }).waitFor();
  await row.getByRole("cell", { name: "listed" }).waitFor();
  expect(await table.getByRole("row").nth(1).innerText()).toContain(granted.session);
  await gateway.post(`/api/sessions/${granted.session}/abandon`, { reason: "it was a test" }, granted.reward_key);
  await row.getByText("abandoned").waitFor();
  await row.getByRole("cell", { name: "listed" }).click();
  await page.getByRole("heading", { name: granted.session }).waitFor();
  expect(params(page).get("session")).toBe(granted.session);
  await page.getByText("it was a test").waitFor();
  await page.keyboard.press("o");
  await table.waitFor();
  await page.keyboard.press("s");
  await page.getByRole("heading", { name: granted.session }).waitFor();
});

test("a server without an engine has no sessions to show", async () => {
  const page = await open("/live");
  await page.getByRole("main").locator("*").first().waitFor();
  await page.waitForLoadState("networkidle");
  expect(await page.getByText("Sessions").count()).toBe(0);
});

test("an answer is seen to grow before it ends", async () => {
  const granted = await gateway.open();
  const page = await watch(granted);
  await page.getByText("Nothing was asked yet").waitFor();
  const words = "one two three four five six seven eight nine ten, and this is the end";
  await gateway.script([words], 60);
  let isOver = false;
  const stream = gateway.stream(granted, [user("Count to ten")]).then(() => (isOver = true));
  await chat(page).getByText("Count to ten").waitFor();
  await chat(page).getByText(/one two/).waitFor();
  const early = await chat(page).innerText();
  expect(isOver).toBe(false);
  expect(early).not.toContain("the end");
  expect(await node(page, 0).getAttribute("data-state")).toBe("under_way");
  await expect.poll(async () => (await chat(page).innerText()).length).toBeGreaterThan(early.length);
  expect(isOver).toBe(false);
  await stream;
  await chat(page).getByText(words).waitFor();
  await expect.poll(() => node(page, 0).getAttribute("data-state")).toBe("over");
  // Told once, not twice: what came while the page began to watch is not said again.
  expect((await chat(page).innerText()).split("seven").length).toBe(2);
});

test("who comes in the middle of an answer sees all of it, each word once", async () => {
  const granted = await gateway.open();
  await gateway.script(["alpha beta gamma delta epsilon zeta eta theta iota kappa"], 40);
  const stream = gateway.stream(granted, [user("Letters, please")]);
  for (let i = 0; i < 3; i++) {
    const page = await watch(granted);
    await chat(page).getByText(/alpha beta/).waitFor();
    expect((await chat(page).innerText()).split("alpha").length).toBe(2);
  }
  await stream;
});

test("the end is followed by who is there, and nobody else is moved", async () => {
  const granted = await gateway.open();
  const lines = Array.from({ length: 60 }, (_, i) => `- line ${i}\n`).join("");
  await gateway.script([lines, lines], 4);
  const page = await watch(granted, "", { height: 500 });
  const first = gateway.stream(granted, [user("Lines")], { max_tokens: 2000 });
  await chat(page).getByText("line 40", { exact: true }).waitFor();
  const top = () => chat(page).evaluate((element) => element.scrollTop);
  const toEnd = () => chat(page).evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);
  expect(await toEnd()).toBeLessThan(60);
  await first;
  await chat(page).getByText("line 59", { exact: true }).waitFor();
  await expect.poll(toEnd).toBeLessThan(2);
  const second = gateway.stream(granted, [user("Lines"), said(lines), user("More of them")], { max_tokens: 2000 });
  await chat(page).getByText("More of them").waitFor();
  await chat(page).hover();
  await page.mouse.wheel(0, -700);
  await expect.poll(toEnd).toBeGreaterThan(400);
  const before = await top();
  await second;
  await expect.poll(() => node(page, 1).getAttribute("data-state")).toBe("over");
  expect(Math.abs((await top()) - before)).toBeLessThan(3);
});

test("a session that branches is drawn as a tree, and a turn that is chosen shows its conversation", async () => {
  const granted = await branching();
  const page = await watch(granted);
  await node(page, 3).waitFor();
  expect(await page.getByRole("treeitem").count()).toBe(4);
  expect(await chosen(page)).toBe("3");
  await chat(page).getByText("Anew.").waitFor();
  const box = async (turn: number) => (await node(page, turn).boundingBox())!;
  const [zero, one, two, three] = [await box(0), await box(1), await box(2), await box(3)];
  expect(two.x).toBe(zero.x);
  expect(two.y).toBeGreaterThan(zero.y);
  expect(new Set([zero.x, one.x, three.x]).size).toBe(3);
  expect(await node(page, 2).getAttribute("title")).toMatch(/^Turn 2, follows 0, ended by stop/);
  expect(await node(page, 3).getAttribute("title")).toContain("cut: the agent rewrote the conversation or began another");
  await page.getByRole("region", { name: "Turn" }).getByText("the agent rewrote the conversation").waitFor();

  await node(page, 2).click();
  await chat(page).getByText("It goes on.").waitFor();
  expect(params(page).get("turn")).toBe("2");
  const text = await chat(page).innerText();
  expect(["capital of France", "First answer.", "And then?", "It goes on."].map((part) => text.includes(part))).toEqual([true, true, true, true]);
  expect(text).not.toContain("Anew.");
  expect(await page.locator('[role="treeitem"][data-path="true"]').count()).toBe(2);

  // The arrows and Enter do the same.
  await node(page, 2).focus();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  expect(params(page).get("turn")).toBe("2");
  await page.keyboard.press("Enter");
  await chat(page).getByText("Second answer.").waitFor();
  expect(params(page).get("turn")).toBe("1");
  for (const [key, turn] of [["h", "0"], ["j", "2"], ["k", "0"], ["l", "1"]] as const) {
    await page.keyboard.press(key);
    await expect.poll(() => params(page).get("turn")).toBe(turn);
  }
  await page.reload();
  await chat(page).getByText("Second answer.").waitFor();
  await page.keyboard.press("e");
  await chat(page).getByText("Anew.").waitFor();
  expect(params(page).has("turn")).toBe(false);
});

test("calls are seen while they are written, and those that cannot be read are marked", async () => {
  const granted = await gateway.open();
  const tools = [{ type: "function", function: { name: "times", parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } } } }];
  await gateway.script(['<tool_call>{"name": "times", "arguments": {"a": 1234567, "b": 7654321}}</tool_call>', "<tool_call>{oops</tool_call>"], 80);
  const page = await watch(granted);
  const first = gateway.stream(granted, [user("1234567 * 7654321")], { tools });
  await chat(page).getByText("times", { exact: true }).waitFor();
  await first;
  await expect.poll(() => node(page, 0).innerText()).toContain("calls");
  await chat(page).getByText("no result yet").waitFor();
  await gateway.ask(granted, [user("Anything else")], { tools });
  await expect.poll(() => node(page, 1).getAttribute("title")).toContain("1 malformed call");
});

test("every key of the guide is one, and means one thing", async () => {
  const guide = readFileSync(resolve(import.meta.dirname, "../../../docs/guide/viewer.md"), "utf8");
  const rows = guide.split("| key in a session | |")[1]!.split("\n\n")[0]!;
  const keys = [...rows.matchAll(/^\|([^|]+)\|/gm)].flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, key]) => key!));
  expect(keys).toContain("j");
  const page = await watch(await branching());
  await chat(page).getByText("Anew.").waitFor();
  await page.keyboard.press("?");
  const listed = await page.getByRole("dialog", { name: "Keys" }).locator("kbd").allInnerTexts();
  expect(keys.filter((key) => !listed.includes(key))).toEqual([]);
  expect(listed.filter((key, i) => listed.indexOf(key) !== i)).toEqual([]);
});

test("rewards and the end are told, and lead to the rollout", async () => {
  const granted = await gateway.open({ instance_id: "ends" });
  await gateway.script(["Right."]);
  const { id } = await gateway.ask(granted, [user("Is it right?")]);
  const page = await watch(granted);
  await page.getByText("no reward").waitFor();
  await gateway.post(`/api/sessions/${granted.session}/reward`, { reward: 0.25, interaction_id: id }, granted.reward_key);
  await node(page, 0).getByText("0.250").waitFor();
  await gateway.post(`/api/sessions/${granted.session}/end`, { reward: 1 }, granted.reward_key);
  await page.getByText("ended", { exact: true }).waitFor();
  await page.getByText("the agent is done").waitFor();
  await page.getByText("reward 1", { exact: true }).waitFor();
  // A page asks for what is archived before it is.
  expectTrouble(/404/);
  await page.getByRole("link", { name: "Its rollout" }).click();
  await page.getByRole("status").filter({ hasText: "1 row" }).first().waitFor();
});

test("a server that went away is said, what was seen stays, and goes on when it is back", async () => {
  const granted = await gateway.open();
  await gateway.script(["Before.", "After."]);
  await gateway.ask(granted, [user("When?")]);
  const page = await watch(granted);
  await chat(page).getByText("Before.").waitFor();
  expectTrouble(/ERR_|Failed to load resource|Failed to fetch/);
  await gateway.halt();
  await page.getByText("connection lost").waitFor();
  await chat(page).getByText("Before.").waitFor();
  await gateway.begin();
  await page.getByText("watching", { exact: true }).waitFor();
  await gateway.ask(granted, [user("When?"), said("Before."), user("And now?")]);
  await chat(page).getByText("After.").waitFor();
});

test("a session that is not there is said", async () => {
  expectTrouble(/404/);
  const page = await look("/live?session=nothing");
  await page.getByRole("alert").getByText("nothing").waitFor();
  await page.getByRole("link", { name: "All sessions" }).click();
  await page.getByRole("region", { name: "Sessions" }).waitFor();
});

test("an answer that failed leaves the tree and is told", async () => {
  const granted = await gateway.open();
  await gateway.script(["Fine."]);
  await gateway.ask(granted, [user("Well?")]);
  const page = await watch(granted);
  await node(page, 0).waitFor();
  await gateway.script(["one two three four five six seven eight nine ten eleven twelve"], 60);
  const stream = gateway.stream(granted, [user("Well?"), said("Fine."), user("Count")]).catch(() => "");
  await expect.poll(() => node(page, 1).getAttribute("data-state")).toBe("under_way");
  await gateway.post(`/api/sessions/${granted.session}/abandon`, { reason: "enough" }, granted.reward_key);
  await stream;
  await node(page, 1).waitFor({ state: "detached" });
  await page.getByText(/last error: the session was closed/).waitFor();
});

test("two hundred turns in a line are a line, and each is reached", { timeout: 90_000 }, async () => {
  const granted = await gateway.open();
  await gateway.script(Array.from({ length: 200 }, (_, i) => `a${i}`));
  const messages: Message[] = [];
  for (let i = 0; i < 200; i++) {
    messages.push(user(`q${i}`));
    const { choices } = await gateway.ask(granted, messages);
    messages.push(said(choices[0]!.message.content));
  }
  const page = await watch(granted);
  await node(page, 199).waitFor();
  const xs = await page.getByRole("treeitem").evaluateAll((all) => all.map((one) => (one as HTMLElement).style.left));
  expect([xs.length, new Set(xs).size]).toEqual([200, 1]);
  await chat(page).getByText("a199", { exact: true }).waitFor();
  await node(page, 199).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await chat(page).getByText("a1", { exact: true }).waitFor();
  expect(params(page).get("turn")).toBe("1");
  expect(await chat(page).getByText("q2", { exact: true }).count()).toBe(0);
});

test("what a session says is only text", async () => {
  const evil = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>`;
  const granted = await gateway.open({ instance_id: evil });
  await gateway.script([evil, `<tool_call>${evil}</tool_call>`]);
  await gateway.ask(granted, [user(evil)]);
  const tools = [{ type: "function", function: { name: "times", parameters: { type: "object" } } }];
  await gateway.ask(granted, [user(evil), said(evil), user("More")], { tools });
  const page = await watch(granted);
  await chat(page).getByText(/window.hacked=1/).first().waitFor();
  const whole = page.getByRole("main");
  for (const tag of ["img", "script", "iframe"]) expect(await whole.locator(tag).count()).toBe(0);
  await page.keyboard.press("o");
  await page.getByRole("cell", { name: /window.hacked=1/ }).first().waitFor();
  expect(await whole.locator("img, script").count()).toBe(0);
  expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
});

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const IMAGES = join(process.env["IMAGES"] ?? inject("folder"), "sessions");

for (const theme of ["light", "dark"] as const) {
  test(`nothing serious stands in anybody's way, ${theme}`, async () => {
    mkdirSync(IMAGES, { recursive: true });
    const granted = await branching();
    await gateway.post(`/api/sessions/${granted.session}/reward`, { reward: 0.25, interaction_id: "2" }, granted.reward_key);
    await gateway.script(["It is still being said, word by word, while somebody looks at it. ".repeat(4)], 60);
    const stream = gateway.stream(granted, [user("What is the capital of France, and why is it not Lyon?"), said("First answer."), user("And what else is there to say?")]);
    for (const [name, path] of Object.entries({ session: `/live?session=${granted.session}`, turn: `/live?session=${granted.session}&turn=3`, live: "/live" })) {
      const page = await look(path, { theme });
      if (name !== "live") await chat(page).getByText(name === "turn" ? "Anew." : /It is still/).waitFor();
      else await page.getByRole("region", { name: "Sessions" }).waitFor();
      await page.evaluate(AXE);
      const found = await page.evaluate(() => (window as unknown as { axe: { run: () => Promise<AxeResults> } }).axe.run());
      const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      expect(serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 5).map((one) => one.html.slice(0, 160)).join(" | ")}`)).toEqual([]);
      await page.screenshot({ path: join(IMAGES, `${name}-${theme}.png`) });
    }
    await stream;
  });
}

test("the small model is watched as well", async () => {
  const tiny = await Gateway.start("tiny");
  try {
    const granted = await tiny.open();
    const page = await look(`/live?session=${granted.session}`, { url: tiny.url });
    await page.getByText("Nothing was asked yet").waitFor();
    await tiny.stream(granted, [user("2 + 2")], { max_tokens: 200, n: 2 });
    await expect.poll(() => page.getByRole("treeitem").count()).toBe(2);
    await expect.poll(() => node(page, 0).getAttribute("data-state")).toBe("over");
    await page.getByText(/^2 turns · \d+ tokens sampled/).waitFor();
  } finally {
    await leave();
    await tiny.stop();
  }
});
