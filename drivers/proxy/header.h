// The PROXY protocol header, versions 1 and 2 (haproxy.org, doc/proxy-protocol.txt): the addresses
// of the real peer, before its first byte.
#pragma once

#include "drivers/stream.h"

// The longest header that is taken. Version 1 cannot be longer than 107; version 2 may carry TLVs,
// of which real senders write a few hundred bytes.
#define HEADER_BYTES_MAX 2048

enum header_result {
	HEADER_OK,
	HEADER_MORE, // a header so far, but incomplete; call again with these and more bytes
	HEADER_BAD, // no header, or against its grammar, or too long
};

struct header {
	uint32_t bytes; // the stream itself begins there
	bool has_addresses; // false for LOCAL and UNKNOWN: the connection's own addresses count
	struct stream_address peer;
	struct stream_address local;
};

// Parse the header at the start of `in`.
//   header  filled only on HEADER_OK
// Strict: one space where one belongs, decimal numbers without leading zeros, addresses of the
// family named, TLVs that fill their length exactly (they are otherwise ignored). Pure; any thread.
enum header_result header_parse(struct span in, struct header *header);
