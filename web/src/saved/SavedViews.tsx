export function SavedViews() {
  return null;
}
