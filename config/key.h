// The tables of keys.def and plan.def in memory, and how a key is found in them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_type {
	KEY_WORD, // enum: the index among its words
	KEY_CHOICE, // uint64_t: one of a few numbers
	KEY_BOOL, // bool
	KEY_COUNT, // uint64_t
	KEY_CORE, // uint64_t: a processor
	KEY_DURATION, // uint64_t: s or ms
	KEY_SIZE, // uint64_t: bytes
	KEY_RATE, // struct config_rate
	KEY_BATCH, // struct config_rate, whose period is any
	KEY_NAME, // const char *, like the following
	KEY_HOST, // a host name, or *.NAME
	KEY_DOMAIN, // a host name with a dot
	KEY_PATH, // of a URL
	KEY_FILE, // a relative one is resolved against the folder of the configuration
	KEY_ADDRESS, // struct config_address
	KEY_NETWORK, // struct config_network
	KEY_SERVER, // struct config_server
	KEY_DEVICE, // const char *: a device of DPDK's
	KEY_INTERFACE, // struct config_interface
	KEY_IP, // struct config_ip
	KEY_TIME, // uint64_t: unix s
	KEY_HEX, // const char *: bytes in hex
	KEY_WINDOW, // struct config_window
	KEY_TEXT, // const char *: one line for people
	KEY_STORE, // struct config_store
	KEY_MAP, // a pointer to the struct of its scope, NULL when absent
};
#define KEY_TYPE_COUNT (KEY_MAP + 1)
#define KEY_TABLE_MAX 256 // rows of the table

enum key_shape {
	KEY_ONE,
	KEY_LIST, // count and pointer; struct key_list
};

enum key_change {
	KEY_RELOAD,
	KEY_RESTART,
};

// A mapping: the struct it is read into, its keys' path, as in "sites[].rooms[].", and the table in
// which they stand.
struct key_scope {
	const char *name;
	const char *path;
	size_t bytes;
	const struct key *table;
	const unsigned *table_count;
};

struct key {
	const struct key_scope *scope;
	const char *name;
	const struct key_scope *child; // of a KEY_MAP
	const char *of; // unit or words
	const char *fallback; // see keys.def
	const char *help;
	uint64_t min, max;
	size_t offset; // in the struct of the scope
	uint8_t type, shape, change;
};

// What every list of config.h looks like.
struct key_list {
	uint32_t count;
	void *at;
};

// Of the configuration, and of a plan.
extern const struct key key_table[], key_plan_table[];
extern const unsigned key_count, key_plan_count;

// The scope of the whole file: of a configuration, of a plan.
const struct key_scope *key_root(void);
const struct key_scope *key_plan_root(void);

// The key `name` of `scope`, or NULL.
const struct key *key_find(const struct key_scope *scope, const char *name);

// How many letters must be added, dropped, changed or swapped to make one text of the other; only
// their first bytes are looked at.
unsigned key_distance(const char *a, const char *b);

// The key of `scope` whose name is nearest to `name`: fewest letters added, dropped, changed or
// swapped; the first in the table among equals.
const struct key *key_nearest(const struct key_scope *scope, const char *name);

// The key `name` in any other scope of the table, or NULL: it may just stand in the wrong place.
const struct key *key_elsewhere(const struct key_scope *scope, const char *name);

// The marks at the front of `fallback`.
bool key_is_required(const struct key *key);
bool key_is_computed(const struct key *key);

// Whether the key may be `none`.
bool key_may_be_none(const struct key *key);
