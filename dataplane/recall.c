// A model has its place by a hash of what stands before its cookies. The hash need not be good
// against those who look for collisions: whoever shares a set with others pushes their models out,
// and costs them what reading costs anyway. That a head is of a model is told by comparing it.

#include "dataplane/recall.h"

#include "dataplane/http/model.h"

#include <stdlib.h>
#include <string.h>
#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

#define LANES 4u // sums that do not wait for each other
#define STEP (LANES * sizeof(uint64_t))

struct entry {
	struct model model;
	struct gate_request_kept request;
};

struct recall {
	uint64_t version; // of the map that all models were read by
	uint32_t missed; // polls of no model
	size_t guess; // for model_cookie(): of the poll read last
	struct {
		uint32_t tags[RECALL_WAYS]; // 0: none is there
		uint32_t next; // the way that the next one takes
	} sets[RECALL_SETS];
	struct entry entries[RECALL_SETS][RECALL_WAYS];
};

static const struct span poll_start = SPAN("GET /.sluice/");

size_t recall_bytes(void)
{
	return sizeof(struct recall);
}

struct recall *recall_create(void)
{
	return calloc(1, sizeof(struct recall)); // COLD: at start
}

void recall_destroy(struct recall *recall)
{
	free(recall);
}

// A sum, and one more word.
#if defined(__SSE4_2__)
static inline uint64_t mix(uint64_t sum, uint64_t word)
{
	return _mm_crc32_u64(sum, word);
}
#else
static inline uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 32;
}
#endif

static inline void mix_step(uint64_t sums[LANES], const char *at)
{
	uint64_t words[LANES];
	memcpy(words, at, STEP);
	for (unsigned i = 0; i < LANES; i++)
		sums[i] = mix(sums[i], words[i]);
}

// Never 0.
static uint32_t tag_of(struct span text)
{
	uint64_t sums[LANES] = {text.len, 1, 2, 3};
	for (size_t left = text.len; left >= STEP; left -= STEP)
		mix_step(sums, text.at + left - STEP);
	mix_step(sums, text.at); // what is left, and some of it again
	for (unsigned i = 1; i < LANES; i++)
		sums[0] = mix(sums[0], sums[i]);
	return (uint32_t)sums[0] | 1;
}

static bool is_poll(struct span in)
{
	return in.len >= STEP && memcmp(in.at, poll_start.at, poll_start.len) == 0;
}

static unsigned set_of(uint32_t tag)
{
	return tag >> 1 & (RECALL_SETS - 1);
}

static void forget_all(struct recall *recall, uint64_t version)
{
	memset(recall->sets, 0, sizeof(recall->sets));
	recall->version = version;
	recall->missed = 0;
}

bool recall_read(struct recall *recall, uint64_t version, struct span in,
	const struct http_limits *limits, struct recall_trace *trace, struct http_head *head,
	char *scratch, struct gate_request *request)
{
	if (recall->version != version)
		forget_all(recall, version);
	trace->tag = 0;
	if (!is_poll(in))
		return false;
	trace->cookie_at = model_cookie(in, recall->guess);
	if (trace->cookie_at < STEP)
		return false;
	trace->tag = tag_of((struct span){in.at, trace->cookie_at});
	const unsigned set = set_of(trace->tag);
	for (unsigned way = 0; way < RECALL_WAYS; way++) {
		const struct entry *entry = &recall->entries[set][way];
		if (recall->sets[set].tags[way] != trace->tag ||
			!model_read(&entry->model, in, trace->cookie_at, limits, head))
			continue;
		recall->guess = in.len - trace->cookie_at;
		gate_request_again(&entry->request, head, scratch, request);
		return true;
	}
	return false;
}

void recall_keep(struct recall *recall, const struct recall_trace *trace,
	const struct http_head *head, const struct gate_request *request)
{
	if (!trace->tag || request->route != GATE_ROUTE_STATUS || request->has_body ||
		recall->missed++ % RECALL_EVERY != 0)
		return;
	const unsigned set = set_of(trace->tag), way = recall->sets[set].next;
	struct entry *entry = &recall->entries[set][way];
	recall->sets[set].tags[way] = 0;
	if (!model_make(head, trace->cookie_at, &entry->model))
		return;
	gate_request_keep(request, &entry->request);
	recall->sets[set].tags[way] = trace->tag;
	recall->sets[set].next = (way + 1) % RECALL_WAYS;
}
