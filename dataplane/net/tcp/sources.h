// How many SYNs of each source were answered in this second, so that one network cannot make us
// fill the links of another with SYN-ACKs.
//
// A source is an IPv4 /24 or an IPv6 /56. A fixed table of lines of eight; where a line is full,
// the source with the fewest makes room. So a flood from more sources than there are places passes,
// but then none of them sends much.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sources;

// Make a table. Returns NULL when out of memory.
struct sources *sources_create(uint64_t seed);
void sources_destroy(struct sources *sources);
uint64_t sources_bytes(void);

// One more from `ip` (IPv4 mapped). Returns false, counting nothing, if `limit` have come in this
// second; a limit of 0 allows any number.
bool sources_take(struct sources *sources, const uint8_t ip[16], uint32_t limit, uint32_t now_ms);
