// Any segments, in any order, at any time, with a worker that does anything it may: into the whole
// of TCP, in virtual time.
//
// The input is a row of steps of four octets: what, whose, and two numbers. Segments are made near
// what their connection expects, so that most of them get somewhere. What must hold:
//   after each turn  every connection has a deadline in the wheel and is found; counts agree
//   each stream      its text is the text that was sent, in order and once
//   at the end       all connections end by their deadlines, and all that was lent is back

#include <assert.h>

#include "dataplane/net/tcp/conn.h"
#include "dataplane/net/tcp/work.h"

#define PEERS 4u
#define EVENTS_MAX 16
#define TURNS_TO_END 4000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

// The worker's side of a connection.
struct reader {
	struct stream *stream; // NULL: not in use
	uint32_t at; // sequence number of the next octet
	bool has_ended, has_shut; // EOF came; it has shut
};

struct peer {
	struct stream_address address;
	uint32_t first, cookie; // numbers of its SYN and of the answer
	uint32_t echo; // our last timestamp
};

static struct {
	struct tcp *t;
	uint64_t now_us;
	struct stream_event events[EVENTS_MAX];
	struct reader readers[16];
	struct peer peers[PEERS];
	unsigned sent_in_turn;
} world;

static const struct stream_address local = {.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}, .port = 80};

// The text is the same for all: an octet for each number.
static char octet_at(uint32_t seq)
{
	return (char)(seq * 31 >> 3);
}

static struct peer *peer_of(const struct stream_address *address)
{
	return &world.peers[address->port % PEERS];
}

static void note_sent(void *ctx, const struct tcp_out *out)
{
	(void)ctx;
	assert(out->option_bytes % 4 == 0 && out->option_bytes <= 40);
	assert(out->part_count <= TCP_PARTS_MAX);
	assert(++world.sent_in_turn < 1000);
	struct peer *peer = peer_of(out->peer);
	if (out->flags & TCP_SYN)
		peer->cookie = out->seq;
	for (unsigned i = 0; i + 10 <= out->option_bytes; i++) // wherever it stands
		if (out->options[i] == 8 && out->options[i + 1] == 10) {
			memcpy(&peer->echo, out->options + i + 2, 4);
			peer->echo = __builtin_bswap32(peer->echo);
		}
}

static uint64_t chance(void *ctx)
{
	(void)ctx;
	return 4;
}

static const struct tcp_plan plan = {
	.connections_max = 3,
	.reserve = 1,
	.wait_max = 2,
	.works_max = 3,
	.send_chunks = 20,
	.receive_chunks = 8,
	.chunk_bytes = 256,
	.send_max = 6000,
	.receive_max = 3000,
	.queue_high = 1000,
	.rto_min_us = 200000,
	.rto_max_us = 60000000,
	.give_up_us = 30000000,
	.idle_us = 60000000,
	.wait_us = 30000000,
	.linger_us = 20000000,
	.delayed_ack_us = 40000,
	.syn_rate = 50,
	.challenge_rate = 5,
	.mss_v4 = 1460,
	.mss_v6 = 1440,
	.listener_count = 1,
	.listeners = {{{0}, 80}},
};

static void begin(void)
{
	static const struct tcp_io io = {.send = note_sent, .random = chance};
	memset(&world, 0, sizeof(world));
	world.t = tcp_create(&plan, &io);
	assert(world.t);
	world.now_us = 5000000;
	for (unsigned i = 0; i < PEERS; i++)
		world.peers[i] = (struct peer){
			.address = {.ip = {[10] = 0xff, 0xff, 198, 51, 100, 1},
				.port = (uint16_t)(4000 + i)},
			.first = 0xffffff00 + i * 7777777,
		};
}

// What the stack knows of a peer; NULL: nothing.
static const struct tcp_conn *conn_of(const struct peer *peer)
{
	uint64_t hash = flows_hash(world.t->flows, &local, &peer->address);
	return tcp_find(world.t, hash, &local, &peer->address);
}

static struct reader *reader_of(const struct stream *stream)
{
	for (unsigned i = 0; i < 16; i++)
		if (world.readers[i].stream == stream)
			return &world.readers[i];
	return NULL;
}

