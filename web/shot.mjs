import { chromium } from "playwright-core";
const [,, out, path, theme="light", w="1440", h="900", keys=""] = process.argv;
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox","--disable-gpu"] });
const c = await b.newContext({ viewport:{width:+w,height:+h}, colorScheme: theme, reducedMotion:"reduce" });
const p = await c.newPage();
p.on("console", m => m.type()==="error" && console.log("console", m.text()));
p.on("pageerror", e => console.log("pageerror", e));
if (process.env.FAKE) await p.route("**/tokens", async r => { const a = await r.fetch(); const j = await a.json(); if (j.tokens) { const W=["the"," sum"," of","\n"," answer"," 12"," *"," 漢字","🙂"," therefore","\t"," is"]; j.texts=j.tokens.map(i=>W[i%W.length]); const n=j.tokens.length-j.prompt_len; j.entropies=(j.logprobs||Array(n).fill(-1)).map(x=>Math.min(4,-x*0.8)); j.advantages=Array.from({length:n},(_,i)=>Math.sin(i/9)); } await r.fulfill({ json: j }); });
await p.goto("http://127.0.0.1:7815" + path);
await p.waitForLoadState("networkidle");
for (const k of keys.split(" ").filter(Boolean)) { await p.keyboard.press(k); await p.waitForTimeout(200);}
await p.waitForTimeout(400);
await p.screenshot({ path: out });
await b.close();
