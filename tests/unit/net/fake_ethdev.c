// Frames wait in an array and are sent into another; what a device would count is the test's to
// see.

#include "tests/unit/net/fake_ethdev.h"

#include <rte_eal.h>
#include <rte_mbuf.h>

#include <assert.h>
#include <string.h>

#define WORKERS_MAX 4u
#define BUFFER_BYTES (RTE_PKTMBUF_HEADROOM + 10240u)

struct ethdev_worker {
	struct rte_mbuf *waiting[FAKE_FRAMES_MAX];
	unsigned waiting_count, waiting_first;
	struct rte_mbuf *sent[FAKE_FRAMES_MAX];
	uint16_t sent_ports[FAKE_FRAMES_MAX];
	unsigned sent_count;
	unsigned excepted, starving;
	enum ethdev_class class;
	bool link_has_changed[ETHDEV_PORTS_MAX], link_is_up[ETHDEV_PORTS_MAX];
};

uint64_t fake_now_us = 1000000;
static struct rte_mempool *pool;
static struct ethdev_worker workers[WORKERS_MAX];

bool fake_open(void)
{
	char *arguments[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "64", "-l", "0"};
	if (rte_eal_init(sizeof(arguments) / sizeof(arguments[0]), arguments) < 0)
		return false;
	pool = rte_pktmbuf_pool_create("fake", FAKE_BUFFERS, 0, 0, BUFFER_BYTES, SOCKET_ID_ANY);
	return pool;
}

struct ethdev_worker *fake_worker(unsigned index)
{
	assert(index < WORKERS_MAX);
	struct ethdev_worker *w = &workers[index];
	fake_forget(w);
	ethdev_free(w, w->waiting + w->waiting_first, w->waiting_count - w->waiting_first);
	memset(w, 0, sizeof(*w));
	return w;
}

// Each buffer bears a mark while somebody has it, so that one freed twice is found.
#define MARK 0x600df00du

static struct rte_mbuf *take(void)
{
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(pool);
	assert(buffer);
	buffer->dynfield1[0] = MARK;
	return buffer;
}

static void give(struct rte_mbuf *buffer)
{
	if (!buffer)
		return;
	assert(buffer->dynfield1[0] == MARK);
	buffer->dynfield1[0] = 0;
	rte_pktmbuf_free(buffer);
}

static struct rte_mbuf *buffer_of(uint16_t port, struct span bytes)
{
	struct rte_mbuf *buffer = take();
	memcpy(rte_pktmbuf_append(buffer, (uint16_t)bytes.len), bytes.at, bytes.len);
	buffer->port = port;
	return buffer;
}

static void arrive(struct ethdev_worker *w, struct rte_mbuf *buffer)
{
	if (w->waiting_first == w->waiting_count)
		w->waiting_first = w->waiting_count = 0;
	assert(w->waiting_count < FAKE_FRAMES_MAX);
	w->waiting[w->waiting_count++] = buffer;
}

void fake_arrive(struct ethdev_worker *w, uint16_t port, struct span frame, uint64_t flags)
{
	struct rte_mbuf *buffer = buffer_of(port, frame);
	buffer->ol_flags = flags;
	arrive(w, buffer);
}

void fake_arrive_in_pieces(struct ethdev_worker *w, uint16_t port, struct span frame)
{
	struct rte_mbuf *buffer = buffer_of(port, (struct span){frame.at, 20});
	int ret = rte_pktmbuf_chain(buffer, buffer_of(port, span_from(frame, 20)));
	assert(ret == 0);
	arrive(w, buffer);
}

unsigned fake_sent_count(const struct ethdev_worker *w)
{
	return w->sent_count;
}

const struct rte_mbuf *fake_sent_buffer(const struct ethdev_worker *w, unsigned i)
{
	assert(i < w->sent_count);
	return w->sent[i];
}

struct span fake_sent(const struct ethdev_worker *w, unsigned i)
{
	const struct rte_mbuf *buffer = fake_sent_buffer(w, i);
	assert(buffer->nb_segs == 1 && buffer->pkt_len == buffer->data_len);
	return (struct span){rte_pktmbuf_mtod(buffer, const char *), buffer->data_len};
}

uint16_t fake_sent_port(const struct ethdev_worker *w, unsigned i)
{
	assert(i < w->sent_count);
	return w->sent_ports[i];
}

void fake_forget(struct ethdev_worker *w)
{
	ethdev_free(w, w->sent, w->sent_count);
	w->sent_count = 0;
}

unsigned fake_excepted(const struct ethdev_worker *w, enum ethdev_class *class)
{
	*class = w->class;
	return w->excepted;
}

void fake_starve(struct ethdev_worker *w, unsigned count)
{
	w->starving = count;
}

void fake_link(struct ethdev_worker *w, unsigned port, bool is_up)
{
	w->link_has_changed[port] = true;
	w->link_is_up[port] = is_up;
}

unsigned fake_buffers_out(void)
{
	return rte_mempool_in_use_count(pool);
}

uint64_t ethdev_turn(struct ethdev_worker *w)
{
	(void)w;
	return fake_now_us;
}

unsigned ethdev_receive(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned max)
{
	unsigned count = w->waiting_count - w->waiting_first;
	count = count < max ? count : max;
	memcpy(frames, w->waiting + w->waiting_first, count * sizeof(frames[0]));
	w->waiting_first += count;
	return count;
}

struct rte_mbuf *ethdev_take(struct ethdev_worker *w, bool is_control)
{
	(void)is_control;
	if (w->starving) {
		w->starving--;
		return NULL;
	}
	struct rte_mbuf *buffer = take();
	memset(rte_pktmbuf_mtod(buffer, char *), 0xee, 2048); // what was there before
	return buffer;
}

void ethdev_send(struct ethdev_worker *w, uint16_t port, struct rte_mbuf *frame)
{
	if (w->sent_count == FAKE_FRAMES_MAX) {
		give(frame);
		return;
	}
	w->sent_ports[w->sent_count] = port;
	w->sent[w->sent_count++] = frame;
}

void ethdev_flush(struct ethdev_worker *w)
{
	(void)w;
}

void ethdev_free(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned count)
{
	(void)w;
	for (unsigned i = 0; i < count; i++)
		give(frames[i]);
}

void ethdev_except(struct ethdev_worker *w, struct rte_mbuf *frame, enum ethdev_class class)
{
	w->excepted++;
	w->class = class;
	give(frame);
}

bool ethdev_link_changed(struct ethdev_worker *w, unsigned port, bool *is_up)
{
	bool has_changed = w->link_has_changed[port];
	w->link_has_changed[port] = false;
	*is_up = w->link_is_up[port];
	return has_changed;
}
