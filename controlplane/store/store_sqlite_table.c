// One row of `writes` and `reads` below for each kind. Numbers of 64 bits are stored as SQLite's
// signed integers, bit for bit; they are compared with nothing in SQL but themselves.
//
// The tables are STRICT, so a damaged row can not turn into a value of another type unnoticed.

#include "controlplane/store/store_sqlite_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define STRINGIFY(x) #x
#define NUMBER(x) STRINGIFY(x)

#define TICKETS \
	"CREATE TABLE tickets (epoch INTEGER PRIMARY KEY CHECK (epoch > 0)," \
	" key BLOB NOT NULL) STRICT;"

#define DRAWS \
	"CREATE TABLE draws (line INTEGER NOT NULL, number INTEGER NOT NULL, seed BLOB NOT NULL," \
	" salt BLOB NOT NULL, drawn INTEGER NOT NULL," \
	" first_slot INTEGER NOT NULL, end_slot INTEGER NOT NULL, base INTEGER NOT NULL," \
	" count INTEGER NOT NULL, list BLOB NOT NULL, PRIMARY KEY (line, number))" \
	" STRICT, WITHOUT ROWID;" \
	"CREATE TABLE doors (line INTEGER PRIMARY KEY, opened INTEGER NOT NULL," \
	" at INTEGER NOT NULL, salt BLOB NOT NULL) STRICT;"

#define CODES \
	"CREATE TABLE codes (line INTEGER NOT NULL, digest BLOB NOT NULL, used INTEGER NOT NULL," \
	" PRIMARY KEY (line, digest)) STRICT, WITHOUT ROWID;"

#define MOVES \
	"CREATE TABLE moves (place INTEGER PRIMARY KEY, number INTEGER NOT NULL," \
	" holder INTEGER NOT NULL, once INTEGER NOT NULL, lane INTEGER NOT NULL," \
	" visitor INTEGER NOT NULL, key INTEGER NOT NULL, gathered INTEGER NOT NULL) STRICT;"

const char *const store_sqlite_table_steps[STORE_SQLITE_SCHEMA] = {
	[1] = TICKETS, [2] = DRAWS, [3] = CODES, [4] = MOVES};

const char store_sqlite_table_schema[] =
	"CREATE TABLE sessions (line INTEGER NOT NULL, visitor INTEGER NOT NULL,"
	" session INTEGER NOT NULL, key INTEGER NOT NULL, expires INTEGER NOT NULL,"
	" over INTEGER NOT NULL, PRIMARY KEY (line, visitor)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE ended (session INTEGER PRIMARY KEY, line INTEGER NOT NULL,"
	" expires INTEGER NOT NULL) STRICT;"
	"CREATE INDEX ended_expires ON ended (expires);"
	"CREATE TABLE lines (line INTEGER PRIMARY KEY, threshold INTEGER NOT NULL,"
	" floor INTEGER NOT NULL) STRICT;"
	"CREATE TABLE rooms (line INTEGER PRIMARY KEY, state INTEGER NOT NULL,"
	" mode INTEGER NOT NULL, message TEXT NOT NULL) STRICT;"
	"CREATE TABLE secrets (id INTEGER PRIMARY KEY, key BLOB NOT NULL,"
	" created INTEGER NOT NULL, retire INTEGER NOT NULL) STRICT;"
	"CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 1), ms INTEGER NOT NULL) STRICT;"
	"CREATE TABLE configs (id INTEGER PRIMARY KEY, ms INTEGER NOT NULL,"
	" hash BLOB NOT NULL) STRICT;"
	"CREATE TABLE audit (id INTEGER PRIMARY KEY, ms INTEGER NOT NULL,"
	" text TEXT NOT NULL) STRICT;"
	// What the clock and the history drop by themselves.
	"CREATE TRIGGER ended_expire AFTER INSERT ON clock BEGIN"
	" DELETE FROM ended WHERE expires <= new.ms / 1000; END;"
	"CREATE TRIGGER configs_trim AFTER INSERT ON configs BEGIN"
	" DELETE FROM configs WHERE id <= new.id - " NUMBER(
		STORE_HISTORY_MAX) "; END;"
				   "CREATE TRIGGER audit_trim AFTER INSERT ON audit BEGIN"
				   " DELETE FROM audit WHERE id <= new.id - " NUMBER(
					   STORE_HISTORY_MAX) "; END;" TICKETS DRAWS CODES MOVES;

