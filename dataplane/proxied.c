// What a trusted proxy has added last is true, so one goes on to the left as long as that is a
// trusted proxy itself. What stands further left anybody may have written.

#include "dataplane/proxied.h"

#include "dataplane/forwarded.h"

#include <string.h>

void proxied_source(const struct snapshot *snapshot, const struct http_head *head,
	const uint8_t peer[16], uint8_t ip[16])
{
	memcpy(ip, peer, 16);
	if (!snapshot_is_trusted(snapshot, ip))
		return;
	struct forwarded from = forwarded_last(head);
	uint8_t named[16];
	for (uint32_t i = 0; i < PROXIED_HOPS_MAX && forwarded_before(&from, named); i++) {
		memcpy(ip, named, 16);
		if (!snapshot_is_trusted(snapshot, ip))
			return;
	}
}
