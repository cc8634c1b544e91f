// Plan: what a crowd is to do, as the command line says it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "bench/crowd/shape.h"

#define PLAN_VISITORS_MAX 4000000u
#define PLAN_PROCESSES_MAX 64u
#define PLAN_TARGETS_MAX 16u
#define PLAN_TEXT_MAX 255u // of host, path, room

enum plan_leave {
	PLAN_LEAVE_NONE, // the pass runs out
	PLAN_LEAVE_LEAVE, // POST leave
	PLAN_LEAVE_BUY, // GET …/buy, which the origin answers with `Sluice-Command: end`
	PLAN_LEAVE_MIXED, // one of the last two, by lot
};

struct plan_peer {
	struct sockaddr_storage address;
	socklen_t bytes; // 0: none
};

struct plan {
	struct plan_peer targets[PLAN_TARGETS_MAX]; // sluice: appliances of one line
	uint32_t target_count;
	double roam; // chance that a request goes to another of them, 0 to 1
	struct plan_peer shop; // the origin's own port, for what is not to go through sluice
	const char *host, *path, *room; // the path ends with a slash
	uint32_t visitors;
	enum shape shape;
	double over_s;
	double no_show, tabs; // shares, 0 to 1
	double shop_s;
	uint32_t pages; // loaded while shopping, besides the first
	enum plan_leave leave;
	uint32_t processes;
	double limit_s; // the run is over by then, whatever happens
	bool forever, json;
	uint64_t seed;
	double rate; // of the room, people a second; 0: not said
	double burst; // of the room; 0: one second of the rate
	uint32_t capacity; // of the room; 0: not said
};

enum plan_result {
	PLAN_OK,
	PLAN_HELP, // was asked for, and printed
	PLAN_WRONG, // and said why
};

// Read the command line. Texts are borrowed from `argv`.
enum plan_result plan_read(int argc, char **argv, struct plan *plan);
