// Frames of the generator's clients: Ethernet, IPv4 and TCP, one segment each.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"

#define WIRE_FRAME_MAX 1514u

enum wire_flag { WIRE_FIN = 1, WIRE_SYN = 2, WIRE_RST = 4, WIRE_PSH = 8, WIRE_ACK = 16 };

// A segment, either way. Addresses and ports in host order.
struct wire_segment {
	uint32_t client_ip;
	uint16_t client_port;
	uint8_t flags;
	bool has_timestamp;
	uint32_t seq, ack;
	uint32_t ts_value, ts_echo;
	struct span payload;
};

// Who speaks with whom.
struct wire_ends {
	uint8_t client_mac[6], server_mac[6];
	uint32_t server_ip;
	uint16_t server_port;
	bool has_timestamps; // clients offer them
};

// Write a client's segment, all checksums in it. `frame` has WIRE_FRAME_MAX bytes. Returns its
// length. A SYN gets an MSS of 1460, and a window scale of 7, SACK and timestamps if offered.
unsigned wire_write(const struct wire_ends *ends, const struct wire_segment *segment, char *frame);

// Read a server's segment. Returns false if the frame is something else.
bool wire_read(const struct wire_ends *ends, struct span frame, struct wire_segment *segment);

// ARP: ask for the server's MAC; take the answer (true: it was one); answer the server's question.
unsigned wire_ask(const struct wire_ends *ends, uint32_t client_ip, char *frame);
bool wire_told(struct wire_ends *ends, struct span frame);
unsigned wire_tell(const struct wire_ends *ends, struct span question, char *frame);
