// Runs a fuzz harness over random streams: noise, and noise with the grammar's own words in it, so
// that it gets past the first octet. Each input ends at an unmapped page.

#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"

#include <stdio.h>

#define STREAMS 10000u
#define STREAM_BYTES_MAX 1200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const words[] = {"\r\n", "\r\n", "\r\n\r\n", " ", ": ", ",", ";", "=", "\"", "0",
	"1", "a", "/", "*", "GET / HTTP/1.1\r\n", "POST /a HTTP/1.1\r\n", "\1HTTP/1.1 200 OK\r\n",
	"\2HTTP/1.0 404 \r\n", "Host: a\r\n", "Content-Length: 1\r\n", "Connection: a, close\r\n",
	"Transfer-Encoding: chunked\r\n", "Upgrade: b\r\n", "Expect: 100-continue\r\n", "\0013\r\n",
	"abc\r\n", "0\r\n", "text/html", "application/json", ";q=0.", "*/*", "en", "ja", "gzip",
	"br", "a=b; "};

static size_t random_stream(char out[STREAM_BYTES_MAX])
{
	size_t len = 0, max = dice(STREAM_BYTES_MAX);
	uint32_t noise = dice(4); // from all noise to hardly any
	while (len < max) {
		const char *word = words[dice(sizeof(words) / sizeof(words[0]))];
		size_t word_bytes = strlen(word);
		if (noise == 0 || dice(1 + noise * noise * 8) == 0)
			out[len++] = (char)dice(256);
		else if (len + word_bytes <= max)
			len = (char *)mempcpy(out + len, word, word_bytes) - out;
		else
			break;
	}
	return len;
}

int main(void)
{
	dice_begin();
	for (unsigned i = 0; i < STREAMS; i++) {
		char bytes[STREAM_BYTES_MAX];
		struct span in = guard_copy((struct span){bytes, random_stream(bytes)});
		LLVMFuzzerTestOneInput((const uint8_t *)in.at, in.len);
	}
	printf("%u streams\n", STREAMS);
	return 0;
}
