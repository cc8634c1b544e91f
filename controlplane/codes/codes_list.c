// One pass over the lines. The table is made for as many codes as there are lines, so it is never
// too small, and digests are uniform, so their first bits are their home: linear probing, nothing
// is ever taken out.
//
// How strong codes are is judged by the list as a whole: from which classes of letters it draws,
// and its shortest. A list that counts upwards is not noticed.

#include "controlplane/codes/codes_list.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLICE_LINES 1024u
#define SLICE_BYTES (256u << 10) // a multiple of the page's size

struct place {
	struct code_digest digest;
	uint32_t uses; // 0: free
	uint32_t line; // of the file
};

struct codes_list {
	uint32_t holders;
	uint32_t count;
	uint64_t uses_total;
	uint32_t place_count;
	struct place *places;
	struct stat file; // that it is of; st_ino 0: of none
};

// What is told of a text, and what is learnt of its codes.
struct reading {
	const struct codes_list_ear *ear;
	struct codes_list *list;
	uint32_t line, errors, codes;
	uint32_t shortest, shortest_line; // letters; 0: no code is plain
	bool has_digits, has_letters;
};

__attribute__((format(printf, 4, 5))) static void say(
	struct reading *r, uint32_t line, bool is_warning, const char *format, ...)
{
	char text[256];
	va_list arguments;
	r->errors += !is_warning;
	if (!is_warning && r->errors > CODES_LIST_ERRORS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	r->ear->hear(r->ear->context, line, is_warning, text);
}

static void rest(const struct codes_list_pause *pause)
{
	if (pause)
		pause->pause(pause->context);
}

static struct span trim(struct span text)
{
	while (text.len > 0 && strchr(" \t\r", text.at[text.len - 1]) && text.at[text.len - 1])
		text.len--;
	while (text.len > 0 && strchr(" \t", text.at[0]) && text.at[0])
		text = span_from(text, 1);
	return text;
}

// Take the next line off a text.
static struct span take_line(struct span *text)
{
	const char *end = memchr(text->at, '\n', text->len);
	const struct span line = {text->at, end ? (size_t)(end - text->at) : text->len};
	*text = span_from(*text, line.len + (end ? 1 : 0));
	return line;
}

static uint32_t home_of(const struct codes_list *list, const struct code_digest *digest)
{
	return (uint32_t)((digest->words[0] >> 32) * list->place_count >> 32);
}

// The place of a digest, or the free one where it would go.
static struct place *find(const struct codes_list *list, const struct code_digest *digest)
{
	uint32_t at = home_of(list, digest);
	while (list->places[at].uses > 0 && !code_is_equal(&list->places[at].digest, digest))
		at = at + 1 == list->place_count ? 0 : at + 1;
	return &list->places[at];
}

static void learn(struct reading *r, struct span typed, uint32_t letters)
{
	for (size_t i = 0; i < typed.len; i++) {
		r->has_digits |= typed.at[i] >= '0' && typed.at[i] <= '9';
		r->has_letters |= typed.at[i] >= 'A'; // of a code the rest are letters
	}
	if (r->shortest > 0 && r->shortest <= letters)
		return;
	r->shortest = letters;
	r->shortest_line = r->line;
}

// Uses behind the comma. Returns 0 if they are none.
static uint32_t read_uses(struct span text)
{
	uint32_t uses = 0;
	text = trim(text);
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9' || uses > CODES_LIST_USES_MAX)
			return 0;
		uses = 10 * uses + (uint32_t)(text.at[i] - '0');
	}
	return uses <= CODES_LIST_USES_MAX ? uses : 0;
}

static bool read_digest(struct reading *r, struct span text, struct code_digest *digest)
{
	const struct span prefix = SPAN("sha256:");
	uint32_t letters;
	if (text.len >= prefix.len && memcmp(text.at, prefix.at, prefix.len) == 0) {
		if (code_digest_hex(span_from(text, prefix.len), digest))
			return true;
		say(r, r->line, false, "no hash; allowed: sha256: and 64 hex digits");
		return false;
	}
	if (code_digest(text, digest, &letters)) {
		learn(r, text, letters);
		return true;
	}
	say(r, r->line, false,
		"no code; allowed: 1 to %u letters (A to Z) and digits, spaces and hyphens, of %u "
		"characters at most",
		CODE_LETTERS_MAX, CODE_TYPED_BYTES_MAX);
	return false;
}

