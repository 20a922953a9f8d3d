//! The tables of a catalog. A catalog of another [`VERSION`] is thrown away and made anew: it is only a summary.

/// Raised when a table changes, or when what is put into a column does.
pub const VERSION: i64 = 2;

/// `rows` has every row of every source, the unreadable and the copies too. `id` is the content's, 16 bytes.
/// `copy` is 0 for the first row of an id and 1 for any other; `bad` is 1 for what could not be read.
/// `offset` and `length` are bytes of the source, or the row's number and its length where the source is Parquet.
/// `extra` in `extras` is a JSON object of the scalars that have no column: other attributes by their name,
/// `reward.<part>` of a reward that is an object, and so on.
/// `indexed_bytes` of a source is how far its rows are in the catalog, `lines` how many line ends stand before that,
/// and `head_hash` and `tail_hash` are of the bytes at the front and right before. `pending_bytes` is a last line that
/// is still being written.
/// `fates` has what became of rollouts after they were written, by their uid; `fates_until` in `facts` is the last
/// row that has been told its fate.
/// `groups` has what the columns of a group are made of: how many readable rollouts it has, how many of them have a
/// reward, the lowest and the highest, and how many have a length and its sum.
/// `counts` in `facts` is what `health` counts, as JSON, so that nobody has to look at every row for it.
/// `revision` in `facts` grows when rows that were there before changed or went; rows are otherwise only added.
pub const TABLES: &str = "
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO facts VALUES ('revision', 0), ('fates_until', 0), ('counts', '{}');
CREATE TABLE sources (
  source INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, format TEXT NOT NULL, size_bytes INTEGER NOT NULL,
  stamp TEXT NOT NULL, indexed_bytes INTEGER NOT NULL, lines INTEGER NOT NULL, head_hash INTEGER NOT NULL,
  tail_hash INTEGER NOT NULL, pending_bytes INTEGER NOT NULL, problem TEXT);
CREATE TABLE rows (
  row INTEGER PRIMARY KEY,
  step INTEGER, reward REAL, data_source TEXT, sample_index INTEGER, rollout_n INTEGER, validate INTEGER,
  experiment_name TEXT, status TEXT, reason TEXT, version INTEGER, lag INTEGER, mixed INTEGER, advantage REAL,
  stop_reason TEXT, truncated INTEGER, turns INTEGER, message_count INTEGER, tool_calls INTEGER,
  prompt_chars INTEGER, response_chars INTEGER, reasoning_chars INTEGER, tokens INTEGER, repetition REAL,
  unclosed INTEGER, leak INTEGER, tampering INTEGER, format_only INTEGER, odd INTEGER, time REAL, prompt_hash INTEGER, group_id INTEGER, instance_id TEXT, uid TEXT,
  trained_step INTEGER,
  copy INTEGER NOT NULL, bad INTEGER NOT NULL, id BLOB NOT NULL,
  source INTEGER NOT NULL, line INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL);
CREATE TABLE groups (
  group_id INTEGER PRIMARY KEY, n INTEGER NOT NULL, rated INTEGER NOT NULL, low REAL, high REAL,
  lengths INTEGER NOT NULL, chars INTEGER NOT NULL);
CREATE TABLE extras (row INTEGER PRIMARY KEY, extra TEXT NOT NULL);
CREATE TABLE problems (row INTEGER PRIMARY KEY, problem TEXT NOT NULL);
CREATE TABLE fates (
  uid TEXT PRIMARY KEY, status TEXT, reason TEXT, step INTEGER, version INTEGER, at REAL, source INTEGER NOT NULL)
  WITHOUT ROWID;
";

/// Made when the first rows are all there, because keeping them up row by row takes longer.
pub const INDICES: &str = "
CREATE INDEX IF NOT EXISTS rows_id ON rows (id);
CREATE INDEX IF NOT EXISTS rows_uid ON rows (uid) WHERE uid IS NOT NULL;
CREATE INDEX IF NOT EXISTS rows_group ON rows (group_id);
CREATE INDEX IF NOT EXISTS rows_prompt ON rows (prompt_hash);
";
