// Every misuse of the contract of drivers/stream.h that a fake can see is an assertion: calls on
// streams that are gone, writes before a stream has opened or after stream_shut(). The bytes of a
// burst are freed by the next poll, so that the sanitizer sees who kept a span.

#include "tests/unit/origin/fake.h"

#include <assert.h>
#include <stdlib.h>

static void append(struct fake_bytes *to, const char *at, size_t len)
{
	if (to->len + len > to->room) {
		to->room = (to->len + len) * 2;
		to->at = realloc(to->at, to->room);
		assert(to->at);
	}
	if (len > 0)
		memcpy(to->at + to->len, at, len);
	to->len += len;
}

static void push(struct fake *fake, struct fake_stream *s, struct stream_event event)
{
	assert(fake->event_count < FAKE_EVENTS_MAX);
	if (!s->is_used)
		return;
	event.stream = &s->stream;
	fake->events[fake->event_count++] = event;
}

// Move bytes from the queue to the peer, as far as it takes them.
static void drain(struct fake *fake, struct fake_stream *s)
{
	size_t len = s->queue.len < s->window ? s->queue.len : s->window;
	append(&s->got, s->queue.at, len);
	if (len > 0)
		memmove(s->queue.at, s->queue.at + len, s->queue.len - len);
	s->queue.len -= len;
	if (s->window != SIZE_MAX)
		s->window -= len;
	if (s->queue.len == 0 && s->wants_writable) {
		s->wants_writable = false;
		push(fake, s, (struct stream_event){.kind = STREAM_WRITABLE});
	}
}

static int fake_poll(struct stream_driver *d, struct stream_event *events, int max, uint32_t wait)
{
	struct fake *fake = (struct fake *)d;
	(void)wait;
	int count = 0, left = 0;
	static char *bytes; // of the burst in hand: dies at the next poll
	free(bytes);
	bytes = malloc(fake->event_bytes.len + 1);
	assert(bytes);
	if (fake->event_bytes.len > 0)
		memcpy(bytes, fake->event_bytes.at, fake->event_bytes.len);
	for (int i = 0; i < fake->event_count; i++) {
		struct stream_event event = fake->events[i];
		struct fake_stream *s = (struct fake_stream *)event.stream;
		bool waits =
			s->is_paused && (event.kind == STREAM_DATA || event.kind == STREAM_EOF);
		if (!s->is_used)
			continue;
		if (waits || count == max) {
			fake->events[left++] = event;
			continue;
		}
		if (event.kind == STREAM_DATA)
			event.data.at = bytes + (size_t)event.data.at;
		events[count++] = event;
	}
	fake->burst = events;
	fake->burst_count = count;
	fake->event_count = left;
	if (left == 0)
		fake->event_bytes.len = 0;
	return count;
}

static size_t fake_write(
	struct stream_driver *d, struct stream *stream, const struct span *parts, unsigned count)
{
	struct fake_stream *s = (struct fake_stream *)stream;
	size_t taken = 0;
	assert(s->is_used);
	assert(s->is_open);
	assert(!s->is_shut);
	for (unsigned i = 0; i < count; i++) {
		size_t len = parts[i].len < s->take_max ? parts[i].len : s->take_max;
		append(&s->queue, parts[i].at, len);
		taken += len;
		if (s->take_max != SIZE_MAX)
			s->take_max -= len;
	}
	drain((struct fake *)d, s);
	if (s->queue.len > s->queued_peak)
		s->queued_peak = s->queue.len;
	s->wants_writable |= s->queue.len > d->queue_high;
	return taken;
}

static size_t fake_queued(const struct stream_driver *d, const struct stream *s)
{
	(void)d;
	assert(((const struct fake_stream *)s)->is_used);
	return ((const struct fake_stream *)s)->queue.len;
}

static void fake_shut(struct stream_driver *d, struct stream *s)
{
	(void)d;
	assert(((struct fake_stream *)s)->is_used);
	((struct fake_stream *)s)->is_shut = true;
}

