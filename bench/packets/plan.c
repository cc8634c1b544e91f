// The calls of plan.h.

#include "bench/packets/plan.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const modes[] = {"polls", "connections", "arrivals", "syn", "idle", NULL};

static bool usage(void)
{
	fprintf(stderr,
		"usage: packets --mode polls|connections|arrivals|syn|idle\n"
		"               --device DEVICE --server ADDRESS:PORT --arrival FILE --poll FILE\n"
		"               [--room NAME] [--flows N] [--window N] [--seconds S] [--core "
		"CORE]\n"
		"               [--no-timestamps]\n"
		"FILEs hold a request head; `@` in the poll's stands for the ticket.\n");
	return false;
}

static bool read_mode(const char *text, enum plan_mode *mode)
{
	for (unsigned i = 0; modes[i]; i++)
		if (strcmp(text, modes[i]) == 0) {
			*mode = (enum plan_mode)i;
			return true;
		}
	return false;
}

static bool read_server(const char *text, struct plan *plan)
{
	char address[INET_ADDRSTRLEN];
	const char *colon = strchr(text, ':');
	struct in_addr ip;
	if (!colon || (size_t)(colon - text) >= sizeof(address))
		return false;
	memcpy(address, text, (size_t)(colon - text));
	address[colon - text] = '\0';
	plan->server_ip = inet_pton(AF_INET, address, &ip) == 1 ? ntohl(ip.s_addr) : 0;
	plan->server_port = (uint16_t)strtoul(colon + 1, NULL, 10);
	return plan->server_ip && plan->server_port;
}

static bool is_whole(const struct plan *plan)
{
	return plan->device && plan->server_ip && plan->arrival && plan->poll && plan->flows &&
	       plan->flows <= PLAN_FLOWS_MAX && plan->window && plan->window <= plan->flows;
}

bool plan_read(int argc, char **argv, struct plan *plan)
{
	static const struct option options[] = {{"mode", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'}, {"server", required_argument, NULL, 's'},
		{"arrival", required_argument, NULL, 'a'}, {"poll", required_argument, NULL, 'p'},
		{"room", required_argument, NULL, 'r'}, {"flows", required_argument, NULL, 'f'},
		{"window", required_argument, NULL, 'w'}, {"seconds", required_argument, NULL, 't'},
		{"core", required_argument, NULL, 'c'}, {"no-timestamps", no_argument, NULL, 'n'},
		{0}};
	bool is_good = true;
	*plan = (struct plan){.room = "derby",
		.flows = 10000,
		.window = 256,
		.seconds = 2,
		.has_timestamps = true};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'm':
			is_good &= read_mode(optarg, &plan->mode);
			break;
		case 'd':
			plan->device = optarg;
			break;
		case 's':
			is_good &= read_server(optarg, plan);
			break;
		case 'a':
			plan->arrival = optarg;
			break;
		case 'p':
			plan->poll = optarg;
			break;
		case 'r':
			plan->room = optarg;
			break;
		case 'f':
			plan->flows = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'w':
			plan->window = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 't':
			plan->seconds = strtod(optarg, NULL);
			break;
		case 'c':
			plan->core = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			plan->has_timestamps = false;
			break;
		default:
			return usage();
		}
	}
	return (is_good && optind == argc && is_whole(plan)) || usage();
}
