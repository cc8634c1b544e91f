// The chunked transfer coding (RFC 9112 7.1), both ways: a decoder that is fed as bytes come, and
// what an encoder writes around its data.
//
// Strict: sizes are hex digits only, at most 16 of them; lines end in CRLF; extensions and trailer
// fields are checked against their grammar, bounded, and dropped.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

#define CHUNK_LINE_BYTES_MAX 256 // a chunk's size and extensions, without CRLF
#define CHUNK_TRAILER_BYTES_MAX 4096 // all trailer fields of a body, each with its CRLF

enum chunk_result {
	CHUNK_MORE, // all of `in` is consumed; call again with what follows
	CHUNK_DATA, // some data; call again with the rest of `in`
	CHUNK_DONE, // the body is over; what is not consumed belongs to the next message
	CHUNK_BAD, // against the grammar: close
	CHUNK_TOO_LARGE, // CHUNK_LINE_BYTES_MAX or CHUNK_TRAILER_BYTES_MAX is passed: close
};

// Where a decoder stands. Plain data, 16 bytes; all zero is the beginning of a body.
struct chunk_decoder {
	uint64_t left; // of the chunk's data; while its size line is read, the digits so far
	uint32_t line_bytes; // of the size line or of all trailers so far
	uint8_t digits; // of the size
	uint8_t state; // enum state in chunk.c
};

// Decode the next piece of a body.
//   in        bytes that follow those consumed so far
//   consumed  how many of them are used up, whatever is returned
//   data      on CHUNK_DATA a part of `in`, not empty; otherwise empty
// After CHUNK_DONE, CHUNK_BAD or CHUNK_TOO_LARGE the decoder answers the same again and consumes
// nothing. Pure; any thread.
enum chunk_result chunk_decode(
	struct chunk_decoder *decoder, struct span in, size_t *consumed, struct span *data);

#define CHUNK_HEAD_BYTES_MAX 18 // 16 digits and CRLF
#define CHUNK_TAIL SPAN("\r\n") // after a chunk's data
#define CHUNK_LAST SPAN("0\r\n\r\n") // after the last chunk: the end of the body

// Write what goes before `data_bytes` of data, above 0. Returns how many bytes that is.
size_t chunk_head_write(char out[static CHUNK_HEAD_BYTES_MAX], uint64_t data_bytes);
