export function FilterBox() {
  return null;
}
