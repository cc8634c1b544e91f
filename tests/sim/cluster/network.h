// The store of a simulated cluster, and the network between it and the appliances: connections that
// break, batches and replies that come late or never, news that are lost, doubled and out of order,
// and a store that forgets its last seconds and comes back as another.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/appliance.h"
#include "tests/sim/cluster/model.h"

#define NETWORK_LINKS 4u
#define NETWORK_NEWS 64u // messages on their way on a link; more are lost
#define NETWORK_STRAYS 8u // batches on their way of connections that are no more
#define NETWORK_ANSWER_MS 1000u // for a reply
#define NETWORK_AGAIN_MS 400u // until the next try

// A batch on its way; entries NULL: none.
struct network_batch {
	struct ledger_batch is;
	struct ledger_entry *entries;
	uint64_t at_ms; // when it arrives; UINT64_MAX: never
};

struct network_news {
	char *text;
	uint64_t at_ms;
};

struct network_link {
	struct appliance *appliance;
	bool is_up;
	bool is_lost; // its stopped appliance is to be told
	uint64_t connect_ms, cut_until_ms;
	bool has_batch; // waits for a reply
	uint64_t sent_ms, sent_now; // of the world, and as the appliance saw it
	uint64_t arrived_ms, arrived_news; // when, and the last news then: a reply that was kept is
					   // older
	struct network_batch batch, strays[NETWORK_STRAYS];
	char *reply;
	uint64_t reply_ms;
	struct network_news news[NETWORK_NEWS];
};

struct network_faults {
	uint32_t delay_max_ms; // one way
	double lost; // of batches and replies: the connection stalls
	double news_lost, news_twice;
};

struct network_record { // of the journal
	struct network_batch batch;
	uint64_t raw_ms, at_ms;
};

struct network {
	struct model model;
	struct network_link links[NETWORK_LINKS];
	uint32_t link_count;
	struct network_faults faults;
	uint64_t *random;
	uint32_t runs; // of the store
	char run[LEDGER_RUN_BYTES + 1];
	int64_t clock_ms; // of the store less that of the world
	uint64_t down_until_ms;
	MODEL_LIST(struct network_record) journal;
	bool has_journal; // writes may be lost
	// After each batch, before its reply is on its way.
	void (*taken)(void *ctx, const struct ledger_batch *batch, const char *reply);
	void *ctx;
	uint64_t batch_count;
};

void network_init(struct network *n, uint64_t *random);
void network_fini(struct network *n);
void network_add(struct network *n, struct appliance *appliance);

// TIME of the store.
uint64_t network_raw(const struct network *n, uint64_t world_ms);

// All that happens until `world_ms`.
void network_turn(struct network *n, uint64_t world_ms);

// The connection of a link is gone.
void network_break(struct network *n, uint32_t link, uint64_t world_ms);

// The process of a link began or ended.
void network_reset(struct network *n, uint32_t link, uint64_t world_ms);

// Another store takes over, `down_ms` from now, which has forgotten the last `lost_ms`.
void network_fail_over(struct network *n, uint64_t lost_ms, uint64_t down_ms, uint64_t world_ms);
