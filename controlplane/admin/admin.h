// Commands for the running process: the server side of admin.socket.
//
// A client sends one JSON object a line and gets one back, in order:
//
//   {"command":"room","arguments":["derby","pause"]}
//   {"status":0,"text":"...","data":...}
//
// `status` is 0 or 1; `text` and `data` are there when the handler had something to say. Who may
// open the socket may do everything, so it is made with mode 0600. At most ADMIN_CLIENTS_MAX are
// served at once, the others wait to be accepted; a client's next command is read when it has taken
// the answer to the one before, so that a client costs one line and one answer. Who is silent, or
// takes nothing, for ADMIN_IDLE_S is hung up on.
//
// Control thread only, on its event loop. SIGPIPE must be ignored.
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#define ADMIN_CLIENTS_MAX 16
#define ADMIN_LINE_BYTES_MAX 65536 // of a command, its end included
#define ADMIN_ARGUMENTS_MAX 16
#define ADMIN_IDLE_S 30
#define ADMIN_LATER 2 // whether it is done is not known yet
#define ADMIN_SETTLE_MS 5 // between looks
#define ADMIN_SOCKET "admin.socket" // in the state directory

struct admin;

// One command and who carries it out. The function runs on the event loop and must not wait.
//   arguments  `count` of them, NUL-terminated, until it returns
//   data       may be set to a value for the client, whose reference the server takes over
//   text       what is written to it is for a person to read, instead of `data` if both are there;
//              on failure, why
// Returns 0 if done, another number if it failed, ADMIN_LATER if that is not known yet. Then
// `settled` is asked every ADMIN_SETTLE_MS, with what `data` is so far, until it returns another;
// what the function has written is for the client if that is 0. The client waits.
//   began_us  of CLOCK_MONOTONIC: when the function returned
struct admin_command {
	const char *name; // NULL: any, for one who knows no others
	int (*function)(void *context, unsigned count, const char *const *arguments, json_t **data,
		FILE *text);
	int (*settled)(void *context, uint64_t began_us, json_t **data, FILE *text);
};

// Open the socket, in place of one that a former process left behind.
//   path      of the socket; its folder belongs to this process
//   commands  `count` of them; borrowed, like context
// Returns 0 or -errno. Owned by the caller.
int admin_create(struct event_base *base, const char *path, const struct admin_command *commands,
	unsigned count, void *context, struct admin **admin);

// Hang up on everybody and remove the socket. Not from within a command. Accepts NULL.
void admin_destroy(struct admin *admin);
