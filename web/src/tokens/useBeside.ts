import { useKey } from "@/keys/keys";
import { useViewState } from "@/state/location";

/** `b` puts the chat beside the tokens, from whichever tab, and takes it away again. */
export function useBesideKey() {
  const [{ tab, beside }, set] = useViewState();
  const isOn = tab === "tokens" && beside;
  const toggle = () => set({ tab: "tokens", beside: !isOn });
  useKey({ keys: "b", label: isOn ? "Tokens without the chat" : "Chat and tokens side by side", group: "Tokens", run: toggle });
}
