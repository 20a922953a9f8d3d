import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, ask } from "@/api/client";
import { useKey } from "@/keys/keys";
import { useKept } from "@/state/kept";
import { Browser } from "./Browser";
import { LATELY, openPlaces, shortName } from "./places";
import { PlaceField } from "./PlaceField";
import { useBrowse } from "./useBrowse";
import css from "./Welcome.module.css";

/** Has the server write its example run, and says where it is. */
const writeExample = async () => (await ask(api.POST("/api/view/example"))).place;

/** A first visit, or places that cannot be opened. */
export function Welcome({ problem }: { problem?: ReactNode }) {
  const [lately] = useKept<string[][]>(LATELY, []);
  const roots = useBrowse(null);
  const runs = roots.data?.folders.filter((place) => place.startsWith("yard://")) ?? [];
  const example = useMutation({ mutationFn: writeExample, onSuccess: (place) => openPlaces([place]) });
  useKey({ keys: "e", label: "Look at an example run", group: "Sources", run: () => example.mutate() });
  return (
    <div className={css["welcome"]}>
      <div className={css["page"]}>
        {problem !== undefined && <div className={css["problem"]}>{problem}</div>}
        <h1>Look at rollouts</h1>
        <p className={css["about"]}>
          Open the files that training writes, or a run of this yard: filter and search all of it, see groups and curves, and read any rollout down to its tokens.
        </p>
        <div className={css["columns"]}>
          <div className={css["quick"]}>
            {runs.length > 0 && <PlaceList title="Runs of this yard" choices={runs.map((run) => [run])} />}
            {lately.length > 0 && <PlaceList title="Opened lately" choices={lately} />}
            <section>
              <h2>Nothing at hand?</h2>
              <button type="button" className={css["example"]} title="Look at an example run (e)" disabled={example.isPending} onClick={() => example.mutate()}>
                Look at an example run
              </button>
              <p>A small run with groups, tools, reasoning and mistakes of every kind. It is made up.</p>
              {example.error && (
                <p role="alert" className={css["wrong"]}>
                  The example could not be made: {example.error.message}
                </p>
              )}
            </section>
          </div>
          <section className={css["files"]} aria-label="Files">
            <h2>Files</h2>
            <PlaceField onOpen={(place) => openPlaces([place])} />
            <Browser onOpen={openPlaces} />
          </section>
        </div>
      </div>
    </div>
  );
}

function PlaceList({ title, choices }: { title: string; choices: string[][] }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul>
        {choices.map((places) => (
          <li key={JSON.stringify(places)}>
            <button type="button" className={css["place"]} title={places.join("\n")} onClick={() => openPlaces(places)}>
              {places.map(shortName).join(", ")}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
