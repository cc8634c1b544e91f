// Runs a fuzz harness over a corpus, so that every input that ever mattered is a unit test.
//
// Linked with one harness (LLVMFuzzerTestOneInput). Arguments: files or folders. Each input is also
// given cut short at every length up to 256, which is where parsers go wrong. Inputs are copied
// flush against an unmapped page, so that reading one byte too far crashes.

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define INPUT_BYTES_MAX (1u << 20)
#define PAGE_BYTES 4096u
#define CUT_MAX 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static unsigned long runs;

static void run_flush_to_guard(char *guard, const char *input, size_t len)
{
	char *at = guard - len;
	memcpy(at, input, len);
	LLVMFuzzerTestOneInput((const uint8_t *)at, len);
	runs++;
}

static int run_file(char *guard, const char *path)
{
	static char input[INPUT_BYTES_MAX];
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return 1;
	}
	size_t len = fread(input, 1, sizeof(input), file);
	fclose(file);
	for (size_t cut = 0; cut < len && cut < CUT_MAX; cut++)
		run_flush_to_guard(guard, input, cut);
	run_flush_to_guard(guard, input, len);
	return 0;
}

static int run_path(char *guard, const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		perror(path);
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return run_file(guard, path);
	struct dirent **names;
	int count = scandir(path, &names, NULL, alphasort), failed = 0;
	for (int i = 0; i < count; i++) {
		char below[4096];
		snprintf(below, sizeof(below), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			failed += run_file(guard, below);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return count < 0 ? 1 : failed;
}

int main(int argc, char **argv)
{
	size_t bytes = INPUT_BYTES_MAX + PAGE_BYTES;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || mprotect(map + INPUT_BYTES_MAX, PAGE_BYTES, PROT_NONE) < 0)
		return 2;
	int failed = 0;
	for (int i = 1; i < argc; i++)
		failed += run_path(map + INPUT_BYTES_MAX, argv[i]);
	printf("%lu inputs replayed\n", runs);
	return failed || runs == 0;
}