static void fake_close(struct stream_driver *d, struct stream *stream, bool reset)
{
	struct fake_stream *s = (struct fake_stream *)stream;
	struct fake *fake = (struct fake *)d;
	assert(s->is_used);
	s->was_reset = reset;
	s->is_used = s->is_open = false;
	for (int i = 0; i < fake->burst_count; i++)
		if (fake->burst[i].stream == stream)
			fake->burst[i].kind = STREAM_NONE;
}

static void fake_pause(struct stream_driver *d, struct stream *s)
{
	(void)d;
	assert(((struct fake_stream *)s)->is_used);
	((struct fake_stream *)s)->is_paused = true;
}

static void fake_resume(struct stream_driver *d, struct stream *s)
{
	(void)d;
	assert(((struct fake_stream *)s)->is_used);
	((struct fake_stream *)s)->is_paused = false;
}

static struct fake_stream *take(struct fake *fake)
{
	assert(fake->count < FAKE_STREAMS_MAX);
	struct fake_stream *s = &fake->streams[fake->count++];
	*s = (struct fake_stream){.is_used = true, .window = SIZE_MAX, .take_max = SIZE_MAX};
	return s;
}

static struct stream *fake_connect(
	struct stream_driver *d, const struct stream_address *to, void *user)
{
	struct fake *fake = (struct fake *)d;
	if (fake->refuses)
		return NULL;
	struct fake_stream *s = take(fake);
	s->stream = (struct stream){.user = user, .listener = STREAM_CONNECTED, .peer = *to};
	return &s->stream;
}

static const struct stream_driver_ops ops = {
	.poll = fake_poll,
	.write = fake_write,
	.queued = fake_queued,
	.shut = fake_shut,
	.close = fake_close,
	.pause = fake_pause,
	.resume = fake_resume,
	.connect = fake_connect,
};

void fake_init(struct fake *fake)
{
	memset(fake, 0, sizeof(*fake));
	fake->driver = (struct stream_driver){.ops = &ops, .queue_high = FAKE_QUEUE_HIGH};
}

void fake_fini(struct fake *fake)
{
	struct stream_event none;
	fake->event_count = 0;
	fake_poll(&fake->driver, &none, 0, 0);
	for (int i = 0; i < fake->count; i++) {
		free(fake->streams[i].got.at);
		free(fake->streams[i].queue.at);
	}
	free(fake->event_bytes.at);
}

struct fake_stream *fake_accept(struct fake *fake)
{
	struct fake_stream *s = take(fake);
	s->is_open = true;
	s->stream.peer =
		(struct stream_address){.ip = {[10] = 0xff, 0xff, 192, 0, 2, 7}, .port = 4711};
	return s;
}

void fake_peer_opens(struct fake *fake, struct fake_stream *s)
{
	s->is_open = true;
	push(fake, s, (struct stream_event){.kind = STREAM_OPENED});
}

void fake_peer_sends(struct fake *fake, struct fake_stream *s, struct span data)
{
	if (data.len == 0)
		return;
	struct span at = {(const char *)fake->event_bytes.len, data.len}; // an offset until polled
	append(&fake->event_bytes, data.at, data.len);
	push(fake, s, (struct stream_event){.kind = STREAM_DATA, .data = at});
}

void fake_peer_ends(struct fake *fake, struct fake_stream *s)
{
	push(fake, s, (struct stream_event){.kind = STREAM_EOF});
}

void fake_peer_closes(struct fake *fake, struct fake_stream *s, int error)
{
	push(fake, s, (struct stream_event){.kind = STREAM_CLOSED, .error = error});
}

void fake_gone(struct stream *stream)
{
	struct fake_stream *s = (struct fake_stream *)stream;
	s->is_used = s->is_open = false;
}

void fake_peer_takes(struct fake *fake, struct fake_stream *s, size_t bytes)
{
	s->window = bytes;
	drain(fake, s);
}
