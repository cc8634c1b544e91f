// A stream's life: what the engine reports and the worker asks for, as moves between the states of
// socket.h, and the events that come of them.
#pragma once

#include "drivers/sockets/core.h"

// ---- Reports of the engines. Each gives two events at the most; core_rooms() is asked first. ----

// A connection came in; takes `fd`.
void life_accepted(struct core *core, unsigned listener, int fd);

// accept failed; the engine stops accepting there until it is told to start again.
void life_accept_failed(struct core *core, unsigned listener, int error);

// Bytes came; they live until the next turn.
void life_received(struct core *core, struct socket *socket, struct span data);

// Nothing more will come: `error` is an errno, 0 for FIN.
void life_ended(struct core *core, struct socket *socket, int error);

// What engine_ops.await_writable() waited for.
void life_writable(struct core *core, struct socket *socket);

// The engine has let go of it: closes the descriptor and gives it back.
void life_released(struct core *core, struct socket *socket);

// Whether the engine should be receiving from it.
bool life_is_receiving(const struct socket *socket);

// ---- Steps of a turn. ----

// Let go of the streams that ended in the last turn, and end those that are due.
void life_begin_turn(struct core *core);

// When the first deadline is; UINT64_MAX: there is none.
uint64_t life_deadline_us(const struct core *core);

// Deal with the deadlines that have passed.
void life_expire(struct core *core);

// ---- Moves that calls of the worker cause. ----

// Take a socket for `fd` and put it in the engine's hands, in state `to`. NULL: the engine refused;
// `fd` is then closed, with RST. The caller has looked for room in the table.
struct socket *life_add(struct core *core, int fd, unsigned listener, enum socket_state to);

// Turn what the burst in hand still holds for it into STREAM_NONE.
void life_suppress(struct core *core, struct socket *socket);

// Have the next turn end it with STREAM_CLOSED; its queue is dropped. Nothing if that is so
// already.
void life_end_later(struct core *core, struct socket *socket, int error);

// Send FIN; the queue is empty. If the peer has ended too, the next turn ends the stream.
void life_send_fin(struct core *core, struct socket *socket);

// Send the rest of the queue with nobody looking, then let go.
void life_linger(struct core *core, struct socket *socket);

// Drop the queue and let go of it; with RST if `reset`.
void life_release(struct core *core, struct socket *socket, bool reset);
