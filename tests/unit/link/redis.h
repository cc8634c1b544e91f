// Real servers for tests: redis-server, redis-sentinel, stunnel, each in a process that ends with
// the test, on sockets and loopback ports of a temporary folder.
#pragma once

#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REDIS_PATH_BYTES 96

// The folder of this test; made at the first call. redis_folder_remove() removes it and what is in
// it, once all processes have ended.
const char *redis_folder(void);
void redis_folder_remove(void);

// `name` in that folder. Returns `path`, of REDIS_PATH_BYTES.
const char *redis_path(const char *name, char *path);

// Write a file there.
void redis_write(const char *name, const char *text, mode_t mode);

// A loopback port that is free now.
uint16_t redis_port(void);

// Run a program until redis_stop(); its output goes to LOG in the folder.
pid_t redis_run(const char *log, const char *const *argv);
void redis_signal(pid_t pid, int signal);
void redis_stop(pid_t pid); // kill -9, and wait for its end

// redis-server on NAME.sock, and on `port` unless 0, with more arguments up to a NULL; ready when
// this returns.
pid_t redis_start(const char *name, uint32_t port, ...);

// A process that says `text` to whoever connects to NAME.sock, then `bytes` of 'x', and then
// nothing.
pid_t redis_pretend(const char *name, const char *text, size_t bytes);

// One that says `greeting` to whoever connects first, third, fifth, and `news` to the others.
pid_t redis_pretend_news(const char *name, const char *greeting, const char *news);

// Wait until something listens on a loopback port.
void redis_wait_port(uint16_t port);

// Ask a server something, waiting for the reply, which must be no error.
//   name  of its socket
__attribute__((format(printf, 2, 3))) void redis_tell(const char *name, const char *format, ...);
__attribute__((format(printf, 2, 3))) char *redis_ask(const char *name, const char *format, ...);
