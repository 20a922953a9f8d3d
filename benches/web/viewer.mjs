// What the page takes on a run of a million rows, in a real browser, by the browser's own clocks.
//
//   make bench-viewer

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createRequire } from "node:module";

const ROOT = resolve(import.meta.dirname, "../..");
const { chromium } = createRequire(join(ROOT, "web/package.json"))("playwright-core");
const ROWS = Number(process.env.ROWS ?? 1_000_000);
const DIR = join(ROOT, "target/bench/viewer");
const ROLLYARD = process.env.ROLLYARD ?? join(ROOT, "target/release/rollyard");
const BENCH = process.env.ROLLYARD_BENCH ?? join(ROOT, "target/release/rollyard-bench");

function makeRun() {
  const run = join(DIR, `run-${ROWS}`);
  if (!existsSync(run)) {
    const made = spawnSync(BENCH, ["runs", "--rows", String(ROWS), "--row-bytes", "600", "--out", run], { stdio: "inherit" });
    if (made.status !== 0) throw new Error("the run could not be made");
  }
  const large = join(DIR, "large.jsonl");
  const line = "The quick check of a long answer: 17 * 23 = 391, and so on; see the table above.\n";
  const answer = line.repeat(Math.ceil(10_000_000 / line.length));
  const messages = [{ role: "user", content: "Say it at length." }, { role: "assistant", content: answer }];
  writeFileSync(large, JSON.stringify({ messages, attributes: { step: 1, reward: 1 } }) + "\n");
  return { run, large };
}

async function serve() {
  const data = join(DIR, "data");
  rmSync(data, { recursive: true, force: true });
  const child = spawn(ROLLYARD, ["serve", "--listen", "127.0.0.1:0", "--data", data, "--cache", join(DIR, "cache"), "--root", DIR], { stdio: ["ignore", "pipe", "pipe"] });
  const url = await new Promise((found, failed) => {
    let heard = "";
    const listen = (chunk) => {
      heard += chunk;
      const match = /listening on (http:\/\/\S+)/.exec(heard);
      if (match) found(match[1]);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("exit", () => failed(new Error(heard)));
  });
  return { url, child };
}

async function indexed(url, place) {
  const headers = { "content-type": "application/json" };
  let view = await (await fetch(`${url}/api/view/open`, { method: "POST", headers, body: JSON.stringify({ places: [place] }) })).json();
  while (!view.indexing.done) {
    await new Promise((again) => setTimeout(again, 200));
    view = await (await fetch(`${url}/api/view/${view.view}`)).json();
  }
  return view.view;
}

/** Compressed bytes of the page and of all it loads at first. */
async function pageBytes(browser, url, place) {
  const page = await browser.newPage();
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const loaded = [];
  page.on("response", (response) => loaded.push(response.url()));
  await page.goto(`${url}/?place=${encodeURIComponent(place)}`);
  await page.getByRole("row").nth(3).waitFor();
  const assets = [...new Set(loaded)].filter((one) => /\/(assets\/|favicon|\?|$)/.test(one.slice(url.length)) && !one.includes("/api/"));
  let bytes = 0;
  for (const one of assets) {
    // fetch unpacks what it gets; the sizes on the wire are curl's.
    const got = spawnSync("curl", ["-s", "-o", "/dev/null", "-w", "%{size_download}", "-H", "accept: text/html,*/*", "-H", "accept-encoding: gzip, br", one]);
    bytes += Number(got.stdout.toString());
  }
  await page.close();
  return bytes;
}

const HELPERS = () => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push({ at: entry.startTime, ms: entry.duration });
  }).observe({ type: "longtask", buffered: true });
};

/** Wheel for some seconds through the whole table; frames, and tasks that held them up. */
async function scrolling(page) {
  const grid = page.getByRole("grid");
  const box = await grid.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.evaluate(() => {
    window.longTasks.length = 0;
    window.frames_ = [];
    const tick = (at) => {
      window.frames_.push(at);
      window.counting = requestAnimationFrame(tick);
    };
    window.counting = requestAnimationFrame(tick);
  });
  for (let i = 0; i < 300; i++) await page.mouse.wheel(0, i % 50 === 49 ? 200_000 : 280);
  const { frames, tasks } = await page.evaluate(() => {
    cancelAnimationFrame(window.counting);
    return { frames: window.frames_, tasks: window.longTasks.slice() };
  });
  const gaps = frames.slice(1).map((at, i) => at - frames[i]).sort((a, b) => a - b);
  return { fps: (1000 * gaps.length) / (frames.at(-1) - frames[0]), p95: gaps[Math.floor(gaps.length * 0.95)] ?? 0, long: tasks.length, longest: Math.max(0, ...tasks.map((task) => task.ms)) };
}

