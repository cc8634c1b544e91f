// Note: written beside and renamed, so that a reader finds one or the other.

#include "controlplane/appliance/note.h"

#include "controlplane/cluster/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct note note_read(const char *path, const char *name, uint64_t now_ms)
{
	const struct note none = {.number = LEDGER_MEMBERS_MAX};
	char noted[LEDGER_NAME_MAX + 1] = "";
	unsigned number = LEDGER_MEMBERS_MAX;
	uint64_t heard_ms = 0, peers = 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return none;
	const int count =
		fscanf(file, "%u %32s %" SCNu64 " %" SCNx64, &number, noted, &heard_ms, &peers);
	fclose(file);
	if (count < 2 || number >= LEDGER_MEMBERS_MAX || strcmp(noted, name) != 0)
		return none;
	return (struct note){(uint8_t)number, count >= 3 ? heard_ms : now_ms, peers};
}

uint64_t note_heard_until(const struct note *note)
{
	return note->number == LEDGER_MEMBERS_MAX ? 0 : note->heard_ms + NOTE_LATE_MS;
}

static int put(int fd, const char *name, const struct note *note, bool is_lasting)
{
	if (dprintf(fd, "%u %s %" PRIu64 " %016" PRIx64 "\n", note->number, name, note->heard_ms,
		    note->peers) < 0)
		return -errno;
	return is_lasting && fsync(fd) < 0 ? -errno : 0;
}

int note_write(const char *path, const char *name, const struct note *note, bool is_lasting)
{
	char beside[PATH_MAX];
	snprintf(beside, sizeof(beside), "%s.new", path);
	const int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int ret = put(fd, name, note, is_lasting);
	close(fd);
	if (ret == 0 && rename(beside, path) < 0)
		ret = -errno;
	return ret;
}
