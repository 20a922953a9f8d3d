import css from "./Session.module.css";

/** `open`, `ended`, `abandoned` or `expired`: in words, and with a dot for those who look for one kind. */
export function State({ state }: { state: string }) {
  return (
    <span className={css["state"]}>
      <i className={css["dot"]} data-state={state} aria-hidden="true" />
      {state}
    </span>
  );
}