static void bind_session(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->session.line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)r->session.visitor);
	sqlite3_bind_int64(to, 3, (sqlite3_int64)r->session.session);
	sqlite3_bind_int64(to, 4, (sqlite3_int64)r->session.key);
	sqlite3_bind_int64(to, 5, r->session.expires);
	sqlite3_bind_int64(to, 6, r->session.is_over);
}

static void bind_renewed(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->session.line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)r->session.visitor);
	sqlite3_bind_int64(to, 3, r->session.expires);
}

static void bind_visitor(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->session.line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)r->session.visitor);
}

static void bind_ended(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, (sqlite3_int64)r->ended.session);
	sqlite3_bind_int64(to, 2, r->ended.line_id);
	sqlite3_bind_int64(to, 3, r->ended.expires);
}

static void bind_line(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->line.line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)r->line.threshold);
	sqlite3_bind_int64(to, 3, (sqlite3_int64)r->line.floor);
}

static void bind_room(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->room.line_id);
	sqlite3_bind_int64(to, 2, r->room.state);
	sqlite3_bind_int64(to, 3, r->room.mode);
	sqlite3_bind_text(to, 4, r->room.message, -1, SQLITE_STATIC);
}

static void bind_secret(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->secret.id);
	sqlite3_bind_blob(to, 2, r->secret.key, STORE_SECRET_BYTES, SQLITE_STATIC);
	sqlite3_bind_int64(to, 3, (sqlite3_int64)r->secret.created_s);
	sqlite3_bind_int64(to, 4, (sqlite3_int64)r->secret.retire_s);
}

static void bind_secret_id(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->secret.id);
}

static void bind_clock(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, (sqlite3_int64)r->clock.ms);
}

static void bind_config(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, (sqlite3_int64)r->config.ms);
	sqlite3_bind_blob(to, 2, r->config.hash, STORE_HASH_BYTES, SQLITE_STATIC);
}

static void bind_audit(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, (sqlite3_int64)r->audit.ms);
	sqlite3_bind_text(to, 2, r->audit.text, -1, SQLITE_STATIC);
}

static void bind_ticket(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->ticket.epoch);
	sqlite3_bind_blob(to, 2, r->ticket.key, STORE_SECRET_BYTES, SQLITE_STATIC);
}

static void bind_epoch(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->ticket.epoch);
}

static void bind_draw(sqlite3_stmt *to, const struct store_record *r)
{
	const struct store_draw *draw = &r->draw;
	sqlite3_bind_int64(to, 1, draw->line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)draw->number);
	sqlite3_bind_blob(to, 3, draw->seed, STORE_SECRET_BYTES, SQLITE_STATIC);
	sqlite3_bind_blob(to, 4, draw->salt, draw->salt_bytes, SQLITE_STATIC);
	sqlite3_bind_int64(to, 5, draw->is_drawn);
	sqlite3_bind_int64(to, 6, (sqlite3_int64)draw->first_slot);
	sqlite3_bind_int64(to, 7, (sqlite3_int64)draw->end_slot);
	sqlite3_bind_int64(to, 8, (sqlite3_int64)draw->base);
	sqlite3_bind_int64(to, 9, (sqlite3_int64)draw->count);
	sqlite3_bind_blob(to, 10, draw->list_sha256, STORE_HASH_BYTES, SQLITE_STATIC);
}

static void bind_draw_number(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->draw.line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)r->draw.number);
}

static void bind_doors(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->doors.line_id);
	sqlite3_bind_int64(to, 2, (sqlite3_int64)r->doors.opened_ms);
	sqlite3_bind_int64(to, 3, (sqlite3_int64)r->doors.opened_at_ms);
	sqlite3_bind_blob(to, 4, r->doors.salt, r->doors.salt_bytes, SQLITE_STATIC);
}

static void bind_code(sqlite3_stmt *to, const struct store_record *r)
{
	sqlite3_bind_int64(to, 1, r->code.line_id);
	sqlite3_bind_blob(to, 2, r->code.digest, sizeof(r->code.digest), SQLITE_STATIC);
	sqlite3_bind_int64(to, 3, r->code.used);
}

static void bind_move(sqlite3_stmt *to, const struct store_record *r)
{
	const struct store_move *move = &r->move;
	sqlite3_bind_int64(to, 1, (sqlite3_int64)(move->number % STORE_MOVES_MAX));
	sqlite3_bind_int64(to, 2, (sqlite3_int64)move->number);
	sqlite3_bind_int64(to, 3, (sqlite3_int64)move->holder);
	sqlite3_bind_int64(to, 4, move->is_once);
	sqlite3_bind_int64(to, 5, move->lane_id);
	sqlite3_bind_int64(to, 6, (sqlite3_int64)move->visitor);
	sqlite3_bind_int64(to, 7, (sqlite3_int64)move->key);
	sqlite3_bind_int64(to, 8, move->is_gathered);
}

