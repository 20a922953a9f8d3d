export function Sources() {
  return null;
}
