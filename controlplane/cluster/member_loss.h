// Loss: what holds while the store is away, line by line. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// The store went away, or came back.
void member_loss_begin(struct member *m);
void member_loss_over(struct member *m);

// Answer a claim of a line while the store is away.
void member_loss_answer(
	struct member *m, struct member_inside_line *line, const struct claim *claim);

// A session is to end early: our workers refuse it from now on, and the ledger is to be told.
// Returns false if there is no room, and it goes on.
bool member_loss_end(struct member *m, struct member_inside_line *line, const struct claim *claim);

// A place is given up for another one: as a ticket that is given back. key 0: there is none.
void member_loss_give_up(struct member *m, uint32_t line_id, uint64_t key, uint64_t visitor);

// Whether anybody is granted in the line while the store is away.
bool member_loss_grants(const struct member *m, const struct member_inside_line *line);

// People that it lets through now.
uint32_t member_loss_people(struct member *m, struct member_inside_line *line);

// Move its threshold on, by itself.
void member_loss_turn(struct member *m, struct member_inside_line *line);
