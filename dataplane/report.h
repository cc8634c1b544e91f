// What a worker tells control, and what it hears back. The worker's thread only.
#pragma once

#include "dataplane/inside.h"

// Push a claim that somebody waits for. Returns false when it cannot be sent.
bool report_claim(struct worker *w, const struct claim *claim);
// Send a report, now or as soon as the ring takes it.
void report_send(struct worker *w, const struct claim *claim);
// A grant that nobody will hear of goes back, or its slot would be lost until the session's end.
void report_gone(struct worker *w, const struct claim_answer *answer);
// A place was drawn that nobody will ever know of: it is given back, and so is the use of a code.
void report_code_gone(struct worker *w, const struct claim_answer *answer);
// Somebody was forwarded uncounted (mode off).
void report_passed(struct worker *w, const struct gate_room *room);
// Re-send what waited; wake control if anything was pushed.
void report_flush(struct worker *w);
// Take answers of control and carry them out. Returns whether there were any.
bool report_answers(struct worker *w);
// Note a refused claim of a called ticket, so that floor waits for its holder.
void report_refused(struct worker *w, const struct claim *claim);
