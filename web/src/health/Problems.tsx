import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { api, ask, errorOf, fetchOrTell, type Schema } from "@/api/client";
import { useView } from "@/api/view";
import { Button } from "@/parts/Button";
import { ErrorNotice } from "@/parts/Notice";
import { bytes, count } from "@/parts/numbers";
import css from "./Health.module.css";

type Problem = Schema["ProblemsAnswer"]["problems"][number];

const PAGE = 50;
/** A row may be as large as a disk; its beginning says enough. */
const RAW_BYTES = 4096;

/** Every row that could not be read: where, why, and what stands there. */
export function Problems() {
  const { key } = useView();
  const pages = useInfiniteQuery({
    queryKey: ["in", key, "problems"],
    initialPageParam: 0,
    queryFn: async ({ pageParam }) => {
      const query = { offset: pageParam, limit: PAGE };
      return await ask(api.GET("/api/view/{view}/problems", { params: { path: { view: key }, query } }));
    },
    getNextPageParam: (last, all) => {
      const shown = all.reduce((sum, page) => sum + page.problems.length, 0);
      return shown < last.total && last.problems.length > 0 ? shown : undefined;
    },
  });
  if (pages.error) return <ErrorNotice error={pages.error} title="The list could not be read" />;
  const problems = pages.data?.pages.flatMap((page) => page.problems) ?? [];
  const total = pages.data?.pages[0]?.total ?? 0;
  return (
    <>
      <ul aria-label="Rows that could not be read">
        {problems.map((problem) => (
          <ProblemLine key={problem.id} problem={problem} />
        ))}
      </ul>
      {pages.hasNextPage && (
        <p className={css["note"]}>
          {count(problems.length)} of {count(total)} <Button label="Show more" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()} />
        </p>
      )}
    </>
  );
}

function ProblemLine({ problem }: { problem: Problem }) {
  const { key } = useView();
  const raw = useQuery({
    queryKey: ["in", key, "raw-start", problem.id],
    queryFn: async () => {
      const response = await fetchOrTell(`/api/view/${key}/rollouts/${problem.id}/raw`);
      if (!response.ok) throw errorOf(response.status, await response.json().catch(() => undefined));
      const blob = await response.blob();
      return { size: blob.size, text: await blob.slice(0, RAW_BYTES).text() };
    },
    staleTime: Infinity,
  });
  return (
    <li className={css["problem"]}>
      <p className={css["where"]}>
        {problem.file}, line {count(problem.line)}
      </p>
      <p className={css["why"]}>{problem.problem}</p>
      {raw.data && (
        <pre className={css["raw"]} tabIndex={0} aria-label="Its bytes as text">
          {raw.data.text}
        </pre>
      )}
      {raw.data && raw.data.size > RAW_BYTES && (
        <p className={css["note"]}>
          The first {bytes(RAW_BYTES)} of {bytes(raw.data.size)}.
        </p>
      )}
      {raw.error && <p className={css["note"]}>Its bytes could not be read: {raw.error.message}</p>}
    </li>
  );
}
