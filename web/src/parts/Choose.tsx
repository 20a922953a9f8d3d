import { useRef } from "react";
import { useKey } from "@/keys/keys";
import css from "./Choose.module.css";

interface Props {
  label: string;
  options: Record<string, string>;
  value: string;
  onChoose: (value: string) => void;
  /** Puts the focus here. */
  hotkey?: string;
}

/** One of a few: the browser's own list, which every keyboard and reader knows. */
export function Choose({ label, options, value, onChoose, hotkey }: Props) {
  const select = useRef<HTMLSelectElement>(null);
  useKey(hotkey === undefined ? null : { keys: hotkey, label: `Choose: ${label.toLowerCase()}`, group: "General", run: () => select.current?.focus() });
  return (
    <select
      ref={select}
      className={css["choose"]}
      aria-label={label}
      title={hotkey === undefined ? label : `${label} (${hotkey})`}
      value={value}
      onChange={(event) => onChoose(event.target.value)}
    >
      {!(value in options) && <option value={value}>{value}</option>}
      {Object.entries(options).map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  );
}
