/** Whether the server said it: what it leaves out and what it says null for are the same. */
export function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}
