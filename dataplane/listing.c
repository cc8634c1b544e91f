// Lists of draws. A list lives until nobody sends it: control frees it when `readers` is 0 and no
// worker can begin.
//
// The wheel drives it, not the driver: a bounded piece is written, then the turn is over. So many
// megabytes cost no turn more than one piece.

#include "dataplane/listing.h"

#include "dataplane/client.h"
#include "dataplane/gate/draw.h"

#include <assert.h>

static_assert(LISTING_TURN_LINES * DRAW_LINE_BYTES <= REPLY_BYTES_MAX, "a piece fits");

static struct listing *listing_of(struct worker *w, const struct conn *conn)
{
	for (uint32_t i = 0; i < LISTING_MAX; i++)
		if (w->listings[i].conn == conn)
			return &w->listings[i];
	assert(!"a connection that lists, or a free place");
	return NULL;
}

void listing_begin(struct worker *w, struct conn *conn, struct draw_list *list)
{
	assert(conn->state == CONN_HEAD);
	atomic_fetch_add(&list->readers, 1);
	w->listing_count++;
	*listing_of(w, NULL) = (struct listing){.conn = conn, .list = list};
	conn_set_state(conn, CONN_LISTING);
	conn_leave(&w->conns, conn, CONN_IDLE);
	stream_pause(inside_driver(w, conn), conn->stream);
	client_set_deadline(w, conn, LISTING_TURN_MS);
}

void listing_end(struct worker *w, struct conn *conn)
{
	struct listing *listing = listing_of(w, conn);
	atomic_fetch_sub(&listing->list->readers, 1);
	w->listing_count--;
	*listing = (struct listing){0};
}

static void finish(struct worker *w, struct conn *conn)
{
	listing_end(w, conn);
	conn_set_state(conn, CONN_HEAD);
	stream_resume(inside_driver(w, conn), conn->stream);
	if (conn->kept && !conn->close_after)
		client_resume_later(w, conn);
	else
		client_answered(w, conn);
}

// The peer has not taken what was sent: wait, but not for ever.
static void wait_for_peer(struct worker *w, struct conn *conn, struct listing *listing)
{
	listing->stalled_ms += LISTING_TURN_MS;
	if (listing->stalled_ms > LISTING_STALL_MS)
		client_close(w, conn, true);
	else
		client_set_deadline(w, conn, LISTING_TURN_MS);
}

void listing_go_on(struct worker *w, struct conn *conn)
{
	struct stream_driver *driver = inside_driver(w, conn);
	struct listing *listing = listing_of(w, conn);
	assert(conn->state == CONN_LISTING);
	if (stream_queued(driver, conn->stream) > driver->queue_high / 2) {
		wait_for_peer(w, conn, listing);
		return;
	}
	const uint64_t left = listing->list->count - listing->sent;
	const uint64_t lines = left < LISTING_TURN_LINES ? left : LISTING_TURN_LINES;
	const struct span piece = {w->reply, lines * DRAW_LINE_BYTES};
	draw_text(listing->list->hashes, listing->sent, lines, w->reply);
	listing->sent += lines;
	listing->stalled_ms = 0;
	if (stream_write(driver, conn->stream, &piece, 1) < piece.len)
		client_close(w, conn, true);
	else if (lines < left)
		client_set_deadline(w, conn, LISTING_TURN_MS);
	else
		finish(w, conn);
}