/** From the moment that a filter is set to its first rows on screen. */
async function filtering(page, place) {
  const times = [];
  for (const filter of ["reward > 0.5", "step == 7", "reward < 0.2 AND step > 3", "response_chars > 200", "step > 5"]) {
    const path = `/?${new URLSearchParams({ place, q: filter })}`;
    const ms = await page.evaluate(async (path) => {
      const grid = document.querySelector("[role=grid]");
      const before = grid.getAttribute("aria-rowcount");
      const began = performance.now();
      history.pushState(null, "", path);
      window.dispatchEvent(new PopStateEvent("popstate"));
      while (grid.getAttribute("aria-rowcount") === before || !grid.querySelector("[role=gridcell]")) {
        await new Promise((frame) => requestAnimationFrame(frame));
        if (performance.now() - began > 10_000) throw new Error(`no other rows after ${path}`);
      }
      return performance.now() - began;
    }, path);
    times.push(ms);
  }
  return Math.max(...times);
}

async function opening(browser, url, large) {
  const view = await indexed(url, large);
  const rows = await (await fetch(`${url}/api/view/${view}/rows`)).json();
  const page = await browser.newPage();
  await page.goto(`${url}/?place=${encodeURIComponent(large)}`);
  await page.getByRole("row").nth(1).waitFor();
  const ms = await page.evaluate(async (id) => {
    const began = performance.now();
    const params = new URLSearchParams(location.search);
    params.set("r", id);
    history.pushState(null, "", `/?${params}`);
    window.dispatchEvent(new PopStateEvent("popstate"));
    while (!document.querySelector("article")?.textContent?.includes("quick check")) {
      await new Promise((frame) => requestAnimationFrame(frame));
      if (performance.now() - began > 20_000) throw new Error("the rollout does not open");
    }
    return performance.now() - began;
  }, rows.rows[0].id);
  await page.close();
  return ms;
}

/** 500 steps of somebody who reads: rows, tabs, lists, filters. Then the tab's heap after a collection. */
async function walking(page, url, place) {
  await page.goto(`${url}/?place=${encodeURIComponent(place)}`);
  await page.getByRole("row").nth(3).waitFor();
  const keys = ["j", "j", "j", "2", "3", "j", "1", "k", "j", "]", "5", "1", "j", "j", "g", "1"];
  for (let i = 0; i < 500; i++) await page.keyboard.press(keys[i % keys.length], { delay: 10 });
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes } = await session.send("Memory.getDOMCounters");
  return { heap: usedSize, nodes, rss: rendererBytes() };
}

/** Memory of the largest renderer, shared libraries of the browser included. */
function rendererBytes() {
  let most = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (!command.includes("--type=renderer")) continue;
      const rss = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
      most = Math.max(most, Number(rss?.[1] ?? 0) * 1024);
    } catch {
      // It ended meanwhile.
    }
  }
  return most;
}

const row = (what, measured, bar, fits) => console.log(`| ${what} | ${measured} | ${bar} | ${fits ? "met" : "**missed**"} |`);

mkdirSync(DIR, { recursive: true });
const { run, large } = makeRun();
const { url, child } = await serve();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--enable-precise-memory-info"] });
try {
  await indexed(url, run);
  const bytes = await pageBytes(browser, url, run);
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(HELPERS);
  await page.goto(`${url}/?place=${encodeURIComponent(run)}`);
  await page.getByRole("row").nth(10).waitFor();
  // Figures come after the rows; who scrolls is told of scrolling alone.
  await page.waitForLoadState("networkidle");
  const scroll = await scrolling(page);
  const filter = await filtering(page, run);
  const open = await opening(browser, url, large);
  const walk = await walking(page, url, run);
  console.log(`\n### The page on ${ROWS.toLocaleString("en")} rows\n\n| what | measured | bar | |\n|---|---|---|---|`);
  row("page and all it loads at first, compressed", `${(bytes / 1000).toFixed(0)} kB`, "400 kB", bytes < 400_000);
  row("frames while scrolling", `${scroll.fps.toFixed(0)} a second, 95% within ${scroll.p95.toFixed(0)} ms`, "95% within 17 ms", scroll.p95 <= 17);
  row("tasks over 50 ms while scrolling", `${scroll.long}, longest ${scroll.longest.toFixed(0)} ms`, "none", scroll.long === 0);
  row("filter to first rows, worst of 5", `${filter.toFixed(0)} ms`, "300 ms", filter < 300);
  row("a rollout of 10 MB opens", `${open.toFixed(0)} ms`, "500 ms", open < 500);
  row("heap after 500 steps", `${(walk.heap / 1e6).toFixed(0)} MB, ${walk.nodes.toLocaleString("en")} nodes`, "300 MB", walk.heap < 300e6);
  row("memory of the tab's process after 500 steps", `${(walk.rss / 1e6).toFixed(0)} MB`, "300 MB", walk.rss < 300e6);
} finally {
  await browser.close();
  child.kill("SIGTERM");
}