#define OF_VISITOR " WHERE line = ?1 AND visitor = ?2"

static const struct {
	const char *sql;
	void (*bind)(sqlite3_stmt *to, const struct store_record *r);
} writes[] = {
	[STORE_GRANTED] = {"INSERT OR REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
		bind_session},
	[STORE_RENEWED] = {"UPDATE sessions SET expires = ?3" OF_VISITOR, bind_renewed},
	[STORE_OVER] = {"UPDATE sessions SET over = 1" OF_VISITOR, bind_visitor},
	[STORE_FORGOTTEN] = {"DELETE FROM sessions" OF_VISITOR, bind_visitor},
	[STORE_ENDED] = {"INSERT OR REPLACE INTO ended VALUES (?1, ?2, ?3)", bind_ended},
	[STORE_LINE] = {"INSERT OR REPLACE INTO lines VALUES (?1, ?2, ?3)", bind_line},
	[STORE_ROOM] = {"INSERT OR REPLACE INTO rooms VALUES (?1, ?2, ?3, ?4)", bind_room},
	[STORE_SECRET] = {"INSERT OR REPLACE INTO secrets VALUES (?1, ?2, ?3, ?4)", bind_secret},
	[STORE_SECRET_FORGOTTEN] = {"DELETE FROM secrets WHERE id = ?1", bind_secret_id},
	[STORE_CLOCK] = {"INSERT OR REPLACE INTO clock VALUES (1, ?1)", bind_clock},
	[STORE_CONFIG] = {"INSERT INTO configs (ms, hash) VALUES (?1, ?2)", bind_config},
	[STORE_AUDIT] = {"INSERT INTO audit (ms, text) VALUES (?1, ?2)", bind_audit},
	[STORE_TICKET] = {"INSERT OR REPLACE INTO tickets VALUES (?1, ?2)", bind_ticket},
	[STORE_TICKET_FORGOTTEN] = {"DELETE FROM tickets WHERE epoch = ?1", bind_epoch},
	[STORE_DRAW] = {"INSERT OR REPLACE INTO draws"
			" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
		bind_draw},
	[STORE_DRAW_FORGOTTEN] = {"DELETE FROM draws WHERE line = ?1 AND number = ?2",
		bind_draw_number},
	[STORE_DOORS] = {"INSERT OR REPLACE INTO doors VALUES (?1, ?2, ?3, ?4)", bind_doors},
	[STORE_CODE] = {"INSERT OR REPLACE INTO codes VALUES (?1, ?2, ?3)", bind_code},
	[STORE_MOVE] = {"INSERT OR REPLACE INTO moves VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
		bind_move},
};
#define KINDS (sizeof(writes) / sizeof(writes[0]))

// Rows that cannot be are damage.
static bool read_u32(sqlite3_stmt *row, int column, uint32_t *value)
{
	sqlite3_int64 wide = sqlite3_column_int64(row, column);
	*value = (uint32_t)wide;
	return wide >= 0 && wide <= UINT32_MAX;
}

static bool read_u8(sqlite3_stmt *row, int column, uint8_t *value)
{
	sqlite3_int64 wide = sqlite3_column_int64(row, column);
	*value = (uint8_t)wide;
	return wide >= 0 && wide <= UINT8_MAX;
}

static uint64_t read_u64(sqlite3_stmt *row, int column)
{
	return (uint64_t)sqlite3_column_int64(row, column);
}

static bool read_bytes(sqlite3_stmt *row, int column, uint8_t *value, int bytes)
{
	if (sqlite3_column_bytes(row, column) != bytes)
		return false;
	memcpy(value, sqlite3_column_blob(row, column), (size_t)bytes);
	return true;
}

static bool read_text(sqlite3_stmt *row, int column, const char **value)
{
	*value = (const char *)sqlite3_column_text(row, column);
	return *value && strlen(*value) <= STORE_TEXT_MAX;
}

static bool read_session(sqlite3_stmt *row, struct store_record *r)
{
	uint8_t is_over;
	r->session.visitor = read_u64(row, 1);
	r->session.session = read_u64(row, 2);
	r->session.key = read_u64(row, 3);
	bool is_whole = read_u32(row, 0, &r->session.line_id) &&
			read_u32(row, 4, &r->session.expires) && read_u8(row, 5, &is_over);
	if (!is_whole || is_over > 1)
		return false;
	r->session.is_over = is_over;
	return true;
}