static void add(struct reading *r, const struct code_digest *digest, uint32_t uses)
{
	struct place *place = find(r->list, digest);
	if (place->uses > 0) {
		say(r, r->line, false, "the code of line %u again; allowed: once", place->line);
		return;
	}
	*place = (struct place){*digest, uses, r->line};
	r->list->count++;
	r->list->uses_total += uses;
}

static void read_line(struct reading *r, struct span line)
{
	struct code_digest digest;
	line = trim(line);
	if (line.len == 0 || line.at[0] == '#')
		return;
	if (line.len > CODES_LIST_LINE_MAX) {
		say(r, r->line, false, "a line of %zu bytes; allowed: %u", line.len,
			CODES_LIST_LINE_MAX);
		return;
	}
	if (r->codes++ == CODES_LIST_MAX)
		say(r, r->line, false, "too many codes; allowed: %u", CODES_LIST_MAX);
	if (r->codes > CODES_LIST_MAX)
		return;
	const char *comma = memchr(line.at, ',', line.len);
	const struct span text = {line.at, comma ? (size_t)(comma - line.at) : line.len};
	const uint32_t uses = comma ? read_uses(span_from(line, text.len + 1)) : 1;
	if (uses == 0)
		say(r, r->line, false, "no number of uses behind the comma; allowed: 1 to %u",
			CODES_LIST_USES_MAX);
	else if (read_digest(r, trim(text), &digest))
		add(r, &digest, uses);
}

// How hard the plain codes are to guess.
static void judge(struct reading *r)
{
	const double kinds = 10.0 * r->has_digits + 26.0 * r->has_letters;
	if (r->shortest == 0)
		return;
	const double bits = r->shortest * log2(kinds), spare = bits - log2(r->list->count);
	if (bits < CODES_LIST_BITS_MIN)
		say(r, r->shortest_line, false,
			"a code that is guessed soon (%u bits); allowed: %u bits, as in 4 random "
			"letters and digits",
			(unsigned)bits, CODES_LIST_BITS_MIN);
	else if (spare < CODES_LIST_SPARE_BITS)
		say(r, r->shortest_line, true,
			"with %u codes as short as here, one guess in 2^%d is right; better "
			"2^%u: "
			"longer codes",
			r->list->count, (int)floor(spare), CODES_LIST_SPARE_BITS);
}

static uint32_t lines_of(struct span text, const struct codes_list_pause *pause)
{
	uint32_t lines = 1;
	while (text.len > 0 && lines <= CODES_LIST_MAX) {
		take_line(&text);
		if (lines++ % (16 * SLICE_LINES) == 0)
			rest(pause);
	}
	return lines;
}

// Zeroed memory that is there, and was made in slices: the first touch of a page is what takes
// time.
static void *map(size_t bytes, const struct codes_list_pause *pause)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, bytes, MADV_NOHUGEPAGE); // of which one takes milliseconds
	for (size_t at = 0; at < bytes; at += SLICE_BYTES) {
		memset(memory + at, 0, bytes - at < SLICE_BYTES ? bytes - at : SLICE_BYTES);
		rest(pause);
	}
	return memory;
}

// Memory that goes in slices, and leaves nothing behind.
static void unmap(void *memory, size_t bytes, const struct codes_list_pause *pause)
{
	for (size_t at = 0; at < bytes; at += SLICE_BYTES) {
		munmap((char *)memory + at, bytes - at < SLICE_BYTES ? bytes - at : SLICE_BYTES);
		rest(pause);
	}
}

static struct codes_list *make(uint32_t codes_max, const struct codes_list_pause *pause)
{
	struct codes_list *list = calloc(1, sizeof(*list));
	if (!list)
		return NULL;
	list->holders = 1;
	list->place_count = codes_max + codes_max / 3 + 8;
	list->places = map(codes_list_bytes(list), pause);
	if (list->places)
		return list;
	free(list);
	return NULL;
}

