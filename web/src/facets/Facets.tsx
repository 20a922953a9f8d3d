export function Facets() {
  return null;
}
