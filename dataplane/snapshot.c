// Look-ups in the snapshot.

#include "dataplane/snapshot.h"

#include <string.h>

static bool is_inside(const struct snapshot_network *network, const uint8_t ip[16])
{
	unsigned whole = network->bits / 8, rest = network->bits % 8;
	if (memcmp(network->ip, ip, whole) != 0)
		return false;
	uint8_t mask = (uint8_t)(0xff00u >> rest);
	return rest == 0 || ((network->ip[whole] ^ ip[whole]) & mask) == 0;
}

bool snapshot_is_trusted(const struct snapshot *snapshot, const uint8_t ip[16])
{
	for (uint32_t i = 0; i < snapshot->trusted_count; i++)
		if (is_inside(&snapshot->trusted[i], ip))
			return true;
	return false;
}
