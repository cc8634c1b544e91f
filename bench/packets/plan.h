// The command line of the packet generator.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_FLOWS_MAX (1u << 22) // a client address each, of 10.128.0.0/9
#define PLAN_HEAD_MAX 1400u // a request fits one segment

enum plan_mode {
	PLAN_POLLS, // keep-alive; each flow alternates between its two tickets, or keeps to one:
		    // flows_keep()
	PLAN_CONNECTIONS, // a connection for each poll
	PLAN_ARRIVALS, // keep-alive; each request draws a ticket and gets the page
	PLAN_SYN, // SYNs from everywhere, nothing more
	PLAN_IDLE, // open all flows, ask once on each, then stay
};

struct plan {
	enum plan_mode mode;
	const char *device; // a DPDK device, as for --vdev
	const char *arrival, *poll; // files: a request head each; in the second, a line `Cookie: @`
				    // stands for the ticket
	const char *room; // whose cookie is the ticket
	uint32_t flows, window; // flows in all, and how many of them have something under way
	uint32_t server_ip; // host order
	uint16_t server_port;
	double seconds; // from when all is warm
	unsigned core;
	bool has_timestamps;
};

// Read the command line. Returns false after having said what is wrong.
bool plan_read(int argc, char **argv, struct plan *plan);
