/** Puts a text on the clipboard. Browsers keep the clipboard from pages that are served over plain HTTP elsewhere. */
export async function copyText(text: string): Promise<boolean> {
  // Missing there, whatever the types say.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (!clipboard) return false;
  return clipboard.writeText(text).then(
    () => true,
    () => false,
  );
}
