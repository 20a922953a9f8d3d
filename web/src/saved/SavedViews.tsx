import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask } from "@/api/client";
import { Button } from "@/parts/Button";
import { go } from "@/state/location";
import { SaveForm } from "./SaveForm";
import css from "./SavedViews.module.css";

/** What is on screen under a name: for oneself, and for everybody who uses this server. */
export function SavedViews() {
  const queries = useQueryClient();
  const [isNaming, setIsNaming] = useState(false);
  const saved = useQuery({ queryKey: ["saved"], queryFn: () => ask(api.GET("/api/view/saved")) });
  const again = () => queries.invalidateQueries({ queryKey: ["saved"] });
  const save = useMutation({
    mutationFn: (name: string) => ask(api.POST("/api/view/saved", { body: { name, query: location.search.slice(1) } })),
    onSuccess: () => {
      setIsNaming(false);
      return again();
    },
  });
  const drop = useMutation({
    mutationFn: (name: string) => ask(api.DELETE("/api/view/saved/{name}", { params: { path: { name } } })),
    onSettled: again,
  });
  const error = saved.error ?? drop.error;
  return (
    <section aria-label="Saved views">
      <header className={css["head"]}>
        <h2>Saved views</h2>
        <Button label="Save what is on screen under a name" hotkey="Shift+S" keyGroup="Saved views" kind="quiet" className={css["small"]} onClick={() => setIsNaming(true)}>
          Save…
        </Button>
      </header>
      {isNaming && (
        <SaveForm
          taken={saved.data?.map((view) => view.name) ?? []}
          error={save.error}
          isSaving={save.isPending}
          onSave={(name) => save.mutate(name)}
          onCancel={() => {
            setIsNaming(false);
            save.reset();
          }}
        />
      )}
      {error && (
        <p role="alert" className={css["wrong"]}>
          {error.message}
        </p>
      )}
      <ul>
        {saved.data?.map((view) => (
          <li key={view.name} className={css["view"]}>
            <a
              href={`/?${view.query}`}
              title={`${view.name}\n${decoded(view.query)}`}
              onClick={(event) => {
                if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                event.preventDefault();
                go(`/?${view.query}`);
              }}
            >
              {view.name}
            </a>
            <button type="button" aria-label={`Delete ${view.name}`} title={`Delete ${view.name}`} onClick={() => drop.mutate(view.name)}>
              ✕
            </button>
          </li>
        ))}
      </ul>
      {saved.data?.length === 0 && !isNaming && <p className={css["none"]}>None yet. A saved view keeps the places, the filter and what is open.</p>}
    </section>
  );
}

function decoded(query: string): string {
  return [...new URLSearchParams(query)].map(([name, value]) => `${name}: ${value}`).join("\n");
}
