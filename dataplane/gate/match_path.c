// Which room a path belongs to: the path read as servers read it.
//
// The contract's four readings are: as sent; decoded once; decoded and resolved; decoded twice and
// resolved. Servers know more ways, and each was a way past somebody's gate:
//
//   /a%2fx/../derby   resolved before it is decoded: `..` takes back one segment, `a%2fx`
//   /a\x/../derby     the same where `\` is a letter like others
//   /a/b//../x        `..` takes back an empty segment, not `b`
//   /x/..;/derby      parameters of segments are dropped first, and there is `..`
//   /a;v=1/b          the same without climbing
//   /%c0%ae%c0%ae/    overlong UTF-8 (RFC 3629 3), decoded by who does not check
//
// So further readings follow the four, one for each way in which the path at hand can be read
// differently; most have none. They may lead to a room where the four led to none, and to 400 where
// the four led to another room; they never take a room away. Ways combine (one bit each), so a path
// that climbs in many of them is read up to thirty times over. No browser sends one: beyond
// MATCH_CLIMB_BYTES_MAX it is refused, and so the work is bounded by a constant times the length.
//
// What was resolved in one of the further ways is resolved once more in the plain way, as the file
// system behind the server would. Parameters are not dropped where the room's own path has some.
//
// All that costs something only where a path is unusual: one that is_plain() reads the same in
// every way, and is looked up once.
//
// Left out: letters beyond ASCII are not folded (`É`, `é`). A room's path has to be written decoded
// and resolved, as the configuration demands.

#include "dataplane/gate/match.h"
#include "dataplane/http/octet.h"

#include <assert.h>
#include <stdint.h>

// Ways of reading: a bit each; 0 is the contract's own.
enum {
	WAY_ENCODED = 1, // `%2f` and `%5c` separate nothing
	WAY_BACKSLASH = 2, // `\` separates nothing
	WAY_EMPTY = 4, // `..` takes back empty segments like others
	WAY_PARAMETERS = 8, // of a segment only what stands before `;` counts
	WAYS_END = 16,
};

// An encoded separator that separates nothing, until it is resolved. Paths hold no NUL otherwise.
#define OPAQUE '\0'

// What all readings so far agree on.
struct reader {
	const struct gate_site *site;
	enum match_kind kind;
	const struct gate_room *room;
};

static const struct span sluice_path = {"/.sluice/", 9};

static bool is_plain(struct span path);
static bool read_all(struct reader *reader, struct span path, char *scratch, struct span *once);
static bool read_other_ways(
	struct reader *reader, struct span encoded, struct span decoded, char *buffer, char *work);
static bool agrees(struct reader *reader, struct span reading);
static bool lies_under(const struct gate_site *site, struct span path, struct span prefix);
static bool decode(struct span in, unsigned way, char *out, struct span *decoded);
static bool resolve(struct span in, unsigned way, char *out, struct span *resolved);

struct match match_path(const struct gate_site *site, struct span target, char *scratch)
{
	const char *query = memchr(target.at, '?', target.len);
	struct span path = {target.at, query ? (size_t)(query - target.at) : target.len};
	if (path.len == 0 || path.at[0] != '/')
		return (struct match){.kind = MATCH_BAD};
	struct reader reader = {site, MATCH_NONE, NULL};
	struct span once, resolved = path;
	bool plain = is_plain(path);
	if (!(plain ? agrees(&reader, path) : read_all(&reader, path, scratch, &once)))
		return (struct match){.kind = MATCH_BAD};
	struct match match = {.kind = reader.kind, .room = reader.room};
	if (match.kind != MATCH_SLUICE)
		return match;
	if (!plain) {
		bool is_whole = resolve(once, 0, scratch + path.len, &resolved);
		assert(is_whole); // read_all() has done it before
	}
	if (lies_under(site, resolved, sluice_path))
		match.endpoint = span_from(resolved, sluice_path.len);
	return match;
}

// Whether a slash begins a segment that is empty, is `.` or begins with `..`.
static bool begins_odd_segment(struct span path, size_t slash)
{
	struct span rest = span_from(path, slash + 1);
	if (rest.len == 0 || rest.at[0] != '.')
		return rest.len > 0 && rest.at[0] == '/';
	return rest.len == 1 || rest.at[1] == '/' || rest.at[1] == '.';
}

// Whether every server reads a path as it is sent: nothing encoded, no backslash, no parameter, no
// byte beyond ASCII, and no segment that is empty, is `.` or begins with `..`.
static bool is_plain(struct span path)
{
	static const bool is_special[256] = {['%'] = true,
		['\\'] = true,
		[';'] = true,
		['/'] = true,
		[OPAQUE] = true,
		[0x80 ... 0xff] = true};
	for (size_t i = 0; i < path.len; i++) {
		if (!is_special[(uint8_t)path.at[i]])
			continue;
		if (path.at[i] != '/' || begins_odd_segment(path, i))
			return false;
	}
	return true;
}

