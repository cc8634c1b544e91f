// The value of `store`: where what must last is kept. It has the shape that value.c's table wants:
// NULL, or what is wrong with `text`.
#pragma once

#include "config/arena.h"
#include "config/key.h"

// struct config_store, of one of
//   embedded
//   redis://USER@HOST:PORT/DB
//   sentinel://USER@HOST:PORT,HOST:PORT/NAME/DB
//   unix://USER@PATH
// where `USER@` and `/DB` may be left out.
const char *store_url_read(const struct key *key, const char *text, struct arena *arena, void *to);
