// Random doings on both sides of many connections, checked against what was sent: every byte that
// arrives is the next of its pattern, no event comes after the end, and in the end every stream and
// every buffer is back. SEED=n repeats a run.

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/sockets/core.h"
#include "tests/unit/drivers/rig.h"

enum { PAIRS = 24, STEPS = 4000, CHUNK = 20000, SEND_BUFFERS = 12 };
#define KERNEL_BYTES 8192 // the kernel buffers little, so that ours are used

// A connection seen from both ends.
struct pair {
	int fd; // the client's; -1: none
	uint64_t client_sent, client_got, server_sent;
	struct rig_peer *peer; // NULL until it opened, and after it is over
	bool is_shut;
};

static struct rig rig; // too large for the stack
static struct pair pairs[PAIRS];
static struct pair *newest; // whose stream opens next
static int queued_writes, cut_writes;

static struct pair *pair_of(const struct rig_peer *peer)
{
	for (int i = 0; i < PAIRS; i++)
		if (pairs[i].peer == peer)
			return &pairs[i];
	return NULL;
}

static void check(struct rig *r, struct rig_peer *peer, const struct stream_event *event)
{
	(void)r;
	if (event->kind == STREAM_OPENED) {
		newest->peer = peer;
		return;
	}
	struct pair *pair = pair_of(peer);
	assert_non_null(pair);
	uint64_t at = peer->bytes - event->data.len;
	assert_true(peer->bytes <= pair->client_sent);
	for (size_t i = 0; i < event->data.len; i++)
		assert_int_equal(event->data.at[i], rig_byte(at + i));
	if (event->kind == STREAM_CLOSED)
		pair->peer = NULL;
}

// Forgets the peer's place in the rig, which has few of them.
static void connect_pair(struct pair *pair)
{
	if (pair->peer)
		return;
	*pair = (struct pair){.fd = -1};
	if (rig.peer_count == RIG_PEERS_MAX - 1)
		return;
	newest = pair;
	pair->fd = rig_client(&rig);
	RIG_UNTIL(&rig, pair->peer);
}

static void client_sends(struct pair *pair)
{
	char chunk[CHUNK];
	size_t len = (size_t)(rand() % CHUNK) + 1;
	for (size_t i = 0; i < len; i++)
		chunk[i] = rig_byte(pair->client_sent + i);
	ssize_t sent = send(pair->fd, chunk, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		pair->client_sent += (uint64_t)sent;
}

static void client_reads(struct pair *pair)
{
	char chunk[CHUNK];
	ssize_t got = recv(pair->fd, chunk, (size_t)(rand() % CHUNK) + 1, MSG_DONTWAIT);
	for (ssize_t i = 0; i < got; i++)
		assert_int_equal(chunk[i], rig_byte(pair->client_got + (uint64_t)i));
	if (got > 0)
		pair->client_got += (uint64_t)got;
	assert_true(pair->client_got <= pair->server_sent);
}

static void client_step(struct pair *pair)
{
	int what = rand() % 100;
	if (what < 45) {
		client_sends(pair);
	} else if (what < 93) {
		client_reads(pair);
	} else if (what < 96) {
		shutdown(pair->fd, SHUT_WR);
	} else {
		if (what < 98)
			rig_client_reset(pair->fd);
		else
			close(pair->fd);
		pair->fd = -1;
	}
}

static void server_closes(struct pair *pair, bool reset)
{
	stream_close(rig.driver, pair->peer->stream, reset);
	pair->peer->stream = NULL;
	pair->peer = NULL;
}

static void server_writes(struct pair *pair)
{
	char chunk[CHUNK];
	size_t len = (size_t)(rand() % CHUNK) + 1;
	for (size_t i = 0; i < len; i++)
		chunk[i] = rig_byte(pair->server_sent + i);
	struct span parts[2] = {{chunk, len / 3}, {chunk + len / 3, len - len / 3}};
	size_t taken = stream_write(rig.driver, pair->peer->stream, parts, 2);
	pair->server_sent += taken;
	queued_writes += stream_queued(rig.driver, pair->peer->stream) > 0;
	cut_writes += taken < len;
	if (taken < len)
		server_closes(pair, rand() % 2);
}

static void server_step(struct pair *pair)
{
	int what = rand() % 100;
	struct stream *stream = pair->peer->stream;
	if (what < 50) {
		if (!pair->is_shut && stream_queued(rig.driver, stream) <= rig.driver->queue_high)
			server_writes(pair);
	} else if (what < 70) {
		stream_pause(rig.driver, stream);
	} else if (what < 96) {
		stream_resume(rig.driver, stream);
	} else if (what < 97) {
		stream_shut(rig.driver, stream);
		pair->is_shut = true;
	} else {
		server_closes(pair, what == 99);
	}
}

static void step(void)
{
	struct pair *pair = &pairs[rand() % PAIRS];
	if (pair->fd < 0) {
		connect_pair(pair);
		return;
	}
	client_step(pair);
	if (pair->peer)
		server_step(pair);
	if (rand() % 3 == 0)
		rig_turn(&rig, 0);
}

static void end_all(void)
{
	for (int i = 0; i < PAIRS; i++) {
		if (pairs[i].fd >= 0)
			close(pairs[i].fd);
		if (pairs[i].peer)
			server_closes(&pairs[i], false);
	}
	RIG_UNTIL(&rig, sockets_stats(rig.driver)->accepted_open == 0);
	const struct core *core = (const struct core *)rig.driver;
	assert_int_equal(core->pool.free_count, SEND_BUFFERS);
	for (uint32_t i = 0; i < core->table.count; i++)
		assert_int_equal(core->table.sockets[i].state, SOCKET_FREE);
}

static void random_doings(void **state)
{
	struct sockets_plan plan = rig_plan(rig_engine(state));
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)rig_clock_ms();
	print_message("SEED=%u\n", seed);
	srand(seed);
	plan.receive_count = 8;
	plan.receive_bytes = 2048;
	plan.send_count = SEND_BUFFERS;
	plan.queue_high = 16384;
	rig_require(plan.engine);
	rig_start(&rig, &plan);
	rig_shrink(&rig, KERNEL_BYTES);
	rig.react = check;
	queued_writes = cut_writes = 0;
	for (int i = 0; i < PAIRS; i++)
		pairs[i] = (struct pair){.fd = -1};
	for (int i = 0; i < STEPS; i++)
		step();
	end_all();
	assert_true(queued_writes > 0);
	assert_true(cut_writes > 0);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {RIG_BOTH(random_doings)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