// All readings of a path. Returns false if it is bad, or if they disagree.
//   once  the path decoded once, at the start of the scratch
static bool read_all(struct reader *reader, struct span path, char *scratch, struct span *once)
{
	char *buffer = scratch + path.len, *work = buffer + path.len;
	struct span twice, resolved;
	if (!decode(path, 0, scratch, once) || memchr(once->at, OPAQUE, once->len))
		return false;
	if (!resolve(*once, 0, work, &resolved))
		return false;
	if (!agrees(reader, path) || !agrees(reader, *once) || !agrees(reader, resolved))
		return false;
	if (!read_other_ways(reader, path, *once, buffer, work))
		return false;
	if (!memchr(once->at, '%', once->len) || !decode(*once, 0, buffer, &twice))
		return true; // what cannot be decoded twice is not
	if (memchr(twice.at, OPAQUE, twice.len) || !resolve(twice, 0, work, &resolved))
		return false;
	return agrees(reader, resolved) && read_other_ways(reader, *once, twice, buffer, work);
}

// Whether some server sees a segment `..` here.
static bool climbs(struct span decoded)
{
	for (size_t i = 1; i + 1 < decoded.len; i++) {
		const char *at = decoded.at + i;
		bool is_begun = at[-1] == '/' || at[-1] == '\\';
		bool is_ended =
			i + 2 == decoded.len || at[2] == '/' || at[2] == '\\' || at[2] == ';';
		if (is_begun && is_ended && at[0] == '.' && at[1] == '.')
			return true;
	}
	return false;
}

// Whether a separator is followed by another or by parameters: an empty segment.
static bool has_empty_segment(struct span decoded)
{
	for (size_t i = 1; i < decoded.len; i++) {
		char before = decoded.at[i - 1], c = decoded.at[i];
		if ((before == '/' || before == '\\') && (c == '/' || c == '\\' || c == ';'))
			return true;
	}
	return false;
}

static size_t count_of_separators(struct span path)
{
	size_t count = 0;
	for (size_t i = 0; i < path.len; i++)
		count += path.at[i] == '/' || path.at[i] == '\\';
	return count;
}

// The ways, as bits, in which a path can be read differently.
static unsigned ways_of(
	const struct reader *reader, struct span encoded, struct span decoded, bool is_climbing)
{
	unsigned ways = 0;
	bool is_room_with_parameters =
		reader->room && memchr(reader->room->path.at, ';', reader->room->path.len);
	if (!is_room_with_parameters && memchr(decoded.at, ';', decoded.len))
		ways |= WAY_PARAMETERS;
	if (!is_climbing && !ways)
		return 0; // then it makes no difference where segments begin and end
	if (memchr(decoded.at, '\\', decoded.len))
		ways |= WAY_BACKSLASH;
	if (count_of_separators(decoded) > count_of_separators(encoded))
		ways |= WAY_ENCODED;
	if (is_climbing && has_empty_segment(decoded))
		ways |= WAY_EMPTY;
	return ways;
}

static bool read_one_way(
	struct reader *reader, struct span encoded, unsigned way, char *buffer, char *work)
{
	struct span decoded, resolved;
	bool is_whole = decode(encoded, way, buffer, &decoded);
	assert(is_whole); // it was decoded before
	if (!resolve(decoded, way, work, &resolved) || !agrees(reader, resolved))
		return false;
	return resolve(resolved, 0, work, &resolved) && agrees(reader, resolved);
}

// How many bytes at `s` are an overlong form of an ASCII letter (RFC 3629 3); 0: none are.
static size_t overlong(const uint8_t *s, size_t len, char *letter)
{
	size_t bytes = (s[0] & 0xfe) == 0xc0 ? 2 : s[0] == 0xe0 ? 3 : s[0] == 0xf0 ? 4 : 0;
	if (bytes == 0 || bytes > len || (s[bytes - 1] & 0xc0) != 0x80)
		return 0;
	if (bytes > 2 && (s[bytes - 2] & 0xfe) != 0x80)
		return 0;
	if (bytes > 3 && s[1] != 0x80)
		return 0;
	*letter = (char)((s[bytes - 2] & 1) << 6 | (s[bytes - 1] & 0x3f));
	return bytes;
}

// Read overlong forms as the letters they stand for, if there are any. They are not refused: in
// EUC-JP and Shift_JIS the same bytes are kanji.
static bool read_narrowed(struct reader *reader, struct span decoded, char *work)
{
	struct span narrowed = {work, 0};
	for (size_t i = 0; i < decoded.len; i++) {
		char letter = decoded.at[i];
		size_t bytes = overlong((const uint8_t *)decoded.at + i, decoded.len - i, &letter);
		work[narrowed.len++] = letter;
		i += bytes ? bytes - 1 : 0;
	}
	if (narrowed.len == decoded.len)
		return true;
	if (!agrees(reader, narrowed) || !resolve(narrowed, 0, work, &narrowed))
		return false;
	return agrees(reader, narrowed);
}

