// The rings of rings.h on rte_ring: single producer, single consumer, 64-byte elements by value.

#include "dataplane/rings.h"

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct rings {
	struct rte_ring *claims;
	struct rte_ring *answers;
};

static struct rte_ring *ring_create(const char *kind, unsigned worker, uint32_t len, size_t bytes)
{
	char name[RTE_RING_NAMESIZE];
	snprintf(name, sizeof(name), "sluice_%s_%u", kind, worker);
	return rte_ring_create_elem(name, (unsigned)bytes, rte_align32pow2(len + 1), SOCKET_ID_ANY,
		RING_F_SP_ENQ | RING_F_SC_DEQ);
}

int rings_create(unsigned worker, uint32_t len, struct rings **rings)
{
	assert(len > 0);
	struct rings *r = calloc(1, sizeof(*r)); // COLD: at start
	if (!r)
		return -ENOMEM;
	r->claims = ring_create("claims", worker, len, sizeof(struct claim));
	r->answers = ring_create("answers", worker, len, sizeof(struct claim_answer));
	if (!r->claims || !r->answers) {
		rings_destroy(r);
		return -rte_errno;
	}
	*rings = r;
	return 0;
}

void rings_destroy(struct rings *rings)
{
	if (!rings)
		return;
	rte_ring_free(rings->claims);
	rte_ring_free(rings->answers);
	free(rings);
}

bool rings_push_claim(struct rings *rings, const struct claim *claim)
{
	return rte_ring_sp_enqueue_elem(rings->claims, (void *)(uintptr_t)claim, sizeof(*claim)) ==
	       0;
}

unsigned rings_pop_claims(struct rings *rings, struct claim *claims, unsigned max)
{
	return rte_ring_sc_dequeue_burst_elem(rings->claims, claims, sizeof(*claims), max, NULL);
}

bool rings_push_answer(struct rings *rings, const struct claim_answer *answer)
{
	void *element = (void *)(uintptr_t)answer;
	return rte_ring_sp_enqueue_elem(rings->answers, element, sizeof(*answer)) == 0;
}

unsigned rings_pop_answers(struct rings *rings, struct claim_answer *answers, unsigned max)
{
	return rte_ring_sc_dequeue_burst_elem(rings->answers, answers, sizeof(*answers), max, NULL);
}