static void read_event(const struct stream_event *event)
{
	struct reader *reader = reader_of(event->stream);
	switch (event->kind) {
	case STREAM_OPENED:
		assert(!reader);
		reader = reader_of(NULL);
		assert(reader);
		*reader = (struct reader){
			.stream = event->stream, .at = peer_of(&event->stream->peer)->first + 1};
		break;
	case STREAM_DATA:
		assert(reader && !reader->has_ended && event->data.len > 0);
		for (size_t i = 0; i < event->data.len; i++)
			assert(event->data.at[i] == octet_at(reader->at + (uint32_t)i));
		reader->at += (uint32_t)event->data.len;
		break;
	case STREAM_EOF:
		assert(reader && !reader->has_ended);
		reader->has_ended = true;
		break;
	case STREAM_CLOSED:
		assert(reader);
		assert(event->error != 0 || (reader->has_ended && reader->has_shut));
		reader->stream = NULL;
		break;
	case STREAM_WRITABLE:
		assert(reader && !reader->has_shut);
		break;
	case STREAM_NONE:
		break;
	}
}

static void check(void)
{
	const struct tcp *t = world.t;
	uint32_t open = 0, works = 0;
	for (uint32_t i = 0; i < t->conn_max; i++) {
		const struct tcp_conn *c = &t->conns[i];
		if (c->state == TCP_FREE)
			continue;
		open++;
		works += c->work != 0;
		assert(c->timer.slot != TIMERS_UNLINKED);
		assert(conn_of(peer_of(&c->stream.peer)) == c);
		assert(c->rcv_edge - c->rcv_nxt <= plan.receive_max + 1);
		assert(c->snd_nxt - c->snd_una <= plan.send_max + 1);
	}
	assert(open == t->conn_count && open == t->timers.count);
	assert(t->stats.counters[TCP_accepted] == t->stats.counters[TCP_closed] + open);
	assert(t->stats.working == works);
}

static void turn(const struct tcp_segment *segments, unsigned count)
{
	do {
		tcp_turn(world.t, world.now_us, world.events, EVENTS_MAX);
		world.sent_in_turn = 0;
		unsigned taken = tcp_input(world.t, segments, count);
		count -= taken;
		segments = count > 0 ? segments + taken : NULL;
		tcp_due(world.t);
		for (int i = 0; i < tcp_event_count(world.t); i++)
			read_event(&world.events[i]);
		tcp_flush(world.t);
		check();
	} while (count > 0);
}

// A segment near to what is expected: offsets of a few octets, at times of any size.
static void give_segment(struct peer *peer, uint8_t flags, uint8_t a, uint8_t b)
{
	static char text[1600];
	const struct tcp_conn *c = conn_of(peer);
	bool is_wild = flags & 0x80;
	uint32_t offset = (uint32_t)((int8_t)a) * (is_wild ? 40000 : 40);
	uint32_t seq = (c ? c->rcv_nxt : peer->first + 1) + offset;
	uint32_t ack = c ? c->snd_una + (b & 7) * (c->snd_nxt - c->snd_una) / 4 : peer->cookie + 1;
	uint32_t len = (b >> 3) * 47;
	for (uint32_t i = 0; i < len; i++)
		text[i] = octet_at(seq + i);
	struct tcp_segment segment = {
		.peer = peer->address,
		.local = local,
		.seq = seq,
		.ack = ack,
		.window = (uint16_t)(b * 64),
		.flags = flags & 0x3f & (uint8_t)~TCP_SYN,
		.has_timestamp = !(flags & 0x40),
		.ts_value = (uint32_t)(world.now_us / 1000) - (is_wild ? a : 0),
		.ts_echo = peer->echo,
		.payload = {text, len},
	};
	if (c && b & 1) {
		segment.sack_count = 2;
		segment.sacks[0] = (struct tcp_sack){ack + a, ack + a + b};
		segment.sacks[1] = (struct tcp_sack){ack + 9 * a, ack + 7 * b};
	}
	turn(&segment, 1);
}