// The further readings. Returns false if the path is bad, or if they disagree.
//   encoded, decoded  before and after the decoding at hand; `decoded` may stand in the buffer
static bool read_other_ways(
	struct reader *reader, struct span encoded, struct span decoded, char *buffer, char *work)
{
	if (!read_narrowed(reader, decoded, work))
		return false;
	bool is_climbing = climbs(decoded);
	unsigned ways = ways_of(reader, encoded, decoded, is_climbing);
	if (is_climbing && ways && encoded.len > MATCH_CLIMB_BYTES_MAX)
		return false;
	for (unsigned way = 1; way < WAYS_END; way++) {
		if ((way & ~ways) || (!is_climbing && !(way & WAY_PARAMETERS)))
			continue;
		if (!read_one_way(reader, encoded, way, buffer, work))
			return false;
	}
	return true;
}

// Take one more reading into account. Returns false if it belongs elsewhere than those before.
static bool agrees(struct reader *reader, struct span reading)
{
	const struct gate_site *site = reader->site;
	const struct gate_room *room = NULL;
	bool is_sluice = lies_under(site, reading, sluice_path);
	for (uint32_t i = 0; !is_sluice && !room && i < site->room_count; i++)
		if (lies_under(site, reading, site->rooms[i]->path))
			room = site->rooms[i];
	if (!is_sluice && !room)
		return true;
	enum match_kind kind = is_sluice ? MATCH_SLUICE : MATCH_ROOM;
	if (reader->kind == MATCH_NONE) {
		reader->kind = kind;
		reader->room = room;
	}
	return reader->kind == kind && reader->room == room;
}

// Whether `path` begins with `prefix`, as the site compares.
static bool lies_under(const struct gate_site *site, struct span path, struct span prefix)
{
	if (path.len < prefix.len)
		return false;
	if (memcmp(path.at, prefix.at, prefix.len) == 0)
		return true;
	if (site->case_sensitive)
		return false;
	for (size_t i = 0; i < prefix.len; i++)
		if (octet_lower(path.at[i]) != octet_lower(prefix.at[i]))
			return false;
	return true;
}

// Decode percent-escapes; with WAY_ENCODED escaped separators become OPAQUE.
// Returns false for a bad escape.
static bool decode(struct span in, unsigned way, char *out, struct span *decoded)
{
	*decoded = (struct span){out, 0};
	for (size_t i = 0; i < in.len; i++) {
		char c = in.at[i];
		if (c == '%') {
			struct span digits = span_from(in, i + 1);
			if (digits.len < 2 || !octet_is(digits.at[0], OCTET_HEX) ||
				!octet_is(digits.at[1], OCTET_HEX))
				return false;
			c = (char)(octet_hex_value(digits.at[0]) << 4 |
				   octet_hex_value(digits.at[1]));
			if ((way & WAY_ENCODED) && (c == '/' || c == '\\'))
				c = OPAQUE;
			i += 2;
		}
		out[decoded->len++] = c;
	}
	return true;
}

static bool is_separator(char c, unsigned way)
{
	return c == '/' || (c == '\\' && !(way & WAY_BACKSLASH));
}

// Take the segment that begins behind `at` from a path, as one way reads it.
static struct span segment_take(struct span in, size_t *at, unsigned way)
{
	size_t start = *at + 1, end = start;
	while (end < in.len && !is_separator(in.at[end], way))
		end++;
	*at = end;
	struct span segment = {in.at + start, end - start};
	const char *parameters = way & WAY_PARAMETERS ? memchr(segment.at, ';', segment.len) : NULL;
	if (parameters)
		segment.len = parameters - segment.at;
	return segment;
}

// Resolve separators and dots (RFC 3986 5.2.4) of a path that begins with a separator. `out` may be
// where the path stands: what is written never overtakes what is read.
// Returns false if it climbs above the root.
static bool resolve(struct span in, unsigned way, char *out, struct span *resolved)
{
	size_t len = 0, at = 0;
	while (at < in.len) {
		struct span segment = segment_take(in, &at, way);
		bool is_up = span_is_equal(segment, SPAN(".."));
		bool is_dots = is_up || span_is_equal(segment, SPAN("."));
		if (is_up) {
			if (len == 0)
				return false;
			while (out[--len] != '/')
				;
		}
		bool is_last = at == in.len;
		bool is_kept = segment.len > 0 ? !is_dots : (way & WAY_EMPTY) != 0;
		if (is_kept || is_last) { // the last leaves its slash, whatever it is
			out[len++] = '/';
			if (is_kept) {
				memmove(out + len, segment.at, segment.len);
				len += segment.len;
			}
		}
	}
	for (size_t i = 0; i < len; i++)
		if (out[i] == OPAQUE)
			out[i] = '/';
	*resolved = (struct span){out, len};
	return true;
}
