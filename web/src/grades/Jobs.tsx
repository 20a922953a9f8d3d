import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, ask, type Schema } from "@/api/client";
import { events } from "@/api/events";
import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { count } from "@/parts/numbers";
import css from "./Grading.module.css";

type Job = Schema["JobAnswer"];

/** Grading jobs, the newest first, also those of other tabs and other days. */
export function Jobs() {
  const jobs = useQuery({ queryKey: ["jobs"], queryFn: () => ask(api.GET("/api/view/jobs")) });
  return (
    <section className={css["jobs"]} aria-label="Jobs">
      <h3>Jobs</h3>
      {jobs.error && (
        <p className={css["error"]} role="alert">
          {jobs.error.message}
        </p>
      )}
      {jobs.data?.length === 0 && <p className={css["quiet"]}>No job yet. One goes on while nobody watches, and after a restart of the server.</p>}
      <ul>
        {jobs.data?.map((job) => (
          <JobRow key={job.job} job={job} />
        ))}
      </ul>
    </section>
  );
}

function JobRow({ job }: { job: Job }) {
  const queries = useQueryClient();
  const again = () => void queries.invalidateQueries({ queryKey: ["jobs"] });
  const isRunning = job.status === "running";
  useProgress(job.job, isRunning);
  const path = { path: { job: job.job } };
  const cancel = useMutation({ mutationFn: () => ask(api.DELETE("/api/view/jobs/{job}", { params: path })), onSettled: again });
  const resume = useMutation({
    mutationFn: () => ask(api.POST("/api/view/jobs/{job}/resume", { params: path }) as Promise<{ data?: unknown; error?: unknown; response: Response }>),
    onSettled: again,
  });
  const done = job.graded + job.skipped + job.failed;
  const error = cancel.error ?? resume.error;
  return (
    <li className={css["job"]}>
      <div className={css["row"]}>
        <span className={css["what"]}>{job.metrics.join(", ").replaceAll("_", " ")}</span>
        <span className={css["quiet"]}>{job.model ?? job.base_url}</span>
        <span className={css["status"]} data-status={job.status}>
          {job.status}
        </span>
        {isRunning ? (
          <Button label="Stop this job" onClick={() => cancel.mutate()}>
            Stop
          </Button>
        ) : (
          job.status !== "done" && (
            <Button label="Go on with this job" onClick={() => resume.mutate()}>
              Resume
            </Button>
          )
        )}
      </div>
      <progress aria-label="Questions answered" value={done} max={Math.max(1, job.total)} />
      <p className={css["quiet"]}>
        {count(job.graded)} of {count(job.total)} graded
        {job.skipped > 0 && `, ${count(job.skipped)} had been before`}
        {job.failed > 0 && <span className={css["error"]}>, {count(job.failed)} failed</span>}
      </p>
      {(error || job.errors.length > 0) && <p className={css["error"]}>{error?.message ?? job.errors.at(-1)}</p>}
    </li>
  );
}

/** Follows a job while it runs, and has what it graded shown. */
function useProgress(job: string, isRunning: boolean) {
  const queries = useQueryClient();
  const { key } = useView();
  useEffect(() => {
    if (!isRunning) return;
    const control = new AbortController();
    const follow = async () => {
      for await (const { data } of events(`/api/view/jobs/${job}/progress`, { signal: control.signal })) {
        queries.setQueryData<Job[]>(["jobs"], (old) => old?.map((other) => (other.job === job ? (data as Job) : other)));
      }
    };
    const show = () => {
      void queries.invalidateQueries({ queryKey: ["annotations"] });
      void queries.invalidateQueries({ queryKey: ["in", key, "rollout"] });
    };
    // The last word ends the job, and with it this effect, which may abort before the stream has ended: what was graded
    // is shown either way. A server that is away says so elsewhere; the list is asked for again when it is back.
    void follow()
      .catch(() => undefined)
      .finally(show);
    return () => control.abort();
  }, [job, isRunning, queries, key]);
}