static bool read_ended(sqlite3_stmt *row, struct store_record *r)
{
	r->ended.session = read_u64(row, 0);
	return read_u32(row, 1, &r->ended.line_id) && read_u32(row, 2, &r->ended.expires);
}

static bool read_line(sqlite3_stmt *row, struct store_record *r)
{
	r->line.threshold = read_u64(row, 1);
	r->line.floor = read_u64(row, 2);
	return read_u32(row, 0, &r->line.line_id);
}

static bool read_room(sqlite3_stmt *row, struct store_record *r)
{
	return read_u32(row, 0, &r->room.line_id) && read_u8(row, 1, &r->room.state) &&
	       read_u8(row, 2, &r->room.mode) && read_text(row, 3, &r->room.message);
}

static bool read_secret(sqlite3_stmt *row, struct store_record *r)
{
	r->secret.created_s = read_u64(row, 2);
	r->secret.retire_s = read_u64(row, 3);
	return read_u8(row, 0, &r->secret.id) && r->secret.id > 0 &&
	       read_bytes(row, 1, r->secret.key, STORE_SECRET_BYTES);
}

static bool read_clock(sqlite3_stmt *row, struct store_record *r)
{
	r->clock.ms = read_u64(row, 0);
	return true;
}

static bool read_config(sqlite3_stmt *row, struct store_record *r)
{
	r->config.ms = read_u64(row, 0);
	return read_bytes(row, 1, r->config.hash, STORE_HASH_BYTES);
}

static bool read_audit(sqlite3_stmt *row, struct store_record *r)
{
	r->audit.ms = read_u64(row, 0);
	return read_text(row, 1, &r->audit.text);
}

static bool read_ticket(sqlite3_stmt *row, struct store_record *r)
{
	return read_u32(row, 0, &r->ticket.epoch) && r->ticket.epoch > 0 &&
	       read_bytes(row, 1, r->ticket.key, STORE_SECRET_BYTES);
}

// 0 to STORE_SALT_BYTES_MAX bytes.
static bool read_salt(sqlite3_stmt *row, int column, uint8_t *salt, uint8_t *salt_bytes)
{
	int bytes = sqlite3_column_bytes(row, column);
	if (bytes < 0 || bytes > (int)STORE_SALT_BYTES_MAX)
		return false;
	*salt_bytes = (uint8_t)bytes;
	if (bytes > 0)
		memcpy(salt, sqlite3_column_blob(row, column), (size_t)bytes);
	return true;
}

static bool read_draw(sqlite3_stmt *row, struct store_record *r)
{
	struct store_draw *draw = &r->draw;
	uint8_t is_drawn;
	draw->number = read_u64(row, 1);
	draw->first_slot = read_u64(row, 5);
	draw->end_slot = read_u64(row, 6);
	draw->base = read_u64(row, 7);
	draw->count = read_u64(row, 8);
	bool is_whole = read_u32(row, 0, &draw->line_id) &&
			read_bytes(row, 2, draw->seed, STORE_SECRET_BYTES) &&
			read_salt(row, 3, draw->salt, &draw->salt_bytes) &&
			read_u8(row, 4, &is_drawn) &&
			read_bytes(row, 9, draw->list_sha256, STORE_HASH_BYTES);
	if (!is_whole || is_drawn > 1)
		return false;
	draw->is_drawn = is_drawn;
	return true;
}

static bool read_doors(sqlite3_stmt *row, struct store_record *r)
{
	r->doors.opened_ms = read_u64(row, 1);
	r->doors.opened_at_ms = read_u64(row, 2);
	return read_u32(row, 0, &r->doors.line_id) &&
	       read_salt(row, 3, r->doors.salt, &r->doors.salt_bytes);
}

static bool read_code(sqlite3_stmt *row, struct store_record *r)
{
	uint8_t digest[sizeof(r->code.digest)];
	bool is_whole = read_u32(row, 0, &r->code.line_id) &&
			read_bytes(row, 1, digest, sizeof(digest)) &&
			read_u32(row, 2, &r->code.used);
	if (is_whole)
		memcpy(r->code.digest, digest, sizeof(digest));
	return is_whole;
}

