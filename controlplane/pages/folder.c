// Folders of templates. One walk (make()) serves both checking and compiling: for each language and
// kind of page it finds the file, and what partials the file sees.

#include "controlplane/pages/folder.h"

#include "controlplane/pages/folder_file.h"
#include "controlplane/pages/html.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define NAME_BYTES 64u
#define LANGUAGE_BYTES 16u
#define PARTIALS_MAX (FOLDER_FILES_MAX + 8u)
#define NO_FILE UINT32_MAX

struct file {
	char name[NAME_BYTES]; // without LANG, without `_`
	char language[LANGUAGE_BYTES]; // empty: the folder's
	bool is_partial;
	char *path;
	char *text;
	size_t len;
};

struct folder {
	uint32_t holders;
	char *path; // NULL: of the program
	char languages[PAGE_LANGUAGES_MAX][LANGUAGE_BYTES];
	uint32_t file_count;
	struct file files[FOLDER_FILES_MAX];
	uint32_t asset_count;
	size_t asset_bytes;
	struct gate_asset assets[FOLDER_ASSETS_MAX];
	struct template_text asset_names[FOLDER_ASSETS_MAX]; // and their addresses
	struct page *pages[PAGE_LANGUAGES_MAX][FOLDER_FILES_MAX];
	struct page_set set;
};

// What a walk tells, and how much.
struct walk {
	struct folder *folder;
	const struct template_ear *ear;
	const struct folder_pause *pause;
	uint32_t errors;
	bool checks_only, is_preview;
	bool checked[PAGE_LANGUAGES_MAX][FOLDER_FILES_MAX];
};

__attribute__((format(printf, 3, 4))) static void say(
	struct walk *w, const char *file, const char *format, ...)
{
	char text[300];
	const bool is_whole = file == w->folder->path;
	struct template_place place = {file, !is_whole, !is_whole};
	va_list values;
	va_start(values, format);
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	template_say(w->ear, &place, "%s", text);
	w->errors++;
}

static int kind_named(const char *name)
{
	for (int kind = 0; kind < PAGE_KIND_COUNT; kind++) {
		struct span word = page_kind_word(kind);
		if (strlen(name) == word.len && memcmp(name, word.at, word.len) == 0)
			return kind;
	}
	return -1;
}

static const char *nearest_kind(const char *name)
{
	static char words[PAGE_KIND_COUNT][16];
	const char *names[PAGE_KIND_COUNT + 1] = {"page"};
	for (int kind = 0; kind < PAGE_KIND_COUNT; kind++) {
		struct span word = page_kind_word(kind);
		snprintf(words[kind], sizeof(words[kind]), "%.*s", (int)word.len, word.at);
		names[kind + 1] = words[kind];
	}
	return template_nearest(name, names, PAGE_KIND_COUNT + 1);
}

// Subtags of letters and digits, lower case: `ja`, `pt-br`.
static bool is_language(const char *text)
{
	size_t len = strlen(text);
	if (len < 2 || len >= LANGUAGE_BYTES || text[0] == '-' || text[len - 1] == '-')
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && !strstr(text, "--");
}

// Take `_NAME.LANG.html` apart. Returns whether it is a name of ours; else it was told.
static bool read_name(struct walk *w, const char *name, struct file *file)
{
	char stem[NAME_BYTES + LANGUAGE_BYTES];
	size_t len = strlen(name) - strlen(".html");
	if (len >= sizeof(stem)) {
		say(w, file->path, "a name that is too long; allowed: %zu bytes", sizeof(stem) - 1);
		return false;
	}
	memcpy(stem, name, len);
	stem[len] = '\0';
	file->is_partial = stem[0] == '_';
	char *dot = strchr(stem, '.');
	if (dot && !is_language(dot + 1)) {
		say(w, file->path, "`%s` is no language; allowed: as in NAME.ja.html", dot + 1);
		return false;
	}
	snprintf(file->language, sizeof(file->language), "%s", dot ? dot + 1 : "");
	if (dot)
		*dot = '\0';
	snprintf(file->name, sizeof(file->name), "%s", stem + file->is_partial);
	if (file->is_partial || strcmp(file->name, "page") == 0 || kind_named(file->name) >= 0)
		return true;
	say(w, file->path,
		"no page is called %s; the nearest known is %s (a partial begins with _)",
		file->name, nearest_kind(file->name));
	return false;
}

