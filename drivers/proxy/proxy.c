// The inner driver's burst is taken into an array of our own and passed on event by event, since
// what completes a header gives two. What finds no room in the worker's array waits for the next
// turn, in which the inner driver is then not polled: its spans and streams stay as they are.
//
// What lies below may know a stream by its addresses, as our own TCP does, so they are not written
// over: the worker gets a stream of ours, to which the inner one's `user` points. Deadlines all
// have the same length, so those who wait are a list in their order.

#include "drivers/proxy/proxy.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "drivers/proxy/header.h"

#define BURST_MAX 256 // events of the inner driver taken at once
#define EVENTS_OF_ONE 2 // OPENED and DATA
#define EXPIRED_MAX 256 // deadlines dealt with in one turn

// What a header was so far, when it came in pieces.
struct piece {
	struct piece *next; // while it is free
	uint32_t len;
	char bytes[HEADER_BYTES_MAX];
};

struct proxied {
	struct stream stream; // first: a struct stream of ours is a struct proxied
	struct stream *inner; // NULL: free, or STREAM_CLOSED was passed on in this turn
	bool is_open; // the header is there
	struct piece *piece; // NULL: nothing has come yet
	uint64_t deadline_us;
	TAILQ_ENTRY(proxied) list; // free, waiting or closed; none while it is open
};
TAILQ_HEAD(proxied_list, proxied);

struct proxy {
	struct stream_driver driver; // first
	struct stream_driver *inner;
	struct proxy_plan plan;
	struct proxied *all;
	struct proxied_list free, waiting, closed; // waiting: for the header, oldest first
	struct piece *pieces, *free_piece;

	struct stream_event burst[BURST_MAX];
	int burst_at, burst_count; // what is not passed on yet
	struct stream_event *out; // the worker's array
	int out_count;

	_Atomic uint64_t counters[PROXY_COUNTERS_COUNT];
};

static const struct stream_driver_ops ops;

static struct proxy *proxy_of(const struct stream_driver *driver)
{
	return (struct proxy *)(uintptr_t)driver;
}

static uint32_t piece_count(const struct proxy_plan *plan)
{
	uint32_t share = plan->streams_max / PROXY_PIECES_EVERY;
	return share > PROXY_PIECES_MIN ? share : PROXY_PIECES_MIN;
}

int proxy_create(
	const struct proxy_plan *plan, struct stream_driver *inner, struct stream_driver **driver)
{
	uint32_t pieces = piece_count(plan);
	struct proxy *p = calloc(1, sizeof(*p)); // COLD: at start
	if (!p)
		return -ENOMEM;
	p->driver = (struct stream_driver){.ops = &ops, .queue_high = inner->queue_high};
	p->inner = inner;
	p->plan = *plan;
	p->all = calloc(plan->streams_max, sizeof(*p->all)); // COLD: at start
	p->pieces = calloc(pieces, sizeof(*p->pieces)); // COLD: at start
	if (!p->all || !p->pieces) {
		free(p->pieces);
		free(p->all);
		free(p);
		return -ENOMEM;
	}
	TAILQ_INIT(&p->free);
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->closed);
	for (uint32_t i = 0; i < plan->streams_max; i++)
		TAILQ_INSERT_TAIL(&p->free, &p->all[i], list);
	for (uint32_t i = 0; i < pieces; i++) {
		p->pieces[i].next = p->free_piece;
		p->free_piece = &p->pieces[i];
	}
	*driver = &p->driver;
	return 0;
}

uint64_t proxy_stream_bytes(void)
{
	return sizeof(struct proxied) + sizeof(struct piece) / PROXY_PIECES_EVERY;
}

const struct stream_driver *proxy_inner(const struct stream_driver *driver)
{
	return driver->ops == &ops ? proxy_of(driver)->inner : driver;
}

// ---- Streams ----

