import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api, ask } from "@/api/client";
import { ErrorNotice } from "@/parts/Notice";
import { Panel } from "@/parts/Panel";
import { Ask } from "./Ask";
import { Jobs } from "./Jobs";
import css from "./Grading.module.css";

/** Grades by a model: what to ask, what it takes, and how far the jobs are. */
export function Grading({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const graders = useQuery({ queryKey: ["graders"], queryFn: () => ask(api.GET("/api/view/graders")) });
  return (
    <Panel title="Grade with a model" onClose={onClose}>
      {graders.error && <ErrorNotice error={graders.error} title="The graders could not be asked for" />}
      {graders.data && (
        <div className={css["grading"]}>
          {graders.data.configured ? (
            <Ask graders={graders.data} onStart={() => void queries.invalidateQueries({ queryKey: ["jobs"] })} />
          ) : (
            <NoGrader />
          )}
          <Jobs />
        </div>
      )}
    </Panel>
  );
}

function NoGrader() {
  return (
    <section className={css["none"]} role="status">
      <h3>No model grades here yet</h3>
      <p>
        Start the server with <code>--grader-url URL</code>, any endpoint that speaks OpenAI’s chat completions, and <code>--grader-model NAME</code>.
        Its key goes into <code>ROLLYARD_GRADER_KEY</code>: it stays on the server, and no page is told it.
      </p>
      <pre>ROLLYARD_GRADER_KEY=… rollyard view RUN --grader-url https://api.example.com/v1 --grader-model NAME</pre>
    </section>
  );
}