static void give_syn(struct peer *peer, uint8_t a, uint8_t b)
{
	if (!conn_of(peer))
		peer->first += a * 1000u;
	struct tcp_segment segment = {
		.peer = peer->address,
		.local = local,
		.seq = peer->first,
		.window = 8000,
		.flags = TCP_SYN,
		.has_mss = b & 1,
		.mss = (uint16_t)(b * 10),
		.has_timestamp = b & 2,
		.ts_value = (uint32_t)(world.now_us / 1000),
		.has_sack_permitted = b & 4,
		.has_scale = b & 8,
		.scale = b >> 4 & 3,
	};
	turn(&segment, 1);
}

// Its answer comes back, perhaps with text; then the connection is open, if it may be.
static void give_cookie(struct peer *peer, uint8_t flags, uint8_t b)
{
	if (!conn_of(peer))
		give_segment(peer, (flags & (TCP_FIN | 0x40)) | TCP_ACK, 0, b);
}

// The worker does something with a stream that it has.
static void work(uint8_t what, uint8_t whose, uint8_t a)
{
	static char text[5000];
	struct reader *reader = &world.readers[whose % 16];
	if (!reader->stream)
		return;
	struct span span = {text, a * 19u};
	tcp_turn(world.t, world.now_us, world.events, EVENTS_MAX);
	world.sent_in_turn = 0;
	switch (what % 6) {
	case 0:
	case 1:
		if (!reader->has_shut)
			tcp_write(world.t, reader->stream, &span, 1);
		break;
	case 2:
		tcp_shut(world.t, reader->stream);
		reader->has_shut = true;
		break;
	case 3:
		tcp_close(world.t, reader->stream, a & 1);
		reader->stream = NULL;
		break;
	case 4:
		tcp_pause(world.t, reader->stream);
		break;
	case 5:
		tcp_resume(world.t, reader->stream);
		break;
	}
	tcp_flush(world.t);
	check();
}

static void give_too_big(const struct peer *peer, uint8_t a, uint8_t b)
{
	const struct tcp_conn *c = conn_of(peer);
	struct tcp_segment quoted = {
		.peer = peer->address, .local = local, .seq = c ? c->snd_una : 0};
	tcp_turn(world.t, world.now_us, world.events, EVENTS_MAX);
	quoted.seq += a & 1 ? a : 0;
	tcp_too_big(world.t, &quoted, (uint16_t)(b * 8));
	tcp_flush(world.t);
	check();
}

static void step(const uint8_t *octets)
{
	struct peer *peer = &world.peers[octets[1] % PEERS];
	switch (octets[0] % 8) {
	case 0:
		give_syn(peer, octets[2], octets[3]);
		break;
	case 1:
		give_cookie(peer, octets[2], octets[3]);
		break;
	case 2:
		world.now_us += (uint64_t)octets[2] << (octets[3] % 20);
		turn(NULL, 0);
		break;
	case 3:
		work(octets[1] >> 4, octets[2], octets[3]);
		break;
	case 4:
		if (octets[0] & 0x10)
			give_too_big(peer, octets[2], octets[3]);
		else
			give_segment(peer, octets[1] >> 2 | 0xc0, octets[2], octets[3]);
		break;
	default: // plainer ones
		give_segment(
			peer, TCP_ACK | (octets[1] & 0xf0 ? 0 : TCP_FIN), octets[2] & 3, octets[3]);
	}
}

// Nobody comes any more: each connection has its deadlines.
static void end(void)
{
	for (unsigned i = 0; i < TURNS_TO_END && world.t->conn_count > 0; i++) {
		uint64_t quiet_us = tcp_quiet_us(world.t, 1000000);
		world.now_us += quiet_us ? quiet_us : 1000;
		turn(NULL, 0);
	}
	assert(world.t->conn_count == 0);
	assert(world.t->stats.working == 0);
	assert(world.t->send_chunks.free_count == plan.send_chunks);
	assert(world.t->receive_chunks.free_count == plan.receive_chunks);
	for (unsigned i = 0; i < 16; i++)
		assert(!world.readers[i].stream);
	tcp_destroy(world.t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	begin();
	turn(NULL, 0);
	for (; len >= 4; data += 4, len -= 4)
		step(data);
	end();
	return 0;
}
