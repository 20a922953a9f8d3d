import { expect, test } from "vitest";
import { heard, type News, type Session, type Turn, type UnderWay } from "./news";
import { growing, newest, pathTo } from "./path";

const begun = (turn: number, more: Partial<UnderWay> = {}): UnderWay => ({ turn, follows: null, cut: null, begins_like: null, messages: [], reasoning: "", content: "", calls: "", times: 0, ...more });

const over = (turn: number, more: Partial<Turn> = {}): Turn => ({
  turn,
  follows: null,
  cut: null,
  begins_like: null,
  shared_tokens: 0,
  messages: [],
  answer: {},
  prompt_tokens: 1,
  sampled_tokens: 3,
  versions: [],
  stop: "stop",
  reward: null,
  began_ms: 0,
  took_ms: 0,
  first_ms: 0,
  malformed: [],
  lacks_call: false,
  keeps_thoughts: false,
  is_unheard: false,
  is_leaf: true,
  ...more,
});

const FACTS = {
  session: "s",
  run: "r",
  instance_id: "i",
  slot: 0,
  group_size: null,
  state: "open",
  reason: null,
  opened_ms: 0,
  expires_ms: 0,
  running: 0,
  sampled_tokens: 0,
  reward: null,
  is_delivered: false,
  failures: 0,
  last_error: null,
};

const EMPTY: Session = { ...FACTS, turns: [], under_way: [], size_bytes: 0 };

const after = (from: Session, ...news: News[]): Session => news.reduce(heard, from);
const began = (turn: number, more = {}): News => ({ type: "began", ...begun(turn, more) });
const said = (turn: number, content: string, times: number): News => ({ type: "said", turn, content, times, reasoning: "", calls: "" });
const ended = (turn: number, more = {}): News => ({ type: "ended", ...over(turn, more) });

test("an answer begins, is said and ends", () => {
  const saying = after(EMPTY, began(0), said(0, "a", 1), said(0, "b", 2));
  expect([saying.under_way[0]?.content, saying.running]).toEqual(["ab", 1]);
  const done = after(saying, ended(0));
  expect([done.turns.length, done.under_way.length, done.running, done.sampled_tokens]).toEqual([1, 0, 0, 3]);
});

test("what is in the whole already is not told twice", () => {
  const whole = { ...EMPTY, under_way: [begun(1, { content: "ab", times: 2 })], turns: [over(0)], sampled_tokens: 3, running: 1 };
  const same = after(whole, began(0), ended(0), began(1), said(1, "a", 1), said(1, "b", 2));
  expect(same).toEqual(whole);
  expect(after(same, said(1, "c", 3)).under_way[0]?.content).toBe("abc");
});

test("words of an answer that is not known are nobody's", () => {
  expect(after(EMPTY, said(7, "a", 1))).toEqual(EMPTY);
});

test("an answer that fails leaves its error", () => {
  const failed = after(EMPTY, began(0), { type: "failed", turn: 0, message: "no engine" });
  expect([failed.under_way, failed.running, failed.failures, failed.last_error]).toEqual([[], 0, 1, "no engine"]);
});

test("a reward goes to its turn, and the end to the session, whose turns stay", () => {
  const closed = after(EMPTY, ended(0), { type: "rewarded", turn: 0, reward: 0.5 }, { type: "session", ...FACTS, turns: 1, state: "ended", reason: "done", reward: 0.5 });
  expect([closed.turns[0]?.reward, closed.state, closed.reason, closed.turns.length]).toEqual([0.5, "ended", "done", 1]);
});

const says = (text: string) => ({ role: "assistant", content: text }) as never;
const asks = (text: string) => ({ role: "user", content: text }) as never;

test("a path is what was said from the first turn to the last", () => {
  const turns = [over(0, { messages: [asks("q0")], answer: says("a0") }), over(1, { follows: 0, messages: [asks("q1")], answer: says("a1") }), over(2, { follows: 0, messages: [asks("q2")], answer: says("a2") })];
  const session = { ...EMPTY, turns };
  expect(newest(session)).toBe(2);
  expect(pathTo(session, 1)?.messages).toEqual([asks("q0"), says("a0"), asks("q1"), says("a1")]);
  expect(pathTo(session, 1)?.turns.map(({ turn }) => turn)).toEqual([0, 1]);
  expect(pathTo(session, 9)).toBeNull();
});

test("after a cut the conversation is the one that was sent", () => {
  const turns = [over(0, { messages: [asks("q0")], answer: says("a0") }), over(1, { follows: 0, cut: "template", messages: [asks("q0"), says("a0"), asks("q1")], answer: says("a1") })];
  const path = pathTo({ ...EMPTY, turns }, 1);
  expect(path?.messages).toEqual([asks("q0"), says("a0"), asks("q1"), says("a1")]);
  expect(path?.turns.map(({ turn }) => turn)).toEqual([0, 1]);
});

test("an answer under way is a message like those that are over", () => {
  expect(growing(begun(0, { content: "4", reasoning: "2 + 2" }))).toEqual({ role: "assistant", reasoning_content: "2 + 2", content: "4" });
  const calls = '\ntimes {"a": 1,\n "b": 2}\nplus {"a"';
  const call = (name: string, json: string) => ({ type: "function", function: { name, arguments: json } });
  expect(growing(begun(0, { calls }))).toEqual({ role: "assistant", content: "", tool_calls: [call("times", '{"a": 1,\n "b": 2}'), call("plus", '{"a"')] });
});