int codes_list_parse(struct span text, const struct codes_list_ear *ear,
	const struct codes_list_pause *pause, struct codes_list **list)
{
	const struct span mark = SPAN("\xef\xbb\xbf"); // of UTF-8, as some programs write it
	struct reading r = {.ear = ear, .list = make(lines_of(text, pause), pause)};
	if (!r.list)
		return -ENOMEM;
	if (text.len >= mark.len && memcmp(text.at, mark.at, mark.len) == 0)
		text = span_from(text, mark.len);
	while (text.len > 0) {
		r.line++;
		read_line(&r, take_line(&text));
		if (r.line % SLICE_LINES == 0)
			rest(pause);
	}
	if (r.errors == 0)
		judge(&r);
	if (r.errors > CODES_LIST_ERRORS_MAX) {
		const uint32_t more = r.errors - CODES_LIST_ERRORS_MAX;
		r.errors = 0;
		say(&r, 0, false, "and %u errors more", more);
	}
	if (r.errors > 0) {
		codes_list_give_slowly(r.list, pause);
		return -EINVAL;
	}
	*list = r.list;
	return 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino != 0 && a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

// The bytes of a file. Returns how many, or -errno.
static ssize_t read_bytes(int fd, char *bytes, size_t size, const struct codes_list_pause *pause)
{
	size_t len = 0;
	ssize_t got = 1;
	while (len < size && got > 0) {
		const size_t more = size - len < SLICE_BYTES ? size - len : SLICE_BYTES;
		if ((got = read(fd, bytes + len, more)) > 0)
			len += (size_t)got;
		rest(pause);
	}
	return got < 0 ? -errno : (ssize_t)len;
}

// Read what is open. Returns as codes_list_read() does, without telling why.
static int read_open(int fd, const struct stat *file, const struct codes_list_ear *ear,
	const struct codes_list_pause *pause, struct codes_list **list)
{
	const size_t size = (size_t)file->st_size;
	if (size == 0)
		return codes_list_parse((struct span){NULL, 0}, ear, pause, list);
	char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	const ssize_t len = read_bytes(fd, bytes, size, pause);
	const int ret =
		len < 0 ? (int)len
			: codes_list_parse((struct span){bytes, (size_t)len}, ear, pause, list);
	unmap(bytes, size, pause);
	return ret;
}

int codes_list_read(const char *path, struct codes_list *before, const struct codes_list_ear *ear,
	const struct codes_list_pause *pause, struct codes_list **list)
{
	struct reading r = {.ear = ear};
	struct stat file;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int ret = fd < 0 || fstat(fd, &file) < 0 ? -errno : 0;
	if (ret == 0 && !S_ISREG(file.st_mode))
		ret = -EISDIR;
	if (ret == 0 && (uint64_t)file.st_size > CODES_LIST_FILE_MAX)
		ret = -EFBIG;
	if (ret == 0 && before && is_same_file(&before->file, &file)) {
		*list = codes_list_hold(before);
	} else if (ret == 0) {
		ret = read_open(fd, &file, ear, pause, list);
		if (ret == 0)
			(*list)->file = file;
	}
	if (fd >= 0)
		close(fd);
	if (ret < 0 && ret != -EINVAL)
		say(&r, 0, false, "%s", ret == -EISDIR ? "not a file" : strerror(-ret));
	return ret;
}

struct codes_list *codes_list_hold(struct codes_list *list)
{
	list->holders++;
	return list;
}

void codes_list_give(struct codes_list *list)
{
	codes_list_give_slowly(list, NULL);
}

void codes_list_give_slowly(struct codes_list *list, const struct codes_list_pause *pause)
{
	if (!list || --list->holders > 0)
		return;
	unmap(list->places, codes_list_bytes(list), pause);
	free(list);
}

uint32_t codes_list_uses(const struct codes_list *list, const struct code_digest *digest)
{
	return find(list, digest)->uses;
}

uint32_t codes_list_count(const struct codes_list *list)
{
	return list->count;
}

uint64_t codes_list_uses_total(const struct codes_list *list)
{
	return list->uses_total;
}

uint64_t codes_list_bytes(const struct codes_list *list)
{
	return list->place_count * sizeof(struct place);
}