static bool read_move(sqlite3_stmt *row, struct store_record *r)
{
	struct store_move *move = &r->move;
	uint8_t is_once, is_gathered;
	move->number = read_u64(row, 0);
	move->holder = read_u64(row, 1);
	move->visitor = read_u64(row, 4);
	move->key = read_u64(row, 5);
	if (!read_u8(row, 2, &is_once) || !read_u32(row, 3, &move->lane_id) ||
		!read_u8(row, 6, &is_gathered) || is_once > 1 || is_gathered > 1)
		return false;
	move->is_once = is_once;
	move->is_gathered = is_gathered;
	return true;
}

static const struct {
	const char *sql;
	bool (*read)(sqlite3_stmt *row, struct store_record *r);
} reads[KINDS] = {
	[STORE_GRANTED] = {"SELECT line, visitor, session, key, expires, over FROM sessions"
			   " ORDER BY over, expires DESC",
		read_session},
	[STORE_ENDED] = {"SELECT session, line, expires FROM ended ORDER BY expires", read_ended},
	[STORE_LINE] = {"SELECT line, threshold, floor FROM lines", read_line},
	[STORE_ROOM] = {"SELECT line, state, mode, message FROM rooms", read_room},
	[STORE_SECRET] = {"SELECT id, key, created, retire FROM secrets ORDER BY created",
		read_secret},
	[STORE_CLOCK] = {"SELECT ms FROM clock", read_clock},
	[STORE_CONFIG] = {"SELECT ms, hash FROM configs ORDER BY id", read_config},
	[STORE_AUDIT] = {"SELECT ms, text FROM audit ORDER BY id", read_audit},
	[STORE_TICKET] = {"SELECT epoch, key FROM tickets ORDER BY epoch", read_ticket},
	[STORE_DRAW] = {"SELECT line, number, seed, salt, drawn, first_slot, end_slot, base,"
			" count, list FROM draws ORDER BY line, number",
		read_draw},
	[STORE_DOORS] = {"SELECT line, opened, at, salt FROM doors", read_doors},
	[STORE_CODE] = {"SELECT line, digest, used FROM codes", read_code},
	[STORE_MOVE] = {"SELECT number, holder, once, lane, visitor, key, gathered FROM moves"
			" ORDER BY number",
		read_move},
};

struct store_sqlite_table {
	sqlite3_stmt *writes[KINDS];
};

int store_sqlite_table_create(sqlite3 *db, struct store_sqlite_table **table)
{
	struct store_sqlite_table *made = calloc(1, sizeof(*made));
	int ret = made ? SQLITE_OK : SQLITE_NOMEM;
	for (size_t kind = 1; kind < KINDS && ret == SQLITE_OK; kind++)
		ret = sqlite3_prepare_v3(db, writes[kind].sql, -1, SQLITE_PREPARE_PERSISTENT,
			&made->writes[kind], NULL);
	if (ret != SQLITE_OK) {
		store_sqlite_table_destroy(made);
		return ret;
	}
	*table = made;
	return SQLITE_OK;
}

void store_sqlite_table_destroy(struct store_sqlite_table *table)
{
	if (!table)
		return;
	for (size_t kind = 1; kind < KINDS; kind++)
		sqlite3_finalize(table->writes[kind]);
	free(table);
}

int store_sqlite_table_write(struct store_sqlite_table *table, const struct store_record *record)
{
	assert(record->kind > 0 && record->kind < KINDS);
	sqlite3_stmt *statement = table->writes[record->kind];
	writes[record->kind].bind(statement, record);
	sqlite3_step(statement);
	int ret = sqlite3_reset(statement); // what the step failed with
	sqlite3_clear_bindings(statement);
	return ret;
}

int store_sqlite_table_read(
	sqlite3 *db, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	assert(kind < KINDS && reads[kind].sql);
	sqlite3_stmt *row;
	int ret = sqlite3_prepare_v2(db, reads[kind].sql, -1, &row, NULL);
	if (ret != SQLITE_OK)
		return ret;
	uint64_t count = 0;
	while ((ret = sqlite3_step(row)) == SQLITE_ROW) {
		struct store_record r = {.kind = kind};
		if (!reads[kind].read(row, &r))
			ret = SQLITE_CORRUPT;
		else if (count++ == max)
			ret = SQLITE_TOOBIG;
		if (ret != SQLITE_ROW)
			break;
		record(ctx, &r);
		explicit_bzero(&r, sizeof(r)); // it may have been a secret
	}
	sqlite3_finalize(row);
	return ret == SQLITE_DONE ? SQLITE_OK : ret;
}
