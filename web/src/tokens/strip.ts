/** All tokens in the width of the pane: one column for each bucket, as high as its least likely token is unlikely. */

export interface Bucket {
  from: number;
  to: number;
  /** The token that stands for it, and its value; null if none has one. */
  at: number | null;
  value: number | null;
}

/** `worth` is high where the eye should go. */
export function bucketsOf(length: number, most: number, worth: (at: number) => number | null): Bucket[] {
  const n = Math.min(length, Math.max(1, most));
  const buckets: Bucket[] = [];
  for (let i = 0; i < n; i++) {
    const from = Math.floor((i * length) / n);
    const to = Math.floor(((i + 1) * length) / n);
    const bucket: Bucket = { from, to, at: null, value: null };
    for (let at = from; at < to; at++) {
      const value = worth(at);
      if (value !== null && (bucket.value === null || value > bucket.value)) {
        bucket.at = at;
        bucket.value = value;
      }
    }
    buckets.push(bucket);
  }
  return buckets;
}
