// The sending half's one deadline. For the files of the sending half; whose it is asks send.h.
#pragma once

#include "dataplane/net/tcp/work.h"

// Set it for what is under way now.
//   anew  the peer took something, or has made room: timeouts count from now
void send_due_set(struct tcp *t, struct tcp_conn *c, struct tcp_work_send *s, bool anew);