static char *join(const char *folder, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static void take_file(struct walk *w, const char *name)
{
	struct folder *folder = w->folder;
	struct file *file = &folder->files[folder->file_count];
	*file = (struct file){.path = join(folder->path, name)};
	ssize_t len = file->path ? folder_file_read(file->path, FOLDER_FILE_BYTES_MAX, &file->text)
				 : -ENOMEM;
	bool is_named = file->path && read_name(w, name, file);
	if (len == -EFBIG)
		say(w, file->path, "too long; allowed: %u bytes", FOLDER_FILE_BYTES_MAX);
	else if (len == -EINVAL)
		say(w, file->path, "is no file");
	else if (len < 0)
		say(w, file->path ? file->path : folder->path, "cannot be read: %s",
			strerror((int)-len));
	if (len < 0 || !is_named) {
		free(file->text);
		free(file->path);
		return;
	}
	file->len = (size_t)len;
	folder->file_count++;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int is_template(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);
	return is_visible(entry) && len > 5 && strcmp(entry->d_name + len - 5, ".html") == 0;
}

static void take_files(struct walk *w)
{
	struct dirent **entries;
	int count = scandir(w->folder->path, &entries, is_template, alphasort);
	if (count < 0) {
		say(w, w->folder->path, "cannot be read: %s", strerror(errno));
		return;
	}
	if (count == 0)
		say(w, w->folder->path, "no template in it; allowed: at least one, as page.html");
	if (count > (int)FOLDER_FILES_MAX)
		say(w, w->folder->path, "%d templates; allowed: %u", count, FOLDER_FILES_MAX);
	for (int i = 0; i < count; i++) {
		if (i < (int)FOLDER_FILES_MAX)
			take_file(w, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

// The type of an asset by the end of its name; empty: none that pages may show.
static struct span type_of(const char *name)
{
	static const struct {
		const char *end;
		struct span type;
	} types[] = {{".svg", SPAN("image/svg+xml")}, {".png", SPAN("image/png")},
		{".jpg", SPAN("image/jpeg")}, {".jpeg", SPAN("image/jpeg")},
		{".webp", SPAN("image/webp")}, {".avif", SPAN("image/avif")},
		{".gif", SPAN("image/gif")}, {".ico", SPAN("image/x-icon")},
		{".woff2", SPAN("font/woff2")}};
	const char *end = strrchr(name, '.');
	for (size_t i = 0; end && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(end, types[i].end) == 0)
			return types[i].type;
	return SPAN("");
}

static bool has_fonts(const struct folder *folder)
{
	for (uint32_t i = 0; i < folder->asset_count; i++)
		if (span_is_equal(folder->assets[i].type, SPAN("font/woff2")))
			return true;
	return false;
}

// The address of an asset, `/.sluice/assets/STEM-HASH.END`, or NULL when memory is short.
static char *address_of(const char *name, const char *bytes, size_t len)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	char hex[17], *address;
	SHA256((const unsigned char *)bytes, len, digest);
	for (size_t i = 0; i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	size_t stem = strlen(name) - strlen(strrchr(name, '.'));
	int ret = asprintf(&address, HTML_ASSETS "%.*s-%s%s", (int)stem, name, hex, name + stem);
	return ret < 0 ? NULL : address;
}

static void add_asset(struct walk *w, const char *name, char *bytes, size_t len)
{
	struct folder *folder = w->folder;
	char *address = address_of(name, bytes, len), *copy = strdup(name);
	if (!address || !copy) {
		say(w, folder->path, "no memory for assets/%s", name);
		free(address);
		free(copy);
		free(bytes);
		return;
	}
	struct span file = {address, strlen(address)};
	folder->asset_names[folder->asset_count] = (struct template_text){copy, copy, file};
	folder->assets[folder->asset_count++] = (struct gate_asset){
		span_from(file, sizeof(HTML_ASSETS) - 1), type_of(name), {bytes, len}};
	folder->asset_bytes += len;
	if (folder->asset_bytes > FOLDER_ASSETS_BYTES_MAX)
		say(w, folder->path, "its assets are too large; allowed: %u bytes in all",
			FOLDER_ASSETS_BYTES_MAX);
}

static void take_asset(struct walk *w, const char *folder, const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	char *path = join(folder, name), *bytes;
	if (!path)
		return say(w, folder, "no memory for %s", name);
	if (type_of(name).len == 0)
		say(w, path,
			"of no type that pages show; allowed: .svg .png .jpg .jpeg .webp "
			".avif .gif .ico .woff2");
	else if (strspn(name, letters) != strlen(name) || strlen(name) > NAME_BYTES)
		say(w, path, "a name that is no address; allowed: %u letters, digits, . _ -",
			NAME_BYTES);
	else {
		ssize_t len = folder_file_read(path, FOLDER_ASSET_BYTES_MAX, &bytes);
		if (len == -EFBIG)
			say(w, path, "too large; allowed: %u bytes", FOLDER_ASSET_BYTES_MAX);
		else if (len < 0)
			say(w, path, "cannot be read: %s", strerror((int)-len));
		else
			add_asset(w, name, bytes, (size_t)len);
	}
	free(path);
}

static void take_assets(struct walk *w)
{
	struct dirent **entries;
	char *folder = join(w->folder->path, "assets");
	int count = folder ? scandir(folder, &entries, is_visible, alphasort) : -1;
	if (count < 0 && (!folder || errno != ENOENT))
		say(w, w->folder->path, "assets cannot be read: %s", strerror(errno));
	if (count > (int)FOLDER_ASSETS_MAX)
		say(w, folder, "%d assets; allowed: %u", count, FOLDER_ASSETS_MAX);
	for (int i = 0; i < count; i++) {
		if (i < (int)FOLDER_ASSETS_MAX)
			take_asset(w, folder, entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	free(folder);
}

static void add_language(struct walk *w, const char *language)
{
	struct folder *folder = w->folder;
	struct page_set *set = &folder->set;
	for (uint32_t i = 0; i < set->language_count; i++)
		if (strcmp(folder->languages[i], language) == 0)
			return;
	if (set->language_count == PAGE_LANGUAGES_MAX) {
		say(w, folder->path, "too many languages; allowed: %u", PAGE_LANGUAGES_MAX);
		return;
	}
	char *text = folder->languages[set->language_count];
	snprintf(text, LANGUAGE_BYTES, "%s", language);
	set->languages[set->language_count++] = (struct span){text, strlen(text)};
}

static void find_languages(struct walk *w, const char *language)
{
	add_language(w, language);
	for (uint32_t i = 0; i < w->folder->file_count; i++)
		if (w->folder->files[i].language[0])
			add_language(w, w->folder->files[i].language);
	for (uint32_t i = 0; !w->folder->path && i < PAGES_BUILTIN; i++)
		add_language(w, pages_builtin[i].language.at);
}

// The file of that name in language `language` of the set, or in the folder's; NO_FILE if neither.
static uint32_t find_file(
	const struct folder *folder, const char *name, bool is_partial, uint32_t language)
{
	uint32_t found = NO_FILE;
	for (uint32_t i = 0; i < folder->file_count; i++) {
		const struct file *file = &folder->files[i];
		if (file->is_partial != is_partial || strcmp(file->name, name) != 0)
			continue;
		const char *of = file->language[0] ? file->language : folder->languages[0];
		if (strcmp(of, folder->languages[language]) == 0)
			return i;
		if (strcmp(of, folder->languages[0]) == 0)
			found = i;
	}
	return found;
}

// The file for a kind of page, or NO_FILE.
static uint32_t file_of(const struct folder *folder, int kind, uint32_t language)
{
	static const int falls_to[PAGE_KIND_COUNT] = {[STATUS_prequeue] = -1,
		[STATUS_before] = STATUS_prequeue,
		[STATUS_waiting] = -1,
		[STATUS_next] = STATUS_waiting,
		[STATUS_admitted] = STATUS_waiting,
		[STATUS_expired] = STATUS_waiting,
		[STATUS_closed] = -1,
		[STATUS_full] = -1,
		[STATUS_rejected] = -1,
		[PAGE_error] = -2,
		[PAGE_invitation] = -2};
	int at = kind;
	for (; at >= 0; at = falls_to[at]) {
		char name[16];
		struct span word = page_kind_word(at);
		snprintf(name, sizeof(name), "%.*s", (int)word.len, word.at);
		uint32_t file = find_file(folder, name, false, language);
		if (file != NO_FILE)
			return file;
	}
	return at == -1 ? find_file(folder, "page", false, language) : NO_FILE;
}

// Of the program's languages the nearest, as `pt` is to `pt-br`; else English.
static uint32_t nearest_language(const char *language)
{
	size_t len = strcspn(language, "-");
	for (uint32_t i = 0; i < PAGES_BUILTIN; i++)
		if (pages_builtin[i].language.len == len &&
			strncmp(language, pages_builtin[i].language.at, len) == 0)
			return i;
	return 0;
}

// The partials that templates see in a language: those of the program, and the folder's.
static struct template_names partials_of(
	const struct folder *folder, uint32_t language, struct template_text partials[PARTIALS_MAX])
{
	const struct template_names *builtin =
		&pages_builtin[nearest_language(folder->languages[language])].partials;
	uint32_t count = 0;
	for (uint32_t i = 0; i < folder->file_count; i++) {
		const struct file *file = &folder->files[i];
		if (!file->is_partial || find_file(folder, file->name, true, language) != i)
			continue;
		partials[count++] =
			(struct template_text){file->name, file->path, {file->text, file->len}};
	}
	assert(count + builtin->count <= PARTIALS_MAX);
	for (uint32_t i = 0; i < builtin->count; i++)
		partials[count++] = builtin->at[i];
	return (struct template_names){count, partials};
}

// Whether nothing of the folder is in that language but for other pages than `file`.
static bool is_foreign(const struct folder *folder, uint32_t file, uint32_t language)
{
	if (language == 0 || folder->files[file].language[0])
		return false;
	for (uint32_t i = 0; i < folder->file_count; i++)
		if (folder->files[i].is_partial &&
			strcmp(folder->files[i].language, folder->languages[language]) == 0)
			return false;
	return true;
}

// The page that is made of a file, compiled at most once.
static int make_page(struct walk *w, uint32_t index, uint32_t language, const struct page **page)
{
	struct folder *folder = w->folder;
	const struct file *file = &folder->files[index];
	if (is_foreign(folder, index, language))
		language = 0;
	struct page **made = &folder->pages[language][index];
	struct template_text partials[PARTIALS_MAX];
	const struct pages_template template = {
		.source = {.main = {file->name, file->path, {file->text, file->len}},
			.partials = partials_of(folder, language, partials),
			.assets = {folder->asset_count, folder->asset_names},
			.language = folder->set.languages[language]},
		.phrases = &pages_builtin[nearest_language(folder->languages[language])].phrases,
		.has_fonts = has_fonts(folder),
		.is_preview = w->is_preview};
	int ret = 0;
	if (w->checks_only) {
		if (!w->checked[language][index])
			w->errors += pages_check(&template, w->ear);
		w->checked[language][index] = true;
	} else if (!*made) {
		if (w->pause)
			w->pause->turn(w->pause->context);
		ret = pages_compile(&template, w->ear, made);
	}
	*page = *made;
	return ret;
}

static int make_pages(struct walk *w)
{
	struct folder *folder = w->folder;
	int ret = 0;
	for (uint32_t language = 0; language < folder->set.language_count; language++)
		for (int kind = 0; ret == 0 && kind < PAGE_KIND_COUNT; kind++) {
			const struct page **page = &folder->set.pages[language][kind];
			uint32_t file = file_of(folder, kind, language);
			if (file != NO_FILE)
				ret = make_page(w, file, language, page);
			else if (kind != PAGE_error) // of which answer.c has words
				*page = (kind == PAGE_invitation ? pages_asking : pages_made) +
					nearest_language(folder->languages[language]);
		}
	return ret;
}

static bool is_same_file(const struct file *a, const struct file *b)
{
	return strcmp(a->path, b->path) == 0 && a->len == b->len &&
	       memcmp(a->text, b->text, a->len) == 0;
}

// Whether the pages of one would be those of the other.
static bool is_same(const struct folder *a, const struct folder *b)
{
	bool is = a->file_count == b->file_count && !a->path == !b->path &&
		  strcmp(a->languages[0], b->languages[0]) == 0 && a->asset_count == b->asset_count;
	for (uint32_t i = 0; is && i < a->asset_count; i++)
		is = span_is_equal(a->assets[i].name, b->assets[i].name);
	for (uint32_t i = 0; is && i < a->file_count; i++)
		is = is_same_file(&a->files[i], &b->files[i]);
	return is;
}

// Everything but the pages.
static struct folder *open_folder(struct walk *w, const char *path, const char *language)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	if (!folder)
		return NULL;
	w->folder = folder;
	folder->holders = 1;
	if (path && !(folder->path = strdup(path))) {
		folder_give(folder);
		return NULL;
	}
	if (path) {
		take_files(w);
		take_assets(w);
	}
	find_languages(w, language);
	return folder;
}

static int read_folder(struct walk *w, const char *path, const char *language,
	struct folder *before, struct folder **folder)
{
	*folder = open_folder(w, path, language);
	if (!*folder)
		return -ENOMEM;
	if (w->errors == 0 && before && is_same(*folder, before)) {
		folder_give(*folder);
		*folder = folder_hold(before);
		return 0;
	}
	int ret = w->errors > 0 ? -EINVAL : make_pages(w);
	if (ret < 0) {
		folder_give(*folder);
		*folder = NULL;
	}
	return ret;
}

int folder_read(const char *path, const char *language, struct folder *before,
	const struct template_ear *ear, const struct folder_pause *pause, struct folder **folder)
{
	struct walk w = {.ear = ear, .pause = pause};
	return read_folder(&w, path, language, before, folder);
}

int folder_preview(const char *path, const char *language, const struct template_ear *ear,
	struct folder **folder)
{
	struct walk w = {.ear = ear, .is_preview = true};
	return read_folder(&w, path, language, NULL, folder);
}

uint32_t folder_check(const char *path, const char *language, const struct template_ear *ear)
{
	struct walk w = {.ear = ear, .checks_only = true};
	struct folder *folder = open_folder(&w, path, language);
	if (folder && w.errors == 0)
		make_pages(&w);
	folder_give(folder);
	return w.errors;
}

struct folder *folder_hold(struct folder *folder)
{
	folder->holders++;
	return folder;
}

void folder_give(struct folder *folder)
{
	if (!folder || --folder->holders > 0)
		return;
	for (uint32_t i = 0; i < PAGE_LANGUAGES_MAX; i++)
		for (uint32_t k = 0; k < FOLDER_FILES_MAX; k++)
			pages_destroy(folder->pages[i][k]);
	for (uint32_t i = 0; i < folder->file_count; i++) {
		free(folder->files[i].path);
		free(folder->files[i].text);
	}
	for (uint32_t i = 0; i < folder->asset_count; i++) {
		free((char *)folder->assets[i].bytes.at);
		free((char *)folder->asset_names[i].name);
		free((char *)folder->asset_names[i].text.at);
	}
	free(folder->path);
	free(folder);
}

const char *folder_path(const struct folder *folder)
{
	return folder->path;
}

const char *folder_language(const struct folder *folder)
{
	return folder->languages[0];
}

const struct page_set *folder_set(const struct folder *folder)
{
	return &folder->set;
}

uint32_t folder_assets(const struct folder *folder, const struct gate_asset **assets)
{
	*assets = folder->assets;
	return folder->asset_count;
}
