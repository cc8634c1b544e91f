// A link, one way: what goes in comes out later, or not at all, or twice, or out of order.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"

// Shares are of 1000.
struct link_plan {
	uint32_t loss, reorder, duplicate, corrupt;
	uint32_t delay_us, jitter_us; // of each; jitter alone keeps the order
	uint32_t late_us; // how much later what is reordered comes, at most
	uint64_t bytes_a_second; // 0: any
	uint32_t queue_bytes; // that wait for the rate; beyond: dropped
	uint32_t mtu; // IP packet: larger ones are dropped and named by link_is_too_big()
};

struct link_packet {
	uint64_t at_us, order;
	uint32_t slot; // the connection it belongs to
	bool is_corrupt; // a checksum will tell
	uint32_t len;
	char *bytes; // whoever takes it frees it
};

struct link {
	struct link_plan plan;
	uint64_t *random; // the world's
	struct link_packet *packets; // a heap
	uint32_t count, max;
	uint64_t order;
	uint64_t busy_until_us; // the rate
	uint64_t last_us; // when the last that keeps the order arrives
	uint64_t sent, lost; // for the report
};

void link_init(struct link *link, const struct link_plan *plan, uint64_t *random);
void link_fini(struct link *link);

bool link_is_too_big(const struct link *link, uint32_t len);
// Copies; what is too big is lost.
void link_send(struct link *link, uint64_t now_us, uint32_t slot, struct span bytes);

// When the next one arrives; UINT64_MAX: none is under way.
uint64_t link_next_us(const struct link *link);
// The next one, if it has arrived.
bool link_take(struct link *link, uint64_t now_us, struct link_packet *packet);