static void count(struct proxy *p, enum proxy_counter which)
{
	_Atomic uint64_t *counter = &p->counters[which];
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

// The one that an address lies in; NULL: none.
static struct proxied *proxied_at(const struct proxy *p, const void *address)
{
	uintptr_t offset = (uintptr_t)address - (uintptr_t)p->all;
	bool is_ours = offset < p->plan.streams_max * sizeof(*p->all);
	return is_ours ? (struct proxied *)(uintptr_t)address : NULL;
}

static bool begins_with_header(const struct proxy *p, const struct stream *stream)
{
	return stream->listener < PROXY_LISTENERS_MAX && p->plan.listeners >> stream->listener & 1;
}

static void begin(struct proxy *p, struct stream *inner)
{
	struct proxied *s = TAILQ_FIRST(&p->free);
	assert(s); // there is one for each stream of the inner driver
	TAILQ_REMOVE(&p->free, s, list);
	*s = (struct proxied){.stream = *inner,
		.inner = inner,
		.deadline_us = p->inner->now_us + p->plan.header_ms * UINT64_C(1000)};
	TAILQ_INSERT_TAIL(&p->waiting, s, list);
	inner->user = s;
}

// It waits no more.
static void leave(struct proxy *p, struct proxied *s)
{
	if (s->piece) {
		s->piece->next = p->free_piece;
		p->free_piece = s->piece;
	}
	s->piece = NULL;
	TAILQ_REMOVE(&p->waiting, s, list);
}

static void give(struct proxy *p, struct proxied *s)
{
	s->inner = NULL;
	TAILQ_INSERT_HEAD(&p->free, s, list);
}

static void refuse(struct proxy *p, struct proxied *s, enum proxy_counter why)
{
	count(p, why);
	leave(p, s);
	stream_close(p->inner, s->inner, true);
	give(p, s);
}

// ---- Events ----

static void emit(struct proxy *p, enum stream_event_kind kind, struct proxied *s, struct span data)
{
	p->out[p->out_count++] =
		(struct stream_event){.kind = kind, .stream = &s->stream, .data = data};
}

// Keep what came of a header. Returns how many bytes were taken; 0: there is no room for a piece.
static size_t keep(struct proxy *p, struct proxied *s, struct span data)
{
	struct piece *piece = s->piece;
	if (!piece) {
		piece = p->free_piece;
		if (!piece)
			return 0;
		p->free_piece = piece->next;
		piece->len = 0;
		s->piece = piece;
	}
	size_t room = HEADER_BYTES_MAX - piece->len, len = data.len < room ? data.len : room;
	memcpy(piece->bytes + piece->len, data.at, len);
	piece->len += (uint32_t)len;
	return len;
}

// The header is there: the stream is the worker's from now on.
//   rest  what followed it
static void open_stream(
	struct proxy *p, struct proxied *s, const struct header *header, struct span rest)
{
	leave(p, s);
	s->is_open = true;
	if (header->has_addresses) {
		s->stream.peer = header->peer;
		s->stream.local = header->local;
	}
	emit(p, STREAM_OPENED, s, (struct span){0});
	if (rest.len > 0)
		emit(p, STREAM_DATA, s, rest);
}

static void take_header(struct proxy *p, struct proxied *s, struct span data)
{
	struct header header;
	size_t before = s->piece ? s->piece->len : 0;
	enum header_result result = before == 0 ? header_parse(data, &header) : HEADER_MORE;
	if (result == HEADER_MORE && keep(p, s, data) == 0) {
		refuse(p, s, PROXY_proxy_full);
		return;
	}
	if (before > 0)
		result = header_parse((struct span){s->piece->bytes, s->piece->len}, &header);
	if (result == HEADER_BAD)
		refuse(p, s, PROXY_proxy_bad);
	else if (result == HEADER_OK)
		open_stream(p, s, &header, span_from(data, header.bytes - before));
}

// An event of a stream of which the worker has not heard.
static void pass_waiting(struct proxy *p, struct proxied *s, const struct stream_event *event)
{
	if (event->kind == STREAM_DATA) {
		take_header(p, s, event->data);
	} else if (event->kind == STREAM_CLOSED) {
		count(p, PROXY_proxy_bad);
		leave(p, s);
		give(p, s);
	} else {
		refuse(p, s, PROXY_proxy_bad);
	}
}

static void pass(struct proxy *p, const struct stream_event *event)
{
	if (event->kind == STREAM_NONE)
		return;
	struct proxied *s = proxied_at(p, event->stream->user);
	if (!s && event->kind == STREAM_OPENED && begins_with_header(p, event->stream)) {
		begin(p, event->stream);
		return;
	}
	if (s && !s->is_open) {
		pass_waiting(p, s, event);
		return;
	}
	struct stream_event *out = &p->out[p->out_count++];
	*out = *event;
	if (!s)
		return;
	out->stream = &s->stream;
	if (event->kind == STREAM_CLOSED) {
		s->inner = NULL;
		TAILQ_INSERT_TAIL(&p->closed, s, list);
	}
}

static void expire(struct proxy *p)
{
	struct proxied *oldest;
	for (int i = 0; i < EXPIRED_MAX && (oldest = TAILQ_FIRST(&p->waiting)); i++) {
		if (oldest->deadline_us > p->driver.now_us)
			return;
		refuse(p, oldest, PROXY_proxy_late);
	}
}

static uint32_t until_deadline(const struct proxy *p, uint32_t wait_us)
{
	const struct proxied *oldest = TAILQ_FIRST(&p->waiting);
	if (!oldest || oldest->deadline_us >= p->inner->now_us + wait_us)
		return wait_us;
	if (oldest->deadline_us <= p->inner->now_us)
		return 0;
	return (uint32_t)(oldest->deadline_us - p->inner->now_us);
}

static void take_burst(struct proxy *p, uint32_t wait_us)
{
	p->burst_at = 0;
	p->burst_count = stream_poll(p->inner, p->burst, BURST_MAX, until_deadline(p, wait_us));
	p->driver.now_us = p->inner->now_us;
	p->driver.taken = p->inner->taken;
}

static int poll_inner(
	struct stream_driver *driver, struct stream_event *events, int events_max, uint32_t wait_us)
{
	assert(events_max >= STREAM_EVENTS_MIN);
	struct proxy *p = proxy_of(driver);
	struct proxied *s;
	while ((s = TAILQ_FIRST(&p->closed))) {
		TAILQ_REMOVE(&p->closed, s, list);
		give(p, s);
	}
	p->out = events;
	p->out_count = 0;
	driver->taken = 0;
	if (p->burst_at == p->burst_count)
		take_burst(p, wait_us);
	while (p->burst_at < p->burst_count && events_max - p->out_count >= EVENTS_OF_ONE)
		pass(p, &p->burst[p->burst_at++]);
	expire(p);
	return p->out_count;
}

// ---- Calls ----

// What a stream of the worker's is below; NULL: it has ended, and nothing is to be done.
static struct stream *inner_of(const struct stream_driver *driver, const struct stream *stream)
{
	struct proxied *s = proxied_at(proxy_of(driver), stream);
	return s ? s->inner : (struct stream *)(uintptr_t)stream;
}

static size_t write_stream(struct stream_driver *driver, struct stream *stream,
	const struct span *parts, unsigned part_count)
{
	struct stream *inner = inner_of(driver, stream);
	size_t bytes = 0;
	if (inner)
		return stream_write(proxy_of(driver)->inner, inner, parts, part_count);
	for (unsigned i = 0; i < part_count; i++)
		bytes += parts[i].len;
	return bytes;
}

static size_t queued(const struct stream_driver *driver, const struct stream *stream)
{
	struct stream *inner = inner_of(driver, stream);
	return inner ? stream_queued(proxy_of(driver)->inner, inner) : 0;
}

static void shut_stream(struct stream_driver *driver, struct stream *stream)
{
	struct stream *inner = inner_of(driver, stream);
	if (inner)
		stream_shut(proxy_of(driver)->inner, inner);
}

// The inner driver takes back what it has in our array; what we have passed on is ours to.
static void close_stream(struct stream_driver *driver, struct stream *stream, bool reset)
{
	struct proxy *p = proxy_of(driver);
	struct stream *inner = inner_of(driver, stream);
	for (int i = 0; i < p->out_count; i++)
		if (p->out[i].stream == stream)
			p->out[i].kind = STREAM_NONE;
	if (!inner)
		return; // it ends with the turn
	stream_close(p->inner, inner, reset);
	if (inner != stream)
		give(p, proxied_at(p, stream));
}

static void pause_stream(struct stream_driver *driver, struct stream *stream)
{
	struct stream *inner = inner_of(driver, stream);
	if (inner)
		stream_pause(proxy_of(driver)->inner, inner);
}

static void resume_stream(struct stream_driver *driver, struct stream *stream)
{
	struct stream *inner = inner_of(driver, stream);
	if (inner)
		stream_resume(proxy_of(driver)->inner, inner);
}

static struct stream *connect_stream(
	struct stream_driver *driver, const struct stream_address *to, void *user)
{
	return stream_connect(proxy_of(driver)->inner, to, user);
}

static void stop_accepting(struct stream_driver *driver)
{
	stream_stop_accepting(proxy_of(driver)->inner);
}

static void wake(struct stream_driver *driver)
{
	stream_wake(proxy_of(driver)->inner);
}

static void destroy(struct stream_driver *driver)
{
	struct proxy *p = proxy_of(driver);
	stream_destroy(p->inner);
	free(p->pieces);
	free(p->all);
	free(p);
}

static const struct stream_driver_ops ops = {
	.poll = poll_inner,
	.write = write_stream,
	.queued = queued,
	.shut = shut_stream,
	.close = close_stream,
	.pause = pause_stream,
	.resume = resume_stream,
	.connect = connect_stream,
	.stop_accepting = stop_accepting,
	.wake = wake,
	.destroy = destroy,
};

// ---- Counters ----

uint64_t proxy_counted(const struct stream_driver *driver, enum proxy_counter counter)
{
	assert(counter < PROXY_COUNTERS_COUNT);
	if (driver->ops != &ops)
		return 0;
	return atomic_load_explicit(&proxy_of(driver)->counters[counter], memory_order_relaxed);
}

#define X(name, text) #name,
static const char *const names[] = {PROXY_COUNTERS(X)};
#undef X
#define X(name, text) text,
static const char *const texts[] = {PROXY_COUNTERS(X)};
#undef X

const char *proxy_counter_name(enum proxy_counter counter)
{
	assert(counter < PROXY_COUNTERS_COUNT);
	return names[counter];
}

const char *proxy_counter_text(enum proxy_counter counter)
{
	assert(counter < PROXY_COUNTERS_COUNT);
	return texts[counter];
}
