import type { Rollout } from "@/reader/useRollout";
import { Facts, type Fact } from "./Facts";
import { ageOf, fateOf } from "./fate";

/** Trained, held or dropped, and why; from the ledger, as the archive keeps it. */
export function Fate({ rollout }: { rollout: Rollout }) {
  const summary = rollout.summary as Record<string, unknown>;
  const text = (name: string) => (typeof summary[name] === "string" ? summary[name] : null);
  const number = (name: string) => (typeof summary[name] === "number" ? summary[name] : null);
  const mixed = summary["mixed"] === true || summary["mixed"] === 1;
  const sentence = fateOf({ status: text("status"), reason: text("reason"), trainedStep: number("trained_step") });
  const age = ageOf(number("version"), number("lag"), mixed);
  const facts = (["status", "reason", "trained_step", "version", "lag"] as const)
    .map((name): Fact => ({ name, value: text(name) ?? number(name) }))
    .filter(({ value }) => value !== null);
  if (mixed) facts.push({ name: "mixed", value: true, shown: "yes" });
  // Without a status there is nothing to list, but that is an answer too.
  const listed = facts.length > 0 ? facts : [{ name: "status", value: null, shown: "–" }];
  return <Facts title="What became of it" facts={listed} note={age === null ? sentence : `${sentence} ${age}`} />;
}
