// Segments on their way out.
#pragma once

#include "dataplane/net/tcp/tcp.h"

// Render a segment into one buffer and send it; struct tcp_io.send.
//   ctx  the struct net
void out_send(void *ctx, const struct tcp_out *out);
