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

void listing_begin(struct worker *w, struct conn *conn, struct draw_list *list)
{
	assert(conn->state == CONN_HEAD);
	atomic_fetch_add(&list->readers, 1);
	w->listing_count++;
	conn->list = list;
	conn->list_sent = 0;
	conn->discarded = 0;
	conn_set_state(conn, CONN_LISTING);
	conn_set_idle(&w->conns, conn, false);
	stream_pause(inside_driver(w, conn), conn->stream);
	client_set_deadline(w, conn, LISTING_TURN_MS);
}

void listing_end(struct worker *w, struct conn *conn)
{
	atomic_fetch_sub(&conn->list->readers, 1);
	w->listing_count--;
	conn->list = NULL;
}

static void finish(struct worker *w, struct conn *conn)
{
	listing_end(w, conn);
	conn_set_state(conn, CONN_HEAD);
	if (conn->buffered > 0 && !conn->close_after) {
		client_resume_later(w, conn);
		return;
	}
	stream_resume(inside_driver(w, conn), conn->stream);
	client_answered(w, conn);
}

void listing_go_on(struct worker *w, struct conn *conn)
{
	struct stream_driver *driver = inside_driver(w, conn);
	assert(conn->state == CONN_LISTING);
	if (stream_queued(driver, conn->stream) > driver->queue_high / 2) {
		conn->discarded += LISTING_TURN_MS; // of its patience
		if (conn->discarded > LISTING_STALL_MS)
			client_close(w, conn, true);
		else
			client_set_deadline(w, conn, LISTING_TURN_MS);
		return;
	}
	const uint64_t left = conn->list->count - conn->list_sent;
	const uint64_t lines = left < LISTING_TURN_LINES ? left : LISTING_TURN_LINES;
	const struct span piece = {w->reply, lines * DRAW_LINE_BYTES};
	conn->discarded = 0;
	draw_text(conn->list->hashes, conn->list_sent, lines, w->reply);
	conn->list_sent += lines;
	if (stream_write(driver, conn->stream, &piece, 1) < piece.len)
		client_close(w, conn, true);
	else if (lines < left)
		client_set_deadline(w, conn, LISTING_TURN_MS);
	else
		finish(w, conn);
}
