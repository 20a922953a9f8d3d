import css from "./Facets.module.css";

/** Any other field, listed from now on in this browser. */
export function AddFacet({ names, onAdd }: { names: string[]; onAdd: (name: string) => void }) {
  if (names.length === 0) return null;
  return (
    <select className={css["add"]} aria-label="List the values of another field" value="" onChange={(event) => onAdd(event.target.value)}>
      <option value="">List another field…</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
