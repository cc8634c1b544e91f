// Links: the connections of a crowd, one for each of its members, on one io_uring.
//
// Connections are opened without waiting and kept until either side closes. Their events are taken
// one by one:
//
//   links_wait() ─▶ links_next() … links_next() ─▶ links_recycle()
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "drivers/span.h"
#include "drivers/uring/uring.h"

enum link_state {
	LINK_CLOSED,
	LINK_CONNECTING,
	LINK_OPEN,
};

struct link {
	int fd;
	uint32_t generation; // of the descriptor; completions of older ones are passed over
	uint8_t state; // enum link_state
};

struct links {
	struct uring uring;
	struct link *links;
	uint32_t count;
};

enum link_event_kind {
	LINK_EVENT_OPENED,
	LINK_EVENT_DATA,
	LINK_EVENT_ENDED, // refused, reset or closed by the other side; the link is closed
};

struct link_event {
	uint32_t id;
	uint8_t kind; // enum link_event_kind
	struct span data; // valid until links_recycle()
};

// For `count` links. Returns 0 or -errno.
int links_init(struct links *links, uint32_t count);
void links_fini(struct links *links);

// Begin to connect a closed link. OPENED or ENDED follows. Returns 0 or -errno: none will follow.
int links_open(struct links *links, uint32_t id, const struct sockaddr *to, socklen_t to_bytes);

// Send on an open link. Returns false if not all of it could be taken at once, which for a request
// on an idle connection means that it is dead.
bool links_send(struct links *links, uint32_t id, struct span data);

// No event of this connection follows. It may be closed already.
void links_close(struct links *links, uint32_t id);

// Wait for events, at most this long.
void links_wait(struct links *links, uint64_t wait_us);
bool links_next(struct links *links, struct link_event *event);
void links_recycle(struct links *links);
