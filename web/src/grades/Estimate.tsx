import { useState } from "react";
import type { Schema } from "@/api/client";
import { compact, counted } from "@/parts/numbers";
import { costOf } from "./wanted";
import css from "./Grading.module.css";

const money = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** What a job would take, before anybody is asked. Prices are the user's: no list of them stays true. */
export function Estimate({ estimate }: { estimate: Schema["EstimateAnswer"] }) {
  const [input, setInput] = useState("");
  const [output, setOutput] = useState("");
  const { rollouts, questions, input_tokens, output_tokens } = estimate;
  const cost = costOf(estimate, input, output);
  return (
    <section className={css["estimate"]} aria-label="What it takes">
      <p role="status">
        {questions === 0 && rollouts > 0 ? (
          <>This model has graded all of them already.</>
        ) : (
          <>
            <strong>{counted(rollouts, "rollout")}</strong>, {counted(questions, "question")}, about {compact(input_tokens)} tokens in and {compact(output_tokens)} out
            {cost !== null && (
              <>
                {": "}
                <strong>about {money.format(cost)}</strong>
              </>
            )}
          </>
        )}
      </p>
      <div className={css["prices"]}>
        <label>
          Price of a million tokens in
          <input type="text" inputMode="decimal" size={6} value={input} onChange={(event) => setInput(event.target.value)} />
        </label>
        <label>
          and out
          <input type="text" inputMode="decimal" size={6} value={output} onChange={(event) => setOutput(event.target.value)} />
        </label>
      </div>
    </section>
  );
}
