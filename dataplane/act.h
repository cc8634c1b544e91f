// A decision carried out. The worker's thread only.
#pragma once

#include "dataplane/gate/answer.h"
#include "dataplane/inside.h"

// Decide a request of the burst and carry it out: answer, park, or forward.
void act(struct worker *w, struct item *item);
// A plain refusal, for heads that could not be read: status, and the connection closes.
void act_refuse(struct worker *w, struct conn *conn, unsigned status);
// 431, with the cookies expired that made the head so large.
void act_refuse_too_large(struct worker *w, struct conn *conn, struct span head);

// How answers on a connection are sent, apart from what its request says of that.
struct answer_frame act_frame(const struct worker *w, const struct conn *conn);

// The cookies to expire in the answer to a request.
//   adds  the answer sets one that the request did not bring
void act_find_stale(
	struct worker *w, const struct item *item, bool adds, struct carry_stale *stale);
